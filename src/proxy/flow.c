/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { ALIVE_S = 60 }; /* without a sign of life the other end is asked for one */

static int send_some(int fd, silt_slice *bytes, uint64_t *count)
{
    if (bytes->len == 0)
        return 0;
    ssize_t n = send(fd, bytes->data, bytes->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    bytes->data += n;
    bytes->len -= (size_t)n;
    *count += (uint64_t)n;
    return 0;
}

int silt_flow_flush(int fd, struct silt_buf *b, uint64_t *count)
{
    silt_slice rest = silt_buf_slice(b);
    if (b->broken || send_some(fd, &rest, count) < 0)
        return -1;
    silt_buf_drop(b, b->len - rest.len);
    if (b->len == 0 && b->cap > SILT_FLOW_KEEP)
        silt_buf_fini(b);
    return 0;
}

int silt_flow_forward(int fd, struct silt_buf *b, silt_slice bytes, uint64_t *count)
{
    if (b->len == 0 && send_some(fd, &bytes, count) < 0)
        return -1;
    silt_buf_add(b, bytes);
    return b->broken ? -1 : 0;
}

void silt_flow_reset_at_close(int fd)
{
    struct linger now = {.l_onoff = 1};
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void silt_flow_keep_alive(int fd)
{
    int yes = 1, idle = ALIVE_S, every = ALIVE_S / 4;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}
