/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/limit_events.h"

#include <string.h>
#include <unistd.h>

static uint64_t number_at(const char *text)
{
    uint64_t n = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    return n;
}

/* The number after `key` at the start of a line; with an empty key the file is the number. */
static uint64_t read_number(int fd, const char *key)
{
    char text[512];
    size_t key_len = strlen(key);
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = 0;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, key_len) == 0)
            return number_at(line + key_len);
        if (*line == 0)
            return 0;
    }
    return 0;
}

struct silt_limit_events_mark silt_limit_events_read(const struct silt_limit_events *m)
{
    return (struct silt_limit_events_mark){
        .oom_kills = read_number(m->oom, "oom_kill "),
        .refused_forks = read_number(m->pids, "max "),
    };
}

uint64_t silt_limit_events_peak(const struct silt_limit_events *m)
{
    return read_number(m->peak, "");
}
