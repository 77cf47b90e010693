/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/proctitle.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static char *shown; /* the kernel reads it on demand */

/* The map is set as a whole: unchanged fields must be passed as they are (man 5 proc,
 * /proc/pid/stat). */
static bool read_map(struct prctl_mm_map *m)
{
    char text[2048];
    silt_auto_fd fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    const char *rest = strrchr(text, ')');
    unsigned long long f[8];
    if (rest == NULL
        || sscanf(rest + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                  "%*u %*u %*d %*u"
                  " %llu %llu %llu %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %*u %*u %*u %*u %*d "
                  "%llu %llu %llu"
                  " %*u %*u %llu %llu",
                  &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7])
               != 8)
        return false;
    *m = (struct prctl_mm_map){.start_code = f[0],
                               .end_code = f[1],
                               .start_stack = f[2],
                               .start_data = f[3],
                               .end_data = f[4],
                               .start_brk = f[5],
                               .brk = (unsigned long)sbrk(0),
                               .env_start = f[6],
                               .env_end = f[7],
                               .exe_fd = (uint32_t)-1};
    return true;
}

void silt_proctitle_set(silt_slice arguments)
{
    struct prctl_mm_map map;
    silt_auto_free char *copy = arguments.len > 0 ? malloc(arguments.len) : NULL;
    if (copy == NULL || !read_map(&map))
        return;
    memcpy(copy, arguments.data, arguments.len);
    map.arg_start = (unsigned long)copy;
    map.arg_end = map.arg_start + arguments.len;
    if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) < 0)
        return;
    char *before = shown;
    shown = copy;
    copy = before;
}
