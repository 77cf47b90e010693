/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/http/rig.h"
#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/allocator_interface.h>
#endif

enum { MIB = 1 << 20 };

struct rig rig;
static struct silt_error e;
static struct sockaddr_in address;

static void keep(struct silt_http_request *r)
{
    assert_true(rig.kept_count < SILT_COUNT(rig.kept));
    rig.kept[rig.kept_count++] = r;
}

static void on_gone(struct silt_http_request *r)
{
    rig.gone++;
    for (size_t i = 0; i < rig.kept_count; i++)
        if (rig.kept[i] == r)
            rig.kept[i] = NULL;
}

static void reply(struct silt_http_request *r, int status, silt_slice body)
{
    silt_http_reply(r, status, SILT_LIT("text/plain"), SILT_LIT(""), body);
}

static void on_echo(struct silt_http_request *r)
{
    reply(r, 200, r->body);
}

static void on_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    char text[32];
    rig.pieces++;
    rig.consumed += piece.len;
    if (!end)
        return;
    (void)snprintf(text, sizeof(text), "%zu", rig.consumed);
    reply(r, 200, silt_slice_of(text));
}

static void on_pausing_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    if (rig.pieces == 0) {
        silt_http_pause(r, true);
        keep(r);
    }
    on_piece(r, piece, end);
}

static void flood(struct silt_http_request *r)
{
    static const char block[10000];
    while (rig.flood_done < rig.flood_size && silt_http_pending(r) < SILT_HTTP_MARK) {
        silt_http_write(r, (silt_slice){block, sizeof(block)});
        rig.flood_done += sizeof(block);
        if (silt_http_pending(r) > rig.pending_max)
            rig.pending_max = silt_http_pending(r);
    }
    if (rig.flood_done >= rig.flood_size)
        silt_http_end(r);
}

static void on_drain(struct silt_http_request *r)
{
    rig.drained++;
    flood(r);
}

static void begin(struct silt_http_request *r)
{
    silt_http_begin(r, 200, SILT_LIT("text/event-stream"), SILT_LIT("Cache-Control: no-cache\r\n"));
}

static void on_stream(struct silt_http_request *r)
{
    begin(r);
    keep(r);
}

static void on_flood(struct silt_http_request *r)
{
    r->on_drain = on_drain;
    begin(r);
    flood(r);
}

static void on_hello(struct silt_http_request *r)
{
    reply(r, 200, SILT_LIT("hello"));
}

static void on_early(struct silt_http_request *r)
{
    reply(r, 403, SILT_LIT("no"));
}

static void on_empty(struct silt_http_request *r)
{
    silt_http_reply(r, 204, SILT_LIT(""), SILT_LIT("X-A: b\r\n"), SILT_LIT("never seen"));
}

static void on_big(struct silt_http_request *r)
{
    static char big[5000000];
    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (char)('a' + i % 26);
    reply(r, 200, (silt_slice){big, sizeof(big)});
}

static void collect(struct silt_http_request *r)
{
    silt_http_collect(r, MIB, on_echo);
}

static void consume(struct silt_http_request *r)
{
    silt_http_consume(r, UINT64_MAX, on_piece);
}

static void consume_pausing(struct silt_http_request *r)
{
    silt_http_consume(r, UINT64_MAX, on_pausing_piece);
}

static char *room_of_mine(struct silt_http_request *r, size_t *ret_size)
{
    (void)r;
    *ret_size = sizeof(rig.room);
    return rig.room;
}

static void on_placed_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    rig.placed += piece.data == rig.room;
    rig.placed_max = piece.len > rig.placed_max ? piece.len : rig.placed_max;
    on_piece(r, piece, end);
}

static void consume_placed(struct silt_http_request *r)
{
    r->on_room = room_of_mine;
    silt_http_consume(r, UINT64_MAX, on_placed_piece);
}

static void on_raw(struct silt_http_request *r, silt_slice piece, bool end)
{
    (void)r;
    assert_false(end);
    rig.consumed += piece.len;
}

static void on_upgrade(struct silt_http_request *r)
{
    if (!silt_http_may_upgrade(r)) {
        reply(r, 400, SILT_LIT("no"));
        return;
    }
    silt_http_upgrade(r, SILT_LIT("Upgrade: test\r\n"), on_raw);
    keep(r);
}

static void on_taken(struct silt_http_request *r, int fd, silt_slice read)
{
    assert_text(r->head->path, "/take");
    rig.taken_fd = fd;
    silt_buf_add(&rig.taken, read);
}

static void on_take(struct silt_http_request *r)
{
    silt_http_take_over(r, on_taken);
}

static void on_request(void *context, struct silt_http_request *r)
{
    static const struct {
        const char *path;
        void (*handle)(struct silt_http_request *r);
    } rows[] = {
        {"/hello", on_hello},     {"/echo", collect},      {"/count", consume},
        {"/later", keep},         {"/early", on_early},    {"/stream", on_stream},
        {"/empty", on_empty},     {"/flood", on_flood},    {"/pause", consume_pausing},
        {"/big", on_big},         {"/cut", silt_http_cut}, {"/place", consume_placed},
        {"/upgrade", on_upgrade}, {"/take", on_take},
    };
    assert_ptr_equal(context, &rig);
    r->on_gone = on_gone;
    for (size_t i = 0; i < SILT_COUNT(rows); i++) {
        if (silt_slice_eq(r->head->path, silt_slice_of(rows[i].path))) {
            rows[i].handle(r);
            return;
        }
    }
    reply(r, 404, SILT_LIT("nothing there"));
}

static void on_refusal(void *context, int status, struct silt_buf *ret_body)
{
    assert_ptr_equal(context, &rig);
    rig.refusals++;
    silt_buf_addf(ret_body, "{\"refused\":%d}", status);
}

static void on_answered(void *context, const struct silt_http_request *r, int status, int64_t us)
{
    assert_ptr_equal(context, &rig);
    assert_true(us >= 0);
    assert_true(r->head->method.len > 0);
    rig.answered++;
    rig.last_status = status;
}

void rig_limits(void)
{
    silt_buf_fini(&rig.taken);
    rig = (struct rig){.taken_fd = -1,
                       .taken = {.max = MIB},
                       .limits = {.connections = 1100,
                                  .body_max = 4 * MIB,
                                  .head_timeout_ms = RIG_PATIENCE_MS,
                                  .body_timeout_ms = RIG_PATIENCE_MS,
                                  .idle_timeout_ms = RIG_PATIENCE_MS,
                                  .write_timeout_ms = RIG_PATIENCE_MS}};
}

void rig_start(void)
{
    const struct silt_http_hooks hooks = {.on_request = on_request,
                                          .on_refusal = on_refusal,
                                          .on_answered = on_answered,
                                          .context = &rig,
                                          .extra_fields = SILT_LIT("X-Extra: yes\r\n")};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct silt_http_limits limits = rig.limits;
    size_t flood_size = rig.flood_size;
    rig_limits();
    if (limits.connections > 0)
        rig.limits = limits;
    rig.flood_size = flood_size;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1024), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(silt_loop_open(&rig.loop, &e), 0);
    assert_int_equal(silt_http_server_open(&rig.loop, fd, &rig.limits, &hooks, &rig.server, &e), 0);
}

void rig_stop(void)
{
    silt_buf_fini(&rig.taken);
    silt_http_server_free(rig.server);
    silt_loop_close(&rig.loop);
    rig = (struct rig){0};
}

void rig_turn(void)
{
    assert_int_equal(silt_loop_turn(&rig.loop, 1, &e), 0);
}

int64_t rig_clock(void)
{
    return silt_clock_ms();
}

size_t rig_memory(void)
{
#ifdef WITH_ASAN
    return __sanitizer_get_current_allocated_bytes();
#else
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#endif
}

void rig_connect(struct rig_client *c)
{
    *c = (struct rig_client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    silt_buf_init(&c->heard, 64 * MIB);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(silt_fd_nonblock(c->fd, &e), 0);
}

void rig_say_bytes(struct rig_client *c, silt_slice bytes)
{
    for (int64_t until = rig_clock() + RIG_PATIENCE_MS; bytes.len > 0 && rig_clock() < until;) {
        ssize_t n = send(c->fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return; /* the server has heard enough */
        if (n > 0) {
            bytes.data += n;
            bytes.len -= (size_t)n;
        }
        rig_turn();
    }
    assert_int_equal(bytes.len, 0);
}

void rig_say(struct rig_client *c, const char *text)
{
    rig_say_bytes(c, silt_slice_of(text));
}

static void listen_once(struct rig_client *c)
{
    char *room = silt_buf_room(&c->heard, 65536);
    assert_non_null(room);
    ssize_t n = recv(c->fd, room, 65536, 0);
    if (n > 0)
        c->heard.len += (size_t)n;
    else if (n == 0)
        c->closed = true;
    else if (errno == ECONNRESET)
        c->reset = true;
}

static char *find(const struct rig_client *c, const char *text)
{
    return c->heard.len > 0 ? memmem(c->heard.data, c->heard.len, text, strlen(text)) : NULL;
}

bool rig_heard(struct rig_client *c, const char *text)
{
    listen_once(c);
    return find(c, text) != NULL;
}

void rig_expect(struct rig_client *c, const char *text)
{
    for (int64_t until = rig_clock() + RIG_PATIENCE_MS; find(c, text) == NULL; listen_once(c)) {
        if (rig_clock() > until || c->closed || c->reset)
            fail_msg("no \"%s\" in \"%.*s\"%s", text, (int)c->heard.len, c->heard.data,
                     c->closed  ? ", closed"
                     : c->reset ? ", reset"
                                : "");
        rig_turn();
    }
    silt_buf_drop(&c->heard, (size_t)(find(c, text) - c->heard.data) + strlen(text));
}

void rig_expect_end(struct rig_client *c)
{
    for (int64_t until = rig_clock() + RIG_PATIENCE_MS; !c->closed; listen_once(c)) {
        if (rig_clock() > until || c->reset)
            fail_msg("%s", c->reset ? "was reset" : "was not closed");
        rig_turn();
    }
}

void rig_hang_up(struct rig_client *c)
{
    (void)close(c->fd);
    silt_buf_fini(&c->heard);
}

void rig_reset(struct rig_client *c)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    rig_hang_up(c);
}
