/* SPDX-License-Identifier: Apache-2.0 */
/* bomb processes|threads N SECONDS: starts up to N that only wait, tells how many there are, waits
 * SECONDS, ends them. */
#define _GNU_SOURCE
#include "attempt.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *wait_for_ever(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

static int start_process(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        wait_for_ever(NULL);
    }
    return pid < 0 ? -1 : 0;
}

static int start_thread(void)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    return pthread_create(&thread, &small, wait_for_ever, NULL) == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 1;
    int (*start)(void) = strcmp(argv[1], "threads") == 0 ? start_thread : start_process;
    int started = 0;
    int wanted = atoi(argv[2]);
    int refused = 0;
    while (started < wanted && refused < 1000) { /* a bomb does not stop at the first refusal */
        if (start() == 0)
            started++;
        else
            refused++;
    }
    printf("started %d refused %d\n", started, refused);
    fflush(stdout);
    sleep((unsigned)atoi(argv[3]));
    return 0;
}
