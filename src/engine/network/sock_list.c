/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/sock_list.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
    ROOM = 32768,
    ANSWER_S = 1,
};

static int open_one(void)
{
    struct timeval patience = {.tv_sec = ANSWER_S};
    silt_auto_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        return -1;
    return silt_take_fd(&fd);
}

int silt_sock_list_open(struct silt_sock_list *d)
{
    silt_auto_fd list = open_one(), other = open_one();
    if (list < 0 || other < 0)
        return -1;
    *d = (struct silt_sock_list){.list = silt_take_fd(&list), .other = silt_take_fd(&other)};
    return 0;
}

void silt_sock_list_close(struct silt_sock_list *d)
{
    silt_close_fd(&d->list);
    silt_close_fd(&d->other);
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

static bool post(int fd, const char *room)
{
    return send(fd, room, ((const struct nlmsghdr *)(const void *)room)->nlmsg_len, 0) >= 0;
}

static int on_attribute(const struct nlattr *a, void *context)
{
    struct silt_sock_list_socket *s = context;
    uint32_t m[SK_MEMINFO_VARS];
    if (mnl_attr_get_type(a) != INET_DIAG_SKMEMINFO
        || mnl_attr_get_payload_len(a) < SK_MEMINFO_OPTMEM * sizeof(m[0]))
        return MNL_CB_OK;
    memcpy(m, mnl_attr_get_payload(a), SK_MEMINFO_OPTMEM * sizeof(m[0]));
    int32_t ahead = (int32_t)m[SK_MEMINFO_FWD_ALLOC]; /* may be negative for a moment */
    s->memory = (uint64_t)m[SK_MEMINFO_RMEM_ALLOC] + m[SK_MEMINFO_WMEM_QUEUED]
                + (ahead > 0 ? (uint32_t)ahead : 0);
    s->receive_max = m[SK_MEMINFO_RCVBUF];
    return MNL_CB_OK;
}

bool silt_sock_list_read(const struct nlmsghdr *h, int protocol, struct silt_sock_list_socket *ret)
{
    const struct inet_diag_msg *m = mnl_nlmsg_get_payload(h);
    if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || h->nlmsg_len < NLMSG_HDRLEN + sizeof(*m))
        return false;
    *ret = (struct silt_sock_list_socket){.id = m->id,
                                          .family = m->idiag_family,
                                          .protocol = protocol,
                                          .state = m->idiag_state,
                                          .port = ntohs(m->id.idiag_sport),
                                          .uid = m->idiag_uid,
                                          .held = m->idiag_inode != 0,
                                          .backlog =
                                              m->idiag_state == TCP_LISTEN ? m->idiag_rqueue : 0};
    (void)mnl_attr_parse(h, sizeof(*m), on_attribute, ret);
    return true;
}

struct listing {
    silt_sock_list_each_fn *each;
    void *context;
    int protocol;
};

static int on_message(const struct nlmsghdr *h, void *context)
{
    const struct listing *l = context;
    struct silt_sock_list_socket s;
    return !silt_sock_list_read(h, l->protocol, &s) || l->each(l->context, &s) ? MNL_CB_OK
                                                                               : MNL_CB_ERROR;
}

int silt_sock_list_each(const struct silt_sock_list *d, const struct silt_sock_list_query *q,
                        silt_sock_list_each_fn *each, void *context)
{
    static char room[ROOM] __attribute__((aligned(8)));
    struct listing l = {.each = each, .context = context, .protocol = q->protocol};
    struct inet_diag_req_v2 *request =
        begin(room, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, q->family, q->protocol);
    request->idiag_states = q->states;
    request->id.idiag_sport = htons(q->port);
    request->idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1);
    int more = post(d->list, room) ? MNL_CB_OK : MNL_CB_ERROR;
    while (more > MNL_CB_STOP) {
        ssize_t n = recv(d->list, room, sizeof(room), 0);
        more = n <= 0 ? MNL_CB_ERROR : mnl_cb_run(room, (size_t)n, 0, 0, on_message, &l);
    }
    return more;
}

bool silt_sock_list_destroy(const struct silt_sock_list *d, const struct silt_sock_list_socket *s)
{
    char room[512] __attribute__((aligned(8)));
    struct inet_diag_req_v2 *q = begin(room, SOCK_DESTROY, NLM_F_ACK, s->family, s->protocol);
    q->id = s->id;
    if (!post(d->other, room))
        return false;
    ssize_t n = recv(d->other, room, sizeof(room), 0);
    return n > 0 && mnl_cb_run(room, (size_t)n, 0, 0, NULL, NULL) >= 0;
}
