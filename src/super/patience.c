/* SPDX-License-Identifier: Apache-2.0 */
#include "super/patience.h"

#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

enum { PATIENCE_US = 100000 };

/* Only interrupts the wait. */
static void on_alarm(int number)
{
    (void)number;
}

/* Our parent may have blocked or ignored the signal. */
static void listen_to_alarm(void)
{
    struct sigaction action = {.sa_handler = on_alarm}; /* without SA_RESTART */
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGALRM);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void silt_patience_begin(void)
{
    /* Repeatedly: the first one may come just before the wait begins, and there may be several
     * waits. */
    const struct itimerval often = {.it_value = {.tv_usec = PATIENCE_US},
                                    .it_interval = {.tv_usec = PATIENCE_US}};
    listen_to_alarm();
    (void)setitimer(ITIMER_REAL, &often, NULL);
}

void silt_patience_end(void)
{
    const struct itimerval never = {0};
    (void)setitimer(ITIMER_REAL, &never, NULL);
}
