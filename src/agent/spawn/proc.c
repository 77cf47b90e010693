/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/proc.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool silt_proc_is_process(pid_t id)
{
    return syscall(SYS_tgkill, id, id, 0) == 0;
}

static size_t read_file(pid_t id, const char *file, char *text, size_t size)
{
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)id, file);
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

uint64_t silt_proc_status(pid_t id, const char *key, unsigned base)
{
    char text[4096];
    uint64_t n = 0;
    /* The name is the first line, escaped: it cannot look like the start of another line. */
    const char *at = read_file(id, "status", text, sizeof(text)) > 0 ? strchr(text, '\n') : NULL;
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

enum { STAT_SIZE = 512 };

/* The part of `stat` after the name, which may contain anything: the state and the rest. */
static const char *stat_of(pid_t id, char text[STAT_SIZE])
{
    const char *end = read_file(id, "stat", text, STAT_SIZE) > 0 ? strrchr(text, ')') : NULL;
    return end != NULL && end[1] == ' ' ? end + 2 : NULL;
}

char silt_proc_activity(pid_t id)
{
    char text[STAT_SIZE];
    const char *at = stat_of(id, text);
    return at != NULL ? *at : 0;
}

/* Indexes of the numbers after the state. */
enum { PARENT, USER = 10, SYSTEM, CHILDREN_USER, CHILDREN_SYSTEM, STARTED = 18, NUMBERS };

static bool read_numbers(const char *at, long long numbers[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++) {
        at = at != NULL ? strchr(at, ' ') : NULL;
        if (at == NULL || sscanf(++at, "%lld", &numbers[i]) != 1)
            return false;
    }
    return true;
}

static int64_t ms_of(long long ticks)
{
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

char silt_proc_work(pid_t id, int64_t *ret_ms)
{
    char text[STAT_SIZE];
    long long n[NUMBERS];
    const char *at = stat_of(id, text);
    if (!read_numbers(at, n))
        return 0;
    *ret_ms = ms_of(n[USER] + n[SYSTEM] + n[CHILDREN_USER] + n[CHILDREN_SYSTEM]);
    return *at;
}

bool silt_proc_origin(pid_t id, pid_t *ret_parent, int64_t *ret_started_ms)
{
    char text[STAT_SIZE];
    long long n[NUMBERS];
    if (!read_numbers(stat_of(id, text), n))
        return false;
    *ret_parent = (pid_t)n[PARENT];
    *ret_started_ms = ms_of(n[STARTED]);
    return true;
}

/* Not read for a process that waits for a disk: we would wait with it. */
size_t silt_proc_title(pid_t id, char *text, size_t size)
{
    size_t len = silt_proc_activity(id) != 'D' ? read_file(id, "cmdline", text, size) : 0;
    if (len == 0) {
        char name[32];
        len = read_file(id, "comm", name, sizeof(name));
        name[len > 0 ? len - 1 : 0] = 0; /* strip the newline */
        (void)snprintf(text, size, "[%s]", name);
        return strlen(text);
    }
    while (len > 0 && text[len - 1] == 0)
        len--;
    for (size_t i = 0; i < len; i++)
        if (text[i] == 0)
            text[i] = ' ';
    return len;
}
