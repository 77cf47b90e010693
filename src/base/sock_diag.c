/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sock_diag.h"
#include "base/own.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TCP_IS_OPEN = 1, TCP_LISTENS = 10 };

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

struct reply {
    struct nlmsghdr head;
    union {
        struct inet_diag_msg body;
        struct nlmsgerr error;
    };
    char attributes[512];
};

int silt_sock_diag_open(int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fd =
        socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return silt_fail_errno(e, "open sock_diag");
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* The kernel replies during the send. 0: found; ENOENT: no such socket; EIO: unknown. */
static int ask(int diag, const struct sockaddr_in *local, const struct sockaddr_in *remote,
               struct inet_diag_msg *ret)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct question q = {.head = {.nlmsg_len = sizeof(q),
                                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                  .nlmsg_flags = NLM_F_REQUEST},
                         .body = {.sdiag_family = AF_INET,
                                  .sdiag_protocol = IPPROTO_TCP,
                                  .idiag_states = UINT32_MAX}};
    struct reply r;
    while (recv(diag, &r, sizeof(r), MSG_DONTWAIT) > 0)
        continue; /* a late reply to an earlier request; rare */
    q.body.id.idiag_sport = local->sin_port;
    q.body.id.idiag_src[0] = local->sin_addr.s_addr;
    q.body.id.idiag_dport = remote->sin_port;
    q.body.id.idiag_dst[0] = remote->sin_addr.s_addr;
    q.body.id.idiag_cookie[0] = q.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (sendto(diag, &q, sizeof(q), 0, (struct sockaddr *)&kernel, sizeof(kernel))
        != (ssize_t)sizeof(q))
        return EIO;
    memset(&r, 0, sizeof(r));
    ssize_t n = recv(diag, &r, sizeof(r), MSG_DONTWAIT);
    if (n < (ssize_t)sizeof(r.head))
        return EIO;
    if (r.head.nlmsg_type == NLMSG_ERROR)
        return r.error.error == -ENOENT ? ENOENT : EIO;
    if (r.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || n < (ssize_t)(sizeof(r.head) + sizeof(r.body)))
        return EIO;
    *ret = r.body;
    return 0;
}

enum whose { SOMEBODYS, NOBODYS, NOT_KNOWN };

static enum whose look(int diag, int connection, uint32_t *ret_uid)
{
    struct sockaddr_in here = {0}, there = {0};
    socklen_t len = sizeof(here);
    struct inet_diag_msg found;
    if (getsockname(connection, (struct sockaddr *)&here, &len) < 0 || here.sin_family != AF_INET)
        return NOT_KNOWN;
    len = sizeof(there);
    if (getpeername(connection, (struct sockaddr *)&there, &len) < 0 || there.sin_family != AF_INET)
        return NOT_KNOWN;
    int answer = ask(diag, &there, &here, &found);
    if (answer != 0)
        return answer == ENOENT ? NOBODYS : NOT_KNOWN;
    /* If the connection is gone, the kernel reports the current listener on its port instead. */
    if (found.idiag_state == TCP_LISTENS || found.id.idiag_sport != there.sin_port
        || found.id.idiag_dport != here.sin_port)
        return NOBODYS;
    /* A socket without an inode is closed by its process or not accepted yet; the kernel reports
     * root as its owner. */
    if (found.idiag_inode == 0)
        return found.idiag_state == TCP_IS_OPEN ? NOT_KNOWN : NOBODYS;
    *ret_uid = found.idiag_uid;
    return SOMEBODYS;
}

bool silt_sock_diag_peer(int diag, int connection, uint32_t *ret_uid)
{
    return look(diag, connection, ret_uid) == SOMEBODYS;
}

bool silt_sock_diag_is_of(int diag, int connection, uint32_t uid)
{
    uint32_t found;
    enum whose whose = look(diag, connection, &found);
    return whose == NOBODYS || (whose == SOMEBODYS && (found == 0 || found == uid));
}

bool silt_sock_diag_listens(int diag, uint16_t port)
{
    struct sockaddr_in local = {.sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       nobody = {0};
    struct inet_diag_msg found;
    int answer = ask(diag, &local, &nobody, &found);
    return answer == 0 ? found.idiag_state == TCP_LISTENS : answer != ENOENT;
}
