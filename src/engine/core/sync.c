/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/sync.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum { START_MAX_MS = 10000 };

int silt_sync_open(int ret_pair[2], struct silt_error *e)
{
    if (silt_fd_pair(SOCK_SEQPACKET, ret_pair, e) < 0)
        return -1;
    silt_fd_refuse_fds(ret_pair[0]);
    return 0;
}

int silt_sync_be_child(const int pair[2])
{
    (void)close(pair[0]);
    return pair[1];
}

int silt_sync_tell(int sync, enum silt_sync step, struct silt_error *e)
{
    uint32_t word = step;
    if (send(sync, &word, sizeof(word), MSG_NOSIGNAL) != (ssize_t)sizeof(word))
        return silt_fail_errno(e, "tell the child to go on");
    return 0;
}

static bool is_dead(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

/* End-of-file: the program runs, or the child died without reporting an error. */
int silt_sync_await_exec(int sync, int pidfd, struct silt_error *e)
{
    struct pollfd p = {.fd = sync, .events = POLLIN};
    struct silt_error theirs;
    int ready;
    do
        ready = poll(&p, 1, START_MAX_MS);
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return silt_fail(e, SILT_TIMEOUT, "the program did not start within %d ms", START_MAX_MS);
    ssize_t n = recv(sync, &theirs, sizeof(theirs), 0);
    if (n == (ssize_t)sizeof(theirs)) {
        *e = theirs;
        e->text[sizeof(e->text) - 1] = 0;
        return -1;
    }
    if (n != 0 || is_dead(pidfd))
        return silt_fail(e, SILT_INTERNAL, "the child died before its program ran");
    return 0;
}

int silt_sync_await(int sync, enum silt_sync step, struct silt_error *e)
{
    uint32_t word = 0;
    ssize_t n;
    do
        n = recv(sync, &word, sizeof(word), 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(word) || word != (uint32_t)step)
        return silt_fail(e, SILT_INTERRUPTED, "silt-priv went away");
    return 0;
}

_Noreturn void silt_sync_fail(int sync, const struct silt_error *e)
{
    (void)send(sync, e, sizeof(*e), MSG_NOSIGNAL);
    _exit(1);
}
