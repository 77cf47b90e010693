/* SPDX-License-Identifier: Apache-2.0 */
/* A relay between two pairs of sockets: this test holds the far end of each. */
#include "proxy/core/relay.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { TURNS = 8, WAIT_MS = 10000, BIG = 4 << 20 };

static struct rig {
    struct silt_loop loop;
    struct silt_relay relay;
    struct silt_buf up, down;
    uint64_t sent, received;
    int client, server; /* the far ends */
    int overs;
    bool broken;
    size_t room[SILT_RELAY_ENDS];
    char heard[128 << 10];
} rig;

static void on_over(struct silt_relay *r, bool broken)
{
    assert_ptr_equal(r, &rig.relay);
    rig.overs++;
    rig.broken = broken;
}

static void turn(void)
{
    struct silt_error e;
    for (int i = 0; i < TURNS; i++)
        assert_int_equal(silt_loop_turn(&rig.loop, 0, &e), 0);
}

/* Turns until it is over. */
static void await_over(void)
{
    struct silt_error e;
    int64_t until = rig.loop.now_ms + WAIT_MS;
    while (rig.overs == 0 && rig.loop.now_ms < until)
        assert_int_equal(silt_loop_turn(&rig.loop, 100, &e), 0);
    assert_int_equal(rig.overs, 1);
}

static int open_pair(int *far)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    *far = fds[1];
    return fds[0];
}

static void set_up(const struct silt_relay_owner *owner, bool with_server)
{
    struct silt_error e;
    rig = (struct rig){.client = -1, .server = -1};
    assert_int_equal(silt_loop_open(&rig.loop, &e), 0);
    silt_buf_init(&rig.up, BIG);
    silt_buf_init(&rig.down, BIG);
    silt_relay_init(&rig.relay, &rig.loop, owner);
    silt_relay_attach(&rig.relay, SILT_RELAY_CLIENT, open_pair(&rig.client), &rig.down,
                      &rig.received);
    silt_relay_attach(&rig.relay, SILT_RELAY_SERVER, with_server ? open_pair(&rig.server) : -1,
                      &rig.up, &rig.sent);
    silt_relay_settle(&rig.relay);
}

static const struct silt_relay_owner plain = {.on_over = on_over};

static void tear_down(void)
{
    silt_relay_break(&rig.relay);
    assert_int_equal(rig.overs, 1); /* once, however it ended */
    silt_close_fd(&rig.client);
    silt_close_fd(&rig.server);
    silt_buf_fini(&rig.up);
    silt_buf_fini(&rig.down);
    silt_loop_close(&rig.loop);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    turn();
}

static void hears(int fd, const char *text)
{
    ssize_t n = recv(fd, rig.heard, sizeof(rig.heard), MSG_DONTWAIT);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(rig.heard, text, strlen(text));
}

static void hears_nothing(int fd)
{
    assert_int_equal(recv(fd, rig.heard, sizeof(rig.heard), MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

/* Sends until the socket takes no more, and the relay neither. */
static size_t fill(int fd)
{
    static char piece[64 << 10];
    size_t all = 0;
    for (int idle = 0; idle < 3;) {
        ssize_t n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL | MSG_DONTWAIT);
        idle = n > 0 ? 0 : idle + 1;
        all += n > 0 ? (size_t)n : 0;
        turn();
    }
    return all;
}

static size_t drain(int fd)
{
    size_t all = 0;
    for (int idle = 0; idle < 3;) {
        ssize_t n = recv(fd, rig.heard, sizeof(rig.heard), MSG_DONTWAIT);
        idle = n > 0 ? 0 : idle + 1;
        all += n > 0 ? (size_t)n : 0;
        turn();
    }
    return all;
}

TEST(a_piece_that_found_no_room_is_a_failure)
{
    static char piece[4 << 20];
    int fds[2];
    uint64_t sent = 0;
    silt_auto_buf b;
    silt_buf_init(&b, 1024); /* as if there were no memory */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(silt_relay_forward(fds[0], &b, (silt_slice){piece, sizeof(piece)}, &sent), -1);
    assert_int_equal(silt_relay_flush(fds[0], &b, &sent), -1);
    silt_close_fd(&fds[0]);
    silt_close_fd(&fds[1]);
}

TEST(a_share_is_neither_too_large_nor_too_small)
{
    assert_int_equal(silt_relay_share(8 << 20, 1, 64 << 10), 64 << 10);
    assert_int_equal(silt_relay_share(8 << 20, 256, 64 << 10), 32 << 10);
    assert_int_equal(silt_relay_share(8 << 20, 100000, 64 << 10), 4 << 10);
}

TEST(bytes_pass_both_ways_and_are_counted)
{
    set_up(&plain, true);
    say(rig.client, "question");
    hears(rig.server, "question");
    say(rig.server, "answer");
    hears(rig.client, "answer");
    assert_int_equal(rig.sent, 8);
    assert_int_equal(rig.received, 6);
    tear_down();
}

TEST(the_end_of_one_side_passes_and_the_other_may_go_on)
{
    set_up(&plain, true);
    say(rig.client, "last");
    assert_int_equal(shutdown(rig.client, SHUT_WR), 0);
    turn();
    hears(rig.server, "last");
    assert_int_equal(recv(rig.server, rig.heard, 1, MSG_DONTWAIT), 0);
    say(rig.server, "still here");
    hears(rig.client, "still here");
    assert_int_equal(rig.overs, 0);
    assert_int_equal(shutdown(rig.server, SHUT_WR), 0);
    turn();
    assert_int_equal(recv(rig.client, rig.heard, 1, MSG_DONTWAIT), 0);
    assert_int_equal(rig.overs, 1);
    assert_false(rig.broken);
    tear_down();
}

TEST(an_end_waits_for_the_bytes_before_it)
{
    set_up(&plain, true);
    size_t all = fill(rig.client);
    assert_int_equal(shutdown(rig.client, SHUT_WR), 0);
    turn();
    assert_true(rig.up.len > 0);
    assert_false(rig.relay.sides[SILT_RELAY_SERVER].shut);
    assert_int_equal(drain(rig.server), all);
    assert_true(rig.relay.sides[SILT_RELAY_SERVER].shut);
    tear_down();
}

TEST(a_source_is_not_read_while_its_sink_is_behind)
{
    set_up(&plain, true);
    size_t all = fill(rig.client);
    assert_true(rig.up.len > 0 && rig.up.len <= SILT_RELAY_PIECE);
    assert_false(silt_relay_reads(&rig.relay, SILT_RELAY_CLIENT));
    assert_true(silt_relay_reads(&rig.relay, SILT_RELAY_SERVER)); /* the other way is free */
    say(rig.server, "answer");
    hears(rig.client, "answer");
    assert_int_equal(drain(rig.server), all);
    assert_int_equal(rig.up.len, 0);
    assert_true(silt_relay_reads(&rig.relay, SILT_RELAY_CLIENT));
    assert_int_equal(rig.sent, all);
    tear_down();
}

TEST(what_came_before_the_server_waits_for_it)
{
    set_up(&plain, false);
    say(rig.client, "early");
    assert_int_equal(rig.up.len, 5);
    assert_int_equal(shutdown(rig.client, SHUT_WR), 0);
    turn();
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(to);
    silt_auto_fd listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&to, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &len), 0);
    assert_false(silt_relay_is_connected(&rig.relay));
    silt_relay_connect(&rig.relay, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                       (struct sockaddr *)&to, len);
    turn();
    assert_true(silt_relay_is_connected(&rig.relay));
    rig.server = accept(listener, NULL, NULL);
    assert_true(rig.server >= 0);
    assert_int_equal(recv(rig.server, rig.heard, sizeof(rig.heard), MSG_WAITALL), 5);
    tear_down();
}

TEST(a_server_that_refuses_breaks_it)
{
    set_up(&plain, false);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(to);
    silt_auto_fd unheard = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* keeps the port */
    assert_int_equal(bind(unheard, (struct sockaddr *)&to, len), 0);
    assert_int_equal(getsockname(unheard, (struct sockaddr *)&to, &len), 0);
    silt_relay_connect(&rig.relay, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                       (struct sockaddr *)&to, len);
    await_over();
    assert_true(rig.broken);
    tear_down();
}

TEST(a_reset_of_one_side_breaks_both)
{
    set_up(&plain, true);
    assert_int_equal(send(rig.client, "x", 1, MSG_NOSIGNAL), 1);
    turn();
    silt_close_fd(&rig.server); /* with something unread: a reset */
    turn();
    assert_int_equal(rig.overs, 1);
    assert_true(rig.broken);
    assert_int_equal(recv(rig.client, rig.heard, 1, MSG_DONTWAIT), 0);
    tear_down();
}

static void reset_while_behind(bool eager)
{
    set_up(&plain, true);
    rig.relay.eager = eager;
    (void)fill(rig.client);
    say(rig.server, "unread");
    silt_close_fd(&rig.client);
    turn();
    assert_int_equal(rig.overs, eager ? 1 : 0);
    (void)drain(rig.server);
    assert_int_equal(rig.overs, 1);
    assert_true(rig.broken);
    tear_down();
}

TEST(what_was_said_before_a_reset_is_delivered)
{
    reset_while_behind(false);
}

TEST(an_eager_relay_breaks_at_a_reset_at_once)
{
    reset_while_behind(true);
}

TEST(an_idle_relay_breaks_and_a_half_ended_one_sooner)
{
    set_up(&plain, true);
    silt_relay_limit(&rig.relay, WAIT_MS * 1000, 20);
    int64_t began = rig.loop.now_ms;
    struct silt_error e;
    while (rig.loop.now_ms < began + 50)
        assert_int_equal(silt_loop_turn(&rig.loop, 10, &e), 0);
    assert_int_equal(rig.overs, 0); /* idle, but nobody has ended */
    assert_int_equal(shutdown(rig.client, SHUT_WR), 0);
    await_over();
    assert_true(rig.broken);
    tear_down();

    set_up(&plain, true);
    silt_relay_limit(&rig.relay, 20, 10);
    await_over();
    assert_true(rig.broken);
    tear_down();
}

TEST(ends_are_not_passed_on_while_the_sides_are_apart)
{
    set_up(&plain, true);
    rig.relay.apart = true;
    assert_int_equal(shutdown(rig.client, SHUT_WR), 0);
    turn();
    hears_nothing(rig.server);
    rig.relay.apart = false;
    silt_relay_settle(&rig.relay);
    assert_int_equal(recv(rig.server, rig.heard, 1, MSG_DONTWAIT), 0);
    tear_down();
}

static size_t room(struct silt_relay *r, enum silt_relay_end from)
{
    (void)r;
    return rig.room[from];
}

/* Doubles what the client says; a '!' is the end. */
static void filter(struct silt_relay *r, enum silt_relay_end from, silt_slice bytes)
{
    if (from == SILT_RELAY_SERVER) {
        silt_relay_put(r, SILT_RELAY_CLIENT, bytes);
    } else if (memchr(bytes.data, '!', bytes.len) != NULL) {
        silt_relay_break(r);
    } else {
        silt_relay_put(r, SILT_RELAY_SERVER, bytes);
        silt_relay_put(r, SILT_RELAY_SERVER, bytes);
    }
}

static const struct silt_relay_owner filtering = {
    .room = room, .filter = filter, .on_over = on_over};

TEST(a_filter_changes_what_passes_and_may_break_it)
{
    set_up(&filtering, true);
    rig.room[SILT_RELAY_CLIENT] = rig.room[SILT_RELAY_SERVER] = 1024;
    say(rig.client, "ab");
    hears(rig.server, "abab");
    say(rig.server, "cd");
    hears(rig.client, "cd");
    assert_int_equal(send(rig.client, "!", 1, MSG_NOSIGNAL), 1);
    turn();
    assert_int_equal(rig.overs, 1);
    assert_true(rig.broken);
    assert_int_equal(recv(rig.server, rig.heard, 1, MSG_DONTWAIT), 0);
    tear_down();
}

TEST(a_side_without_room_pauses_until_it_is_let_go)
{
    set_up(&filtering, true);
    say(rig.client, "ab");
    hears_nothing(rig.server);
    assert_true(rig.relay.sides[SILT_RELAY_CLIENT].paused);
    rig.room[SILT_RELAY_CLIENT] = 1;
    rig.relay.sides[SILT_RELAY_CLIENT].paused = false;
    silt_relay_settle(&rig.relay);
    turn();
    hears(rig.server, "aabb"); /* a byte at a time */
    tear_down();
}
