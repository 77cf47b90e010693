/* SPDX-License-Identifier: Apache-2.0 */
/* exe PID: tries to change the file behind /proc/PID/exe, also through a descriptor that only names
 * it. */
#define _GNU_SOURCE
#include "attempt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void through(const char *how, const char *path)
{
    char name[64];
    struct stat st;
    snprintf(name, sizeof name, "%s-stat", how);
    if (attempt(name, stat(path, &st)) < 0)
        return;
    snprintf(name, sizeof name, "%s-open", how);
    int fd = (int)attempt(name, open(path, O_WRONLY | O_CLOEXEC));
    if (fd >= 0) {
        snprintf(name, sizeof name, "%s-write", how);
        attempt(name, write(fd, "#!", 2));
        close(fd);
    }
    snprintf(name, sizeof name, "%s-truncate", how);
    attempt(name, truncate(path, st.st_size));
    snprintf(name, sizeof name, "%s-chmod", how);
    attempt(name, chmod(path, st.st_mode & 07777));
    snprintf(name, sizeof name, "%s-utimes", how);
    attempt(name, utimensat(AT_FDCWD, path, NULL, 0));
}

int main(int argc, char **argv)
{
    char exe[64];
    char held[64];
    snprintf(exe, sizeof exe, "/proc/%s/exe", argc > 1 ? argv[1] : "1");
    through("link", exe);
    int fd = (int)attempt("hold", open(exe, O_PATH | O_CLOEXEC));
    if (fd < 0)
        return 0;
    snprintf(held, sizeof held, "/proc/self/fd/%d", fd);
    through("held", held);
    return 0;
}
