/* SPDX-License-Identifier: Apache-2.0 */
/* Entrances of sandboxes and the talk about them, with silt-proxy played by the test. */
#include "harness.h"
#include "base/clock.h"
#include "sandbox/preview/preview_channel.h"
#include "sandbox/preview/signed_url.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct harness h;
static int proxy = -1; /* silt-proxy's end */
static uint32_t serial;

static void connect_proxy(void)
{
    int pair[2];
    struct silt_error e;
    silt_close_fd(&proxy);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e), 0);
    proxy = pair[1];
    silt_preview_connect(h.registry.preview, pair[0]);
    harness_turn(&h);
}

static void open_all(void)
{
    h.registry.settings.preview = (struct silt_preview_settings){0};
    assert_int_equal(harness_open(&h), 0);
    h.registry.settings.preview.domain = "localhost:7459";
    connect_proxy();
}

static void close_all(void)
{
    harness_close(&h);
    silt_close_fd(&proxy);
}

/* The next answer; 0: there is none. A descriptor that comes along is closed, and counted. */
static int came;
static uint32_t told(struct silt_preview_answer *a)
{
    struct silt_parcel p = {.data = a, .len = sizeof(*a)};
    struct silt_error e;
    harness_turn(&h);
    if (silt_fd_recv(proxy, &p, &e) <= 0)
        return 0;
    came = p.nfds;
    silt_parcel_close(&p);
    return a->type;
}

static void tell(struct silt_preview_request *q)
{
    struct silt_parcel p = {.data = q, .len = sizeof(*q)};
    struct silt_error e;
    assert_int_equal(silt_fd_send(proxy, &p, &e), 0);
    harness_turn(&h);
}

static uint32_t find_with(enum silt_preview_form form, const char *name, const char *proof,
                          struct silt_preview_answer *a)
{
    struct silt_preview_request q = {.type = SILT_PREVIEW_FIND, .serial = ++serial};
    q.body.find.form = (uint8_t)form;
    (void)snprintf(q.body.find.name, sizeof(q.body.find.name), "%s", name);
    (void)snprintf(q.body.find.proof, sizeof(q.body.find.proof), "%s", proof);
    tell(&q);
    assert_true(told(a) != 0);
    assert_int_equal(a->serial, serial);
    return a->type;
}

static uint32_t find(const char *name)
{
    struct silt_preview_answer a;
    return find_with(SILT_PREVIEW_HOST, name, "", &a);
}

static uint32_t dial(uint64_t route, uint32_t wait_ms)
{
    struct silt_preview_request q = {.type = SILT_PREVIEW_DIAL,
                                     .serial = ++serial,
                                     .route = route,
                                     .body.dial.wait_ms = wait_ms};
    tell(&q);
    return serial;
}

static void say(enum silt_preview_ask type, uint32_t of, uint64_t route, uint32_t using)
{
    struct silt_preview_request q = {
        .type = type, .serial = of, .route = route, .body.using = using};
    tell(&q);
}

/* silt-priv, asked to dial */

static struct silt_priv_request dialled(void)
{
    struct silt_priv_request q;
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DIAL);
    assert_int_equal(q.body.port, 8000);
    return q;
}

static void answer_dial(const struct silt_priv_request *q, int error)
{
    struct silt_priv_answer a = {.seq = q->seq, .slot = q->slot, .ok = error == 0};
    struct silt_parcel p = {.data = &a, .len = sizeof(a)};
    struct silt_error e;
    int pair[2] = {-1, -1};
    if (error == 0) {
        assert_int_equal(silt_fd_pair(SOCK_STREAM, pair, &e), 0);
        p.fds[p.nfds++] = pair[0];
    } else {
        errno = error;
        (void)silt_fail_errno(&a.body.error, "connect");
        a.body.error.code = SILT_UNAVAILABLE;
    }
    assert_int_equal(silt_fd_send(h.priv, &p, &e), 0);
    silt_close_fd(&pair[0]);
    silt_close_fd(&pair[1]);
    harness_turn(&h);
}

/* A sandbox that runs */

struct wait {
    struct silt_waiter waiter;
    struct silt_sandbox *sandbox;
    int called;
};

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct wait *t = silt_outer(w, struct wait, waiter);
    (void)e;
    t->sandbox = s;
    t->called++;
}

static void started(void)
{
    struct silt_priv_request q;
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CREATE);
    harness_answer(&h, &q, true);
    harness_welcome(&h);
}

static struct silt_sandbox *create(const char *id)
{
    struct wait w = {.waiter = {.on_ready = on_ready}};
    silt_registry_use(&h.registry, silt_slice_of(id), &w.waiter);
    started();
    assert_non_null(w.sandbox);
    return w.sandbox;
}

static struct silt_exposed_port *expose(struct silt_sandbox *s, uint16_t port, const char *token,
                                        bool locked, uint64_t *former)
{
    struct silt_exposed_port_options o = {
        .port = port, .token = silt_slice_of(token), .locked = &locked};
    struct silt_exposed_port *x = NULL;
    struct silt_error e;
    assert_int_equal(silt_exposed_port_expose(s, &o, &x, former, &e), 0);
    return x;
}

static struct silt_exposed_port *simple(void)
{
    uint64_t former;
    return expose(create("box"), 8000, "sesameopen", false, &former);
}

static uint64_t found(void)
{
    struct silt_preview_answer a;
    assert_int_equal(find_with(SILT_PREVIEW_HOST, "8000-box-sesameopen", "", &a),
                     SILT_PREVIEW_ROUTE);
    assert_int_equal(a.body.route.port, 8000);
    assert_int_equal(a.body.route.flags, 0);
    return a.route;
}

static int drops;
static void on_dropped(void *context)
{
    (void)context;
    drops++;
}

TEST(only_port_id_and_token_together_lead_to_an_entrance)
{
    uint64_t former;
    struct silt_preview_answer a;
    open_all();
    struct silt_exposed_port *x = simple();
    (void)expose(x->sandbox, 8001, "anotherone", false, &former);
    assert_int_equal(found(), x->row.route);
    static const char *const wrong[] = {"8000-box-sesameopeN",
                                        "8000-box-anotherone",
                                        "8001-box-sesameopen",
                                        "8000-box-",
                                        "8000-box",
                                        "8000--sesameopen",
                                        "-box-sesameopen",
                                        "08000-box-sesameopen",
                                        "+8000-box-sesameopen",
                                        " 8000-box-sesameopen",
                                        "73536-box-sesameopen",
                                        "0-box-sesameopen",
                                        "8000-other-sesameopen",
                                        "8000-box-sesameope",
                                        "8000-box-sesameopenn",
                                        "box-8000",
                                        "",
                                        "-",
                                        "--",
                                        "8000",
                                        "8000-box-sesameopen-"};
    for (size_t i = 0; i < SILT_COUNT(wrong); i++)
        assert_int_equal(find(wrong[i]), SILT_PREVIEW_UNKNOWN);
    assert_int_equal(find_with(SILT_PREVIEW_PATH, "box/8000/sesameopen", "", &a),
                     SILT_PREVIEW_UNKNOWN); /* off */
    assert_int_equal(find_with(SILT_PREVIEW_FORM_MAX, "8000-box-sesameopen", "", &a),
                     SILT_PREVIEW_UNKNOWN);
    close_all();
}

/* A FIND that asks for a socket, too; the serial of that. */
static uint32_t find_and_dial(const char *name, const char *proof, uint32_t *ret_type)
{
    struct silt_preview_answer a;
    struct silt_preview_request q = {.type = SILT_PREVIEW_FIND, .serial = ++serial};
    q.body.find.form = SILT_PREVIEW_HOST;
    q.body.find.dial = ++serial;
    q.body.find.wait_ms = 1000;
    (void)snprintf(q.body.find.name, sizeof(q.body.find.name), "%s", name);
    (void)snprintf(q.body.find.proof, sizeof(q.body.find.proof), "%s", proof);
    tell(&q);
    *ret_type = told(&a);
    assert_int_equal(a.serial, q.serial);
    return q.body.find.dial;
}

TEST(a_socket_may_be_asked_for_with_the_name)
{
    struct silt_preview_answer a;
    struct silt_priv_request q;
    uint32_t type;
    open_all();
    struct silt_exposed_port *x = simple();
    uint32_t wish = find_and_dial("8000-box-sesameopen", "", &type);
    assert_int_equal(type, SILT_PREVIEW_ROUTE);
    q = dialled();
    answer_dial(&q, 0);
    assert_int_equal(told(&a), SILT_PREVIEW_SOCKET);
    assert_int_equal(came, 1);
    assert_int_equal(a.serial, wish);
    assert_int_equal(a.route, x->row.route);
    wish = find_and_dial("8000-box-sesameopen", "", &type);
    q = dialled();
    say(SILT_PREVIEW_LEAVE, wish, 0, 0);
    answer_dial(&q, 0);
    assert_int_equal(told(&a), 0);
    close_all();
}

TEST(a_name_that_is_wrong_or_locked_dials_nothing)
{
    struct silt_priv_request q;
    struct silt_preview_answer a;
    uint64_t former;
    uint32_t type;
    open_all();
    struct silt_exposed_port *x = simple();
    (void)expose(x->sandbox, 8001, "anotherone", true, &former);
    (void)find_and_dial("8000-box-sesameopeN", "", &type);
    assert_int_equal(type, SILT_PREVIEW_UNKNOWN);
    (void)find_and_dial("8001-box-anotherone", "", &type);
    assert_int_equal(type, SILT_PREVIEW_LOCKED);
    (void)find_and_dial("8001-box-anotherone", "no-proof", &type);
    assert_int_equal(type, SILT_PREVIEW_LOCKED);
    assert_int_equal(h.registry.preview->visit_count, 0);
    assert_false(harness_asked(&h, &q));
    struct silt_preview_request same = {.type = SILT_PREVIEW_FIND, .serial = ++serial};
    same.body.find.form = SILT_PREVIEW_HOST;
    same.body.find.dial = serial; /* two answers by one number */
    (void)snprintf(same.body.find.name, sizeof(same.body.find.name), "8000-box-sesameopen");
    tell(&same);
    assert_int_equal(told(&a), SILT_PREVIEW_ROUTE);
    assert_int_equal(h.registry.preview->visit_count, 0);
    close_all();
}

TEST(paths_and_the_old_form_are_settings)
{
    struct silt_preview_answer a;
    open_all();
    h.registry.settings.preview.paths = h.registry.settings.preview.old_form = true;
    h.registry.settings.preview.localhost_host = true;
    struct silt_exposed_port *x = simple();
    assert_int_equal(find_with(SILT_PREVIEW_PATH, "box/8000/sesameopen", "", &a),
                     SILT_PREVIEW_ROUTE);
    assert_int_equal(a.route, x->row.route);
    assert_int_equal(a.body.route.flags, SILT_PREVIEW_LOCALHOST);
    assert_int_equal(find_with(SILT_PREVIEW_HOST, "box-8000", "", &a), SILT_PREVIEW_ROUTE);
    assert_int_equal(a.body.route.flags, SILT_PREVIEW_LOCALHOST);
    assert_int_equal(find("box-8001"), SILT_PREVIEW_UNKNOWN);
    assert_int_equal(find_with(SILT_PREVIEW_PATH, "box/8000/sesameopen/x", "", &a),
                     SILT_PREVIEW_UNKNOWN);
    assert_int_equal(find_with(SILT_PREVIEW_PATH, "box/8000", "", &a), SILT_PREVIEW_UNKNOWN);
    close_all();
}

TEST(a_private_port_wants_a_proof_that_is_of_it_and_not_too_old)
{
    struct silt_preview_answer a;
    uint64_t former;
    char proof[SILT_PREVIEW_PROOF];
    open_all();
    struct silt_exposed_port *x = expose(create("box"), 8000, "sesameopen", true, &former);
    int64_t now_s = silt_clock_wall_ms() / 1000;
    silt_slice secret = silt_preview_secret(h.registry.preview);
    assert_int_equal(find("8000-box-sesameopen"), SILT_PREVIEW_LOCKED);
    assert_int_equal(find("8000-box-sesameopex"), SILT_PREVIEW_UNKNOWN);
    silt_signed_url_write(
        secret, &(struct silt_signed_url){.route = x->row.route, .until_s = now_s + 100}, proof);
    assert_int_equal(find_with(SILT_PREVIEW_HOST, "8000-box-sesameopen", proof, &a),
                     SILT_PREVIEW_ROUTE);
    assert_int_equal(a.body.route.flags, SILT_PREVIEW_PRIVATE);
    assert_in_range(a.body.route.lasts_s, 60, 100);
    proof[strlen(proof) - 1] ^= 1;
    assert_int_equal(find_with(SILT_PREVIEW_HOST, "8000-box-sesameopen", proof, &a),
                     SILT_PREVIEW_LOCKED);
    silt_signed_url_write(
        secret, &(struct silt_signed_url){.route = x->row.route + 1, .until_s = now_s + 100},
        proof);
    assert_int_equal(find_with(SILT_PREVIEW_HOST, "8000-box-sesameopen", proof, &a),
                     SILT_PREVIEW_LOCKED);
    silt_signed_url_write(
        secret, &(struct silt_signed_url){.route = x->row.route, .until_s = now_s - 1}, proof);
    assert_int_equal(find_with(SILT_PREVIEW_HOST, "8000-box-sesameopen", proof, &a),
                     SILT_PREVIEW_LOCKED);
    static const char *const odd[] = {".", "1", "1.", "x.y", "-1.00", "99999999999999999999.00"};
    for (size_t i = 0; i < SILT_COUNT(odd); i++)
        assert_int_equal(find_with(SILT_PREVIEW_HOST, "8000-box-sesameopen", odd[i], &a),
                         SILT_PREVIEW_LOCKED);
    close_all();
}

TEST(guesses_at_one_name_are_slowed_down_and_others_are_not)
{
    uint32_t got = 0;
    open_all();
    (void)simple();
    for (int i = 0; i < 1000000 && got != SILT_PREVIEW_BUSY; i++)
        got = find("8000-box-wrongtoken");
    assert_int_equal(got, SILT_PREVIEW_BUSY);
    int others = 0;
    for (char c = 'a'; c <= 'z'; c++) {
        char name[] = "8000-box?-wrongtoken";
        name[8] = c;
        others += find(name) == SILT_PREVIEW_UNKNOWN;
    }
    assert_true(others > 20); /* those that share a bucket with it wait, too */
    close_all();
}

TEST(a_socket_comes_and_nobody_is_asked_for_what_was_not_found)
{
    struct silt_preview_answer a;
    struct silt_priv_request q;
    open_all();
    struct silt_exposed_port *x = simple();
    uint32_t first = dial(x->row.route, 1000);
    assert_int_equal(told(&a), SILT_PREVIEW_UNKNOWN); /* it was not found yet */
    assert_int_equal(a.serial, first);
    assert_false(harness_asked(&h, &q));
    uint64_t route = found();
    uint32_t second = dial(route, 1000);
    q = dialled();
    answer_dial(&q, 0);
    assert_int_equal(told(&a), SILT_PREVIEW_SOCKET);
    assert_int_equal(a.serial, second);
    assert_int_equal(came, 1);
    (void)dial(route + 1, 1000);
    assert_int_equal(told(&a), SILT_PREVIEW_UNKNOWN);
    connect_proxy(); /* the next silt-proxy has to find it, too */
    (void)dial(route, 1000);
    assert_int_equal(told(&a), SILT_PREVIEW_UNKNOWN);
    close_all();
}

static struct silt_priv_request next_dial(void)
{
    struct silt_priv_request q;
    int64_t until_ms = silt_clock_ms() + 10000;
    while (!harness_asked(&h, &q)) {
        struct silt_error e;
        assert_true(silt_clock_ms() < until_ms);
        assert_int_equal(silt_loop_turn(&h.loop, 50, &e), 0);
    }
    assert_int_equal(q.op, SILT_PRIV_DIAL);
    return q;
}

TEST(one_visitor_tries_for_all_and_all_go_in_when_it_opens)
{
    struct silt_preview_answer a;
    struct silt_priv_request q;
    open_all();
    (void)simple();
    uint64_t route = found();
    (void)dial(route, 60000);
    q = dialled();
    answer_dial(&q, ECONNREFUSED);
    (void)dial(route, 60000);
    uint32_t leaves = dial(route, 60000);
    assert_false(harness_asked(&h, &q)); /* two more wait for the first */
    q = next_dial();
    say(SILT_PREVIEW_LEAVE, leaves, 0, 0);
    answer_dial(&q, 0);
    assert_int_equal(told(&a), SILT_PREVIEW_SOCKET);
    q = dialled();
    answer_dial(&q, 0);
    assert_int_equal(told(&a), SILT_PREVIEW_SOCKET);
    assert_int_equal(told(&a), 0);
    assert_false(harness_asked(&h, &q));
    close_all();
}

TEST(a_port_that_never_opens_is_closed_in_the_end)
{
    struct silt_preview_answer a;
    open_all();
    (void)simple();
    uint64_t route = found();
    uint32_t mine = dial(route, 100);
    int64_t until_ms = silt_clock_ms() + 10000;
    uint32_t got = 0;
    while (got == 0 && silt_clock_ms() < until_ms) {
        struct silt_priv_request q;
        struct silt_error e;
        if (harness_asked(&h, &q))
            answer_dial(&q, ECONNREFUSED);
        assert_int_equal(silt_loop_turn(&h.loop, 10, &e), 0);
        got = told(&a);
    }
    assert_int_equal(got, SILT_PREVIEW_CLOSED);
    assert_int_equal(a.serial, mine);
    (void)dial(route, 0);
    struct silt_priv_request q = dialled();
    answer_dial(&q, ECONNREFUSED);
    assert_int_equal(told(&a), SILT_PREVIEW_CLOSED);
    close_all();
}

TEST(a_visitor_wakes_the_sandbox_and_a_wrong_token_does_not)
{
    struct silt_preview_answer a;
    struct silt_priv_request q;
    open_all();
    struct silt_exposed_port *x = simple();
    uint64_t route = found();
    silt_sandbox_stop(x->sandbox, "idle", "asleep");
    harness_turn(&h);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_STOP);
    harness_answer(&h, &q, true);
    assert_int_equal(found(), route);
    assert_int_equal(find("8000-box-wrongtoken"), SILT_PREVIEW_UNKNOWN);
    assert_false(harness_asked(&h, &q));
    (void)dial(route, 60000);
    started();
    q = dialled();
    answer_dial(&q, 0);
    assert_int_equal(told(&a), SILT_PREVIEW_SOCKET);
    close_all();
}

TEST(a_sandbox_that_ends_tells_those_who_wait_and_late_sockets_are_nobodys)
{
    struct silt_preview_answer a;
    open_all();
    struct silt_exposed_port *x = simple();
    uint64_t route = found();
    (void)dial(route, 60000);
    struct silt_priv_request q = dialled();
    silt_sandbox_stop(x->sandbox, "crash", "gone");
    assert_int_equal(told(&a), SILT_PREVIEW_ENDED);
    assert_int_equal(a.body.text[sizeof(a.body.text) - 1], 0);
    answer_dial(&q, 0);
    assert_int_equal(told(&a), 0);
    close_all();
}

TEST(a_use_keeps_the_sandbox_awake_until_it_ends_or_the_channel_does)
{
    open_all();
    struct silt_exposed_port *x = simple();
    struct silt_sandbox *s = x->sandbox;
    uint64_t route = found();
    say(SILT_PREVIEW_USE, 0, route, 3);
    say(SILT_PREVIEW_USE, 0, route, 1);
    assert_int_equal(s->requests, 1);
    say(SILT_PREVIEW_USE, 0, route, 0);
    say(SILT_PREVIEW_USE, 0, route, 0);
    assert_int_equal(s->requests, 0);
    say(SILT_PREVIEW_USE, 0, route + 1, 1);
    assert_int_equal(s->requests, 0);
    say(SILT_PREVIEW_USE, 0, route, 1);
    connect_proxy();
    assert_int_equal(s->requests, 0);
    close_all();
}

TEST(another_token_drops_the_former_number_and_waits_for_the_proxy)
{
    struct silt_preview_answer a;
    uint64_t former = 1;
    open_all();
    struct silt_exposed_port *x = simple();
    struct silt_sandbox *s = x->sandbox;
    uint64_t number = x->row.route;
    assert_ptr_equal(expose(s, 8000, "sesameopen", false, &former), x);
    assert_int_equal(former, 0);
    x = expose(s, 8000, "sesamenext", false, &former);
    assert_int_equal(former, 0); /* nobody had asked for it */
    number = x->row.route;
    assert_int_equal(find("8000-box-sesamenext"), SILT_PREVIEW_ROUTE);
    (void)dial(number, 60000);
    (void)dialled();
    x = expose(s, 8000, "sesamelast", false, &former);
    assert_int_equal(former, number);
    assert_true(x->row.route != number);
    assert_int_equal(told(&a), SILT_PREVIEW_UNKNOWN); /* who dialled */
    drops = 0;
    silt_preview_drop(h.registry.preview, former, on_dropped, &drops);
    assert_int_equal(told(&a), SILT_PREVIEW_DROP);
    assert_int_equal(a.route, number);
    assert_int_equal(drops, 0);
    say(SILT_PREVIEW_DROPPED, 0, number + 1, 0);
    assert_int_equal(drops, 0);
    connect_proxy(); /* the next one is told, too */
    assert_int_equal(told(&a), SILT_PREVIEW_DROP);
    say(SILT_PREVIEW_DROPPED, 0, number, 0);
    assert_int_equal(drops, 1);
    say(SILT_PREVIEW_DROPPED, 0, number, 0);
    assert_int_equal(drops, 1);
    close_all();
}

TEST(a_sandbox_is_destroyed_when_the_proxy_has_let_go_of_it)
{
    struct silt_preview_answer a;
    struct silt_priv_request q;
    struct wait w = {.waiter = {.on_ready = on_ready}};
    open_all();
    struct silt_exposed_port *x = simple();
    uint64_t route = found();
    say(SILT_PREVIEW_USE, 0, route, 1);
    silt_sandbox_destroy(x->sandbox, &w.waiter);
    assert_int_equal(told(&a), SILT_PREVIEW_DROP);
    assert_int_equal(find("8000-box-sesameopen"), SILT_PREVIEW_UNKNOWN);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    harness_answer(&h, &q, true);
    assert_int_equal(w.called, 0);
    say(SILT_PREVIEW_DROPPED, 0, route, 0);
    assert_int_equal(w.called, 1);
    assert_null(silt_registry_find(&h.registry, SILT_LIT("box")));
    close_all();
}

TEST(a_proxy_that_does_not_confirm_is_not_waited_for_forever)
{
    struct silt_preview_answer a;
    struct silt_error e;
    open_all();
    (void)simple();
    drops = 0;
    silt_preview_drop(h.registry.preview, found(), on_dropped, &drops);
    assert_int_equal(told(&a), SILT_PREVIEW_DROP);
    int64_t until_ms = silt_clock_ms() + 30000;
    while (drops == 0 && silt_clock_ms() < until_ms)
        assert_int_equal(silt_loop_turn(&h.loop, 100, &e), 0);
    assert_int_equal(drops, 1);
    close_all();
}

TEST(ports_tokens_and_aliases_are_found_again_by_a_new_siltd)
{
    struct silt_preview_answer a;
    uint64_t former;
    char label[64];
    open_all();
    struct silt_exposed_port *x = simple();
    uint64_t number = x->row.route;
    struct silt_exposed_port *odd = expose(create("Odd.Id"), 8000, "sesameopen", false, &former);
    assert_int_equal(odd->sandbox->row.alias[0], 's');
    (void)snprintf(label, sizeof(label), "8000-%s-sesameopen", odd->sandbox->row.alias);
    assert_int_equal(find(label), SILT_PREVIEW_ROUTE);
    assert_int_equal(harness_restart(&h), 0);
    connect_proxy();
    assert_int_equal(found(), number);
    assert_int_equal(find_with(SILT_PREVIEW_HOST, label, "", &a), SILT_PREVIEW_ROUTE);
    close_all();
}

TEST(too_many_visitors_are_told_so)
{
    struct silt_preview_answer a;
    struct silt_priv_request q;
    open_all();
    (void)simple();
    uint64_t route = found();
    for (int i = 0; i < SILT_PREVIEW_VISITS_MAX; i++)
        (void)dial(route, 60000);
    assert_int_equal(told(&a), 0);
    (void)dial(route, 60000);
    assert_int_equal(told(&a), SILT_PREVIEW_BUSY);
    for (int i = 0; i < SILT_PREVIEW_VISITS_MAX; i++) {
        q = dialled();
        answer_dial(&q, 0);
        assert_int_equal(told(&a), SILT_PREVIEW_SOCKET);
    }
    close_all();
}

TEST(nonsense_ends_the_channel_or_is_ignored)
{
    struct silt_preview_request q = {.type = 77};
    struct silt_parcel p = {.data = &q, .len = 5};
    struct silt_preview_answer a;
    struct silt_error e;
    open_all();
    (void)simple();
    tell(&q);
    assert_int_equal(told(&a), 0);
    memset(&q, 0xff, sizeof(q));
    q.type = SILT_PREVIEW_FIND;
    q.body.find.form = SILT_PREVIEW_HOST;
    tell(&q); /* without terminators */
    assert_int_equal(told(&a), SILT_PREVIEW_UNKNOWN);
    assert_int_equal(silt_fd_send(proxy, &p, &e), 0);
    harness_turn(&h);
    assert_int_equal(silt_fd_recv(proxy, &(struct silt_parcel){.data = &a, .len = sizeof(a)}, &e),
                     0);
    close_all();
}
