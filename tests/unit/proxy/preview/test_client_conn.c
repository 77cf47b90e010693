/* SPDX-License-Identifier: Apache-2.0 */
/* Visitors by real sockets, with this test as siltd and as the service. */
#include "unit/base/unit.h"
#include "proxy/preview/client_conn.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

enum { TURNS = 8, NAMES_MAX = 8192, EACH_MAX = 64 };

static struct rig {
    struct silt_loop loop;
    struct silt_preview_channel talk;
    struct silt_routes routes;
    struct silt_client_conns visitors;
    struct sockaddr_in address;
    int listener, siltd;
    uint32_t wish; /* serial of the socket that the last FIND asked for, too; 0: none */
    char heard[128 << 10];
} rig;

static void turn(void)
{
    struct silt_error e;
    for (int i = 0; i < TURNS; i++)
        assert_int_equal(silt_loop_turn(&rig.loop, 0, &e), 0);
}

static void on_drop(void *context, uint64_t route)
{
    (void)context;
    silt_routes_drop_number(&rig.routes, route);
}

static void set_up(size_t files)
{
    struct silt_error e;
    struct silt_preview_channel_hooks hooks = {.on_drop = on_drop};
    int pair[2];
    socklen_t len = sizeof(rig.address);
    memset(&rig, 0, sizeof(rig));
    assert_int_equal(silt_loop_open(&rig.loop, &e), 0);
    silt_preview_channel_init(&rig.talk, &rig.loop, &hooks);
    silt_routes_init(&rig.routes, &rig.loop, &rig.talk, 0);
    rig.visitors =
        (struct silt_client_conns){.loop = &rig.loop, .routes = &rig.routes, .talk = &rig.talk};
    rig.visitors.settings =
        (struct silt_client_conns_settings){.rule = {.domain = SILT_LIT("d:1"), .paths = true},
                                            .wait_ms = 30000,
                                            .head_timeout_ms = 30000,
                                            .idle_timeout_ms = 30000,
                                            .silence_timeout_ms = 60000,
                                            .connections = 100,
                                            .connections_all = 1000};
    silt_client_conns_init(&rig.visitors, files);
    rig.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    rig.address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(rig.listener, (struct sockaddr *)&rig.address, len), 0);
    assert_int_equal(listen(rig.listener, 100), 0);
    assert_int_equal(getsockname(rig.listener, (struct sockaddr *)&rig.address, &len), 0);
    silt_client_conns_listen(&rig.visitors, rig.listener);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e), 0);
    rig.siltd = pair[1];
    silt_preview_channel_replace(&rig.talk, pair[0]);
    silt_preview_channel_flush(&rig.talk);
}

/* Whatever is open goes with its visitors; routes are dropped. */
static void tear_down(void)
{
    silt_list_each(it, &rig.visitors.list)
        silt_client_conn_cut(silt_outer(it, struct silt_client_conn, link));
    silt_list_each(it, &rig.routes.list) silt_route_drop(silt_outer(it, struct silt_route, link));
    silt_loop_forget(&rig.loop, &rig.visitors.listener);
    silt_loop_forget(&rig.loop, &rig.talk.channel);
    silt_close_fd(&rig.talk.channel.fd);
    silt_close_fd(&rig.listener);
    silt_close_fd(&rig.siltd);
    silt_map_fini(&rig.routes.names);
    silt_map_fini(&rig.routes.numbers);
    silt_map_fini(&rig.routes.guests.map);
    silt_map_fini(&rig.talk.serials);
    silt_loop_close(&rig.loop);
}

/* Visitors */

static int visit(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&rig.address, sizeof(rig.address)), 0);
    turn();
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    turn();
}

static const char *hear(int fd)
{
    turn();
    ssize_t n = recv(fd, rig.heard, sizeof(rig.heard) - 1, MSG_DONTWAIT);
    rig.heard[n > 0 ? n : 0] = 0;
    return rig.heard;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* siltd */

/* The next FIND or DIAL; without: type 0. */
static struct silt_preview_request next_ask(void)
{
    struct silt_error e;
    for (;;) {
        struct silt_preview_request q = {0};
        struct silt_parcel in = {.data = &q, .len = sizeof(q)};
        if (silt_fd_recv(rig.siltd, &in, &e) <= 0)
            return (struct silt_preview_request){0};
        if (q.type == SILT_PREVIEW_FIND || q.type == SILT_PREVIEW_DIAL)
            return q;
    }
}

static void answer(struct silt_preview_answer a, int fd)
{
    struct silt_error e;
    struct silt_parcel out = {.data = &a, .len = sizeof(a), .fds = {fd}, .nfds = fd >= 0 ? 1 : 0};
    assert_int_equal(silt_fd_send(rig.siltd, &out, &e), 0);
    turn();
}

static void answer_find(uint32_t type, uint64_t route)
{
    struct silt_preview_request q = next_ask();
    assert_int_equal(q.type, SILT_PREVIEW_FIND);
    struct silt_preview_answer a = {.type = type, .serial = q.serial, .route = route};
    a.body.route = (struct silt_preview_route){.sandbox = (uint32_t)route, .port = 8000};
    rig.wish = type == SILT_PREVIEW_ROUTE ? q.body.find.dial : 0;
    answer(a, -1);
}

/* The service's end. */
static int answer_dial(void)
{
    struct silt_error e;
    int pair[2];
    struct silt_preview_request q = {.serial = rig.wish, .route = 1};
    if (rig.wish == 0) {
        q = next_ask();
        assert_int_equal(q.type, SILT_PREVIEW_DIAL);
    }
    rig.wish = 0;
    assert_int_equal(silt_fd_pair(SOCK_STREAM | SOCK_NONBLOCK, pair, &e), 0);
    answer((struct silt_preview_answer){.type = SILT_PREVIEW_SOCKET,
                                        .serial = q.serial,
                                        .route = q.route},
           pair[0]);
    (void)close(pair[0]);
    return pair[1];
}

TEST(a_head_that_is_not_complete_takes_nobody_elses_place)
{
    set_up(1000);
    int mine = visit(), other = visit(), third = visit();
    say(mine, "GET /mine HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
    say(other, "GET /stranger HTTP/1.1\r\nHost: b.d:1\r\nCookie: secret=1\r\n");
    say(third,
        "GET /malformed HTTP/1.1\r\nHost: b.d:1\r\nCookie: secret=2\r\nContent-Length: x\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 1);
    int service = answer_dial();
    const char *head = hear(service);
    assert_true(starts(head, "GET /mine HTTP/1.1\r\n"));
    assert_null(strstr(head, "secret"));
    (void)close(mine);
    (void)close(other);
    (void)close(third);
    (void)close(service);
    tear_down();
}

TEST(an_unknown_name_may_be_asked_for_twice_in_a_row)
{
    set_up(1000);
    int fd = visit();
    say(fd, "GET /1 HTTP/1.1\r\nHost: a.d:1\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_UNKNOWN, 0);
    assert_true(starts(hear(fd), "HTTP/1.1 404 "));
    answer_find(SILT_PREVIEW_UNKNOWN, 0);
    assert_true(starts(hear(fd), "HTTP/1.1 404 "));
    assert_int_equal(rig.routes.nnames, 0);
    (void)close(fd);
    tear_down();
}

TEST(whoever_comes_by_path_is_caged_and_nobody_else)
{
    const char *by_path = "GET /preview/a/8000/t/ HTTP/1.1\r\nHost: d:1\r\n\r\n",
               *by_host = "GET / HTTP/1.1\r\nHost: a.d:1\r\n\r\n";
    const char *whats[] = {by_path, by_host, by_path, by_host};
    set_up(1000);
    int fd = visit(), service = -1;
    for (size_t i = 0; i < SILT_COUNT(whats); i++) {
        bool path = whats[i] == by_path;
        say(fd, whats[i]);
        if (i < 2)
            answer_find(SILT_PREVIEW_ROUTE, 1);
        if (i == 0)
            service = answer_dial();
        assert_true(starts(hear(service), "GET / HTTP/1.1\r\n"));
        say(service, "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n");
        const char *got = hear(fd);
        assert_true(starts(got, "HTTP/1.1 200 OK\r\n"));
        assert_int_equal(strstr(got, "Content-Security-Policy: sandbox") != NULL, path);
        assert_int_equal(strstr(got, "Set-Cookie") != NULL, !path);
    }
    (void)close(fd);
    (void)close(service);
    tear_down();
}

/* The service closes an idle connection just as the next request is written to it. */
static void lose_idle_connection(int fd, const char *next)
{
    say(fd, "GET / HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 1);
    int service = answer_dial();
    (void)hear(service);
    say(service, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_true(starts(hear(fd), "HTTP/1.1 200 OK\r\n"));
    say(fd, next);
    assert_true(starts(hear(service), "PUT /x HTTP/1.1\r\n"));
    (void)close(service);
    turn();
}

TEST(a_chunked_request_that_is_sent_again_keeps_its_end)
{
    set_up(1000);
    int fd = visit();
    lose_idle_connection(fd, "PUT /x HTTP/1.1\r\nHost: a.d:1\r\nTransfer-Encoding: chunked\r\n"
                             "\r\n0\r\n\r\n");
    int service = answer_dial();
    const char *again = hear(service);
    assert_true(starts(again, "PUT /x HTTP/1.1\r\n"));
    assert_string_equal(strstr(again, "\r\n\r\n"), "\r\n\r\n0\r\n\r\n");
    (void)close(fd);
    (void)close(service);
    tear_down();
}

/* Until its reader, who does not read, and the kernel take no more. */
static void fill(int fd)
{
    static const char much[64 << 10] = {0};
    for (bool sent = true; sent;
         (void)poll(NULL, 0, 50)) { /* some of it leaves later, and makes room */
        sent = false;
        while (send(fd, much, sizeof(much), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            sent = true;
    }
}

TEST(bytes_behind_the_last_answer_do_not_keep_us_busy)
{
    set_up(1000);
    int fd = visit();
    struct silt_client_conn *v = silt_outer(rig.visitors.list.next, struct silt_client_conn, link);
    fill(v->watch.fd);
    say(fd, "BAD\r\n\r\n");
    assert_int_equal(v->state, SILT_CLIENT_CONN_PARTING);
    say(fd, "more");
    assert_int_equal(v->state, SILT_CLIENT_CONN_PARTING);
    assert_int_equal(v->watch.events & EPOLLIN, 0);
    (void)close(fd);
    tear_down();
}

static void ask_by_proof(int fd, unsigned route, unsigned proof)
{
    char text[256];
    (void)snprintf(text, sizeof(text),
                   "GET /?silt-proof=p%u HTTP/1.1\r\nHost: r%u.d:1\r\nAccept: text/html\r\n\r\n",
                   proof, route);
    say(fd, text);
}

TEST(proofs_without_end_leave_room_for_other_names)
{
    set_up(1000);
    int holds = visit(), fd = visit();
    ask_by_proof(fd, 1, 0);
    answer_find(SILT_PREVIEW_ROUTE, 1);
    (void)hear(fd);
    say(holds, "GET /?silt-proof=p0 HTTP/1.1\r\nHost: r1.d:1\r\n\r\n");
    int service = answer_dial();
    for (unsigned i = 1; i <= NAMES_MAX; i++) {
        ask_by_proof(fd, 1, i);
        answer_find(SILT_PREVIEW_ROUTE, 1);
        assert_true(starts(hear(fd), "HTTP/1.1 302 "));
    }
    assert_true(rig.routes.nnames <= EACH_MAX);
    int other = visit();
    say(other, "GET / HTTP/1.1\r\nHost: other.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_UNKNOWN, 0);
    assert_true(starts(hear(other), "HTTP/1.1 404 "));
    (void)close(fd);
    (void)close(holds);
    (void)close(other);
    (void)close(service);
    tear_down();
}

TEST(a_route_stays_while_those_who_waited_for_it_are_told)
{
    set_up(1000);
    int fd = visit(), first = visit(), second = visit();
    ask_by_proof(fd, 1, 0); /* the oldest route, and idle: it would make room */
    answer_find(SILT_PREVIEW_ROUTE, 1);
    for (unsigned i = 0; rig.routes.nnames < NAMES_MAX - 1; i++) {
        ask_by_proof(fd, 2 + i / EACH_MAX, i);
        answer_find(SILT_PREVIEW_ROUTE, 2 + i / EACH_MAX);
        (void)hear(fd);
    }
    const char *both = "GET /?silt-proof=x HTTP/1.1\r\nHost: r1.d:1\r\nAccept: text/html\r\n\r\n"
                       "GET / HTTP/1.1\r\nHost: unknown.d:1\r\n\r\n";
    say(first, both);
    say(second, "GET /?silt-proof=x HTTP/1.1\r\nHost: r1.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 1);
    const char *got = hear(first);
    assert_true(starts(got, "HTTP/1.1 302 "));
    assert_non_null(strstr(got, "HTTP/1.1 503 "));
    int service = answer_dial();
    assert_true(starts(hear(service), "GET / HTTP/1.1\r\n"));
    (void)close(fd);
    (void)close(first);
    (void)close(second);
    (void)close(service);
    tear_down();
}

TEST(an_answer_that_does_not_fit_behind_its_hints_is_cut_not_shortened)
{
    static char text[60 << 10];
    size_t len = 0;
    set_up(1000);
    int fd = visit();
    say(fd, "GET /preview/a/8000/t/ HTTP/1.1\r\nHost: d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 1);
    int service = answer_dial();
    for (int i = 0; i < 900; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "HTTP/1.1 103\r\n\r\n");
    len += (size_t)snprintf(text + len, sizeof(text) - len,
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n");
    memset(text + len, 'x', 0x8000);
    len += 0x8000;
    assert_int_equal(send(service, text, len, MSG_NOSIGNAL), (ssize_t)len);
    turn();
    assert_int_equal(rig.visitors.count, 0);
    (void)close(fd);
    (void)close(service);
    tear_down();
}

TEST(sockets_into_sandboxes_leave_descriptors_for_siltd)
{
    enum { FILES = 256 + 16, SOCKETS = 4 };
    int fds[SOCKETS + 1], services[SOCKETS];
    set_up(FILES);
    assert_int_equal(rig.visitors.settings.connections_all, 12);
    for (int i = 0; i <= SOCKETS; i++) {
        fds[i] = visit();
        say(fds[i], "GET / HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
        if (i == 0)
            answer_find(SILT_PREVIEW_ROUTE, 1);
        if (i < SOCKETS)
            services[i] = answer_dial();
    }
    (void)close(answer_dial());
    assert_true(starts(hear(fds[SOCKETS]), "HTTP/1.1 503 "));
    say(services[0],
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); /* it is idle then, and of this route */
    say(fds[SOCKETS], "GET /b HTTP/1.1\r\nHost: b.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 2);
    int service = answer_dial();
    assert_true(starts(hear(service), "GET /b HTTP/1.1\r\n"));
    (void)close(service);
    for (int i = 0; i <= SOCKETS; i++)
        (void)close(fds[i]);
    for (int i = 0; i < SOCKETS; i++)
        (void)close(services[i]);
    tear_down();
}

TEST(a_channel_that_is_not_understood_ends_the_program)
{
    set_up(1000);
    assert_int_equal(send(rig.siltd, "what", 4, 0), 4);
    turn();
    assert_true(rig.loop.stopping);
    tear_down();
}

/* Another siltd. */
static void replace_siltd(void)
{
    struct silt_error e;
    int pair[2];
    silt_close_fd(&rig.siltd);
    turn();
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e), 0);
    rig.siltd = pair[1];
    silt_preview_channel_replace(&rig.talk, pair[0]);
    silt_routes_renew(&rig.routes);
    silt_preview_channel_flush(&rig.talk);
    turn();
}

TEST(the_next_siltd_can_drop_what_the_last_one_told_of)
{
    set_up(1000);
    int fd = visit();
    say(fd, "GET / HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 1);
    int service = answer_dial();
    replace_siltd();
    answer((struct silt_preview_answer){.type = SILT_PREVIEW_DROP, .route = 1}, -1);
    assert_true(starts(hear(fd), "HTTP/1.1 404 "));
    (void)close(fd);
    (void)close(service);
    tear_down();
}

TEST(a_route_is_found_again_by_its_number_only)
{
    set_up(1000);
    int fd = visit(), other = visit();
    say(fd, "GET /1 HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 1);
    int service = answer_dial();
    assert_true(starts(hear(service), "GET /1 "));
    replace_siltd();
    say(other, "GET /2 HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 1);
    int second = answer_dial();
    assert_true(starts(hear(second), "GET /2 "));
    say(service, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_true(starts(hear(fd), "HTTP/1.1 200 "));
    replace_siltd();
    answer_find(SILT_PREVIEW_ROUTE, 2);
    assert_true(starts(hear(other), "HTTP/1.1 404 "));
    assert_int_equal(rig.routes.count, 1);
    (void)close(fd);
    (void)close(other);
    (void)close(service);
    (void)close(second);
    tear_down();
}

#define UPGRADE "Connection: Upgrade\r\nUpgrade: websocket\r\n"

TEST(a_first_visit_asks_once)
{
    const char *asks[] = {
        "GET /1 HTTP/1.1\r\nHost: a.d:1\r\n\r\n",
        "GET /1?silt-proof=p HTTP/1.1\r\nHost: b.d:1\r\n\r\n",
        "POST /1?silt-proof=p HTTP/1.1\r\nHost: c.d:1\r\nAccept: text/html\r\n\r\n",
        "GET /1 HTTP/1.1\r\nHost: e.d:1\r\n" UPGRADE "\r\n",
        "GET /1 HTTP/1.1\r\nHost: f.d:1\r\nOrigin: http://f.d:1\r\n" UPGRADE "\r\n",
        "GET /1?silt-proof=p HTTP/1.1\r\nHost: g.d:1\r\nOrigin: http://h.d:1\r\n" UPGRADE "\r\n",
    };
    set_up(1000);
    for (size_t i = 0; i < SILT_COUNT(asks); i++) {
        int fd = visit();
        say(fd, asks[i]);
        answer_find(SILT_PREVIEW_ROUTE, i + 1);
        assert_true(rig.wish != 0);
        assert_int_equal(next_ask().type, 0);
        int service = answer_dial();
        assert_non_null(strstr(hear(service), " /1 HTTP/1.1\r\n"));
        assert_int_equal(next_ask().type, 0);
        (void)close(fd);
        (void)close(service);
    }
    tear_down();
}

TEST(a_locked_port_leaves_no_ask_for_a_socket)
{
    const char *asks[] = {
        "GET /?silt-proof=p HTTP/1.1\r\nHost: a.d:1\r\n\r\n",
        "GET /?silt-proof=p HTTP/1.1\r\nHost: b.d:1\r\n" UPGRADE "\r\n",
    };
    set_up(1000);
    for (size_t i = 0; i < SILT_COUNT(asks); i++) {
        int fd = visit();
        say(fd, asks[i]);
        answer_find(SILT_PREVIEW_LOCKED, 0);
        assert_true(starts(hear(fd), "HTTP/1.1 403 "));
        assert_int_equal(rig.talk.count, 0);
        assert_true(silt_list_empty(&rig.talk.waiting));
        assert_int_equal(next_ask().type, 0);
        (void)close(fd);
    }
    tear_down();
}

TEST(a_visit_that_may_need_no_socket_does_not_ask_for_one_with_its_name)
{
    const char *asks[] = {"GET /?silt-proof=p HTTP/1.1\r\nHost: a.d:1\r\nAccept: text/html\r\n\r\n",
                          "GET / HTTP/1.1\r\nHost: b.d:1\r\nOrigin: http://a.d:1\r\n" UPGRADE
                          "\r\n",
                          "GET /preview/a/8000/t HTTP/1.1\r\nHost: d:1\r\n\r\n"};
    set_up(1000);
    for (size_t i = 0; i < SILT_COUNT(asks); i++) {
        int fd = visit();
        say(fd, asks[i]);
        struct silt_preview_request q = next_ask();
        assert_int_equal(q.type, SILT_PREVIEW_FIND);
        assert_int_equal(q.body.find.dial, 0);
        answer((struct silt_preview_answer){.type = SILT_PREVIEW_UNKNOWN, .serial = q.serial}, -1);
        (void)close(fd);
    }
    tear_down();
}

TEST(an_unknown_name_leaves_no_ask_for_a_socket)
{
    set_up(1000);
    int fd = visit();
    say(fd, "GET / HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
    assert_int_equal(rig.talk.count, 2);
    answer_find(SILT_PREVIEW_UNKNOWN, 0);
    assert_true(starts(hear(fd), "HTTP/1.1 404 "));
    assert_int_equal(rig.talk.count, 0);
    assert_true(silt_list_empty(&rig.talk.waiting));
    (void)close(fd);
    tear_down();
}

TEST(a_socket_that_a_dead_siltd_owes_is_asked_of_the_next)
{
    set_up(1000);
    int fd = visit(), other = visit();
    say(fd, "GET /1 HTTP/1.1\r\nHost: a.d:1\r\n\r\n");
    answer_find(SILT_PREVIEW_ROUTE, 1);                   /* and dies */
    say(other, "GET /2 HTTP/1.1\r\nHost: b.d:1\r\n\r\n"); /* has no answer at all */
    replace_siltd();
    for (uint64_t route = 1; route <= 2; route++) {
        answer_find(SILT_PREVIEW_ROUTE, route);
        assert_int_equal(rig.wish, 0);
    }
    int first = answer_dial(), second = answer_dial();
    bool in_order = starts(hear(first), "GET /1 ");
    assert_true(starts(hear(second), in_order ? "GET /2 " : "GET /1 "));
    (void)close(fd);
    (void)close(other);
    (void)close(first);
    (void)close(second);
    tear_down();
}
