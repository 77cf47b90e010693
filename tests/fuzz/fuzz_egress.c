/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile silt-proxy on the channel about the sandboxes' way out: whatever it says of whichever
 * link, whoever waits for the sandbox or its counts is told once, the link is never put into a
 * wider mode than the sandbox's, and nothing of the sandbox is left when it is destroyed. The input
 * is a row of steps: what is said, of which link, in which generation, how many bytes follow, and
 * those bytes as the body. */
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "sandbox/network/egress_channel.h"
#include "sandbox/network/network.h"
#include "unit/sandbox/harness.h"

#include <sys/socket.h>

enum { STEP = 4, LINK = 77 };

static struct harness h;
static struct silt_error e;
static struct silt_sandbox *box;
static unsigned told, counted, asked;
static uintptr_t run;       /* an answer that was given up on comes when a later input runs */
static uint64_t generation; /* siltd's last */
static int proxy = -1;      /* silt-proxy's end */

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *why)
{
    (void)w;
    (void)why;
    told++;
    box = s;
}

static void on_counted(void *context, const struct silt_egress_counts *counts)
{
    (void)counts;
    counted += context == (void *)run;
}

static void settle(void)
{
    struct silt_priv_request q;
    struct harness_frame f;
    struct silt_egress_request r;
    while (harness_asked(&h, &q)) {
        demand(q.op != SILT_PRIV_NETWORK || q.body.network == SILT_NET_NONE
               || q.body.network == SILT_NET_ALLOW);
        harness_answer(&h, &q, true);
    }
    while (h.agent >= 0 && harness_told(&h, &f) != 0)
        if (f.frame.type == SILT_AGENT_HELLO)
            harness_say(&h, SILT_AGENT_WELCOME, 0, 0, f.frame.body, sizeof(uint64_t));
    while (harness_told_super(&h) != 0)
        continue;
    for (struct silt_parcel p = {.data = &r, .len = sizeof(r)}; silt_fd_recv(proxy, &p, &e) > 0;
         p = (struct silt_parcel){.data = &r, .len = sizeof(r)}) {
        generation = r.generation != 0 ? r.generation : generation;
        silt_parcel_close(&p);
    }
}

static void connect_proxy(void)
{
    int pair[2];
    silt_close_fd(&proxy);
    demand(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e) == 0);
    proxy = pair[1];
    silt_egress_connect(h.registry.egress, pair[0]);
    settle();
}

static void create(void)
{
    static struct silt_waiter w;
    struct silt_sandbox_options o = {.limits = h.registry.default_limits,
                                     .type = "standard-1",
                                     .network = SILT_NET_ALLOW,
                                     .allow = SILT_LIT("example.com\n")};
    w = (struct silt_waiter){.on_ready = on_ready};
    box = NULL;
    told = counted = asked = 0;
    run++;
    demand(silt_registry_create(&h.registry, SILT_LIT("box"), &o, &w, &e) == 0);
    settle();
}

static void say(const uint8_t *step, silt_slice bytes)
{
    const uint32_t links[] = {LINK, 0, SILT_EGRESS_CAPTIVE, SILT_EGRESS_CAPTIVE | 1, step[1]};
    struct silt_egress_note n = {.type = step[0] % (SILT_EGRESS_SAY_MAX + 2),
                                 .link = links[step[1] % SILT_COUNT(links)],
                                 .generation = step[2] % 2 == 0 ? generation : step[2]};
    struct silt_parcel p = {.data = &n, .len = sizeof(n) - (step[0] >= 250)}; /* not whole */
    if (bytes.len > 0)
        memcpy(&n.body, bytes.data, bytes.len < sizeof(n.body) ? bytes.len : sizeof(n.body));
    if (step[0] % 16 == 15 && box != NULL) {
        asked++;
        silt_egress_count(box, on_counted, (void *)run);
    }
    if (silt_fd_send(proxy, &p, &e) < 0 || step[0] >= 250)
        connect_proxy();
    settle();
    demand(told <= 1 && counted <= asked);
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
        h.link = LINK;
        h.mode = SILT_NET_NONE;
    }
    connect_proxy();
    create();
    for (size_t at = 0; at + STEP <= size;) {
        size_t len = data[at + 3] < size - at - STEP ? data[at + 3] : size - at - STEP;
        say(data + at, (silt_slice){(const char *)data + at + STEP, len});
        at += STEP + len;
    }
    silt_sandbox_destroy(silt_registry_find(&h.registry, SILT_LIT("box")), NULL);
    settle();
    demand(told == 1 && counted <= asked && h.registry.slots_used == 0);
    return 0;
}
