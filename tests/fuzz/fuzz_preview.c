/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile silt-proxy: whatever it asks, a FIND is answered exactly once, only the right names
 * lead to an entrance, sockets come only for routes that it was told of, and what it makes siltd
 * keep is bounded and goes with its channel. The input is a row of steps: what is asked, which
 * serial, which route, how many bytes follow, and those bytes as the body. */
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "sandbox/preview/preview_channel.h"
#include "unit/sandbox/harness.h"

#include <sys/socket.h>

enum { STEP = 4, OPEN = 8000, LOCKED = 8001 };

static struct harness h;
static struct silt_sandbox *box;
static struct silt_error e;
static uint64_t open_route, locked_route;
static int proxy = -1; /* silt-proxy's end */

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *why)
{
    (void)w;
    demand(why == NULL);
    box = s;
}

static void settle(void)
{
    struct silt_priv_request q;
    struct harness_frame f;
    while (harness_asked(&h, &q))
        harness_answer(
            &h, &q,
            q.op != SILT_PRIV_DIAL
                || q.seq % 2 == 0); /* and then without a socket: nobody has checked that for it */
    while (h.agent >= 0 && harness_told(&h, &f) != 0)
        continue;
    while (harness_told_super(&h) != 0)
        continue;
}

static uint64_t expose(uint16_t port, const char *token, bool locked)
{
    struct silt_exposed_port_options o = {
        .port = port, .token = silt_slice_of(token), .locked = &locked};
    struct silt_exposed_port *x = NULL;
    uint64_t former;
    demand(silt_exposed_port_expose(box, &o, &x, &former, &e) == 0);
    return x->row.route;
}

static void be_running(void)
{
    struct silt_waiter w = {.on_ready = on_ready};
    box = NULL;
    silt_registry_use(&h.registry, SILT_LIT("box"), &w);
    settle();
    demand(box != NULL);
    harness_say(&h, SILT_AGENT_WELCOME, 0, 0, &h.registry.epoch, sizeof(uint64_t));
    open_route = expose(OPEN, "sesameopen", false);
    locked_route = expose(LOCKED, "lockedport", true);
}

static void connect_proxy(void)
{
    int pair[2];
    silt_close_fd(&proxy);
    demand(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e) == 0);
    proxy = pair[1];
    silt_preview_connect(h.registry.preview, pair[0]);
    harness_turn(&h);
}

/* Whether this may lead somewhere, and where. The proof of the locked one is nobody's to guess. */
static bool may_lead(const struct silt_preview_find *f)
{
    static const char *const hosts[] = {"8000-box-sesameopen", "box-8000"};
    if (f->form == SILT_PREVIEW_PATH)
        return strncmp(f->name, "box/8000/sesameopen", sizeof(f->name)) == 0;
    for (size_t i = 0; i < SILT_COUNT(hosts); i++)
        if (f->form == SILT_PREVIEW_HOST && strncmp(f->name, hosts[i], sizeof(f->name)) == 0)
            return true;
    return false;
}

/* The answers to what was asked; how many were to this FIND. */
static unsigned hear(const struct silt_preview_request *q)
{
    struct silt_preview_answer a;
    unsigned count = 0;
    for (;;) {
        struct silt_parcel p = {.data = &a, .len = sizeof(a)};
        if (silt_fd_recv(proxy, &p, &e) <= 0)
            return count;
        demand(p.len == sizeof(a) && a.type >= SILT_PREVIEW_ROUTE && a.type < SILT_PREVIEW_SAY_MAX);
        demand(p.nfds == (a.type == SILT_PREVIEW_SOCKET));
        if (a.type == SILT_PREVIEW_ENDED)
            demand(memchr(a.body.text, 0, sizeof(a.body.text)) != NULL);
        if (a.type == SILT_PREVIEW_ROUTE)
            demand(q->type == SILT_PREVIEW_FIND && a.route == open_route
                   && a.body.route.port == OPEN && may_lead(&q->body.find));
        count +=
            q->type == SILT_PREVIEW_FIND && a.serial == q->serial && a.type <= SILT_PREVIEW_BUSY;
        silt_parcel_close(&p);
    }
}

static void ask(const uint8_t *step, silt_slice bytes)
{
    struct silt_preview_request q = {.type = step[0] % (SILT_PREVIEW_ASK_MAX + 2),
                                     .serial = step[1]};
    struct silt_parcel p = {.data = &q, .len = sizeof(q)};
    const uint64_t routes[] = {open_route, locked_route, 0, UINT64_MAX, step[2]};
    q.route = routes[step[2] % SILT_COUNT(routes)];
    if (bytes.len > 0)
        memcpy(&q.body, bytes.data, bytes.len < sizeof(q.body) ? bytes.len : sizeof(q.body));
    if (step[0] >= 250)
        p.len -= 1; /* not whole */
    if (silt_fd_send(proxy, &p, &e) < 0)
        connect_proxy();
    settle();
    unsigned answers = hear(&q);
    demand(answers <= 1 || q.type != SILT_PREVIEW_FIND);
    if (q.type == SILT_PREVIEW_FIND && step[0] < 250)
        demand(answers == 1);
    demand(h.registry.preview->visit_count <= SILT_PREVIEW_OPEN_MAX);
    if (step[0] >= 250)
        connect_proxy(); /* siltd has hung up */
}

/* As a good one does: destroy waits for it. */
static void confirm_drops(void)
{
    struct silt_preview_answer a;
    settle();
    for (;;) {
        struct silt_parcel in = {.data = &a, .len = sizeof(a)};
        if (silt_fd_recv(proxy, &in, &e) <= 0)
            break;
        demand(a.type == SILT_PREVIEW_DROP);
        struct silt_preview_request q = {.type = SILT_PREVIEW_DROPPED, .route = a.route};
        struct silt_parcel out = {.data = &q, .len = sizeof(q)};
        demand(silt_fd_send(proxy, &out, &e) == 0);
        harness_turn(&h);
    }
    settle();
}

static void clean_up(void)
{
    silt_close_fd(&proxy);
    harness_close(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (h.directory[0] == 0) {
        silt_log_open("fuzz", SILT_LOG_ERROR);
        demand(harness_open(&h) == 0 && atexit(clean_up) == 0);
        h.registry.settings.preview = (struct silt_preview_settings){
            .domain = "localhost:7459", .paths = true, .old_form = true};
    }
    be_running();
    connect_proxy();
    memset(h.registry.preview->buckets, 0,
           sizeof(h.registry.preview->buckets)); /* guesses of the case before */
    for (size_t at = 0; at + STEP <= size;) {
        size_t len = data[at + 3] < size - at - STEP ? data[at + 3] : size - at - STEP;
        ask(data + at, (silt_slice){(const char *)data + at + STEP, len});
        if (box->state != SILT_SANDBOX_RUNNING)
            be_running();
        at += STEP + len;
    }
    connect_proxy(); /* the next one: nobody waits any more */
    demand(silt_list_empty(&h.registry.preview->visits));
    silt_sandbox_destroy(box, NULL);
    confirm_drops();
    demand(h.registry.slots_used == 0);
    return 0;
}
