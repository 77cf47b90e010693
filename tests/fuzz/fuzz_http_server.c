/* SPDX-License-Identifier: Apache-2.0 */
/* A whole server that hears these bytes from a client, in pieces: the first byte chooses the size
 * of the pieces and how the handler behaves. Every request that is handed out ends exactly once. */
#include "base/own.h"
#include "fuzz/fuzz.h"
#include "http/server.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct silt_loop loop;
static struct silt_error e;
static struct silt_http_server *server;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len;
static unsigned mood;
static int open_requests;
static struct silt_http_request *waiting;

static void on_gone(struct silt_http_request *r)
{
    open_requests--;
    if (waiting == r)
        waiting = NULL;
}

static void answer(struct silt_http_request *r)
{
    open_requests--;
    switch (mood % 4) {
    case 0:
        silt_http_begin(r, 200, SILT_LIT("text/plain"), SILT_LIT(""));
        silt_http_write(r, r->body.len > 0 ? r->body : SILT_LIT("streamed"));
        silt_http_end(r);
        return;
    case 1:
        if (r->head->count > 3) {
            silt_http_cut(r);
            return;
        }
        break;
    default:
        break;
    }
    silt_http_reply(r, mood % 5 == 0 ? 204 : 200, SILT_LIT("text/plain"), SILT_LIT(""), r->body);
}

static void on_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    if (end || (mood % 8 == 3 && piece.len > 3))
        answer(r);
}

static void on_request(void *context, struct silt_http_request *r)
{
    (void)context;
    open_requests++;
    r->on_gone = on_gone;
    demand(r->head->method.len > 0 && r->head->path.len > 0);
    if (mood % 3 == 0)
        silt_http_collect(r, 1000, answer);
    else if (mood % 3 == 1)
        silt_http_consume(r, 1000, on_piece);
    else if (mood % 2 == 0)
        answer(r);
    else
        waiting = r;
}

static void on_refusal(void *context, int status, struct silt_buf *ret_body)
{
    (void)context;
    demand(status >= 400 && status < 600);
    silt_buf_add(ret_body, SILT_LIT("{}"));
}

static void start(void)
{
    const struct silt_http_limits limits = {10, 1 << 20, 10000, 10000, 10000, 10000};
    const struct silt_http_hooks hooks = {.on_request = on_request, .on_refusal = on_refusal};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address_len = sizeof(address);
    demand(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t))
           == 0); /* the kernel names it */
    demand(getsockname(fd, (struct sockaddr *)&address, &address_len) == 0 && listen(fd, 10) == 0);
    demand(silt_loop_open(&loop, &e) == 0);
    demand(silt_http_server_open(&loop, fd, &limits, &hooks, &server, &e) == 0);
}

static void turn(int client)
{
    char room[65536];
    demand(silt_loop_turn(&loop, 0, &e) == 0);
    if (waiting != NULL) {
        struct silt_http_request *r = waiting;
        waiting = NULL;
        answer(r);
    }
    while (recv(client, room, sizeof(room), MSG_DONTWAIT) > 0)
        continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (server == NULL)
        start();
    if (size < 2)
        return 0;
    mood = data[0];
    size_t piece = data[1] > 0 ? data[1] : size;
    silt_auto_fd client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    demand(connect(client, (struct sockaddr *)&address, address_len) == 0);
    for (size_t at = 2; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        if (send(client, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
        turn(client);
    }
    (void)shutdown(client, SHUT_WR);
    for (int i = 0; i < 4; i++)
        turn(client);
    silt_close_fd(&client);
    for (int i = 0; i < 100 && silt_http_server_connections(server) > 0; i++)
        demand(silt_loop_turn(&loop, 0, &e) == 0);
    demand(silt_http_server_connections(server) == 0 && open_requests == 0 && waiting == NULL);
    return 0;
}
