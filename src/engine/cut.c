/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cut.h"
#include "base/clock.h"
#include "base/own.h"

#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
    ROOM = 32768,
    ANSWER_MS = 1000,
    ALL_MS = 1000, /* a guest may have made a million sockets; the rest meets the rules */
};

struct cutting {
    int list, destroy; /* sockets: the one is busy with the list */
    int family, protocol;
    int64_t until_ms;
    uint32_t gone; /* in this round */
};

static bool is_loopback(int family, const __be32 to[4])
{
    static const uint8_t zero[16], one[16] = {[15] = 1};
    static const uint8_t mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    const uint8_t *b = (const uint8_t *)to;
    if (family == AF_INET)
        return b[0] == 127 || memcmp(b, zero, 4) == 0;
    return memcmp(b, zero, 16) == 0 || memcmp(b, one, 16) == 0 || memcmp(b, mapped, 13) == 0;
}

static struct inet_diag_req_v2 *begin(char *room, uint16_t type, uint16_t flags, int family,
                                      int protocol)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = type;
    h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    struct inet_diag_req_v2 *q = mnl_nlmsg_put_extra_header(h, sizeof(*q));
    q->sdiag_family = (uint8_t)family;
    q->sdiag_protocol = (uint8_t)protocol;
    q->idiag_states = ~0U;
    return q;
}

static bool destroy(const struct cutting *c, const struct inet_diag_sockid *id)
{
    char room[512] __attribute__((aligned(8)));
    struct inet_diag_req_v2 *q = begin(room, SOCK_DESTROY, NLM_F_ACK, c->family, c->protocol);
    q->id = *id;
    if (send(c->destroy, room, ((struct nlmsghdr *)(void *)room)->nlmsg_len, 0) < 0)
        return false;
    ssize_t n = recv(c->destroy, room, sizeof(room), 0);
    return n > 0 && mnl_cb_run(room, (size_t)n, 0, 0, NULL, NULL) >= 0;
}

static int on_socket(const struct nlmsghdr *h, void *context)
{
    struct cutting *c = context;
    const struct inet_diag_msg *m = mnl_nlmsg_get_payload(h);
    if (mnl_nlmsg_get_payload_len(h) >= sizeof(*m)
        && !is_loopback(m->idiag_family, m->id.idiag_dst))
        c->gone += destroy(c, &m->id);
    return silt_clock_ms() < c->until_ms ? MNL_CB_OK : MNL_CB_ERROR;
}

static int cut_once(struct cutting *c)
{
    static char room[ROOM] __attribute__((aligned(8)));
    (void)begin(room, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, c->family, c->protocol);
    c->gone = 0;
    int more = MNL_CB_OK;
    if (send(c->list, room, ((struct nlmsghdr *)(void *)room)->nlmsg_len, 0) < 0)
        return -1;
    while (more > MNL_CB_STOP) {
        ssize_t n = recv(c->list, room, sizeof(room), 0);
        more = n <= 0 ? MNL_CB_ERROR : mnl_cb_run(room, (size_t)n, 0, 0, on_socket, c);
    }
    return more;
}

/* The kernel's list may pass over one whose neighbour has gone: until there is none left. */
static int cut(struct cutting *c, int family, int protocol)
{
    int got;
    c->family = family;
    c->protocol = protocol;
    do {
        got = cut_once(c);
    } while (got >= 0 && c->gone > 0);
    return got;
}

static int open_diag(void)
{
    struct timeval patience = {.tv_sec = ANSWER_MS / 1000};
    silt_auto_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        return -1;
    return silt_take_fd(&fd);
}

void silt_cut_connections(void)
{
    silt_auto_fd list = open_diag(), other = open_diag();
    struct cutting c = {.list = list, .destroy = other, .until_ms = silt_clock_ms() + ALL_MS};
    if (list < 0 || other < 0)
        return;
    /* The first that fails has used up the time, or this kernel cannot do it. */
    (void)(cut(&c, AF_INET, IPPROTO_TCP) < 0 || cut(&c, AF_INET6, IPPROTO_TCP) < 0
           || cut(&c, AF_INET, IPPROTO_UDP) < 0 || cut(&c, AF_INET6, IPPROTO_UDP) < 0);
}
