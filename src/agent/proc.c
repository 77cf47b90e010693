/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/proc.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

bool silt_proc_is_process(pid_t id)
{
    return syscall(SYS_tgkill, id, id, 0) == 0;
}

static bool read_file(pid_t id, const char *file, char *text, size_t size)
{
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)id, file);
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

uint64_t silt_proc_status(pid_t id, const char *key, unsigned base)
{
    char text[4096];
    uint64_t n = 0;
    /* The name is the first line, escaped: nothing in it can look like the start of another. */
    const char *at = read_file(id, "status", text, sizeof(text)) ? strchr(text, '\n') : NULL;
    while (at != NULL && strncmp(at + 1, key, strlen(key)) != 0)
        at = strchr(at + 1, '\n');
    if (at == NULL)
        return 0;
    for (at += 1 + strlen(key); *at == '\t' || *at == ' ';)
        at++;
    for (; *at > ' '; at++)
        n = n * base + (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return n;
}

char silt_proc_activity(pid_t id)
{
    char text[256];
    if (!read_file(id, "stat", text, sizeof(text)))
        return 0;
    const char *end = strrchr(text, ')'); /* of a name that may hold anything */
    if (end == NULL || end[1] != ' ')
        return 0;
    return end[2];
}
