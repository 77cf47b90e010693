/* SPDX-License-Identifier: Apache-2.0 */
/* swap A B ROUNDS STOP: exchanges two names as fast as it can, at least ROUNDS times and until STOP
 * exists; prints how often. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EXCHANGE = 2 }; /* musl does not know RENAME_EXCHANGE */

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    long rounds = strtol(argv[3], NULL, 10), done = 0;
    for (; done < rounds || access(argv[4], F_OK) != 0; done++)
        if (syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], EXCHANGE) != 0)
            return 1;
    printf("%ld\n", done);
    return 0;
}
