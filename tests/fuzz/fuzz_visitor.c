/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile visitors of previews and hostile services, with the fuzzer as both of them: whatever they
 * say, and whenever they leave, a visitor hears answers only, a service that was asked hears
 * requests only, and nothing is left of either. The input is a row of steps: who does what, how
 * many bytes follow, and those bytes. */
#include "base/own.h"
#include "fuzz/fuzz.h"
#include "proxy/preview/client_conn.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { STEP = 2, TURNS = 6, VISITORS = 3, SERVICES = 8 };

static struct silt_loop loop;
static struct silt_preview_channel talk;
static struct silt_routes routes;
static struct silt_client_conns all;
static struct sockaddr_in address;
static struct silt_error e;
static int listener, siltd, visitors[VISITORS], services[SERVICES];
static bool has_heard[VISITORS + SERVICES];
static unsigned next_service;

static void on_drop(void *context, uint64_t route)
{
    (void)context;
    silt_routes_drop_number(&routes, route);
}

/* siltd: names that begin with a or b lead to a service, others nowhere. A socket that is asked for
 * with a name comes behind its route. */
static void answer(const struct silt_preview_request *q)
{
    struct silt_preview_answer a = {
        .type = SILT_PREVIEW_UNKNOWN, .serial = q->serial, .route = q->route};
    struct silt_parcel out = {.data = &a, .len = sizeof(a)};
    int pair[2] = {-1, -1};
    if (q->type == SILT_PREVIEW_FIND
        && (q->body.find.name[0] == 'a' || q->body.find.name[0] == 'b')) {
        a.type = SILT_PREVIEW_ROUTE;
        a.route = (uint64_t)q->body.find.name[0];
        a.body.route = (struct silt_preview_route){.sandbox = (uint32_t)a.route, .port = 8000};
    } else if (q->type == SILT_PREVIEW_DIAL) {
        demand(silt_fd_pair(SOCK_STREAM | SOCK_NONBLOCK, pair, &e) == 0);
        unsigned n = next_service++ % SERVICES;
        silt_close_fd(&services[n]);
        services[n] = pair[1];
        has_heard[VISITORS + n] = false;
        a.type = SILT_PREVIEW_SOCKET;
        out.fds[out.nfds++] = pair[0];
    }
    if (q->type == SILT_PREVIEW_FIND || q->type == SILT_PREVIEW_DIAL)
        demand(silt_fd_send(siltd, &out, &e) == 0);
    silt_close_fd(&pair[0]);
    if (a.type == SILT_PREVIEW_ROUTE && q->body.find.dial != 0)
        answer(&(struct silt_preview_request){
            .type = SILT_PREVIEW_DIAL, .serial = q->body.find.dial, .route = a.route});
}

/* What is said to a visitor begins as an answer does, to a service as a request that silt-proxy
 * wrote. */
static void hear(int fd, bool *heard, bool visitor)
{
    static char room[65536];
    for (ssize_t n; fd >= 0 && (n = recv(fd, room, sizeof(room), MSG_DONTWAIT)) > 0;
         *heard = true) {
        if (!*heard && visitor)
            demand(n >= 9 && memcmp(room, "HTTP/1.1 ", 9) == 0);
        else if (!*heard)
            demand(memmem(room, (size_t)n, " HTTP/1.1\r\n", 11) != NULL || n > 16000);
    }
}

static void turn(void)
{
    for (int i = 0; i < TURNS; i++) {
        struct silt_preview_request q;
        struct silt_parcel in = {.data = &q, .len = sizeof(q)};
        demand(silt_loop_turn(&loop, 0, &e) == 0);
        if (silt_fd_recv(siltd, &in, &e) > 0)
            answer(&q);
    }
    for (int i = 0; i < VISITORS; i++)
        hear(visitors[i], &has_heard[i], true);
    for (int i = 0; i < SERVICES; i++)
        hear(services[i], &has_heard[VISITORS + i], false);
}

static void set_up(void)
{
    int pair[2];
    socklen_t len = sizeof(address);
    struct silt_preview_channel_hooks hooks = {.on_drop = on_drop};
    demand(silt_loop_open(&loop, &e) == 0);
    silt_preview_channel_init(&talk, &loop, &hooks);
    silt_routes_init(&routes, &loop, &talk, 0);
    all = (struct silt_client_conns){.loop = &loop, .routes = &routes, .talk = &talk};
    all.settings =
        (struct silt_client_conns_settings){.rule = {.domain = SILT_LIT("d:1"), .paths = true},
                                            .wait_ms = 30000,
                                            .head_timeout_ms = 30000,
                                            .idle_timeout_ms = 30000,
                                            .silence_timeout_ms = 60000,
                                            .connections = 100,
                                            .connections_all = 1000};
    silt_client_conns_init(&all, 1000);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    demand(bind(listener, (struct sockaddr *)&address, len) == 0 && listen(listener, 100) == 0
           && getsockname(listener, (struct sockaddr *)&address, &len) == 0);
    silt_client_conns_listen(&all, listener);
    demand(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e) == 0);
    siltd = pair[1];
    silt_preview_channel_replace(&talk, pair[0]);
    silt_preview_channel_flush(&talk);
    memset(visitors, -1, sizeof(visitors));
    memset(services, -1, sizeof(services));
    memset(has_heard, 0, sizeof(has_heard));
    next_service = 0;
}

static void tear_down(void)
{
    for (int i = 0; i < VISITORS; i++)
        silt_close_fd(&visitors[i]);
    for (int i = 0; i < SERVICES; i++)
        silt_close_fd(&services[i]);
    silt_list_each(it, &all.list)
        silt_client_conn_cut(silt_outer(it, struct silt_client_conn, link));
    silt_list_each(it, &routes.list) silt_route_drop(silt_outer(it, struct silt_route, link));
    demand(silt_loop_turn(&loop, 0, &e) == 0 && all.count == 0);
    silt_loop_forget(&loop, &all.listener);
    silt_loop_forget(&loop, &talk.channel);
    silt_close_fd(&talk.channel.fd);
    silt_close_fd(&listener);
    silt_close_fd(&siltd);
    silt_map_fini(&routes.names);
    silt_map_fini(&routes.numbers);
    silt_map_fini(&routes.guests.map);
    silt_map_fini(&talk.serials);
    silt_loop_close(&loop);
}

static void come(int *fd)
{
    struct linger now = {.l_onoff = 1}; /* a port is not kept for a minute behind each of them */
    silt_close_fd(fd);
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    demand(setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0);
    has_heard[fd - visitors] = false;
    if (connect(*fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        silt_close_fd(fd); /* others have all ports of this machine now */
}

static void act(uint8_t what, silt_slice bytes)
{
    int *visitor = &visitors[what / 8 % VISITORS], *service = &services[what / 8 % SERVICES];
    int *whose = what % 2 == 0 ? visitor : service;
    if (whose == visitor && *visitor < 0)
        come(visitor);
    if (bytes.len > 0 && *whose >= 0)
        (void)send(*whose, bytes.data, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn();
    if (what % 8 >= 6)
        silt_close_fd(whose);
    else if (what % 8 >= 4 && *whose >= 0)
        (void)shutdown(*whose, SHUT_WR);
    if (what % 8 >= 4)
        turn();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    set_up();
    for (size_t at = 0; at + STEP <= size;) {
        size_t len = data[at + 1] < size - at - STEP ? data[at + 1] : size - at - STEP;
        act(data[at], (silt_slice){(const char *)data + at + STEP, len});
        at += STEP + len;
    }
    tear_down();
    return 0;
}
