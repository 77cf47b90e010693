/* SPDX-License-Identifier: Apache-2.0 */
/* Mode allow: what silt-proxy lets through, with the test in the place of siltd. */
#include "engine_tests.h"
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>

enum { A = 1, TXT = 16, AAAA = 28, HTTPS_RECORD = 65, REFUSED = 5, SLOT = 1 };

static struct proxy proxy;
static char hex[32768];
static uint32_t own_link;

static const char *no_gate(struct world *w)
{
    return w->gate.ns < 0 ? "there is no nftables on this machine" : NULL;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool set_mode(struct world *w, enum silt_net_mode mode)
{
    struct silt_priv_request q = {.op = SILT_PRIV_NETWORK, .slot = SLOT, .body.network = mode};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    ask(w, &q, NULL, 0, &a, &fds);
    return a.ok && a.link != 0;
}

static uint32_t link_of(struct world *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_NETSTAT, .slot = SLOT};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    ask(w, &q, NULL, 0, &a, &fds);
    return a.ok ? a.link : 0;
}

/* A sandbox in this mode, and a silt-proxy that has just started. */
static bool begin(struct world *w, struct box *b, enum silt_net_mode mode)
{
    struct silt_priv_request q = create_request(SLOT, IMAGE_PLAIN, SILT_CREATE_FRESH);
    q.body.create.network = mode;
    if (!proxy_open(&proxy, w) || !box_create_by(w, &q, b))
        return false;
    own_link = link_of(w);
    return own_link != 0;
}

static bool begin_allow(struct world *w, struct box *b, const char *rules)
{
    return begin(w, b, SILT_NET_ALLOW) && proxy_allow(&proxy, link_of(w), rules);
}

static bool finish(struct world *w, struct box *b)
{
    bool good = tell(w, SILT_PRIV_DESTROY, b->slot);
    box_close(b);
    proxy_close(&proxy);
    return good;
}

static bool is_told(enum silt_egress_reason reason, enum silt_egress_protocol protocol, int port,
                    const char *name)
{
    struct silt_egress_note n;
    const struct silt_egress_refusal *r = &n.body.refusal;
    do { /* the gate may tell late of a sandbox that was there before */
        if (!proxy_hear(&proxy, SILT_EGRESS_REFUSED, &n)) {
            printf("# nothing was told\n");
            return false;
        }
    } while (n.link != own_link);
    if (r->reason == reason && r->protocol == protocol && r->port == port
        && strcmp(r->name, name) == 0)
        return true;
    printf("# told: reason %u protocol %u port %u name %s\n", r->reason, r->protocol, r->port,
           r->name);
    return false;
}

static const char *to_hex(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)bytes[i]);
    hex[2 * len] = 0;
    return hex;
}

/* Names */

static size_t question(const char *name, int type, char *out)
{
    static const char head[12] = {0x12, 0x34, 1, 0, 0, 1};
    size_t n = sizeof(head);
    silt_slice rest = silt_slice_of(name), label;
    memcpy(out, head, sizeof(head));
    while (silt_slice_split(&rest, '.', &label)) {
        out[n++] = (char)label.len;
        memcpy(out + n, label.data, label.len);
        n += label.len;
    }
    memcpy(out + n, (char[]){0, 0, (char)type, 0, 1}, 5);
    return n + 5;
}

/* "code of the answer/number of records" */
static const char *asks(struct box *b, const char *name, int type)
{
    static char said[64];
    char bytes[512];
    unsigned id, flags, questions, answers;
    size_t len = question(name, type, bytes);
    const char *got = box_say(b, "ask %s", to_hex(bytes, len));
    if (sscanf(got, "%4x%4x%4x%4x", &id, &flags, &questions, &answers) != 4 || id != 0x1234)
        return got;
    (void)snprintf(said, sizeof(said), "%u/%u", flags & 15, answers);
    return said;
}

static bool asks_well(struct box *b, const char *name)
{
    return strcmp(asks(b, name, A), "0/1") == 0;
}

static bool asks_only_for_allowed_names(struct world *w)
{
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:80 *.sub.test:443 alias.test:80"));
    CHECK(strcmp(asks(&b, "good.test", A), "0/1") == 0);
    CHECK(strcmp(asks(&b, "GOOD.test", AAAA), "0/1") == 0);
    CHECK(strcmp(asks(&b, "alias.test", A), "0/2") == 0);
    CHECK(strcmp(asks(&b, "a.b.sub.test", TXT), "0/0") == 0);
    unsigned asked = *proxy.asked;
    CHECK(asked == 4);
    CHECK(strcmp(asks(&b, "secret.evil.test", A), "5/0") == 0);
    CHECK(is_told(SILT_REFUSED_NAME, SILT_EGRESS_DNS, 0, "secret.evil.test"));
    CHECK(strcmp(asks(&b, "sub.test", A), "5/0") == 0);
    CHECK(strcmp(asks(&b, "xsub.test", TXT), "5/0") == 0);
    CHECK(strcmp(asks(&b, "good.test.evil.test", A), "5/0") == 0);
    CHECK(strcmp(asks(&b, "1.0.0.127.in-addr.arpa", 12), "5/0") == 0);
    CHECK(strcmp(asks(&b, "good.test", HTTPS_RECORD), "0/0") == 0);
    CHECK(*proxy.asked == asked);
    return finish(w, &b);
}

static bool takes_closed_addresses_out(struct world *w)
{
    struct box b;
    CHECK(begin_allow(w, &b, "private.test:80 half.test:80 opened.test:80"));
    CHECK(strcmp(asks(&b, "private.test", A), "0/0") == 0);
    CHECK(is_told(SILT_REFUSED_ANSWER, SILT_EGRESS_DNS, 0, "private.test"));
    CHECK(strcmp(asks(&b, "private.test", AAAA), "0/0") == 0);
    CHECK(strcmp(asks(&b, "half.test", A), "0/1") == 0);
    CHECK(strcmp(asks(&b, "opened.test", A), "0/1") == 0);
    CHECK_SAYS(&b, "tcp 10.1.2.3 80", "errno 104");
    CHECK(set_mode(w, SILT_NET_PUBLIC));
    CHECK(strcmp(asks(&b, "private.test", A), "0/0") == 0); /* in every mode */
    CHECK(strcmp(asks(&b, "half.test", A), "0/1") == 0);
    return finish(w, &b);
}

/* Connections */

/* What is heard on a new connection behind the greeting, when this is said. "": the greeting
 * already did not come. */
static const char *says(struct box *b, const char *address, int port, const char *bytes, size_t len)
{
    static char said[512];
    (void)snprintf(said, sizeof(said), "%s", box_say(b, "hold %s %d", address, port));
    if (strcmp(said, "1 errno 0") != 0)
        return said;
    if (!has(box_say(b, "hear"), "world"))
        return "";
    (void)box_say(b, "bytes %s", to_hex(bytes, len));
    (void)snprintf(said, sizeof(said), "%s", box_say(b, "hear"));
    return said;
}

static const char *requests(struct box *b, const char *address, const char *host)
{
    char text[512];
    int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    return says(b, address, PORT, text, (size_t)n);
}

static size_t hello(const char *sni, char *out)
{
    size_t n = strlen(sni), extension = n > 0 ? n + 9 : 0, body = 2 + 32 + 1 + 4 + 2;
    size_t message = body + (n > 0 ? 2 + extension : 0), at = 0;
    const char head[] = {22,
                         3,
                         1,
                         (char)((message + 4) >> 8),
                         (char)((message + 4) & 255),
                         1,
                         0,
                         (char)(message >> 8),
                         (char)(message & 255),
                         3,
                         3};
    memcpy(out, head, sizeof(head));
    at = sizeof(head);
    memset(out + at, 'r', 32);
    at += 32;
    memcpy(out + at, (char[]){0, 0, 2, 0x13, 1, 1, 0}, 7);
    at += 7;
    if (n == 0)
        return at;
    const char sizes[] = {0, (char)extension, 0, 0, 0,      (char)(n + 5),
                          0, (char)(n + 3),   0, 0, (char)n};
    memcpy(out + at, sizes, sizeof(sizes));
    memcpy(out + at + sizeof(sizes), sni, n);
    return at + sizeof(sizes) + n;
}

static const char *greets(struct box *b, const char *address, int port, const char *sni)
{
    char text[512];
    size_t n = hello(sni, text);
    return says(b, address, port, text, n);
}

static const char again[] = "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n";
static const char got_hello[] = "\x16\x03\x01";

static bool checks_the_host_of_requests(struct world *w)
{
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:80 six.test:80"));
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 80", "errno 104"); /* nobody asked for it yet */
    CHECK(is_told(SILT_REFUSED_ADDRESS, SILT_EGRESS_TCP, 80, ""));
    CHECK(asks_well(&b, "good.test") && strcmp(asks(&b, "good.test", AAAA), "0/1") == 0);
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET / HTTP/1.1"));
    CHECK(has(requests(&b, PUBLIC6, "GOOD.Test.:80"), "GET / HTTP/1.1"));
    CHECK(has(requests(&b, PUBLIC4, "twin.test"), "errno 104"));
    CHECK(is_told(SILT_REFUSED_NAME, SILT_EGRESS_TCP, 80, "twin.test"));
    CHECK(has(requests(&b, PUBLIC4, "six.test"), "errno 104")); /* allowed, but not there */
    CHECK(is_told(SILT_REFUSED_MISMATCH, SILT_EGRESS_TCP, 80, "six.test"));
    CHECK(has(requests(&b, PUBLIC4, PUBLIC4), "errno 104"));
    CHECK(is_told(SILT_REFUSED_NAMELESS, SILT_EGRESS_TCP, 80, ""));
    CHECK(has(requests(&b, PUBLIC4, "good.test\r\nHost: twin.test"), "errno 104"));
    CHECK(is_told(SILT_REFUSED_PROTOCOL, SILT_EGRESS_TCP, 80, ""));
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 443", "errno 104");
    CHECK(is_told(SILT_REFUSED_PORT, SILT_EGRESS_TCP, 443, ""));
    return finish(w, &b);
}

static bool checks_every_request(struct world *w)
{
    static const char next[] = "GET / HTTP/1.1\r\nHost: twin.test\r\n\r\n";
    static const char body[] = "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 3\r\n\r\nabc"
                               "GET / HTTP/1.1\r\nHost: twin.test\r\n\r\n";
    static const char tunnel[] = "CONNECT good.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n";
    static const char two[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const char proxied[] = "GET http://twin.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n";
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:80"));
    CHECK(asks_well(&b, "good.test"));
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    (void)box_say(&b, "bytes %s", to_hex(next, sizeof(next) - 1));
    CHECK_SAYS(&b, "hear", "errno 104");
    CHECK(is_told(SILT_REFUSED_SECOND, SILT_EGRESS_TCP, 80, "twin.test"));
    CHECK(!has(says(&b, PUBLIC4, 80, body, sizeof(body) - 1), "twin"));
    CHECK(is_told(SILT_REFUSED_SECOND, SILT_EGRESS_TCP, 80, "twin.test"));
    CHECK(has(says(&b, PUBLIC4, 80, tunnel, sizeof(tunnel) - 1), "errno 104"));
    CHECK(has(says(&b, PUBLIC4, 80, two, sizeof(two) - 1), "errno 104"));
    CHECK(has(says(&b, PUBLIC4, 80, proxied, sizeof(proxied) - 1), "errno 104"));
    CHECK(has(says(&b, PUBLIC4, 80, "\r\n\r\n", 4), "errno 104"));
    CHECK(has(says(&b, PUBLIC4, 80, "hello there\r\n", 13),
              "errno 104")); /* no name, on a web port */
    return finish(w, &b);
}

static bool checks_the_name_in_tls(struct world *w)
{
    char text[512];
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:443"));
    CHECK(asks_well(&b, "good.test") && strcmp(asks(&b, "good.test", AAAA), "0/1") == 0);
    CHECK(has(greets(&b, PUBLIC4, 443, "good.test"), got_hello));
    CHECK(has(greets(&b, PUBLIC6, 443, "Good.TEST"), got_hello));
    CHECK(has(greets(&b, PUBLIC4, 443, "twin.test"), "errno 104"));
    CHECK(is_told(SILT_REFUSED_NAME, SILT_EGRESS_TCP, 443, "twin.test"));
    CHECK(has(greets(&b, PUBLIC4, 443, ""), "errno 104"));
    CHECK(is_told(SILT_REFUSED_NAMELESS, SILT_EGRESS_TCP, 443, ""));
    /* In pieces, and another hello behind the first. */
    size_t n = hello("good.test", text);
    CHECK(strcmp(box_say(&b, "hold " PUBLIC4 " 443"), "1 errno 0") == 0);
    CHECK(has(box_say(&b, "hear"), "world"));
    for (size_t i = 0; i < n; i++)
        CHECK(strcmp(box_say(&b, "bytes %s", to_hex(text + i, 1)), "ok") == 0);
    CHECK(has(box_say(&b, "hear"), got_hello));
    n = hello("twin.test", text);
    (void)box_say(&b, "bytes %s", to_hex(text, n));
    CHECK_SAYS(&b, "hear", "errno 104");
    CHECK(is_told(SILT_REFUSED_SECOND, SILT_EGRESS_TCP, 443, "twin.test"));
    return finish(w, &b);
}

static bool lets_nameless_protocols_pass(struct world *w)
{
    static const char line[] = "SSH-2.0-test\r\n";
    static const char web[] = "GET / HTTP/1.1\r\nHost: twin.test\r\n\r\n";
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:22"));
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 22", "errno 104");
    CHECK(asks_well(&b, "good.test"));
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 22", "world ::ffff:" HOST4 "\n"); /* the server speaks first */
    CHECK(has(says(&b, PUBLIC4, 22, line, sizeof(line) - 1), "SSH-2.0"));
    CHECK(has(says(&b, PUBLIC4, 22, web, sizeof(web) - 1), "errno 104"));
    return finish(w, &b);
}

static bool lets_networks_pass(struct world *w)
{
    struct box b;
    CHECK(begin_allow(w, &b, "0.0.0.0/0:80 " PUBLIC6 "/128:443"));
    CHECK(has(says(&b, PUBLIC4, 80, "anything\n", 9), "anything"));
    CHECK(has(says(&b, PUBLIC6, 443, "anything\n", 9), "anything"));
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 443", "errno 104");
    CHECK_SAYS(&b, "tcp 10.77.0.1 80", "world ::ffff:" HOST4 "\n");
    CHECK_SAYS(&b, "tcp 10.1.2.3 80", "errno 104");
    CHECK(is_told(SILT_REFUSED_PORT, SILT_EGRESS_TCP, 443, ""));
    CHECK(is_told(SILT_REFUSED_CLOSED, SILT_EGRESS_TCP, 80, ""));
    CHECK(has(box_say(&b, "tcp 10.210.0.1 55"), "errno")); /* ourselves */
    CHECK_SAYS(&b, "tcp " HOST4 " 80", "errno 104");
    return finish(w, &b);
}

static bool lets_nothing_else_pass(struct world *w)
{
    struct box b;
    CHECK(begin_allow(w, &b, "0.0.0.0/0:1-65535 ::/0:1-65535"));
    CHECK(has(box_say(&b, "udp " PUBLIC4 " 9000"), "errno"));
    CHECK(is_told(SILT_REFUSED_MODE, SILT_EGRESS_UDP, 9000, ""));
    CHECK(has(box_say(&b, "udp " PUBLIC6 " 9000"), "errno"));
    CHECK(has(box_say(&b, "udp " PUBLIC4 " 53"), "errno"));
    CHECK(has(box_say(&b, "udp 10.210.0.1 54"), "errno"));
    return finish(w, &b);
}

static bool reaches_nothing_without_a_policy(struct world *w)
{
    struct box b;
    CHECK(begin(w, &b, SILT_NET_ALLOW));
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 80", "errno 104");
    CHECK(is_told(SILT_REFUSED_NO_POLICY, SILT_EGRESS_TCP, 80, ""));
    CHECK(strcmp(asks(&b, "good.test", A), "5/0") == 0);
    CHECK(is_told(SILT_REFUSED_NO_POLICY, SILT_EGRESS_DNS, 0, "good.test"));
    CHECK(*proxy.asked == 0);
    CHECK(proxy_allow(&proxy, link_of(w), "good.test:80"));
    CHECK(asks_well(&b, "good.test"));
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    return finish(w, &b);
}

/* Changes */

static bool cuts_what_a_new_policy_forbids(struct world *w)
{
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:80 twin.test:80"));
    CHECK(asks_well(&b, "good.test") && asks_well(&b, "twin.test"));
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    CHECK(proxy_allow(&proxy, link_of(w), "good.test:80"));
    CHECK(has(box_say(&b, "bytes %s", to_hex(again, sizeof(again) - 1)), "ok"));
    CHECK(has(box_say(&b, "hear"), "GET"));
    CHECK(has(requests(&b, PUBLIC4, "twin.test"), "errno 104"));
    CHECK(proxy_allow(&proxy, link_of(w), "good.test:80 twin.test:80"));
    CHECK(has(requests(&b, PUBLIC4, "twin.test"), "errno 104")); /* it has to ask again */
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    CHECK(proxy_allow(&proxy, link_of(w), "twin.test:80"));
    CHECK_SAYS(&b, "hear", "errno 104"); /* without having said a word */
    return finish(w, &b);
}

static bool keeps_the_old_policy(struct world *w)
{
    struct silt_egress_rule bad = {
        .kind = SILT_EGRESS_EXACT, .low = 80, .high = 80, .name = "a..b"};
    struct silt_egress_note n;
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:80"));
    struct silt_egress_request q = {.type = SILT_EGRESS_SET, .link = link_of(w), .set.rules = 1};
    CHECK(proxy_tell(&proxy, q, &bad) && proxy_hear(&proxy, SILT_EGRESS_REJECTED, &n));
    CHECK(proxy_tell(&proxy, q, NULL) && proxy_hear(&proxy, SILT_EGRESS_REJECTED, &n));
    q.link = 7000000;
    CHECK(proxy_tell(&proxy, q, &bad) && proxy_hear(&proxy, SILT_EGRESS_REJECTED, &n));
    CHECK(asks_well(&b, "good.test"));
    return finish(w, &b);
}

static bool changes_between_modes(struct world *w)
{
    struct silt_egress_request leave = {.type = SILT_EGRESS_LEAVE}, cut = {.type = SILT_EGRESS_CUT};
    struct box b;
    CHECK(begin(w, &b, SILT_NET_PUBLIC));
    uint32_t link = leave.link = cut.link = link_of(w);
    CHECK_SAYS(&b, "hold " PUBLIC4 " 80", "1 errno 0");
    CHECK(has(box_say(&b, "hear"), "world"));
    CHECK(proxy_allow(&proxy, link, "good.test:80"));
    CHECK_SAYS(&b, "talk", "abc"); /* a policy is not a mode */
    CHECK(set_mode(w, SILT_NET_ALLOW));
    CHECK_SAYS(&b, "hear", "errno 103");
    CHECK(asks_well(&b, "good.test"));
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    CHECK(set_mode(w, SILT_NET_ALLOW)); /* a new siltd says so once more */
    CHECK_SAYS(&b, "talk", "silence");  /* not a request yet */
    CHECK(set_mode(w, SILT_NET_PUBLIC) && proxy_tell(&proxy, leave, NULL));
    CHECK(has(box_say(&b, "hear"), "abc")); /* goes on, and nobody listens any more */
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 80", "world ::ffff:" HOST4 "\n");
    CHECK(set_mode(w, SILT_NET_NONE) && proxy_tell(&proxy, cut, NULL));
    CHECK_SAYS(&b, "hear", "errno 103");
    CHECK(has(box_say(&b, "tcp " PUBLIC4 " 80"), "errno 111"));
    return finish(w, &b);
}

static bool counts(struct world *w)
{
    struct silt_egress_request q = {.type = SILT_EGRESS_COUNT, .generation = 77};
    struct silt_egress_note n;
    const struct silt_egress_counts *c = &n.body.counts;
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:80"));
    q.link = link_of(w);
    CHECK(asks_well(&b, "good.test"));
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    (void)box_say(&b, "bytes %s", to_hex(again, sizeof(again) - 1));
    CHECK(has(box_say(&b, "hear"), "GET"));
    CHECK(has(requests(&b, PUBLIC4, "twin.test"), "errno"));
    CHECK(proxy_tell(&proxy, q, NULL) && proxy_hear(&proxy, SILT_EGRESS_COUNTS, &n));
    CHECK(n.generation == 77 && c->questions == 1 && c->requests == 2 && c->connections == 2);
    CHECK(c->open == 1 && c->refused == 1 && c->sent_bytes == 70 && c->received_bytes > 70);
    CHECK(set_mode(w, SILT_NET_PUBLIC));
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 80", "world ::ffff:" HOST4 "\n");
    uint64_t run = c->run;
    for (int i = 0; i < 100 && c->connections < 3; i++) { /* the gate tells in bundles */
        CHECK(proxy_tell(&proxy, q, NULL) && proxy_hear(&proxy, SILT_EGRESS_COUNTS, &n));
        (void)poll(NULL, 0, 20);
    }
    CHECK(c->connections == 3 && c->run == run);
    q.type = SILT_EGRESS_DROP;
    CHECK(proxy_tell(&proxy, q, NULL));
    q.type = SILT_EGRESS_COUNT;
    CHECK(proxy_tell(&proxy, q, NULL) && proxy_hear(&proxy, SILT_EGRESS_COUNTS, &n));
    CHECK(c->connections == 0 && c->open == 0 && c->run == run);
    return finish(w, &b);
}

static bool tells_refusals_of_other_modes(struct world *w)
{
    struct box b;
    CHECK(begin(w, &b, SILT_NET_PUBLIC));
    CHECK(has(box_say(&b, "tcp 169.254.169.254 80"), "errno 111"));
    CHECK(is_told(SILT_REFUSED_CLOSED, SILT_EGRESS_TCP, 80, ""));
    CHECK(has(box_say(&b, "udp fd00:ec2::254 53"), "errno"));
    CHECK(is_told(SILT_REFUSED_CLOSED, SILT_EGRESS_UDP, 53, ""));
    CHECK(set_mode(w, SILT_NET_NONE));
    CHECK(has(box_say(&b, "tcp " PUBLIC4 " 443"), "errno 111"));
    CHECK(is_told(SILT_REFUSED_MODE, SILT_EGRESS_TCP, 443, ""));
    return finish(w, &b);
}

static bool limits(struct world *w)
{
    struct silt_egress_rule all = {.kind = SILT_EGRESS_CIDR4, .low = 80, .high = 80};
    struct silt_egress_request q = {.type = SILT_EGRESS_SET, .set = {.rules = 1, .connections = 5}};
    struct silt_egress_note n;
    struct box b;
    CHECK(begin(w, &b, SILT_NET_ALLOW));
    q.link = link_of(w);
    CHECK(proxy_tell(&proxy, q, &all) && proxy_hear(&proxy, SILT_EGRESS_APPLIED, &n));
    for (int i = 0; i < 5; i++) {
        CHECK_SAYS(&b, "hold " PUBLIC4 " 80", "1 errno 0");
        CHECK(has(box_say(&b, "hear"), "world"));
    }
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 80", "errno 104");
    CHECK(is_told(SILT_REFUSED_LIMIT, SILT_EGRESS_TCP, 80, ""));
    CHECK_SAYS(&b, "release", "ok");
    bool free_again = false;
    for (int i = 0; i < 100 && !free_again; i++) {
        free_again = has(box_say(&b, "tcp " PUBLIC4 " 80"), "world");
        (void)poll(NULL, 0, free_again ? 0 : 20);
    }
    CHECK(free_again);
    return finish(w, &b);
}

static bool starts_again(struct world *w)
{
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:80"));
    CHECK(asks_well(&b, "good.test"));
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    proxy_crash(&proxy, w);
    CHECK(has(box_say(&b, "hear"), "e")); /* an end or an error */
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 80", "errno 104");
    CHECK(strcmp(asks(&b, "good.test", A), "5/0") == 0);
    CHECK(proxy_allow(&proxy, link_of(w), "good.test:80"));
    CHECK(asks_well(&b, "good.test"));
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    return finish(w, &b);
}

static bool outlives_siltd(struct world *w)
{
    struct silt_egress_request sync = {.type = SILT_EGRESS_SYNC};
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:80"));
    CHECK(asks_well(&b, "good.test"));
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    proxy_new_siltd(&proxy);
    CHECK(has(box_say(&b, "bytes %s", to_hex(again, sizeof(again) - 1)), "ok"));
    CHECK(has(box_say(&b, "hear"), "GET"));
    CHECK(proxy_allow(&proxy, link_of(w), "good.test:80") && proxy_tell(&proxy, sync, NULL));
    CHECK(has(box_say(&b, "bytes %s", to_hex(again, sizeof(again) - 1)), "ok"));
    CHECK(has(box_say(&b, "hear"), "GET"));
    proxy_new_siltd(&proxy); /* which knows nothing of this sandbox */
    CHECK(proxy_tell(&proxy, sync, NULL));
    CHECK_SAYS(&b, "hear", "errno 104");
    CHECK_SAYS(&b, "tcp " PUBLIC4 " 80", "errno 104");
    return finish(w, &b);
}

/* What silt-proxy could reach, if it wanted to. */
static bool is_bound_by_the_gate(struct world *w)
{
    static const char *const closed[] = {"10.1.2.3", "169.254.169.254", "192.0.2.2"};
    silt_auto_fd home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < SILT_COUNT(closed); i++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
        (void)inet_pton(AF_INET, closed[i], &to.sin_addr);
        CHECK(setns(w->gate.ns, CLONE_NEWNET) == 0);
        silt_auto_fd fd = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(setns(home, CLONE_NEWNET) == 0);
        CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno == ECONNREFUSED);
    }
    return true;
}

/* Whoever says nothing, or nonsense, costs his own place and nothing more. */
static bool bears_nonsense(struct world *w)
{
    static char garbage[8000];
    struct box b;
    CHECK(begin_allow(w, &b, "good.test:1-65535"));
    CHECK(asks_well(&b, "good.test"));
    for (size_t i = 0; i < sizeof(garbage); i++)
        garbage[i] = (char)(i * 7 + i / 256);
    for (unsigned first = 0; first < 256; first += 5) {
        garbage[0] = (char)first;
        CHECK_SAYS(&b, "hold " PUBLIC4 " 443", "1 errno 0");
        (void)box_say(&b, "bytes %s", to_hex(garbage, sizeof(garbage)));
        CHECK_SAYS(&b, "release", "ok");
    }
    CHECK_SAYS(&b, "hold " PUBLIC4 " 443 30", "30 errno 0");
    CHECK(has(requests(&b, PUBLIC4, "good.test"), "GET"));
    return finish(w, &b);
}

const struct test allow_tests[] = {
    {"in mode allow only names of the policy are asked for, others never leave",
     asks_only_for_allowed_names, no_gate},
    {"closed addresses are taken out of answers, in mode public too", takes_closed_addresses_out,
     no_gate},
    {"in mode allow a request passes for an allowed host at an address it was answered with",
     checks_the_host_of_requests, no_gate},
    {"every request on a connection is checked; tunnels and HTTP/2 in the clear are refused",
     checks_every_request, no_gate},
    {"in mode allow the name in TLS is checked, whole or in pieces, the second one too",
     checks_the_name_in_tls, no_gate},
    {"protocols without names pass to addresses of allowed names and ports",
     lets_nameless_protocols_pass, no_gate},
    {"networks of the policy are reached, closed ones only when the operator opened them",
     lets_networks_pass, no_gate},
    {"in mode allow nothing but TCP and questions of names passes", lets_nothing_else_pass,
     no_gate},
    {"in mode allow nothing is reached before the policy is there",
     reaches_nothing_without_a_policy, no_gate},
    {"a new policy cuts what it forbids and nothing else", cuts_what_a_new_policy_forbids, no_gate},
    {"a policy that is none is rejected and the old one stays", keeps_the_old_policy, no_gate},
    {"modes change while connections are open", changes_between_modes, no_gate},
    {"questions, connections and requests are counted", counts, no_gate},
    {"what other modes refuse is told as well", tells_refusals_of_other_modes, no_gate},
    {"connections through silt-proxy are limited", limits, no_gate},
    {"a new silt-proxy reaches nothing before the policies have come again", starts_again, no_gate},
    {"connections through silt-proxy outlive siltd; what a new one does not name is forgotten",
     outlives_siltd, no_gate},
    {"what leaves from the gate itself is bound by its rules", is_bound_by_the_gate, no_gate},
    {"nonsense and silence cost their own place only", bears_nonsense, no_gate},
    {NULL, NULL, NULL},
};
