/* SPDX-License-Identifier: Apache-2.0 */
/* Mode captive: what silt-priv makes, with the test in the place of silt-proxy. */
#include "engine_tests.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { SLOT = 1, PATIENCE_MS = 5000, MANY = 200, AT_ONCE = 20 };

static const char *no_gate(struct world *w)
{
    return w->gate.ns < 0 ? "there is no nftables on this machine" : NULL;
}

static bool create(struct world *w, uint32_t slot, struct box *b)
{
    struct silt_priv_request q = create_request(slot, IMAGE_PLAIN, SILT_CREATE_FRESH);
    q.body.create.network = SILT_NET_CAPTIVE;
    return box_create_by(w, &q, b);
}

static enum silt_code code; /* of the last capture */

static bool capture(struct world *w, uint32_t slot, struct silt_parcel *ret)
{
    struct silt_priv_request q = {.op = SILT_PRIV_CAPTURE, .slot = slot};
    struct silt_priv_answer a;
    ask(w, &q, NULL, 0, &a, ret);
    code = a.ok ? SILT_OK : a.body.error.code;
    return a.ok != 0;
}

static bool finish(struct world *w, struct box *b, struct silt_parcel *sockets)
{
    silt_parcel_close(sockets);
    bool good = tell(w, SILT_PRIV_DESTROY, b->slot);
    box_close(b);
    return good;
}

/* Accepts, says where it was meant to go, and waits for nothing. */
static bool serve(int listener, char *out, size_t size)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    struct sockaddr_storage to;
    socklen_t len = sizeof(to);
    char address[INET6_ADDRSTRLEN] = "";
    if (poll(&p, 1, PATIENCE_MS) <= 0)
        return false;
    silt_auto_fd fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&to, &len) < 0)
        return false;
    const struct sockaddr_in *four = (void *)&to;
    const struct sockaddr_in6 *six = (void *)&to;
    bool is_four = to.ss_family == AF_INET;
    (void)inet_ntop(to.ss_family, is_four ? (const void *)&four->sin_addr : &six->sin6_addr,
                    address, sizeof(address));
    (void)snprintf(out, size, "%s %u", address, ntohs(is_four ? four->sin_port : six->sin6_port));
    return send(fd, "hello", 5, MSG_NOSIGNAL) == 5;
}

static bool leads_to(struct box *b, int listener, const char *where)
{
    char got[64] = "";
    char line[80];
    (void)snprintf(line, sizeof(line), "hold %s", where);
    CHECK_SAYS(b, line, "1 errno 0");
    CHECK(serve(listener, got, sizeof(got)));
    CHECK_SAYS(b, "hear", "hello");
    CHECK_SAYS(b, "release", "ok");
    CHECK(strcmp(got, where) == 0);
    return true;
}

static bool catches_connections(struct world *w)
{
    struct box b;
    struct silt_parcel s = {0};
    CHECK(create(w, SLOT, &b));
    CHECK(capture(w, SLOT, &s));
    CHECK(s.nfds == (w->gate.plan.ipv6 ? 4 : 2));
    CHECK(leads_to(&b, s.fds[SILT_CAPTIVE_TCP], "93.184.215.14 443"));
    CHECK(leads_to(&b, s.fds[SILT_CAPTIVE_TCP], "169.254.169.254 80"));
    CHECK(leads_to(&b, s.fds[SILT_CAPTIVE_TCP], "10.210.0.1 53"));
    if (w->gate.plan.ipv6)
        CHECK(leads_to(&b, s.fds[SILT_CAPTIVE_SOCKET_MAX + SILT_CAPTIVE_TCP], "2606:2800::1 443"));
    return finish(w, &b, &s);
}

/* Its own servers are its own, also on ports that connections to elsewhere go to. */
static bool leaves_its_own_alone(struct world *w)
{
    struct box b;
    struct silt_parcel s = {0};
    CHECK(create(w, SLOT, &b));
    CHECK(capture(w, SLOT, &s));
    CHECK_SAYS(&b, "listen 443", "ok");
    CHECK_SAYS(&b, "hold 127.0.0.1 443", "1 errno 0");
    CHECK_SAYS(&b, "hold ::1 443", "1 errno 0");
    CHECK_SAYS(&b, "hold 172.31.0.2 443", "1 errno 0");
    CHECK_SAYS(&b, "tcp 127.0.0.1 444", "errno 111");
    CHECK_SAYS(&b, "release", "ok");
    struct pollfd p = {.fd = s.fds[SILT_CAPTIVE_TCP], .events = POLLIN};
    CHECK(poll(&p, 1, 0) == 0);
    CHECK(leads_to(&b, s.fds[SILT_CAPTIVE_TCP], "93.184.215.14 443"));
    return finish(w, &b, &s);
}

/* Answers from the address that was asked, although it is nobody's. */
static bool answer_question(int fd)
{
    char data[64], control[256];
    struct sockaddr_in from, *was = NULL;
    struct iovec part = {data, sizeof(data)};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof(from),
                       .msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, PATIENCE_MS) <= 0 || recvmsg(fd, &m, 0) != 1)
        return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)
            was = (void *)CMSG_DATA(c);
    if (was == NULL || ntohs(was->sin_port) != 53)
        return false;
    struct in_pktinfo info = {.ipi_spec_dst = was->sin_addr};
    char out[CMSG_SPACE(sizeof(info))] = {0};
    struct iovec answer = {(char[]){"answer"}, 6};
    struct msghdr r = {.msg_name = &from,
                       .msg_namelen = sizeof(from),
                       .msg_iov = &answer,
                       .msg_iovlen = 1,
                       .msg_control = out,
                       .msg_controllen = sizeof(out)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&r);
    *c = (struct cmsghdr){
        .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof(info))};
    memcpy(CMSG_DATA(c), &info, sizeof(info));
    return sendmsg(fd, &r, 0) == 6;
}

static bool catches_questions(struct world *w)
{
    struct box b;
    struct silt_parcel s = {0};
    CHECK(create(w, SLOT, &b));
    CHECK(capture(w, SLOT, &s));
    pid_t server = fork();
    if (server == 0)
        _exit(answer_question(s.fds[SILT_CAPTIVE_DNS]) ? 0 : 1);
    CHECK_SAYS(&b, "udp 8.8.8.8 53", "answer");
    int status = 0;
    CHECK(waitpid(server, &status, 0) == server && status == 0);
    CHECK_SAYS(&b, "read /etc/resolv.conf", "nameserver 1.1.1.1\nnameserver 8.8.8.8\n");
    return finish(w, &b, &s);
}

static bool drops_the_rest(struct world *w)
{
    struct box b;
    struct silt_parcel s = {0};
    CHECK(create(w, SLOT, &b));
    CHECK_SAYS(&b, "tcp 93.184.215.14 443", "errno 110 slow"); /* nobody is there yet */
    CHECK(capture(w, SLOT, &s));
    CHECK_SAYS(&b, "udp 93.184.215.14 123", "silence slow");
    CHECK_SAYS(&b, "udp 10.210.0.1 54", "silence slow");
    struct pollfd p = {.fd = s.fds[SILT_CAPTIVE_DNS], .events = POLLIN};
    CHECK(poll(&p, 1, 0) == 0);
    return finish(w, &b, &s);
}

/* One has them at a time; they can be made again when whoever had them is gone. */
static bool makes_them_again(struct world *w)
{
    struct box b;
    struct silt_parcel s = {0}, again = {0};
    struct silt_priv_request q = create_request(2, IMAGE_PLAIN, SILT_CREATE_FRESH);
    CHECK(create(w, SLOT, &b));
    CHECK(capture(w, SLOT, &s));
    CHECK(!capture(w, SLOT, &again) && code == SILT_CONFLICT);
    silt_parcel_close(&s);
    s = (struct silt_parcel){0};
    CHECK(capture(w, SLOT, &s));
    world_crash_priv(w);
    world_start_priv(w, false);
    CHECK(leads_to(&b, s.fds[SILT_CAPTIVE_TCP], "93.184.215.14 443"));
    CHECK(!tell(w, SILT_PRIV_NETSTAT, SLOT) && last_code() == SILT_UNAVAILABLE);
    CHECK(finish(w, &b, &s));
    CHECK(!capture(w, SLOT, &again)); /* gone */
    CHECK(box_create_by(w, &q, &b));
    CHECK(!capture(w, 2, &again) && code == SILT_UNAVAILABLE); /* not captive */
    return finish(w, &b, &again);
}

static unsigned count_fds(const char *pid)
{
    char path[64];
    unsigned n = 0;
    (void)snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    DIR *d = opendir(path);
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        (void)closedir(d);
    return n;
}

/* A namespace lives as long as somebody has it, by a process or by a descriptor. */
static unsigned count_held(const struct world *w)
{
    char path[64], *text = NULL;
    size_t len;
    struct silt_error e;
    unsigned n = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", w->priv, w->priv);
    if (silt_fd_read_file(AT_FDCWD, path, 4096, &text, &len, &e) < 0)
        return 0;
    silt_slice rest = {text, len}, pid;
    while (silt_slice_split(&rest, ' ', &pid)) {
        char one[16];
        if (pid.len > 0 && silt_slice_to_cstr(pid, one, sizeof(one), &e) == 0)
            n += count_fds(one);
    }
    free(text);
    return n;
}

/* The pools have to be full again, and the janitor to have let go: that takes a while on a busy
 * machine. */
static bool comes_down_to(const struct world *w, unsigned limit)
{
    for (int tries = 0; tries < 60000 / 50; tries++) {
        if (count_held(w) <= limit)
            return true;
        (void)poll(NULL, 0, 50);
    }
    return false;
}

static bool leaves_nothing(struct world *w)
{
    struct box boxes[AT_ONCE];
    struct silt_parcel s[AT_ONCE];
    unsigned before = count_held(w);
    for (unsigned i = 0; i < MANY / AT_ONCE; i++) {
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            CHECK(create(w, k + 1, &boxes[k]));
            CHECK(capture(w, k + 1, &s[k]));
        }
        for (uint32_t k = 0; k < AT_ONCE; k++)
            CHECK(finish(w, &boxes[k], &s[k]));
    }
    CHECK(before > 0
          && comes_down_to(w, before + MANY / 2)); /* each has two descriptors, at least */
    return true;
}

const struct test captive_tests[] = {
    {"every connection of a captive sandbox comes to the sockets made inside, with its destination",
     catches_connections, no_gate},
    {"a captive sandbox's own servers are left alone", leaves_its_own_alone, no_gate},
    {"every question of a captive sandbox comes to a socket made inside, and is answered from "
     "where it went",
     catches_questions, no_gate},
    {"whatever else a captive sandbox sends is dropped", drops_the_rest, no_gate},
    {"one has a captive sandbox's sockets at a time, and they can be made again", makes_them_again,
     no_gate},
    {"two hundred captive sandboxes leave no namespace", leaves_nothing, no_gate},
    {NULL, NULL, NULL},
};
