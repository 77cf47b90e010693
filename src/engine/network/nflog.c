/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/nflog.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <sys/socket.h>

enum {
    REFUSED = 1, /* groups */
    BEGUN = 2,
    HEADERS = 64,   /* bytes of a packet: both headers */
    ROOM = 1 << 20, /* socket buffer: for messages that arrive while silt-proxy restarts */
    WAIT = 10,      /* hundredths of a second that a message may be delayed */
    BUNDLE = 256,   /* connections per message, */
    LETTER = 14336, /* or as many as fit into this many bytes: each message wakes silt-proxy */
    ANSWER_ROOM = 4096,
};

static struct nlmsghdr *begin(char *room, uint16_t group)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
    g->version = NFNETLINK_V0;
    g->res_id = htons(group);
    return h;
}

static int ask(int fd, const struct nlmsghdr *h, struct silt_error *e)
{
    char room[ANSWER_ROOM] __attribute__((aligned(8)));
    if (send(fd, h, h->nlmsg_len, 0) < 0)
        return silt_fail_errno(e, "ask for the log of the rules");
    ssize_t n = recv(fd, room, sizeof(room), 0);
    if (n < 0 || mnl_cb_run(room, (size_t)n, 0, 0, NULL, NULL) < 0)
        return silt_fail_errno(e, "open the log of the rules");
    return 0;
}

/* `bundle`: events per message, or those of a tenth of a second. */
static int listen_to(int fd, uint16_t group, uint32_t bytes, uint32_t bundle, struct silt_error *e)
{
    char room[256] __attribute__((aligned(8)));
    struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
    struct nfulnl_msg_config_mode mode = {.copy_range = htonl(bytes),
                                          .copy_mode = NFULNL_COPY_PACKET};
    struct nlmsghdr *h = begin(room, group);
    mnl_attr_put(h, NFULA_CFG_CMD, sizeof(bind), &bind);
    if (ask(fd, h, e) < 0)
        return -1;
    h = begin(room, group);
    mnl_attr_put(h, NFULA_CFG_MODE, sizeof(mode), &mode);
    mnl_attr_put_u32(h, NFULA_CFG_TIMEOUT, htonl(WAIT));
    mnl_attr_put_u32(h, NFULA_CFG_QTHRESH, htonl(bundle));
    if (bundle > 1)
        mnl_attr_put_u32(h, NFULA_CFG_NLBUFSIZ, htonl(LETTER));
    return ask(fd, h, e);
}

int silt_nflog_open(int *ret_fd, struct silt_error *e)
{
    struct sockaddr_nl own = {.nl_family = AF_NETLINK};
    int room = ROOM;
    silt_auto_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0)
        return silt_fail_errno(e, "open a socket of netfilter");
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    if (listen_to(fd, REFUSED, HEADERS, 1, e) < 0 || listen_to(fd, BEGUN, 1, BUNDLE, e) < 0)
        return -1;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}
