/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cut.h"
#include "base/own.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
    ROOM = 32768,
    BATCH = 128,
    ROUNDS_MAX = 1024, /* of BATCH each: whoever makes more meanwhile meets the rules */
    ANSWER_MS = 1000,
};

struct found {
    struct inet_diag_sockid ids[BATCH];
    size_t count;
    int family;
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

static int on_socket(const struct nlmsghdr *h, void *context)
{
    struct found *f = context;
    const struct inet_diag_msg *m = mnl_nlmsg_get_payload(h);
    if (mnl_nlmsg_get_payload_len(h) < sizeof(*m) || is_loopback(m->idiag_family, m->id.idiag_dst))
        return MNL_CB_OK;
    if (f->count < BATCH)
        f->ids[f->count++] = m->id;
    return MNL_CB_OK;
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

/* The whole dump is read, also what no longer fits: the next question finds a quiet socket. */
static int find(int fd, int family, int protocol, struct found *f)
{
    static char room[ROOM] __attribute__((aligned(8)));
    *f = (struct found){.family = family};
    (void)begin(room, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, family, protocol);
    if (send(fd, room, ((struct nlmsghdr *)(void *)room)->nlmsg_len, 0) < 0)
        return -1;
    int more = MNL_CB_OK;
    while (more > MNL_CB_STOP) {
        ssize_t n = recv(fd, room, sizeof(room), 0);
        if (n <= 0)
            return -1;
        more = mnl_cb_run(room, (size_t)n, 0, 0, on_socket, f);
    }
    return more;
}

static int destroy(int fd, int family, int protocol, const struct inet_diag_sockid *id)
{
    char room[512] __attribute__((aligned(8)));
    struct inet_diag_req_v2 *q = begin(room, SOCK_DESTROY, NLM_F_ACK, family, protocol);
    q->id = *id;
    if (send(fd, room, ((struct nlmsghdr *)(void *)room)->nlmsg_len, 0) < 0)
        return -1;
    ssize_t n = recv(fd, room, sizeof(room), 0);
    return n > 0 && mnl_cb_run(room, (size_t)n, 0, 0, NULL, NULL) >= 0 ? 0 : -1;
}

/* A round that destroys nothing is the last: all are gone, or these cannot be destroyed. */
static void cut(int fd, int family, int protocol)
{
    struct found f;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        size_t gone = 0;
        if (find(fd, family, protocol, &f) < 0)
            return;
        for (size_t i = 0; i < f.count; i++)
            gone += destroy(fd, family, protocol, &f.ids[i]) == 0;
        if (gone == 0 || f.count < BATCH)
            return;
    }
}

void silt_cut_connections(void)
{
    struct timeval patience = {.tv_sec = ANSWER_MS / 1000};
    silt_auto_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        return;
    cut(fd, AF_INET, IPPROTO_TCP);
    cut(fd, AF_INET6, IPPROTO_TCP);
    cut(fd, AF_INET, IPPROTO_UDP);
    cut(fd, AF_INET6, IPPROTO_UDP);
}
