/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy.h"
#include "base/ip_prefix.h"
#include "wire/super.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { PATIENCE_MS = 15000, A = 1, CNAME = 5, AAAA = 28 };

static struct silt_error error;

/* The resolver */

struct known {
    const char *name;
    int type;
    const char *value;
};
static const struct known names[] = {
    {"good.test", A, PUBLIC4},       {"good.test", AAAA, PUBLIC6},
    {"twin.test", A, PUBLIC4},       {"alias.test", CNAME, "good.test"},
    {"six.test", AAAA, PUBLIC6},     {"private.test", A, "10.1.2.3"},
    {"half.test", A, "10.1.2.3"},    {"half.test", A, PUBLIC4},
    {"opened.test", A, "10.77.0.1"}, {"private.test", AAAA, "fd00:ec2::254"},
};

static size_t put_name(char *at, const char *name)
{
    size_t n = 0;
    silt_slice rest = silt_slice_of(name), label;
    while (silt_slice_split(&rest, '.', &label)) {
        at[n++] = (char)label.len;
        memcpy(at + n, label.data, label.len);
        n += label.len;
    }
    at[n++] = 0;
    return n;
}

static size_t put_record(char *at, const struct known *k)
{
    char data[64];
    size_t owner = put_name(at, k->name), len;
    if (k->type == CNAME)
        len = put_name(data, k->value);
    else
        len = inet_pton(k->type == A ? AF_INET : AF_INET6, k->value, data) == 1
                  ? (k->type == A ? 4U : 16U)
                  : 0;
    const char fixed[] = {0, (char)k->type, 0, 1, 0, 0, 0, 5, 0, (char)len};
    memcpy(at + owner, fixed, sizeof(fixed));
    memcpy(at + owner + sizeof(fixed), data, len);
    return owner + sizeof(fixed) + len;
}

static size_t read_name(const char *at, char out[256])
{
    size_t n = 0, len = 0;
    while (at[n] != 0 && len < 250) {
        size_t label = (unsigned char)at[n++];
        memcpy(out + len, at + n, label);
        len += label;
        n += label;
        out[len++] = '.';
    }
    out[len > 0 ? len - 1 : 0] = 0;
    return n + 1;
}

static size_t answer(char *m)
{
    char wanted[256];
    const char *name = wanted;
    size_t at = 12 + read_name(m + 12, wanted) + 4;
    int type = m[at - 3], count = 0;
    m[2] = (char)0x81;
    m[3] = (char)0x80;
    for (size_t i = 0; i < SILT_COUNT(names); i++) {
        const struct known *k = &names[i];
        if (strcasecmp(k->name, name) != 0 || (k->type != type && k->type != CNAME))
            continue;
        at += put_record(m + at, k);
        count++;
        if (k->type == CNAME) {
            name = k->value;
            i = (size_t)-1;
        }
    }
    size_t len = strlen(wanted), tail = strlen(".nowhere");
    if (len > tail && strcasecmp(wanted + len - tail, ".nowhere") == 0)
        m[3] = (char)0x83;
    m[7] = (char)count;
    memset(m + 8, 0, 4);
    return at;
}

static _Noreturn void resolve(volatile unsigned *asked, int ready)
{
    static char m[4096];
    struct sockaddr_in from, own = {.sin_family = AF_INET, .sin_port = htons(53)};
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0
        || bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0)
        _exit(1);
    (void)close(ready);
    for (;;) {
        socklen_t len = sizeof(from);
        if (recvfrom(fd, m, 512, 0, (struct sockaddr *)&from, &len) < 17)
            continue;
        (*asked)++;
        (void)sendto(fd, m, answer(m), 0, (struct sockaddr *)&from, len);
    }
}

/* The processes */

static _Noreturn void be(const struct world *w, const char *role, const int *fds, int count)
{
    char program[128];
    int parked[24];
    (void)snprintf(program, sizeof(program), "%s/silt-proxy", w->programs);
    for (int i = 0; i < count; i++)
        parked[i] = fcntl(fds[i], F_DUPFD, 32);
    for (int i = 0; i < count; i++)
        if (dup2(parked[i], 3 + i) < 0)
            _exit(126);
    (void)close_range((unsigned)(3 + count), ~0U, 0);
    (void)execl(program, role, "--config=", "--network.resolvers=127.0.0.1",
                "--network.open=10.77.0.0/24, fd77::/64", "--network.connections=64",
                "--log.level=error", (char *)NULL);
    _exit(127);
}

static bool introduce(struct proxy *p)
{
    int egress[2], dial[2];
    struct silt_super_note note = {.type = SILT_SUPER_PEER, .key = SILT_SUPER_PAIR_EGRESS};
    struct silt_parcel out = {.data = &note, .len = sizeof(note), .nfds = 1};
    if (silt_fd_pair(SOCK_SEQPACKET, egress, &error) < 0
        || silt_fd_pair(SOCK_SEQPACKET, dial, &error) < 0)
        return false;
    out.fds[0] = egress[1];
    bool good = silt_fd_send(p->super[0], &out, &error) == 0;
    note.key = SILT_SUPER_PAIR_DIAL;
    out.fds[0] = dial[0];
    good = good && silt_fd_send(p->super[0], &out, &error) == 0;
    out.fds[0] = dial[1];
    good = good && silt_fd_send(p->super[1], &out, &error) == 0;
    (void)close(egress[1]);
    (void)close(dial[0]);
    (void)close(dial[1]);
    p->siltd = egress[0];
    return good;
}

static bool start(struct proxy *p, struct world *w)
{
    int egress[2], dial[2], fds[24], count = 0;
    if (silt_fd_pair(SOCK_SEQPACKET, egress, &error) < 0
        || silt_fd_pair(SOCK_SEQPACKET, dial, &error) < 0)
        return false;
    fds[count++] = egress[1];
    fds[count++] = w->gate.log;
    for (int i = 0; i < w->gate.nsockets; i++)
        fds[count++] = w->gate.sockets[i];
    p->egress = fork();
    if (p->egress == 0)
        be(w, "silt-proxy", fds, count);
    p->dial = fork();
    if (p->dial == 0) {
        if (setns(w->gate.ns, CLONE_NEWNET) < 0)
            _exit(126);
        be(w, "silt-dial", &dial[1], 1);
    }
    (void)close(egress[1]);
    (void)close(dial[1]);
    p->super[0] = egress[0];
    p->super[1] = dial[0];
    return introduce(p);
}

static void stop(struct proxy *p)
{
    pid_t all[] = {p->egress, p->dial};
    for (size_t i = 0; i < SILT_COUNT(all); i++)
        if (all[i] > 0) {
            (void)kill(all[i], SIGKILL);
            (void)waitpid(all[i], NULL, 0);
        }
    silt_close_fd(&p->super[0]);
    silt_close_fd(&p->super[1]);
    silt_close_fd(&p->siltd);
    p->egress = p->dial = 0;
}

bool proxy_open(struct proxy *p, struct world *w)
{
    int ready[2];
    char byte;
    if (p->resolver > 0)
        proxy_close(p); /* of a test that failed */
    *p = (struct proxy){.super = {-1, -1}, .siltd = -1};
    p->asked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p->asked == MAP_FAILED || pipe2(ready, O_CLOEXEC) < 0)
        return false;
    p->resolver = fork();
    if (p->resolver == 0)
        resolve(p->asked, ready[1]);
    (void)close(ready[1]);
    (void)!read(ready[0], &byte, 1); /* it listens */
    (void)close(ready[0]);
    return start(p, w);
}

void proxy_close(struct proxy *p)
{
    stop(p);
    if (p->resolver > 0) {
        (void)kill(p->resolver, SIGKILL);
        (void)waitpid(p->resolver, NULL, 0);
        p->resolver = 0;
    }
    (void)munmap((void *)(uintptr_t)p->asked, 4096);
}

void proxy_crash(struct proxy *p, struct world *w)
{
    stop(p);
    (void)start(p, w);
}

void proxy_new_siltd(struct proxy *p)
{
    silt_close_fd(&p->siltd);
    (void)introduce(p);
}

/* The talk */

bool proxy_tell(struct proxy *p, struct silt_egress_request q, const struct silt_egress_rule *rules)
{
    struct silt_parcel out = {.data = &q, .len = sizeof(q)};
    silt_auto_fd file = -1;
    if (rules != NULL) {
        file = memfd_create("policy", MFD_CLOEXEC);
        size_t size = q.set.rules * sizeof(*rules);
        if (write(file, rules, size) != (ssize_t)size)
            return false;
        out.fds[out.nfds++] = file;
    }
    return silt_fd_send(p->siltd, &out, &error) == 0;
}

bool proxy_hear(struct proxy *p, enum silt_egress_say type, struct silt_egress_note *ret)
{
    struct pollfd ready = {.fd = p->siltd, .events = POLLIN};
    while (poll(&ready, 1, PATIENCE_MS) > 0) {
        struct silt_parcel in = {.data = ret, .len = sizeof(*ret)};
        if (silt_fd_recv(p->siltd, &in, &error) <= 0 || in.len != sizeof(*ret))
            return false;
        if (ret->type == (uint32_t)type)
            return true;
    }
    return false;
}

static bool read_rule(silt_slice text, struct silt_egress_rule *r)
{
    silt_ip_prefix net;
    const char *colon = memrchr(text.data, ':', text.len);
    int low = 0, high = 0;
    if (colon == NULL)
        return false;
    int n = sscanf(colon, ":%d-%d", &low, &high);
    silt_slice what = {text.data, (size_t)(colon - text.data)};
    *r = (struct silt_egress_rule){.low = (uint16_t)low, .high = (uint16_t)(n == 2 ? high : low)};
    if (silt_ip_prefix_parse(what, &net, &error) == 0) {
        r->kind = net.family == 4 ? SILT_EGRESS_CIDR4 : SILT_EGRESS_CIDR6;
        r->bits = net.bits;
        memcpy(r->address, net.bytes, sizeof(r->address));
        return true;
    }
    r->kind = what.data[0] == '*' ? SILT_EGRESS_BELOW : SILT_EGRESS_EXACT;
    size_t skip = r->kind == SILT_EGRESS_BELOW ? 2 : 0;
    memcpy(r->name, what.data + skip, what.len - skip);
    return true;
}

bool proxy_allow(struct proxy *p, uint32_t link, const char *rules)
{
    struct silt_egress_rule list[16];
    struct silt_egress_request q = {
        .type = SILT_EGRESS_SET, .link = link, .generation = ++p->generation};
    struct silt_egress_note note;
    silt_slice rest = silt_slice_of(rules), one;
    while (silt_slice_split(&rest, ' ', &one))
        if (!read_rule(one, &list[q.set.rules++]))
            return false;
    return proxy_tell(p, q, list) && proxy_hear(p, SILT_EGRESS_APPLIED, &note) && note.link == link
           && note.generation == q.generation;
}
