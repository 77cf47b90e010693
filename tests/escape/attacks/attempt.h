/* SPDX-License-Identifier: Apache-2.0 */
/* attempt: every attack program prints one line per attempt: its name, then `ok` or the name of the
 * errno. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* These programs do harm where they are root of the whole machine: they end before main outside a
 * user namespace. */
__attribute__((constructor)) static void only_inside(void)
{
    unsigned long first = 0;
    unsigned long outside = 0;
    unsigned long count = 0;
    FILE *map = fopen("/proc/self/uid_map", "r");
    int fields = map ? fscanf(map, "%lu %lu %lu", &first, &outside, &count) : 0;
    if (fields != 3 || outside == 0) {
        fprintf(stderr, "this program only runs inside a sandbox\n");
        _Exit(99);
    }
    fclose(map);
}

__attribute__((unused)) static const char *errno_name(int e)
{
    switch (e) {
    case EPERM:
        return "EPERM";
    case ENOENT:
        return "ENOENT";
    case ESRCH:
        return "ESRCH";
    case EIO:
        return "EIO";
    case ENXIO:
        return "ENXIO";
    case EBADF:
        return "EBADF";
    case EACCES:
        return "EACCES";
    case EFAULT:
        return "EFAULT";
    case EBUSY:
        return "EBUSY";
    case ENODEV:
        return "ENODEV";
    case EINVAL:
        return "EINVAL";
    case ENOTTY:
        return "ENOTTY";
    case ETXTBSY:
        return "ETXTBSY";
    case ENOSPC:
        return "ENOSPC";
    case EROFS:
        return "EROFS";
    case ENOSYS:
        return "ENOSYS";
    case EAGAIN:
        return "EAGAIN";
    case ENOMEM:
        return "ENOMEM";
    case EOPNOTSUPP:
        return "EOPNOTSUPP";
    case EUSERS:
        return "EUSERS";
    default:
        return "other";
    }
}

/* Prints the attempt's outcome and gives it back: result >= 0 is a success of the attacker. */
__attribute__((unused)) static long attempt(const char *name, long result)
{
    printf("%s %s\n", name, result >= 0 ? "ok" : errno_name(errno));
    fflush(stdout);
    return result;
}
