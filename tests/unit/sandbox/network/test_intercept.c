/* SPDX-License-Identifier: Apache-2.0 */
/* Where captive sandboxes lead to, with silt-proxy played by the test. */
#include "harness.h"
#include "sandbox/network/intercept.h"
#include "sandbox/network/egress_channel.h"
#include "sandbox/network/network.h"
#include "sandbox/core/sandbox.h"
#include "unit/base/unit.h"

#include <sys/socket.h>
#include <unistd.h>

enum { NUMBER = 5 };

static struct harness h;
static int proxy = -1; /* silt-proxy's end */
static char globs[256];
static int fds; /* that came with the last request */

static void connect_proxy(void)
{
    int pair[2];
    struct silt_error e;
    silt_close_fd(&proxy);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e), 0);
    proxy = pair[1];
    silt_egress_connect(h.registry.egress, pair[0]);
    harness_turn(&h);
}

/* The next request to silt-proxy but questions for counts; 0: there is none. */
static uint32_t told(struct silt_egress_request *q)
{
    for (;;) {
        struct silt_parcel p = {.data = q, .len = sizeof(*q)};
        struct silt_error e;
        harness_turn(&h);
        if (silt_fd_recv(proxy, &p, &e) <= 0)
            return 0;
        if (q->type == SILT_EGRESS_CAPTURE) {
            ssize_t n = pread(p.fds[0], globs, sizeof(globs) - 1, 0);
            assert_int_equal(n, q->capture.globs_len);
            globs[n] = 0;
        }
        fds = p.nfds;
        silt_parcel_close(&p);
        if (q->type != SILT_EGRESS_COUNT)
            return q->type;
    }
}

static void say(enum silt_egress_say type, const struct silt_egress_request *q)
{
    struct silt_egress_note n = {.type = type, .link = q->link, .generation = q->generation};
    struct silt_parcel p = {.data = &n, .len = sizeof(n)};
    struct silt_error e;
    if (type == SILT_EGRESS_IS_AUTHORITY) {
        n.body.authority = (struct silt_egress_authority){
            .certificate_len = 3, .key_len = 3, .certificate = "pem", .key = "key"};
    }
    assert_int_equal(silt_fd_send(proxy, &p, &e), 0);
    harness_turn(&h);
}

struct ask {
    struct silt_intercept_ask ask;
    int called;
    enum silt_code code;
    char pem[16];
};

static void on_done(struct silt_intercept_ask *a, silt_slice pem, const struct silt_error *e)
{
    struct ask *x = silt_outer(a, struct ask, ask);
    x->called++;
    x->code = e != NULL ? e->code : SILT_OK;
    memcpy(x->pem, pem.data != NULL ? pem.data : "", pem.len);
}

static struct ask set(const char *body)
{
    static struct ask x;
    struct silt_intercept_change c;
    struct silt_error e;
    silt_auto_arena arena;
    silt_arena_init(&arena, 1 << 20);
    assert_int_equal(silt_intercept_read(&arena, silt_slice_of(body), &c, &e), 0);
    x = (struct ask){.ask = {.on_done = on_done}};
    silt_intercept_set(&h.registry, NUMBER, &c, &x.ask);
    return x;
}

static void open_all(void)
{
    assert_int_equal(harness_open(&h), 0);
    connect_proxy();
}

static void close_all(void)
{
    harness_close(&h);
    silt_close_fd(&proxy);
}

static int ready;

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    (void)w;
    (void)s;
    (void)e;
    ready++;
}

/* The sockets are made and handed over before anybody is told that it runs. */
static void start(struct silt_egress_request *q)
{
    static struct silt_waiter w = {.on_ready = on_ready};
    struct silt_priv_request p;
    struct silt_error e;
    struct silt_sandbox_options o = {.limits = h.registry.default_limits,
                                     .type = "standard-1",
                                     .network = SILT_NET_CAPTIVE,
                                     .capture = NUMBER};
    ready = 0;
    assert_int_equal(silt_registry_create(&h.registry, SILT_LIT("box"), &o, &w, &e), 0);
    assert_true(harness_asked(&h, &p));
    assert_int_equal(p.op, SILT_PRIV_CREATE);
    assert_int_equal(p.body.create.network, SILT_NET_CAPTIVE);
    harness_answer(&h, &p, true);
    harness_welcome(&h);
    while (harness_asked(&h, &p) && p.op != SILT_PRIV_CAPTURE)
        harness_answer(&h, &p, true);
    assert_int_equal(p.op, SILT_PRIV_CAPTURE);
    harness_answer(&h, &p, true);
    assert_int_equal(told(q), SILT_EGRESS_DROP);
    assert_int_equal(told(q), SILT_EGRESS_CAPTURE);
    assert_int_equal(fds, 1 + 2 * SILT_CAPTIVE_SOCKET_MAX);
    assert_int_equal(ready, 0);
    say(SILT_EGRESS_APPLIED, q);
    assert_int_equal(ready, 1);
}

static void start_set(struct silt_egress_request *q)
{
    assert_int_equal(set("{\"port\":4000}").called, 1);
    assert_int_equal(told(q), SILT_EGRESS_AUTHORITY);
    say(SILT_EGRESS_IS_AUTHORITY, q);
    start(q);
}

TEST(a_captive_sandbox_starts_with_its_sidecars_settings)
{
    struct silt_egress_request q;
    open_all();
    assert_int_equal(set("{\"port\":4000,\"internet\":{\"enabled\":false},\"dns\":{"
                         "\"allowHostnames\":[\"A.test\"]}}")
                         .called,
                     1);
    assert_int_equal(told(&q), SILT_EGRESS_AUTHORITY);
    start(&q);
    assert_int_equal(q.link, SILT_EGRESS_CAPTIVE
                                 | silt_registry_find(&h.registry, SILT_LIT("box"))->row.slot);
    assert_int_equal(q.authority, NUMBER);
    assert_int_equal(q.capture.port, 4000);
    assert_int_equal(q.capture.internet, 0);
    assert_string_equal(globs, "a.test\n");
    close_all();
}

TEST(a_change_is_answered_when_it_is_in_force_and_leaves_the_rest)
{
    struct silt_egress_request q;
    open_all();
    start_set(&q);
    static struct ask x;
    x = (struct ask){.ask = {.on_done = on_done}};
    struct silt_intercept_change c = {.has_port = true, .port = 4001};
    silt_intercept_set(&h.registry, NUMBER, &c, &x.ask);
    assert_int_equal(told(&q), SILT_EGRESS_CAPTURE);
    assert_int_equal(fds, 1);
    assert_int_equal(q.capture.port, 4001);
    assert_int_equal(q.capture.internet, 1);
    assert_string_equal(globs, "*\n");
    assert_int_equal(x.called, 0);
    say(SILT_EGRESS_APPLIED, &q);
    assert_int_equal(x.called, 1);
    assert_int_equal(x.code, SILT_OK);
    close_all();
}

TEST(a_caller_may_leave)
{
    struct silt_egress_request q;
    open_all();
    start_set(&q);
    static struct ask x, y;
    x = y = (struct ask){.ask = {.on_done = on_done}};
    struct silt_intercept_change c = {.has_port = true, .port = 4001};
    silt_intercept_set(&h.registry, NUMBER, &c, &x.ask);
    silt_intercept_leave(&x.ask);
    silt_intercept_leave(&y.ask);
    assert_int_equal(told(&q), SILT_EGRESS_CAPTURE);
    say(SILT_EGRESS_APPLIED, &q);
    assert_int_equal(x.called, 0);
    close_all();
}

TEST(a_new_proxy_gets_the_authority_the_settings_and_new_sockets)
{
    struct silt_egress_request q;
    struct silt_priv_request p;
    open_all();
    start_set(&q);
    connect_proxy();
    assert_int_equal(told(&q), SILT_EGRESS_AUTHORITY);
    assert_int_equal(fds, 1);
    assert_int_equal(told(&q), SILT_EGRESS_CAPTURE);
    assert_int_equal(fds, 1);
    say(SILT_EGRESS_LISTENLESS, &q);
    assert_true(harness_asked(&h, &p));
    assert_int_equal(p.op, SILT_PRIV_CAPTURE);
    harness_answer(&h, &p, true);
    assert_int_equal(told(&q), SILT_EGRESS_CAPTURE);
    assert_int_equal(fds, 1 + 2 * SILT_CAPTIVE_SOCKET_MAX);
    assert_int_equal(q.capture.port, 4000);
    say(SILT_EGRESS_APPLIED, &q);
    close_all();
}

TEST(a_new_siltd_knows_the_settings_and_the_authority)
{
    struct silt_egress_request q;
    struct silt_priv_request p;
    open_all();
    start_set(&q);
    while (harness_told_super(&h) != 0)
        ;
    assert_int_equal(harness_restart(&h), 0);
    harness_welcome(&h);
    connect_proxy();
    assert_int_equal(silt_intercept_port(&h.registry, NUMBER), 4000);
    assert_int_equal(told(&q), SILT_EGRESS_AUTHORITY);
    assert_int_equal(fds, 1); /* which a silt-proxy that is new, too, needs */
    say(SILT_EGRESS_IS_AUTHORITY, &q);
    assert_int_equal(told(&q), SILT_EGRESS_CAPTURE);
    assert_int_equal(fds, 1); /* silt-proxy has its sockets */
    say(SILT_EGRESS_APPLIED, &q);
    while (harness_asked(&h, &p)) {
        assert_int_not_equal(p.op, SILT_PRIV_CAPTURE);
        harness_answer(&h, &p, true);
    }
    close_all();
}

TEST(a_certificate_is_asked_for_once_and_kept)
{
    struct silt_egress_request q;
    struct ask x = {.ask = {.on_done = on_done}}, y = x, z = x;
    open_all();
    silt_intercept_ca(&h.registry, NUMBER, &x.ask);
    silt_intercept_ca(&h.registry, NUMBER, &y.ask);
    silt_intercept_leave(&y.ask);
    assert_int_equal(told(&q), SILT_EGRESS_AUTHORITY);
    assert_int_equal(x.called, 0);
    say(SILT_EGRESS_IS_AUTHORITY, &q);
    assert_int_equal(x.called, 1);
    assert_string_equal(x.pem, "pem");
    assert_int_equal(y.called, 0);
    silt_intercept_ca(&h.registry, NUMBER, &z.ask);
    assert_string_equal(z.pem, "pem");
    silt_intercept_remove(&h.registry, NUMBER);
    assert_int_equal(silt_intercept_port(&h.registry, NUMBER), 0);
    while (told(&q) == SILT_EGRESS_AUTHORITY)
        ;
    assert_int_equal(q.type, SILT_EGRESS_UNTRUST);
    close_all();
}

struct change {
    struct silt_network_change change;
    enum silt_code code;
};

static void on_changed(struct silt_network_change *c, const struct silt_error *e)
{
    silt_outer(c, struct change, change)->code = e != NULL ? e->code : SILT_OK;
}

TEST(nobody_makes_a_captive_sandbox_another_one)
{
    struct silt_egress_request q;
    struct change c = {.change = {.mode = SILT_NET_PUBLIC, .on_done = on_changed}};
    open_all();
    start_set(&q);
    silt_network_change(silt_registry_find(&h.registry, SILT_LIT("box")), &c.change);
    assert_int_equal(c.code, SILT_CONFLICT);
    close_all();
}

static enum silt_code reads(const char *body)
{
    struct silt_intercept_change c;
    struct silt_error e;
    silt_auto_arena arena;
    silt_arena_init(&arena, 1 << 20);
    return silt_intercept_read(&arena, silt_slice_of(body), &c, &e) == 0 ? SILT_OK : e.code;
}

TEST(a_body_must_say_something_that_we_know)
{
    assert_int_equal(reads("{\"port\":37699}"), SILT_OK);
    assert_int_equal(reads("{\"internet\":{\"enabled\":false},\"more\":1}"), SILT_OK);
    assert_int_equal(reads("{}"), SILT_INVALID);
    assert_int_equal(reads("[]"), SILT_INVALID);
    assert_int_equal(reads("{\"port\":0}"), SILT_INVALID);
    assert_int_equal(reads("{\"port\":65536}"), SILT_INVALID);
    assert_int_equal(reads("{\"port\":\"1\"}"), SILT_INVALID);
    assert_int_equal(reads("{\"internet\":true}"), SILT_INVALID);
    assert_int_equal(reads("{\"internet\":{\"enabled\":1}}"), SILT_INVALID);
    assert_int_equal(reads("{\"dns\":{\"allowHostnames\":[1]}}"), SILT_INVALID);
    assert_int_equal(reads("{\"dns\":{\"allowHostnames\":\"*\"}}"), SILT_INVALID);
}
