/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit fork|vfork|crowd N: N families that never stand still: each process starts the next one
 * and ends. crowd: whoever else fits computes, so that little time is left. */
#define _GNU_SOURCE
#include "attempt.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void hop(char **argv, int by_vfork)
{
    for (;;) {
        (void)setsid();
        pid_t child = by_vfork ? vfork() : fork();
        if (child == 0 && by_vfork) {
            execv("/proc/self/exe", argv);
            _exit(1);
        }
        if (child > 0)
            _exit(0);
    }
}

static void start_family(char **argv, int by_vfork)
{
    if (fork() == 0)
        hop(argv, by_vfork);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 1;
    int by_vfork = strcmp(argv[1], "vfork") == 0;
    signal(SIGCHLD, SIG_IGN);
    if (strcmp(argv[2], "0") == 0) /* one that was executed by its parent */
        hop(argv, by_vfork);
    int families = atoi(argv[2]);
    argv[2] = "0";
    for (int i = 0; i < families; i++)
        start_family(argv, by_vfork);
    while (strcmp(argv[1], "crowd") == 0)
        if (fork() == 0)
            for (;;)
                ;
    printf("running\n");
    fflush(stdout);
    pause();
    return 0;
}
