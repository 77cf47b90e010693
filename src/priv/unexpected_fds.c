/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/unexpected_fds.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATIENCE_US = 20000 };

static void on_alarm(int number)
{
    (void)number;
}

int silt_unexpected_fds_prepare(struct silt_error *e)
{
    struct sigaction wake = {.sa_handler = on_alarm}; /* no SA_RESTART */
    return sigaction(SIGALRM, &wake, NULL) < 0 ? silt_fail_errno(e, "prepare for alarms") : 0;
}

static void set_alarm(suseconds_t us)
{
    struct itimerval often = {.it_interval = {.tv_usec = us}, .it_value = {.tv_usec = us}};
    (void)setitimer(ITIMER_REAL, &often, NULL);
}

void silt_unexpected_fds_close(struct silt_parcel *p)
{
    if (p->nfds == 0)
        return;
    set_alarm(PATIENCE_US);
    silt_parcel_close(p);
    set_alarm(0);
}

/* After shutdown nothing can be added: empties the queue. */
static void drain(int channel)
{
    static char room[4096];
    struct silt_error e;
    int got;
    (void)shutdown(channel, SHUT_RDWR);
    if (silt_fd_nonblock(channel, &e) < 0)
        return;
    do {
        struct silt_parcel p = {.data = room, .len = sizeof(room)};
        got = silt_fd_recv(channel, &p, &e);
        silt_parcel_close(&p);
    } while (got > 0 || (got < 0 && e.code == SILT_PROTOCOL));
}

void silt_unexpected_fds_hang_up(int *channel)
{
    if (*channel < 0)
        return;
    set_alarm(PATIENCE_US);
    drain(*channel);
    silt_close_fd(channel);
    set_alarm(0);
}
