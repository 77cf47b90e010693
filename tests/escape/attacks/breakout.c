/* SPDX-License-Identifier: Apache-2.0 */
/* breakout FILE: holds a directory, chroots below it, walks up as far as it goes, and reads FILE
 * from there. */
#define _GNU_SOURCE
#include "attempt.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char text[256];
    if (argc < 2)
        return 1;
    mkdir("/tmp/below", 0755);
    int held = open("/", O_RDONLY | O_DIRECTORY);
    if (attempt("hold", held) < 0 || attempt("chroot", chroot("/tmp/below")) < 0)
        return 0;
    attempt("fchdir", fchdir(held));
    for (int i = 0; i < 200; i++)
        if (chdir("..") != 0)
            break;
    attempt("chroot-up", chroot("."));
    int fd = (int)attempt("open", open(argv[1], O_RDONLY));
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n > 0)
        printf("text %.*s\n", (int)n, text);
    return 0;
}
