/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/client.h"
#include "base/fd.h"
#include "cli/core/find.h"
#include "cli/core/context.h"
#include "cli/core/relay.h"
#include "cli/core/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
    PIECE = 256 * 1024,
    ANSWER_MAX = 64 * 1024 * 1024, /* of a JSON response */
    SEND_STEP = 1024 * 1024,       /* between two reports of progress */
    TIMEOUT_MS = 120 * 1000,
};

static void clear(struct silt_client *c)
{
    *c = (struct silt_client){.fd = -1, .timeout_ms = TIMEOUT_MS};
    silt_buf_init(&c->in, ANSWER_MAX);
}

int silt_client_init_at(struct silt_client *c, const struct silt_context *at, struct silt_error *e)
{
    clear(c);
    (void)snprintf(c->token, sizeof(c->token), "%s", at->token);
    (void)snprintf(c->authorities, sizeof(c->authorities), "%s", at->authorities);
    return silt_find_address(at->url, c->address, &c->https, e);
}

/* A stored token goes only to the daemon that it was stored for. */
int silt_client_init(struct silt_client *c, const char *server, const char *token_file,
                     struct silt_error *e)
{
    const struct silt_context *context = NULL;
    const char *authorities = getenv("SILT_CA");
    if (silt_find_context(server, &context, e) < 0)
        return -1;
    if (context != NULL) {
        if (silt_client_init_at(c, context, e) < 0)
            return -1;
        return token_file != NULL ? silt_find_token(token_file, c->token, e) : 0;
    }
    clear(c);
    if (authorities != NULL)
        (void)snprintf(c->authorities, sizeof(c->authorities), "%s", authorities);
    if (silt_find_server(server, c->address, &c->https, e) < 0)
        return -1;
    return silt_find_token(token_file, c->token, e);
}

static void disconnect(struct silt_client *c)
{
    silt_close_fd(&c->fd);
    while (c->relay > 0 && waitpid(c->relay, NULL, 0) < 0 && errno == EINTR)
        ;
    c->relay = 0;
}

void silt_client_fini(struct silt_client *c)
{
    disconnect(c);
    silt_buf_fini(&c->in);
}

static int wait_ready(const struct silt_client *c, short events, short *ret_ready,
                      struct silt_error *e)
{
    if (silt_wait_for(c->fd, events, c->timeout_ms, ret_ready, e) == 0)
        return 0;
    if (e->code != SILT_TIMEOUT)
        return -1;
    return silt_fail(e, SILT_TIMEOUT, "no answer from %s for %d s", c->address,
                     c->timeout_ms / 1000);
}

/* Sending */

static int connect_one(struct silt_client *c, const struct addrinfo *at)
{
    int on = 1;
    silt_close_fd(&c->fd);
    c->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, at->ai_addr, at->ai_addrlen) < 0
        || fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0)
        return -1;
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return 0;
}

static int connect_unix(struct silt_client *c, struct silt_error *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    silt_close_fd(&c->fd);
    if (silt_slice_to_cstr(silt_slice_of(c->address), at.sun_path, sizeof(at.sun_path), e) < 0)
        return -1;
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&at, sizeof(at)) < 0
        || fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0)
        return silt_fail_errno(
            e,
            errno == EACCES ? "connect to %s (settings engine.group and engine.mode say who may)"
                            : "connect to %s (is the daemon running?)",
            c->address);
    return 0;
}

/* A unix socket's address has a slash. */
static bool is_path(const char *address)
{
    return strchr(address, '/') != NULL;
}

static int encrypt(struct silt_client *c, const char *host, struct silt_error *e)
{
    int fd = c->fd;
    c->fd = -1;
    return silt_relay_start(fd, host, c->authorities[0] != 0 ? c->authorities : NULL, c->timeout_ms,
                            &c->fd, &c->relay, e);
}

static int connect_to(struct silt_client *c, struct silt_error *e)
{
    disconnect(c);
    if (is_path(c->address))
        return connect_unix(c, e);
    char host[SILT_CLIENT_ADDRESS_SIZE];
    const char *colon = strrchr(c->address, ':');
    silt_slice name = {c->address, (size_t)(colon - c->address)};
    if (name.len > 2 && name.data[0] == '[')
        name = (silt_slice){name.data + 1, name.len - 2};
    if (silt_slice_to_cstr(name, host, sizeof(host), e) < 0)
        return -1;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(host, colon + 1, &hints, &found);
    if (code != 0)
        return silt_fail(e, SILT_NOT_FOUND, "server %s: %s", c->address, gai_strerror(code));
    int got = -1;
    for (const struct addrinfo *at = found; at != NULL && got < 0; at = at->ai_next)
        got = connect_one(c, at);
    int sys = errno;
    freeaddrinfo(found);
    errno = sys;
    if (got < 0)
        return silt_fail_errno(e, "connect to %s (is the daemon running?)", c->address);
    return c->https ? encrypt(c, host, e) : 0;
}

/* After a partial send. 0: go on; 1: the server has responded already, so it does not want the
 * rest; -1: error. */
static int wait_to_send(struct silt_client *c, struct silt_error *e)
{
    short ready;
    if (errno == EINTR)
        return 0;
    if (errno != EAGAIN)
        return silt_fail_errno(e, "send to %s", c->address);
    if (wait_ready(c, POLLIN | POLLOUT, &ready, e) < 0)
        return -1;
    return (ready & POLLIN) != 0;
}

/* These return 0 if all was sent; 1 and -1 as above. */

static int send_bytes(struct silt_client *c, silt_slice bytes, struct silt_error *e)
{
    while (bytes.len > 0) {
        ssize_t n = send(c->fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        int got = n < 0 ? wait_to_send(c, e) : 0;
        if (got != 0)
            return got;
        bytes.data += n > 0 ? n : 0;
        bytes.len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int send_file(struct silt_client *c, const struct silt_client_request *q, uint64_t size,
                     struct silt_error *e)
{
    while (size > 0) {
        ssize_t n = sendfile(c->fd, q->file, NULL, size < SEND_STEP ? size : SEND_STEP);
        int got = n < 0 ? wait_to_send(c, e) : 0;
        if (got != 0)
            return got;
        if (n == 0)
            return silt_fail(e, SILT_INVALID, "the file became shorter while it was sent");
        size -= n > 0 ? (uint64_t)n : 0;
        if (n > 0 && q->progress != NULL)
            silt_progress_add(q->progress, (uint64_t)n);
    }
    return 0;
}

static int send_piece(struct silt_client *c, const struct silt_client_request *q, silt_slice piece,
                      struct silt_error *e)
{
    char size[24];
    int len = snprintf(size, sizeof(size), "%zx\r\n", piece.len);
    bool chunked = q->source->length < 0;
    int got = chunked ? send_bytes(c, (silt_slice){size, (size_t)len}, e) : 0;
    if (got == 0)
        got = send_bytes(c, piece, e);
    if (got == 0 && chunked)
        got = send_bytes(c, SILT_LIT("\r\n"), e);
    if (got == 0 && q->progress != NULL)
        silt_progress_add(q->progress, piece.len);
    return got;
}

static int send_source(struct silt_client *c, const struct silt_client_request *q,
                       struct silt_error *e)
{
    silt_slice piece;
    int got;
    while ((got = q->source->next(q->source, &piece, e)) > 0) {
        int sent = piece.len > 0 ? send_piece(c, q, piece, e) : 0;
        if (sent != 0)
            return sent;
    }
    if (got < 0) {
        silt_close_fd(&c->fd); /* so that the server does not take half a body for a whole one */
        return -1;
    }
    return q->source->length < 0 ? send_bytes(c, SILT_LIT("0\r\n\r\n"), e) : 0;
}

static void write_head(struct silt_buf *b, const struct silt_client *c,
                       const struct silt_client_request *q, int64_t length)
{
    silt_buf_addf(b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: silt/" SILT_VERSION "\r\n%s",
                  q->method, q->path, is_path(c->address) ? "localhost" : c->address,
                  q->connection != NULL ? q->connection : "Connection: close\r\n");
    if (c->token[0] != 0)
        silt_buf_addf(b, "Authorization: Bearer %s\r\n", c->token);
    if (q->accept != NULL)
        silt_buf_addf(b, "Accept: %s\r\n", q->accept);
    if (q->content_type != NULL)
        silt_buf_addf(b, "Content-Type: %s\r\n", q->content_type);
    if (q->content_type != NULL && length < 0)
        silt_buf_add(b, SILT_LIT("Transfer-Encoding: chunked\r\n"));
    else if (q->content_type != NULL)
        silt_buf_addf(b, "Content-Length: %lld\r\n", (long long)length);
    silt_buf_add(b, SILT_LIT("\r\n"));
}

static int file_length(int file, int64_t *ret, struct silt_error *e)
{
    struct stat st;
    off_t at = lseek(file, 0, SEEK_CUR);
    if (at < 0 || fstat(file, &st) < 0)
        return silt_fail_errno(e, "look at the file to send");
    *ret = st.st_size > at ? st.st_size - at : 0;
    return 0;
}

static int send_request(struct silt_client *c, const struct silt_client_request *q,
                        struct silt_error *e)
{
    silt_auto_buf out;
    int64_t length = q->source != NULL ? q->source->length : (int64_t)q->body.len;
    silt_buf_init(&out, ANSWER_MAX);
    if (q->file >= 0 && file_length(q->file, &length, e) < 0)
        return -1;
    write_head(&out, c, q, length);
    silt_buf_add(&out, q->body);
    if (out.broken)
        return silt_fail(e, SILT_LIMIT, "request larger than %d bytes", ANSWER_MAX);
    int got = send_bytes(c, silt_buf_slice(&out), e);
    if (got == 0 && q->file >= 0) {
        void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* sendfile has no MSG_NOSIGNAL */
        got = send_file(c, q, (uint64_t)length, e);
        (void)signal(SIGPIPE, before);
    }
    return got == 0 && q->source != NULL ? send_source(c, q, e) : got;
}

/* Receiving */

/* 1: more bytes in c->in; 0: the server closed. */
static int receive(struct silt_client *c, struct silt_error *e)
{
    short ready;
    silt_buf_drop(&c->in, c->used);
    c->used = 0;
    if (wait_ready(c, POLLIN, &ready, e) < 0)
        return -1;
    char *room = silt_buf_room(&c->in, PIECE);
    if (room == NULL)
        return silt_fail(e, SILT_LIMIT, "answer of %s larger than %d bytes", c->address,
                         ANSWER_MAX);
    ssize_t n = recv(c->fd, room, PIECE, 0);
    if (n < 0 && errno != EAGAIN)
        return silt_fail_errno(e, "receive from %s", c->address);
    c->in.len += n > 0 ? (size_t)n : 0;
    return n != 0;
}

/* The parsed head points into its bytes, and `in` moves them: parse a copy that stays. */
static int take_head(struct silt_client *c, size_t size, struct silt_error *e)
{
    memcpy(c->head_bytes, c->in.data, size);
    c->used = size;
    if (silt_http_parse(&c->head, (silt_slice){c->head_bytes, size}, SILT_HTTP_RESPONSE)
        != (int)size)
        return silt_fail(e, SILT_PROTOCOL, "%s does not speak HTTP/1.1", c->address);
    c->chunks = (struct silt_http_chunks){0};
    c->left = c->head.has_length ? c->head.length : UINT64_MAX;
    return 0;
}

static int read_head(struct silt_client *c, struct silt_error *e)
{
    for (;;) {
        int size = silt_http_parse(&c->head, silt_buf_slice(&c->in), SILT_HTTP_RESPONSE);
        if (size < 0)
            return silt_fail(e, SILT_PROTOCOL, "%s does not speak HTTP/1.1", c->address);
        if (size > 0)
            return take_head(c, (size_t)size, e);
        int got = receive(c, e);
        if (got < 0)
            return -1;
        if (got == 0)
            return silt_fail(e, SILT_GONE, "%s closed the connection without an answer",
                             c->address);
    }
}

int silt_client_ask(struct silt_client *c, const struct silt_client_request *q,
                    struct silt_error *e)
{
    struct silt_error early;
    silt_buf_clear(&c->in);
    c->used = 0;
    if (connect_to(c, e) < 0)
        return -1;
    if (send_request(c, q, e) >= 0)
        return read_head(c, e);
    /* A server that refuses a body responds and closes: its response says more than the failed
     * send. */
    if (c->fd < 0 || e->code == SILT_INTERRUPTED || e->code == SILT_TIMEOUT)
        return -1;
    return read_head(c, &early) == 0 ? 0 : -1;
}

/* Takes one piece of the received bytes. 1, 0 and -1 as silt_client_read; 2: receive more. */
static int take_piece(struct silt_client *c, silt_slice *ret, struct silt_error *e)
{
    silt_slice rest = {c->in.data + c->used, c->in.len - c->used};
    if (c->head.chunked) {
        enum silt_http_chunk got = silt_http_dechunk(&c->chunks, &rest, ret);
        c->used = c->in.len - rest.len;
        if (got == SILT_HTTP_CHUNK_BAD)
            return silt_fail(e, SILT_PROTOCOL, "broken chunk in the answer of %s", c->address);
        return got == SILT_HTTP_CHUNK_DATA ? 1 : got == SILT_HTTP_CHUNK_END ? 0 : 2;
    }
    if (c->left == 0)
        return 0;
    if (rest.len == 0)
        return 2;
    ret->data = rest.data;
    ret->len = rest.len < c->left ? rest.len : (size_t)c->left;
    c->used += ret->len;
    c->left -= c->head.has_length ? ret->len : 0;
    return 1;
}

int silt_client_read(struct silt_client *c, silt_slice *ret, struct silt_error *e)
{
    bool till_close = !c->head.chunked && !c->head.has_length;
    for (;;) {
        int got = take_piece(c, ret, e);
        if (got != 2)
            return got;
        got = receive(c, e);
        if (got < 0 || (got == 0 && till_close))
            return got;
        if (got == 0)
            return silt_fail(e, SILT_GONE, "%s broke the answer off", c->address);
    }
}

static int read_all(struct silt_client *c, struct silt_arena *a, silt_slice *ret,
                    struct silt_error *e)
{
    silt_auto_buf body;
    silt_slice piece;
    int got;
    silt_buf_init(&body, ANSWER_MAX);
    while ((got = silt_client_read(c, &piece, e)) > 0)
        silt_buf_add(&body, piece);
    silt_close_fd(&c->fd);
    if (got < 0)
        return -1;
    char *copy = body.broken ? NULL : silt_arena_dup(a, silt_buf_slice(&body));
    if (copy == NULL)
        return silt_fail(e, SILT_LIMIT, "answer of %s too large", c->address);
    *ret = (silt_slice){copy, body.len};
    return 0;
}

int silt_client_json(struct silt_client *c, struct silt_arena *a, const struct silt_json **ret,
                     struct silt_error *e)
{
    silt_slice text;
    if (read_all(c, a, &text, e) < 0)
        return -1;
    if (silt_json_read(a, text, ret, e) < 0)
        return silt_because(e, "answer of %s", c->address);
    return 0;
}

/* "" if there is none. */
static silt_slice text_of(const struct silt_json *answer, silt_slice key)
{
    const struct silt_json *v = silt_json_get(answer, key);
    return v != NULL && v->type == SILT_JSON_STRING ? v->string : SILT_LIT("");
}

int silt_client_fail(struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer = NULL;
    c->code[0] = 0;
    silt_arena_init(&a, ANSWER_MAX);
    if (silt_client_json(c, &a, &answer, e) < 0)
        return silt_fail(e, SILT_PROTOCOL, "%s answered %d", c->address, c->head.status);
    silt_slice message = text_of(answer, SILT_LIT("message"));
    silt_slice advice = text_of(answer, SILT_LIT("suggestion"));
    (void)silt_slice_to_cstr(text_of(answer, SILT_LIT("code")), c->code, sizeof(c->code), e);
    if (strcmp(c->code, "VALIDATION_FAILED") == 0)
        advice = SILT_LIT(""); /* "correct the request" adds nothing to the message */
    if (strcmp(c->code, "UNAUTHORIZED") == 0) /* not "send a header" */
        advice = c->token[0] == 0
                     ? SILT_LIT("The file with it is root's: try sudo, or set SILT_TOKEN.")
                     : SILT_LIT("SILT_TOKEN or --token-file gives another one than the daemon's.");
    if (message.len == 0)
        return silt_fail(e, SILT_PROTOCOL, "%s answered %d", c->address, c->head.status);
    return silt_fail(e, c->head.status == 404 ? SILT_NOT_FOUND : SILT_INVALID, "%.*s%s%.*s",
                     (int)message.len, message.data, advice.len > 0 ? "\n" : "", (int)advice.len,
                     advice.data);
}

int silt_client_call(struct silt_client *c, const struct silt_client_request *q,
                     struct silt_arena *a, const struct silt_json **ret, struct silt_error *e)
{
    if (silt_client_ask(c, q, e) < 0)
        return -1;
    if (c->head.status < 200 || c->head.status > 299)
        return silt_client_fail(c, e);
    return silt_client_json(c, a, ret, e);
}
