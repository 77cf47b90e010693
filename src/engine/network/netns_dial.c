/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/netns_dial.h"
#include "base/own.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int open_inside(int home, int pidfd, int family, int *ret_fd, struct silt_error *e)
{
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the sandbox's network");
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int saved = errno;
    if (setns(home, CLONE_NEWNET) < 0)
        abort(); /* never continue in a foreign namespace */
    errno = saved;
    if (fd < 0)
        return silt_fail_errno(e, "open a socket inside");
    *ret_fd = fd;
    return 0;
}

static socklen_t loopback(int family, uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (family == AF_INET)
        memcpy(ret, &v4, sizeof(v4));
    else
        memcpy(ret, &v6, sizeof(v6));
    return family == AF_INET ? sizeof(v4) : sizeof(v6);
}

/* If no one listens, the kernel may pick the target port as our source port: the socket then
 * connects to itself. */
static bool is_itself(int fd)
{
    struct sockaddr_storage own = {0}, other = {0};
    socklen_t own_len = sizeof(own), other_len = sizeof(other);
    return getsockname(fd, (struct sockaddr *)&own, &own_len) == 0
           && getpeername(fd, (struct sockaddr *)&other, &other_len) == 0 && own_len == other_len
           && memcmp(&own, &other, own_len) == 0;
}

/* Over loopback the result is known by now, unless the service's backlog is full. */
static int outcome(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    struct linger at_once = {.l_onoff = 1};
    int error = 0;
    socklen_t len = sizeof(error);
    if (poll(&p, 1, 0) <= 0)
        return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return errno;
    if (error != 0 || !is_itself(fd))
        return error;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once,
                     sizeof(at_once)); /* otherwise the port stays in use */
    return ECONNREFUSED;
}

static int try_family(int home, int pidfd, int family, uint16_t port, int *ret_fd,
                      struct silt_error *e)
{
    struct sockaddr_storage to = {0};
    socklen_t len = loopback(family, port, &to);
    silt_auto_fd fd = -1;
    if (open_inside(home, pidfd, family, &fd, e) < 0)
        return -1;
    int error =
        connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS ? errno : outcome(fd);
    if (error != 0) {
        errno = error;
        return silt_fail_errno(e, "connect to port %u inside", port);
    }
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_netns_dial(int home, int pidfd, uint16_t port, int *ret_fd, struct silt_error *e)
{
    struct silt_error other = {0};
    if (try_family(home, pidfd, AF_INET, port, ret_fd, e) == 0)
        return 0;
    if (e->sys == ECONNREFUSED && try_family(home, pidfd, AF_INET6, port, ret_fd, &other) == 0)
        return 0;
    if (e->sys == ECONNREFUSED)
        e->code = SILT_UNAVAILABLE;
    return -1;
}
