/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/tcp_use.h"
#include "base/clock.h"
#include "base/own.h"
#include "wire/priv.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ALL_MS = 200,        /* a guest may have made 100,000 sockets */
    PACKET = 128 * 1024, /* the last packet may exceed the receive buffer's size */
    PORTS_ALONE = 4,     /* up to so many listeners are listed each by itself */
};

static const uint32_t listening = 1U << TCP_LISTEN;
static const uint32_t connected = ~(1U << TCP_LISTEN | 1U << TCP_TIME_WAIT);

/* Only those in use: clearing the whole array would cost more than a look. */
static void forget_ports(struct silt_tcp_use *u)
{
    for (; u->nbusy > 0; u->nbusy--)
        u->ports[u->busy[u->nbusy - 1]] = (struct silt_tcp_port){0};
    u->waiting = u->hidden_max = u->hidden = 0;
    memset(u->weights, 0, sizeof(u->weights));
    u->weighed = false;
}

void silt_tcp_use_end(struct silt_tcp_use *u)
{
    forget_ports(u);
    silt_sock_list_close(&u->diag);
}

/* New sockets for each list: the rest of a list that was stopped early would appear in the next
 * reply. */
static int renew(struct silt_tcp_use *u)
{
    silt_sock_list_close(&u->diag);
    u->until_ms = silt_clock_ms() + ALL_MS;
    return silt_sock_list_open(&u->diag);
}

void silt_tcp_use_begin(struct silt_tcp_use *u, uint32_t uid_first)
{
    u->uid_first = uid_first;
    u->diag = (struct silt_sock_list){-1, -1};
}

static bool is_guests(const struct silt_tcp_use *u, const struct silt_sock_list_socket *s)
{
    return s->uid - u->uid_first < SILT_SLOT_IDS;
}

/* Established and not accepted yet. A connection that its holder closed is in a closing state. */
static bool waits(const struct silt_sock_list_socket *s)
{
    return !s->held && (s->state == TCP_ESTABLISHED || s->state == TCP_CLOSE_WAIT);
}

static void each_at(struct silt_tcp_use *u, uint16_t port, uint32_t states,
                    silt_sock_list_each_fn *on_socket)
{
    struct silt_sock_list_query v4 = {
        .family = AF_INET, .protocol = IPPROTO_TCP, .states = states, .port = port};
    struct silt_sock_list_query v6 = v4;
    v6.family = AF_INET6;
    if (renew(u) == 0 && silt_sock_list_each(&u->diag, &v4, on_socket, u) == 0)
        (void)silt_sock_list_each(&u->diag, &v6, on_socket, u);
}

static void each(struct silt_tcp_use *u, uint32_t states, silt_sock_list_each_fn *on_socket)
{
    each_at(u, 0, states, on_socket);
}

static bool on_listener(void *context, const struct silt_sock_list_socket *s)
{
    struct silt_tcp_use *u = context;
    struct silt_tcp_port *p = &u->ports[s->port];
    if (s->backlog == 0 || !is_guests(u, s))
        return true;
    if (p->waiting == 0)
        u->busy[u->nbusy++] = s->port;
    p->waiting += s->backlog;
    p->receive_max = s->receive_max > p->receive_max ? s->receive_max : p->receive_max;
    return silt_clock_ms() < u->until_ms;
}

static unsigned logarithm(uint64_t bytes)
{
    return bytes == 0 ? 0 : (unsigned)(SILT_TCP_WEIGHTS - 1 - __builtin_clzll(bytes));
}

static bool on_waiting(void *context, const struct silt_sock_list_socket *s)
{
    struct silt_tcp_use *u = context;
    struct silt_tcp_port *p = &u->ports[s->port];
    if (p->waiting > 0 && waits(s)) {
        p->memory += s->memory;
        p->listed++;
        u->waiting += s->memory;
    }
    return silt_clock_ms() < u->until_ms;
}

static bool on_held(void *context, const struct silt_sock_list_socket *s)
{
    struct silt_tcp_use *u = context;
    if (s->held && is_guests(u, s))
        u->weights[logarithm(s->memory)] += s->memory;
    return silt_clock_ms() < u->until_ms;
}

static bool on_connection(void *context, const struct silt_sock_list_socket *s)
{
    return on_waiting(context, s) && on_held(context, s);
}

/* The kernel filters by port much faster than it describes a socket: a guest may have tens of
 * thousands of idle ones. */
static void look_at_waiting(struct silt_tcp_use *u)
{
    if (u->nbusy > PORTS_ALONE) {
        each(u, connected, on_connection);
        u->weighed = true;
        return;
    }
    for (uint32_t i = 0; i < u->nbusy; i++)
        each_at(u, u->busy[i], connected, on_waiting);
}

static uint32_t hidden_at(const struct silt_tcp_port *p)
{
    return p->waiting > p->listed ? p->waiting - p->listed : 0;
}

/* Most sandboxes have no listener with a queue, and the list of connections is the long one. */
void silt_tcp_use_look(struct silt_tcp_use *u)
{
    forget_ports(u);
    each(u, listening, on_listener);
    if (u->nbusy == 0)
        return;
    look_at_waiting(u);
    for (uint32_t i = 0; i < u->nbusy; i++) {
        const struct silt_tcp_port *p = &u->ports[u->busy[i]];
        u->hidden_max += hidden_at(p) * (p->receive_max + PACKET);
    }
}

/* Hidden memory is divided evenly: its owners are unknown. */
static uint64_t weight_of_port(const struct silt_tcp_use *u, const struct silt_tcp_port *p)
{
    if (p->waiting == 0)
        return 0;
    uint64_t most = hidden_at(p) * (p->receive_max + PACKET);
    return p->memory
           + (u->hidden_max > 0
                  ? (uint64_t)((double)u->hidden * ((double)most / (double)u->hidden_max))
                  : 0);
}

/* The smallest weight to end, so that no ended socket is less than half as large as one that
 * stays. */
static uint64_t find_least(const struct silt_tcp_use *u)
{
    uint64_t sum = 0;
    for (unsigned i = SILT_TCP_WEIGHTS - 1; i > 0; i--) {
        sum += u->weights[i];
        if (sum >= u->wanted)
            return 1ULL << i;
    }
    return 1;
}

static bool on_candidate(void *context, const struct silt_sock_list_socket *s)
{
    struct silt_tcp_use *u = context;
    bool listens = s->state == TCP_LISTEN;
    uint64_t weight = listens ? weight_of_port(u, &u->ports[s->port]) : s->held ? s->memory : 0;
    if (weight >= u->least && is_guests(u, s) && silt_sock_list_destroy(&u->diag, s)) {
        u->covered += weight;
        u->ended_listeners += listens;
        u->ended_connections += !listens;
    }
    return u->covered < u->wanted && silt_clock_ms() < u->until_ms;
}

void silt_tcp_use_reset(struct silt_tcp_use *u, uint64_t bytes)
{
    u->wanted = bytes;
    u->covered = 0;
    u->ended_connections = u->ended_listeners = 0;
    bool enough = false;
    for (uint32_t i = 0; i < u->nbusy; i++) {
        uint64_t weight = weight_of_port(u, &u->ports[u->busy[i]]);
        u->weights[logarithm(weight)] += weight;
        enough = enough || weight >= bytes;
    }
    /* One listener that is enough is the largest: no connection holds as much. */
    if (!enough && !u->weighed)
        each(u, connected, on_held);
    u->least = find_least(u);
    each(u, listening, on_candidate);
    if (u->covered < u->wanted)
        each(u, connected, on_candidate);
}

int silt_tcp_use_machine(silt_slice sockstat, uint64_t *ret_pages, struct silt_error *e)
{
    silt_slice line, word;
    while (silt_slice_split(&sockstat, '\n', &line)) {
        if (!silt_slice_starts(line, SILT_LIT("TCP: ")))
            continue;
        while (silt_slice_split(&line, ' ', &word))
            if (silt_slice_eq(word, SILT_LIT("mem")) && silt_slice_split(&line, ' ', &word))
                return silt_slice_to_u64(word, 0, UINT64_MAX >> 16, ret_pages, e);
    }
    return silt_fail(e, SILT_NOT_FOUND, "no memory of TCP in sockstat");
}
