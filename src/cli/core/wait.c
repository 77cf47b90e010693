/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* A signalfd instead of a handler: ppoll does not deliver a signal while the other descriptor is
 * ready, and during a fast download it always is. */
static int interrupts = -1;
static bool holds_all; /* SIGTERM and SIGHUP, too */

static void caught_signals(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGINT);
    if (!holds_all)
        return;
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGHUP);
}

int silt_wait_hold_signals(struct silt_error *e)
{
    sigset_t set;
    holds_all = true;
    caught_signals(&set);
    return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? silt_fail_errno(e, "hold signals back") : 0;
}

int silt_wait_catch_interrupt(struct silt_error *e)
{
    sigset_t set;
    caught_signals(&set);
    if (interrupts < 0)
        interrupts = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (interrupts < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return silt_fail_errno(e, "catch Ctrl-C");
    return 0;
}

void silt_wait_forget_interrupt(void)
{
    struct signalfd_siginfo told;
    while (read(interrupts, &told, sizeof(told)) > 0)
        ;
}

void silt_wait_leave_interrupt(void)
{
    sigset_t set;
    caught_signals(&set);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int silt_wait_for(int fd, short events, int limit_ms, short *ret_ready, struct silt_error *e)
{
    struct pollfd p[2] = {{.fd = fd, .events = events}, {.fd = interrupts, .events = POLLIN}};
    for (;;) {
        int n = poll(p, 2, limit_ms);
        if (n < 0 && errno != EINTR)
            return silt_fail_errno(e, "wait");
        if (n == 0)
            return silt_fail(e, SILT_TIMEOUT, "nothing for %d s", limit_ms / 1000);
        if (n > 0 && p[1].revents != 0)
            return silt_fail(e, SILT_INTERRUPTED, "interrupted");
        if (n > 0) {
            *ret_ready = p[0].revents;
            return 0;
        }
    }
}
