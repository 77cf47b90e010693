/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/devices.h"
#include "base/own.h"

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
    ROOM = 32768,
    ANSWER_S = 2,
    ROUTES_MAX = 200000, /* an internet router has more, but its default route comes early */
    BATCH = 256,
};

bool silt_devices_have(const struct silt_devices *d, const char *name)
{
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->names[i], name) == 0)
            return true;
    return false;
}

struct finding {
    struct silt_devices *devices;
    uint32_t routes;
    bool is_default; /* of the route being parsed */
};

static void add(struct silt_devices *d, uint32_t index)
{
    char name[IF_NAMESIZE];
    if (d->count == SILT_DEVICES_MAX || if_indextoname(index, name) == NULL)
        return;
    if (strcmp(name, "lo") == 0 || silt_devices_have(d, name)
        || strpbrk(name, "\"*\\") != NULL) /* characters that nft would interpret */
        return;
    memcpy(d->names[d->count++], name, sizeof(name));
}

static void add_paths(struct silt_devices *d, const struct nlattr *paths)
{
    const char *at = mnl_attr_get_payload(paths);
    int left = mnl_attr_get_payload_len(paths);
    for (const struct rtnexthop *h = (const void *)at; RTNH_OK(h, left); h = (const void *)at) {
        add(d, (uint32_t)h->rtnh_ifindex);
        left -= RTNH_ALIGN(h->rtnh_len);
        at += RTNH_ALIGN(h->rtnh_len);
    }
}

static int on_attribute(const struct nlattr *a, void *context)
{
    const struct finding *f = context;
    if (mnl_attr_get_type(a) == RTA_OIF)
        add(f->devices, mnl_attr_get_u32(a));
    else if (mnl_attr_get_type(a) == RTA_MULTIPATH)
        add_paths(f->devices, a);
    return MNL_CB_OK;
}

static int on_route(const struct nlmsghdr *h, void *context)
{
    struct finding *f = context;
    const struct rtmsg *t = mnl_nlmsg_get_payload(h);
    if (h->nlmsg_type == RTM_NEWROUTE && t->rtm_dst_len == 0 && t->rtm_type == RTN_UNICAST)
        (void)mnl_attr_parse(h, sizeof(*t), on_attribute, f);
    return ++f->routes < ROUTES_MAX ? MNL_CB_OK : MNL_CB_STOP;
}

static void find_family(int family, struct silt_devices *d)
{
    static char room[ROOM] __attribute__((aligned(8)));
    struct timeval patience = {.tv_sec = ANSWER_S};
    struct finding f = {.devices = d};
    silt_auto_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    h->nlmsg_type = RTM_GETROUTE;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    struct rtmsg *t = mnl_nlmsg_put_extra_header(h, sizeof(*t));
    t->rtm_family = (uint8_t)family;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0
        || send(fd, room, h->nlmsg_len, 0) < 0)
        return;
    int more = MNL_CB_OK;
    while (more > MNL_CB_STOP) {
        ssize_t n = recv(fd, room, sizeof(room), 0);
        more = n <= 0 ? MNL_CB_ERROR : mnl_cb_run(room, (size_t)n, 0, 0, on_route, &f);
    }
}

void silt_devices_find(struct silt_devices *ret)
{
    *ret = (struct silt_devices){0};
    find_family(AF_INET, ret);
    find_family(AF_INET6, ret);
}

uint32_t silt_devices_mtu(const struct silt_devices *d)
{
    silt_auto_fd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint32_t least = 0;
    for (size_t i = 0; i < d->count; i++) {
        struct ifreq q = {0};
        memcpy(q.ifr_name, d->names[i], IF_NAMESIZE);
        if (ioctl(sock, SIOCGIFMTU, &q) == 0 && (least == 0 || (uint32_t)q.ifr_mtu < least))
            least = (uint32_t)q.ifr_mtu;
    }
    return least;
}

int silt_devices_listen(int *ret_fd, struct silt_error *e)
{
    struct sockaddr_nl own = {.nl_family = AF_NETLINK,
                              .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE};
    silt_auto_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0)
        return silt_fail_errno(e, "listen to changes of routes");
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* A read also clears ENOBUFS: so much has happened that the kernel dropped messages. */
void silt_devices_heard(int fd)
{
    char room[256];
    for (int i = 0; i < BATCH && recv(fd, room, sizeof(room), 0) > 0; i++)
        ;
}
