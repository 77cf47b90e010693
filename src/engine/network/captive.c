/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/captive.h"
#include "base/buf.h"
#include "base/fd.h"
#include "engine/network/nft.h"
#include "engine/network/rtnl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/in6.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Programs look for a non-loopback device before they believe in a network; no packet ever uses
 * it. */
#define DEVICE "eth0"
#define OTHER_END "eth0-end"
#define OWN4 "172.31.0.2"
#define OWN6 "fd73:696c:7402::2"

enum {
    LOOPBACK = 1,
    DEVICE_MTU = 1500,
    RULES_MAX = 4096,
    DNS_PORT = 53,
    /* Above the kernel's ephemeral ports, and not assigned to any service. */
    TCP_PORT = 61209,
    UDP_PORT = 61253,
};

static const silt_ip own4 = {AF_INET, {172, 31, 0, 2}};
static const silt_ip own6 = {AF_INET6, {0xfd, 0x73, 0x69, 0x6c, 0x74, 0x02, [15] = 2}};

/* For IPv4 and IPv6: traffic to the sandbox itself passes; everything else goes to the sockets, if
 * they exist. Connections are not tracked, so nothing has to be counted or deleted. A DNS response
 * leaves through the socket that received the query, and appears to come from the queried port. */
static int load_rules(struct silt_error *e)
{
    silt_auto_buf text;
    silt_buf_init(&text, RULES_MAX);
    silt_buf_addf(
        &text,
        "add table inet silt\n"
        "add chain inet silt arrive { type filter hook prerouting priority mangle; policy drop; }\n"
        "add rule inet silt arrive ip daddr { 127.0.0.0/8, " OWN4 " } accept\n"
        "add rule inet silt arrive ip6 daddr { ::1, " OWN6 " } accept\n"
        "add rule inet silt arrive meta l4proto tcp tproxy to :%d accept\n"
        "add rule inet silt arrive udp dport %d tproxy to :%d accept\n",
        TCP_PORT, DNS_PORT, UDP_PORT);
    silt_buf_addf(
        &text,
        "add chain inet silt leave { type filter hook output priority mangle; policy accept; }\n"
        "add rule inet silt leave udp sport %d udp sport set %d\n",
        UDP_PORT, DNS_PORT);
    return silt_nft_load(silt_buf_slice(&text), e);
}

static int quiet_ipv6(struct silt_error *e)
{
    if (silt_fd_put(AT_FDCWD, "/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1", e) < 0)
        return -1;
    return silt_fd_put(AT_FDCWD, "/proc/sys/net/ipv6/conf/default/accept_ra", "0", e);
}

static int lead_back(struct silt_rtnl *r, const silt_ip *own, struct silt_error *e)
{
    if (silt_rtnl_address(r, if_nametoindex(DEVICE), *own, (unsigned)silt_ip_bits(own->family), e)
        < 0)
        return -1;
    return silt_rtnl_own_all(r, LOOPBACK, own, e);
}

static int make_device(struct silt_rtnl *r, bool ipv6, struct silt_error *e)
{
    struct silt_rtnl_end ends[2] = {{.name = DEVICE, .ns = -1}, {.name = OTHER_END, .ns = -1}};
    if (silt_rtnl_pair(r, ends, DEVICE_MTU, e) < 0
        || silt_rtnl_raise(r, if_nametoindex(OTHER_END), e) < 0)
        return -1;
    if (lead_back(r, &own4, e) < 0)
        return -1;
    return ipv6 ? lead_back(r, &own6, e) : 0;
}

int silt_captive_furnish(bool ipv6, struct silt_error *e)
{
    struct silt_rtnl here;
    if (load_rules(e) < 0 || (ipv6 && quiet_ipv6(e) < 0) || silt_rtnl_open(&here, e) < 0)
        return -1;
    int done = make_device(&here, ipv6, e);
    silt_rtnl_close(&here);
    return done;
}

/* Sockets. */

static int set_four(int fd, enum silt_captive_socket kind)
{
    int yes = 1;
    if (setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &yes, sizeof(yes)) < 0)
        return -1;
    return kind == SILT_CAPTIVE_DNS
               ? setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &yes, sizeof(yes))
               : 0;
}

static int set_six(int fd, enum silt_captive_socket kind)
{
    int yes = 1;
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0
        || setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &yes, sizeof(yes)) < 0)
        return -1;
    return kind == SILT_CAPTIVE_DNS
               ? setsockopt(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &yes, sizeof(yes))
               : 0;
}

static int bind_any(int fd, int family, uint16_t port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    return family == AF_INET ? bind(fd, (struct sockaddr *)&four, sizeof(four))
                             : bind(fd, (struct sockaddr *)&six, sizeof(six));
}

static int open_socket(int family, enum silt_captive_socket kind, int *ret_fd, struct silt_error *e)
{
    bool tcp = kind == SILT_CAPTIVE_TCP;
    silt_auto_fd fd =
        socket(family, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (family == AF_INET ? set_four(fd, kind) : set_six(fd, kind)) < 0)
        return silt_fail_errno(e, "open a transparent socket");
    if (bind_any(fd, family, tcp ? TCP_PORT : UDP_PORT) < 0 || (tcp && listen(fd, SOMAXCONN) < 0)) {
        (void)silt_fail_errno(e, "bind a transparent socket");
        e->code = e->sys == EADDRINUSE ? SILT_CONFLICT : e->code;
        return -1;
    }
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

static int open_all(bool ipv6, int fds[SILT_CAPTIVE_SOCKETS], int *count, struct silt_error *e)
{
    uint32_t device = if_nametoindex(DEVICE);
    if (device == 0 || device > SILT_PLAN_INDEX_BASE)
        return silt_fail(e, SILT_UNAVAILABLE, "the sandbox is not captive");
    for (int family = AF_INET; family != 0; family = ipv6 && family == AF_INET ? AF_INET6 : 0)
        for (int kind = 0; kind < SILT_CAPTIVE_SOCKET_MAX; kind++, (*count)++)
            if (open_socket(family, (enum silt_captive_socket)kind, &fds[*count], e) < 0)
                return -1;
    return 0;
}

int silt_captive_open(int home, int pidfd, bool ipv6, int ret_fds[SILT_CAPTIVE_SOCKETS],
                      int *ret_count, struct silt_error *e)
{
    int count = 0;
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the sandbox's network");
    int done = open_all(ipv6, ret_fds, &count, e);
    if (setns(home, CLONE_NEWNET) < 0)
        abort(); /* never continue in a foreign namespace */
    while (done < 0 && count > 0)
        silt_close_fd(&ret_fds[--count]);
    *ret_count = count;
    return done;
}
