/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a policy comes into force, with silt-proxy played by the test. */
#include "harness.h"
#include "sandbox/network/egress_channel.h"
#include "sandbox/network/network.h"
#include "unit/base/unit.h"
#include "wire/super.h"

#include <sys/socket.h>
#include <unistd.h>

static struct harness h;
static int proxy = -1; /* silt-proxy's end */

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

static void open_all(void)
{
    assert_int_equal(harness_open(&h), 0);
    h.link = 77;
    h.mode = SILT_NET_NONE;
    connect_proxy();
}

static void close_all(void)
{
    harness_close(&h);
    silt_close_fd(&proxy);
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
        if (q->type == SILT_EGRESS_SET) {
            struct silt_egress_rule r;
            assert_int_equal(p.nfds, 1);
            for (uint32_t i = 0; i < q->set.rules; i++)
                assert_int_equal(pread(p.fds[0], &r, sizeof(r), (off_t)(i * sizeof(r))), sizeof(r));
        }
        silt_parcel_close(&p);
        if (q->type != SILT_EGRESS_COUNT)
            return q->type;
    }
}

static void say(enum silt_egress_say type, uint32_t link, uint64_t generation)
{
    struct silt_egress_note n = {.type = type, .link = link, .generation = generation};
    struct silt_parcel p = {.data = &n, .len = sizeof(n)};
    struct silt_error e;
    if (type == SILT_EGRESS_REFUSED) {
        n.body.refusal = (struct silt_egress_refusal){
            .protocol = SILT_EGRESS_TCP, .reason = SILT_REFUSED_NAME, .family = 4, .port = 443};
        memcpy(n.body.refusal.name, "evil.test", sizeof("evil.test"));
    }
    assert_int_equal(silt_fd_send(proxy, &p, &e), 0);
    harness_turn(&h);
}

struct wait {
    struct silt_waiter waiter;
    int called;
    struct silt_sandbox *sandbox;
};

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct wait *t = silt_outer(w, struct wait, waiter);
    (void)e;
    t->called++;
    t->sandbox = s;
}

static struct wait w;

static void create(enum silt_net_mode mode, const char *allow)
{
    struct silt_priv_request q;
    struct silt_error e;
    struct silt_sandbox_options o = {.limits = h.registry.default_limits,
                                     .type = "standard-1",
                                     .network = mode,
                                     .allow = silt_slice_of(allow)};
    w = (struct wait){.waiter = {.on_ready = on_ready}};
    assert_int_equal(silt_registry_create(&h.registry, SILT_LIT("box"), &o, &w.waiter, &e), 0);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CREATE);
    assert_int_equal(q.body.create.network, mode == SILT_NET_ALLOW ? SILT_NET_NONE : mode);
    harness_answer(&h, &q, true);
    harness_welcome(&h);
}

static void turned(enum silt_net_mode mode, bool ok)
{
    struct silt_priv_request q;
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_NETWORK);
    assert_int_equal(q.body.network, mode);
    harness_answer(&h, &q, ok);
}

/* Running, in mode allow. */
static struct silt_sandbox *allowed(void)
{
    struct silt_egress_request q;
    create(SILT_NET_ALLOW, "example.com\n");
    assert_int_equal(told(&q), SILT_EGRESS_DROP);
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    turned(SILT_NET_ALLOW, true);
    assert_int_equal(w.called, 1);
    return w.sandbox;
}

struct change {
    struct silt_network_change change;
    int called;
    enum silt_code code;
};

static void on_done(struct silt_network_change *c, const struct silt_error *e)
{
    struct change *t = silt_outer(c, struct change, change);
    t->called++;
    t->code = e != NULL ? e->code : SILT_OK;
}

static void begin(struct silt_sandbox *s, struct change *c, enum silt_net_mode mode,
                  const char *allow)
{
    *c = (struct change){.change = {.mode = mode, .on_done = on_done}};
    c->change.allow = allow != NULL ? strdup(allow) : NULL;
    silt_network_change(s, &c->change);
}

TEST(a_sandbox_of_mode_allow_is_ready_when_its_rules_are_in_force)
{
    struct silt_egress_request q;
    struct silt_priv_request p;
    open_all();
    create(SILT_NET_ALLOW, "example.com\n*.example.org:443\n");
    assert_int_equal(told(&q), SILT_EGRESS_DROP);
    assert_int_equal(q.link, 77);
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    assert_int_equal(q.link, 77);
    assert_int_equal(q.set.rules, 3);
    assert_int_equal(w.called, 0);
    assert_false(harness_asked(&h, &p));
    struct wait late = {.waiter = {.on_ready = on_ready}};
    silt_registry_use(&h.registry, SILT_LIT("box"), &late.waiter);
    say(SILT_EGRESS_APPLIED, 77, q.generation - 1); /* of something else */
    assert_false(harness_asked(&h, &p));
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    assert_int_equal(w.called, 0);
    turned(SILT_NET_ALLOW, true);
    assert_int_equal(w.called, 1);
    assert_int_equal(late.called, 1);
    close_all();
}

TEST(rules_come_before_the_mode_and_go_after_it)
{
    struct silt_egress_request q;
    struct change c;
    open_all();
    create(SILT_NET_PUBLIC, "");
    assert_int_equal(told(&q), SILT_EGRESS_DROP);
    begin(w.sandbox, &c, SILT_NET_ALLOW, "example.com:443\n");
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    assert_int_equal(q.set.rules, 1);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    assert_int_equal(c.called, 0);
    turned(SILT_NET_ALLOW, true);
    assert_int_equal(c.called, 1);
    begin(w.sandbox, &c, SILT_NET_PUBLIC, NULL);
    assert_int_equal(told(&q), 0);
    turned(SILT_NET_PUBLIC, true);
    assert_int_equal(told(&q), SILT_EGRESS_LEAVE);
    assert_int_equal(c.called, 1);
    close_all();
}

TEST(a_change_of_rules_is_one_message)
{
    struct silt_egress_request q;
    struct silt_priv_request p;
    struct change c;
    open_all();
    struct silt_sandbox *s = allowed();
    begin(s, &c, SILT_NET_ALLOW, "example.org:443\n");
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    assert_int_equal(c.called, 0);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    assert_int_equal(c.called, 1);
    assert_false(harness_asked(&h, &p));
    assert_string_equal(s->row.allow, "example.org:443\n");
    close_all();
}

TEST(what_silt_proxy_rejects_leaves_all_as_it_was)
{
    struct silt_egress_request q;
    struct change c;
    open_all();
    struct silt_sandbox *s = allowed();
    begin(s, &c, SILT_NET_ALLOW, "example.org:443\n");
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    say(SILT_EGRESS_REJECTED, 77, q.generation);
    assert_int_equal(c.called, 1);
    assert_int_equal(c.code, SILT_INTERNAL);
    assert_string_equal(s->row.allow, "example.com\n");
    assert_int_equal(told(&q), SILT_EGRESS_SET); /* the old ones once more */
    assert_int_equal(q.set.rules, 2);
    close_all();
}

TEST(a_mode_that_could_not_be_turned_leaves_all_as_it_was)
{
    struct silt_egress_request q;
    struct change c;
    open_all();
    create(SILT_NET_PUBLIC, "");
    assert_int_equal(told(&q), SILT_EGRESS_DROP);
    begin(w.sandbox, &c, SILT_NET_ALLOW, "example.com\n");
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    turned(SILT_NET_ALLOW, false);
    assert_int_equal(c.called, 1);
    assert_int_equal(c.code, SILT_NO_SPACE);
    assert_int_equal(told(&q), SILT_EGRESS_LEAVE);
    assert_int_equal(w.sandbox->row.network, SILT_NET_PUBLIC);
    assert_null(w.sandbox->row.allow);
    close_all();
}

TEST(a_new_silt_proxy_gets_all_rules_again)
{
    struct silt_egress_request q;
    struct silt_priv_request p;
    struct change c;
    open_all();
    struct silt_sandbox *s = allowed();
    connect_proxy();
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    assert_int_equal(q.set.rules, 2);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    assert_false(harness_asked(&h, &p)); /* the mode is as it was */
    begin(s, &c, SILT_NET_ALLOW, "example.org:443\n");
    connect_proxy(); /* in the middle of a change */
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    assert_int_equal(q.set.rules, 1);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    assert_int_equal(c.called, 1);
    assert_int_equal(c.code, SILT_OK);
    close_all();
}

TEST(a_new_siltd_asserts_the_rules_and_turns_nothing)
{
    struct silt_egress_request q;
    struct silt_priv_request p;
    open_all();
    (void)allowed();
    assert_int_equal(harness_told_super(&h), SILT_SUPER_KEEP);
    assert_int_equal(harness_restart(&h), 0);
    connect_proxy();
    w = (struct wait){.waiter = {.on_ready = on_ready}};
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    harness_welcome(&h);
    assert_true(harness_asked(&h, &p));
    assert_int_equal(p.op, SILT_PRIV_NETSTAT);
    h.mode = SILT_NET_ALLOW;
    harness_answer(&h, &p, true);
    assert_int_equal(told(&q), SILT_EGRESS_SET); /* and no DROP before it */
    assert_int_equal(q.set.rules, 2);
    assert_int_equal(w.called, 0);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    assert_int_equal(w.called, 1);
    assert_false(harness_asked(&h, &p));
    close_all();
}

TEST(an_ended_sandbox_is_dropped_and_its_number_is_the_next_ones)
{
    struct silt_egress_request q;
    struct silt_priv_request p;
    open_all();
    struct silt_sandbox *s = allowed();
    uint64_t stale = s->network.generation;
    say(SILT_EGRESS_REFUSED, 77, 0);
    assert_int_equal(s->network.refusals.count, 1);
    silt_sandbox_destroy(s, NULL);
    assert_int_equal(told(&q), SILT_EGRESS_DROP);
    assert_int_equal(q.link, 77);
    assert_true(harness_asked(&h, &p));
    harness_answer(&h, &p, true);
    say(SILT_EGRESS_REFUSED, 77, 0); /* nobody's */
    create(SILT_NET_ALLOW, "example.net:443\n");
    struct silt_sandbox *next = silt_registry_find(&h.registry, SILT_LIT("box"));
    assert_int_equal(told(&q), SILT_EGRESS_DROP);
    say(SILT_EGRESS_REFUSED, 77, 0); /* was on the way before it read that */
    say(SILT_EGRESS_APPLIED, 77, stale);
    assert_int_equal(next->network.refusals.count, 0);
    assert_false(harness_asked(&h, &p));
    assert_int_equal(w.called, 0);
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    turned(SILT_NET_ALLOW, true);
    say(SILT_EGRESS_REFUSED, 77, 0);
    assert_int_equal(next->network.refusals.count, 1);
    close_all();
}

TEST(without_silt_proxy_a_start_goes_on_closed_and_is_raised_later)
{
    struct silt_egress_request q;
    struct silt_priv_request p;
    open_all();
    silt_close_fd(&proxy);
    harness_turn(&h);
    create(SILT_NET_ALLOW, "example.com\n");
    assert_int_equal(w.called, 0);
    struct silt_sandbox *s = silt_registry_find(&h.registry, SILT_LIT("box"));
    s->network.late.on_time(&s->network.late); /* its time is up */
    assert_int_equal(w.called, 1);
    assert_false(harness_asked(&h, &p));
    assert_int_not_equal(s->network.late.place, 0); /* it is tried again */
    s->network.late.on_time(&s->network.late);
    assert_int_equal(s->network.step, SILT_NETWORK_SETTING);
    connect_proxy();
    assert_int_equal(told(&q), SILT_EGRESS_DROP);
    assert_int_equal(told(&q), SILT_EGRESS_SET);
    say(SILT_EGRESS_APPLIED, 77, q.generation);
    turned(SILT_NET_ALLOW, true);
    close_all();
}

TEST(a_liar_is_not_believed)
{
    open_all();
    struct silt_sandbox *s = allowed();
    struct silt_egress_note n = {.type = SILT_EGRESS_REFUSED, .link = 77};
    struct silt_egress_refusal good = {.protocol = SILT_EGRESS_TCP, .reason = SILT_REFUSED_NAME};
    struct silt_denials *l = &s->network.refusals;
    struct silt_parcel p = {.data = &n, .len = sizeof(n)};
    struct silt_error e;
    for (int i = 0; i < 6; i++) {
        n.body.refusal = good;
        struct silt_egress_refusal *r = &n.body.refusal;
        r->protocol = i == 0 ? SILT_EGRESS_PROTOCOL_MAX : r->protocol;
        r->reason = i == 1 ? SILT_REFUSED_REASON_MAX : r->reason;
        r->family = i == 2 ? 5 : 0;
        if (i == 3)
            memset(r->name, 'a', sizeof(r->name));
        if (i == 4)
            memcpy(r->name, "a\nb", 4);
        n.link = i == 5 ? 78 : 77;
        assert_int_equal(silt_fd_send(proxy, &p, &e), 0);
    }
    harness_turn(&h);
    assert_int_equal(l->count, 0);
    uint64_t before = silt_journal_last(&h.registry.journal);
    for (int i = 0; i < 1000; i++) {
        n.link = 77;
        n.body.refusal = good;
        n.body.refusal.port = (uint16_t)(i % 500 + 1);
        (void)silt_fd_send(proxy, &p, &e);
        harness_turn(&h);
    }
    assert_int_equal(l->count, SILT_DENIALS_MAX);
    struct silt_denial *last = silt_outer(l->list.prev, struct silt_denial, link);
    assert_int_equal(last->port, 500);
    /* The others are counted: a guest must not fill the journal. */
    assert_int_equal(silt_journal_last(&h.registry.journal) - before, 20);
    assert_true(l->omitted >= 480);
    p.len = 3;
    (void)silt_fd_send(proxy, &p, &e); /* out of its mind */
    harness_turn(&h);
    assert_int_equal(h.registry.egress->watch.fd, -1);
    close_all();
}
