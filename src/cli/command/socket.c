/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/socket.h"
#include "base/base64.h"
#include "base/own.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { MESSAGE_MAX = 64 << 20, OUT_MAX = 16 << 20, KEY_SIZE = 25 };

static void make_mask(uint8_t mask[4])
{
    if (getrandom(mask, 4, 0) != 4)
        abort();
}

static void make_key(char key[KEY_SIZE])
{
    uint8_t bytes[16];
    struct silt_base64 x = {0};
    silt_auto_buf b;
    silt_buf_init(&b, KEY_SIZE);
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        abort();
    silt_base64_encode(&x, &b, (silt_slice){(const char *)bytes, sizeof(bytes)});
    silt_base64_encode_end(&x, &b);
    memcpy(key, b.data, KEY_SIZE - 1);
    key[KEY_SIZE - 1] = 0;
}

int silt_cli_socket_open(struct silt_cli_socket *s, struct silt_client *c, const char *path,
                         struct silt_error *e)
{
    char key[KEY_SIZE], accept[SILT_WS_ACCEPT_SIZE], fields[160];
    make_key(key);
    silt_ws_accept(silt_slice_of(key), accept);
    (void)snprintf(fields, sizeof(fields),
                   "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
                   "13\r\nSec-WebSocket-Key: %s\r\n",
                   key);
    struct silt_client_request q = {
        .method = "GET", .path = path, .connection = fields, .file = -1};
    if (silt_client_ask(c, &q, e) < 0)
        return -1;
    if (c->head.status != 101)
        return silt_client_fail(c, e);
    if (!silt_slice_eq(silt_http_field(&c->head, SILT_LIT("sec-websocket-accept")),
                       silt_slice_of(accept)))
        return silt_fail(e, SILT_PROTOCOL, "%s does not speak WebSocket", c->address);
    *s = (struct silt_cli_socket){.client = c, .in = {c->in.data + c->used, c->in.len - c->used}};
    silt_ws_reader_init(&s->reader, true, MESSAGE_MAX);
    silt_buf_init(&s->out, OUT_MAX);
    return 0;
}

void silt_cli_socket_fini(struct silt_cli_socket *s)
{
    silt_ws_reader_fini(&s->reader);
    silt_buf_fini(&s->out);
    silt_close_fd(&s->client->fd);
}

void silt_cli_socket_send(struct silt_cli_socket *s, enum silt_ws_op op, silt_slice payload)
{
    uint8_t mask[4];
    make_mask(mask);
    if (op == SILT_WS_CLOSE)
        silt_ws_put_close(&s->out, SILT_WS_NORMAL, payload, mask);
    else
        silt_ws_put(&s->out, op, payload, mask);
}

short silt_cli_socket_wants(const struct silt_cli_socket *s)
{
    return s->out.len > 0 ? POLLIN | POLLOUT : POLLIN;
}

static int send_some(struct silt_cli_socket *s)
{
    ssize_t n = send(s->client->fd, s->out.data, s->out.len, MSG_NOSIGNAL);
    if (n > 0)
        silt_buf_drop(&s->out, (size_t)n);
    return n < 0 && errno != EAGAIN && errno != EINTR ? -1 : 0;
}

int silt_cli_socket_move(struct silt_cli_socket *s, short ready)
{
    static char room[256 << 10];
    if (s->out.broken || ((ready & POLLOUT) != 0 && s->out.len > 0 && send_some(s) < 0))
        return -1;
    if ((ready & (POLLIN | POLLHUP | POLLERR)) == 0)
        return 0;
    ssize_t n = recv(s->client->fd, room, sizeof(room), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    s->in = (silt_slice){room, (size_t)n};
    return 0;
}

int silt_cli_socket_next(struct silt_cli_socket *s, silt_slice *ret)
{
    for (;;) {
        switch (silt_ws_read(&s->reader, &s->in, ret)) {
        case SILT_WS_MORE:
            return 0;
        case SILT_WS_GOT_MESSAGE:
            return 1;
        case SILT_WS_GOT_PING:
            silt_cli_socket_send(s, SILT_WS_PONG, *ret);
            break;
        case SILT_WS_GOT_PONG:
            break;
        case SILT_WS_GOT_CLOSE:
            s->code = silt_ws_close_code(*ret);
            return -1;
        case SILT_WS_BAD:
            return -1;
        }
    }
}
