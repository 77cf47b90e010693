/* SPDX-License-Identifier: Apache-2.0 */
#include "internet.h"
#include "base/own.h"
#include "engine/network/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { CLIENTS_MAX = 1024, LISTENERS = 4, LOOPBACK = 1 };

static struct silt_error error;

static bool give(struct silt_rtnl *r, uint32_t index, const char *text, unsigned bits)
{
    silt_ip ip = {.family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET};
    return inet_pton(ip.family, text, ip.bytes) == 1
           && silt_rtnl_address(r, index, ip, bits, &error) == 0;
}

static bool lead(struct silt_rtnl *r, uint32_t index, const char *via)
{
    silt_ip ip = {.family = strchr(via, ':') != NULL ? AF_INET6 : AF_INET};
    return inet_pton(ip.family, via, ip.bytes) == 1
           && silt_rtnl_route(r, index, NULL, &ip, &error) == 0;
}

/* Public ones, and all that must not be reached. */
static const char *const addresses[] = {
    PUBLIC4,           "169.254.169.254",  "10.1.2.3",         "192.168.7.7",     "172.16.9.9",
    "100.100.100.200", "168.63.129.16",    "198.18.77.7",      "198.51.100.1",    PUBLIC6,
    "fd00:ec2::254",   "2001:db8:ffff::1", "64:ff9b::a01:203", "2002:a01:203::1", "10.77.0.1",
    "fd77::1",
};

static bool furnish_world(struct silt_rtnl *r)
{
    if (silt_rtnl_raise(r, LOOPBACK, &error) < 0)
        return false;
    for (size_t i = 0; i < SILT_COUNT(addresses); i++)
        if (!give(r, LOOPBACK, addresses[i], strchr(addresses[i], ':') != NULL ? 128 : 32))
            return false;
    return true;
}

static bool connect_world(struct silt_rtnl *r)
{
    return silt_rtnl_raise(r, WORLD_LINK, &error) == 0 && give(r, WORLD_LINK, "192.0.2.1", 24)
           && give(r, WORLD_LINK, "2001:db8:1::1", 64);
}

static bool connect_links(struct silt_rtnl *r, int world)
{
    struct silt_rtnl_end ends[2] = {{.name = "eth0", .index = WORLD_LINK, .ns = -1},
                                    {.name = "eth0", .index = WORLD_LINK, .ns = world}};
    return silt_rtnl_raise(r, LOOPBACK, &error) == 0 && silt_rtnl_pair(r, ends, 1500, &error) == 0;
}

static bool connect_host(struct silt_rtnl *r)
{
    return give(r, WORLD_LINK, HOST4, 24) && give(r, WORLD_LINK, HOST6, 64)
           && lead(r, WORLD_LINK, "192.0.2.1") && lead(r, WORLD_LINK, "2001:db8:1::1");
}

/* The server */

static int listen_on(int type, uint16_t port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0), yes = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &yes, sizeof(yes));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0
        || (type == SOCK_STREAM && listen(fd, 4096) < 0))
        _exit(1);
    return fd;
}

static int greeting(char *out, size_t size, const char *place, const struct sockaddr_in6 *from)
{
    char text[INET6_ADDRSTRLEN] = "";
    (void)inet_ntop(AF_INET6, &from->sin6_addr, text, sizeof(text));
    return snprintf(out, size, "%s %s\n", place, text);
}

static int greet(int listener, const char *place)
{
    struct sockaddr_in6 from;
    socklen_t len = sizeof(from);
    char text[128];
    int fd = accept4(listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
    if (fd >= 0
        && send(fd, text, (size_t)greeting(text, sizeof(text), place, &from), MSG_NOSIGNAL) < 0)
        silt_close_fd(&fd);
    return fd;
}

/* From the address that was asked, whichever of ours it is: the note of it goes back as it came. */
static void answer(int fd, const char *place)
{
    struct sockaddr_in6 from;
    char text[2048], control[256] __attribute__((aligned(8)));
    struct iovec part = {.iov_base = text, .iov_len = sizeof(text)};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof(from),
                       .msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    if (recvmsg(fd, &m, 0) < 0)
        return;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c == NULL)
        return;
    ((struct in6_pktinfo *)(void *)CMSG_DATA(c))->ipi6_ifindex = 0;
    part.iov_len = (size_t)greeting(text, sizeof(text), place, &from);
    (void)sendmsg(fd, &m, 0);
}

static void echo(struct pollfd *p)
{
    char text[4096];
    ssize_t n = recv(p->fd, text, sizeof(text), 0);
    if (n <= 0 || send(p->fd, text, (size_t)n, MSG_NOSIGNAL) < 0)
        silt_close_fd(&p->fd);
}

static _Noreturn void serve(const char *place, pid_t parent)
{
    static struct pollfd p[LISTENERS + CLIENTS_MAX];
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
        _exit(1);
    for (int i = 0; i < LISTENERS + CLIENTS_MAX; i++)
        p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    p[0].fd = listen_on(SOCK_DGRAM, ECHO_PORT);
    p[1].fd = listen_on(SOCK_STREAM, PORT);
    p[2].fd = listen_on(SOCK_STREAM, TLS_PORT);
    p[3].fd = listen_on(SOCK_STREAM, SSH_PORT);
    for (;;) {
        int free_one = 0;
        if (poll(p, LISTENERS + CLIENTS_MAX, -1) < 0)
            _exit(1);
        if (p[0].revents != 0)
            answer(p[0].fd, place);
        for (int i = LISTENERS; i < LISTENERS + CLIENTS_MAX; i++) {
            if (p[i].revents != 0)
                echo(&p[i]);
            if (p[i].fd < 0)
                free_one = i;
        }
        for (int i = 1; i < LISTENERS && free_one > 0; i++)
            if (p[i].revents != 0) {
                p[free_one] = (struct pollfd){.fd = greet(p[i].fd, place), .events = POLLIN};
                break; /* the others are still there in the next round */
            }
    }
}

static pid_t start_server(const char *place)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        serve(place, parent);
    return pid;
}

static bool make_world(struct internet *i)
{
    struct silt_rtnl r;
    if (unshare(CLONE_NEWNET) < 0 || silt_rtnl_open(&r, &error) < 0)
        return false;
    i->world = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    bool good = furnish_world(&r);
    silt_rtnl_close(&r);
    return good && i->world >= 0;
}

static bool make_host(struct internet *i)
{
    struct silt_rtnl r;
    if (unshare(CLONE_NEWNET) < 0 || silt_rtnl_open(&r, &error) < 0)
        return false;
    silt_auto_fd host = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    struct silt_rtnl in_world;
    bool good = connect_links(&r, i->world);
    silt_rtnl_close(&r);
    if (!good || setns(i->world, CLONE_NEWNET) < 0 || silt_rtnl_open(&in_world, &error) < 0)
        return false;
    good = connect_world(&in_world);
    silt_rtnl_close(&in_world);
    i->servers[1] = start_server("world");
    if (!good || setns(host, CLONE_NEWNET) < 0 || silt_rtnl_open(&r, &error) < 0)
        return false;
    good = connect_host(&r);
    silt_rtnl_close(&r);
    i->servers[0] = start_server("host");
    return good;
}

bool internet_open(struct internet *i)
{
    *i = (struct internet){.world = -1};
    if (make_world(i) && make_host(i))
        return true;
    printf("# no internet: %s\n", error.text);
    return false;
}

void internet_close(struct internet *i)
{
    for (int k = 0; k < 2; k++)
        if (i->servers[k] > 0) {
            (void)kill(i->servers[k], SIGKILL);
            (void)waitpid(i->servers[k], NULL, 0);
        }
    silt_close_fd(&i->world);
}
