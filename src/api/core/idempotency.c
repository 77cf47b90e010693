/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/idempotency.h"
#include "api/core/api.h"
#include "base/clock.h"
#include "http/field.h"
#include "http/internal_request.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>

enum {
    KEY_MAX = 128,
    KEEP_MS = 600000,
    ANSWER_MAX = 4 << 20, /* a larger one is passed on, but not kept */
    BYTES_MAX = 64 << 20, /* of all answers: the oldest go first */
    ENTRIES_MAX = 10000,
    RUNNING_MAX = 1000,
    HASH_SIZE = 32,
    TYPE_SIZE = 128,
};

/* RUNNING --first byte of a stream--> STREAMING --end--> KEPT or LOST
 *    \---answer---> KEPT or LOST (too large) */
enum state { RUNNING, STREAMING, KEPT, LOST };

struct entry {
    struct silt_http_internal_sink sink;
    struct silt_api *api; /* borrowed */
    enum state state;
    struct silt_http_internal *inner; /* NULL: it has ended */
    struct silt_link waiters;         /* struct waiter */
    struct silt_link link;            /* in kept */
    struct silt_buf answer;
    bool overflown; /* the answer was larger */
    bool streamed;
    int status;
    int64_t ended_ms;
    char type[TYPE_SIZE];
    unsigned char hash[HASH_SIZE]; /* of the request */
    size_t key_len;
    char key[KEY_MAX];
};

/* A client; lives in its request. */
struct waiter {
    struct silt_link link;
    struct entry *entry;
    struct silt_http_request *request;
};

static silt_slice key_of(const struct entry *x)
{
    return (silt_slice){x->key, x->key_len};
}

/* ---- the end of entries ---- */

/* Only of ended ones. */
static void forget(struct silt_idempotency *k, struct entry *x)
{
    assert(x->inner == NULL && silt_list_empty(&x->waiters));
    (void)silt_map_remove(&k->entries, key_of(x));
    silt_list_remove(&x->link);
    k->bytes -= x->answer.len;
    silt_buf_fini(&x->answer);
    free(x);
}

static void expire(struct silt_idempotency *k, struct silt_loop *loop)
{
    int64_t now = silt_clock_ms();
    while (!silt_list_empty(&k->kept)) {
        struct entry *x = silt_outer(k->kept.next, struct entry, link);
        int64_t left = x->ended_ms + KEEP_MS - now;
        if (left > 0 && k->bytes <= BYTES_MAX && k->entries.used <= ENTRIES_MAX) {
            silt_loop_after(loop, &k->expiry, left);
            return;
        }
        forget(k, x);
    }
}

static void on_expiry(struct silt_timer *t)
{
    struct silt_idempotency *k = silt_outer(t, struct silt_idempotency, expiry);
    struct silt_api *api = silt_outer(k, struct silt_api, idempotency);
    expire(k, api->loop);
}

void silt_idempotency_init(struct silt_idempotency *k)
{
    silt_map_init(&k->entries);
    silt_list_init(&k->kept);
    k->expiry.on_time = on_expiry;
}

void silt_idempotency_fini(struct silt_api *api)
{
    struct silt_idempotency *k = &api->idempotency;
    silt_loop_cancel(api->loop, &k->expiry);
    while (!silt_list_empty(&k->kept))
        forget(k, silt_outer(k->kept.next, struct entry, link));
}

/* A refusal has changed nothing: another try may find things otherwise. 410 tells the end of a
 * shell, by the command as a rule. */
static bool is_worth_keeping(int status)
{
    return status < 400 || status == 410 || (status >= 500 && status != 503);
}

static void finish(struct entry *x)
{
    struct silt_api *api = x->api;
    struct silt_idempotency *k = &api->idempotency;
    x->inner = NULL;
    x->state = x->overflown ? LOST : KEPT;
    x->ended_ms = silt_clock_ms();
    k->running--;
    silt_list_append(&k->kept, &x->link);
    if (is_worth_keeping(x->status))
        expire(k, api->loop);
    else
        forget(k, x);
}

/* ---- clients ---- */

static struct silt_http_request *part(struct waiter *w)
{
    silt_list_remove(&w->link);
    w->request->on_gone = NULL;
    w->request->on_drain = NULL;
    return w->request;
}

static struct waiter *first(struct entry *x)
{
    return silt_outer(x->waiters.next, struct waiter, link);
}

static void on_gone(struct silt_http_request *r)
{
    struct waiter *w = r->owner;
    struct entry *x = w->entry;
    (void)part(w);
    if (x->inner != NULL)
        silt_http_internal_drain(x->inner); /* it may have been the slowest */
}

static void on_drain(struct silt_http_request *r)
{
    struct waiter *w = r->owner;
    if (w->entry->inner != NULL)
        silt_http_internal_drain(w->entry->inner);
}

#define REPLAYED SILT_LIT("X-Silt-Idempotent: replayed\r\n")

static void reply(struct silt_http_request *r, const struct entry *x, bool again)
{
    silt_slice fields = again ? REPLAYED : (silt_slice){NULL, 0};
    silt_http_reply(r, x->status, silt_slice_of(x->type), fields, silt_buf_slice(&x->answer));
}

static void begin_stream(struct silt_http_request *r, const struct entry *x, bool again)
{
    silt_http_begin(r, x->status, silt_slice_of(x->type),
                    again ? SILT_LIT("Cache-Control: no-cache\r\nX-Silt-Idempotent: replayed\r\n")
                          : SILT_LIT("Cache-Control: no-cache\r\n"));
    if (x->answer.len > 0)
        silt_http_write(r, silt_buf_slice(&x->answer));
}

static void refuse_lost(struct silt_http_request *r)
{
    silt_api_refuse(r, SILT_API_KEY_USED, (silt_slice){NULL, 0},
                    "The request with this Idempotency-Key was carried out; its answer was too "
                    "large to be kept");
}

/* A later request with the same key. */
static void join(struct entry *x, struct silt_http_request *r, struct waiter *w)
{
    bool running = x->state == RUNNING || x->state == STREAMING;
    if (x->state == LOST || (x->state == STREAMING && x->overflown)) {
        refuse_lost(r);
        return;
    }
    if (x->state == KEPT && !x->streamed) {
        reply(r, x, true);
        return;
    }
    if (running) {
        *w = (struct waiter){.entry = x, .request = r};
        silt_list_append(&x->waiters, &w->link);
        r->owner = w;
        r->on_gone = on_gone;
        r->on_drain = on_drain;
    }
    if (x->streamed)
        begin_stream(r, x, true);
    if (!running)
        silt_http_end(r);
}

/* ---- the sink ---- */

/* A stream that is being carried out cannot be the oldest to go: it stops being kept instead. */
static void keep(struct entry *x, silt_slice bytes)
{
    struct silt_idempotency *k = &x->api->idempotency;
    bool fits = !x->streamed || k->bytes + bytes.len <= BYTES_MAX;
    if (!x->overflown && fits && x->answer.len + bytes.len <= ANSWER_MAX) {
        silt_buf_add(&x->answer, bytes);
        k->bytes += bytes.len;
        return;
    }
    k->bytes -= x->answer.len;
    silt_buf_fini(&x->answer);
    x->overflown = true;
}

static void set_head(struct entry *x, int status, silt_slice type)
{
    size_t len = type.len < TYPE_SIZE ? type.len : TYPE_SIZE - 1;
    x->status = status;
    if (len > 0)
        memcpy(x->type, type.data, len);
    x->type[len] = 0;
}

static void on_reply(struct silt_http_internal_sink *s, int status, silt_slice type,
                     silt_slice body)
{
    struct entry *x = silt_outer(s, struct entry, sink);
    set_head(x, status, type);
    keep(x, body);
    while (!silt_list_empty(&x->waiters))
        silt_http_reply(part(first(x)), status, type, (silt_slice){NULL, 0}, body);
    finish(x);
}

static void on_begin(struct silt_http_internal_sink *s, int status, silt_slice type)
{
    struct entry *x = silt_outer(s, struct entry, sink);
    set_head(x, status, type);
    x->state = STREAMING;
    x->streamed = true;
    silt_list_each(it, &x->waiters)
        begin_stream(silt_outer(it, struct waiter, link)->request, x, false);
}

static void on_write(struct silt_http_internal_sink *s, silt_slice bytes)
{
    struct entry *x = silt_outer(s, struct entry, sink);
    keep(x, bytes);
    silt_list_each(it, &x->waiters)
        silt_http_write(silt_outer(it, struct waiter, link)->request, bytes);
}

/* The slowest client sets the pace; without any there is none. */
static size_t pending(const struct silt_http_internal_sink *s)
{
    const struct entry *x = (const struct entry *)(const void *)s;
    _Static_assert(offsetof(struct entry, sink) == 0, "a cast leads from one to the other");
    size_t most = 0;
    silt_list_each(it, &x->waiters)
    {
        size_t one = silt_http_pending(silt_outer(it, struct waiter, link)->request);
        most = one > most ? one : most;
    }
    return most;
}

static void on_end(struct silt_http_internal_sink *s, bool whole)
{
    struct entry *x = silt_outer(s, struct entry, sink);
    x->overflown = x->overflown || !whole;
    while (!silt_list_empty(&x->waiters)) {
        struct silt_http_request *r = part(first(x));
        if (whole)
            silt_http_end(r);
        else
            silt_http_cut(r);
    }
    finish(x);
}

/* ---- the request ---- */

/* What makes it another request; it is also the head of the internal one. */
static void write_head(const struct silt_http_request *r, struct silt_buf *b)
{
    silt_buf_add(b, r->head->method);
    silt_buf_add_byte(b, ' ');
    silt_buf_add(b, r->head->target);
    silt_buf_add(b, SILT_LIT(" HTTP/1.1\r\nHost: localhost\r\n"));
    if (silt_http_accepts(silt_http_field(r->head, SILT_LIT("accept")),
                          SILT_LIT("text/event-stream")))
        silt_buf_add(b, SILT_LIT("Accept: text/event-stream\r\n"));
    silt_buf_addf(b, "Content-Length: %zu\r\n\r\n", r->body.len);
}

static void hash(silt_slice head, silt_slice body, unsigned char ret[HASH_SIZE])
{
    EVP_MD_CTX *x = EVP_MD_CTX_new();
    unsigned len = 0;
    if (x == NULL || EVP_DigestInit_ex(x, EVP_sha256(), NULL) != 1
        || EVP_DigestUpdate(x, head.data, head.len) != 1
        || EVP_DigestUpdate(x, body.data, body.len) != 1 || EVP_DigestFinal_ex(x, ret, &len) != 1
        || len != HASH_SIZE)
        abort();
    EVP_MD_CTX_free(x);
}

static struct entry *new_entry(struct silt_api *api, silt_slice key)
{
    struct entry *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct entry){
        .api = api,
        .sink = {.reply = on_reply,
                 .begin = on_begin,
                 .write = on_write,
                 .pending = pending,
                 .end = on_end},
        .key_len = key.len,
    };
    memcpy(x->key, key.data, key.len);
    silt_list_init(&x->waiters);
    silt_list_init(&x->link);
    silt_buf_init(&x->answer, ANSWER_MAX);
    silt_map_put(&api->idempotency.entries, key_of(x), x);
    api->idempotency.running++;
    return x;
}

static void carry_out(struct silt_api *api, struct silt_http_request *r, struct waiter *w,
                      silt_slice key, silt_slice head, const unsigned char sum[HASH_SIZE])
{
    struct silt_error e;
    struct entry *x = new_entry(api, key);
    memcpy(x->hash, sum, HASH_SIZE);
    *w = (struct waiter){.entry = x, .request = r};
    struct silt_http_internal *inner =
        silt_http_internal_new(api->server, head, r->body, &x->sink, &e);
    if (inner == NULL) {
        x->status = 503; /* not kept */
        finish(x);
        silt_api_refuse_error(r, &e);
        return;
    }
    x->inner = inner;
    silt_list_append(&x->waiters, &w->link);
    r->owner = w;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
    silt_api_route(api, silt_http_internal_request(inner)); /* may have answered already */
    silt_http_internal_deliver(inner);
}

static void on_body(struct silt_http_request *r)
{
    struct silt_api *api = r->owner;
    struct silt_idempotency *k = &api->idempotency;
    silt_slice key = silt_http_field(r->head, SILT_LIT("idempotency-key"));
    struct waiter *w = silt_arena_alloc(r->arena, sizeof(*w));
    unsigned char sum[HASH_SIZE];
    silt_auto_buf head;
    silt_buf_init(&head, SILT_HTTP_HEAD_MAX);
    write_head(r, &head);
    if (w == NULL || head.broken) {
        silt_api_refuse(r, SILT_API_LIMIT_REACHED, (silt_slice){NULL, 0},
                        "The request is too large to be kept with its Idempotency-Key");
        return;
    }
    hash(silt_buf_slice(&head), r->body, sum);
    struct entry *x = silt_map_find(&k->entries, key);
    if (x != NULL && memcmp(x->hash, sum, HASH_SIZE) != 0)
        silt_api_refuse(r, SILT_API_KEY_REUSED, (silt_slice){NULL, 0},
                        "The Idempotency-Key belongs to another request of the last ten minutes");
    else if (x != NULL)
        join(x, r, w);
    else if (k->running >= RUNNING_MAX)
        silt_api_refuse(r, SILT_API_LIMIT_REACHED, (silt_slice){NULL, 0},
                        "%d requests with an Idempotency-Key are being carried out", RUNNING_MAX);
    else
        carry_out(api, r, w, key, silt_buf_slice(&head), sum);
}

static bool is_key(silt_slice key)
{
    for (size_t i = 0; i < key.len; i++)
        if (key.data[i] <= ' ' || key.data[i] > '~')
            return false;
    return key.len > 0 && key.len <= KEY_MAX;
}

bool silt_idempotency_take(struct silt_api *api, struct silt_http_request *r)
{
    silt_slice key = silt_http_field(r->head, SILT_LIT("idempotency-key"));
    if (key.data == NULL)
        return false;
    if (!is_key(key)) {
        silt_api_refuse_field(r, "Idempotency-Key", "must be 1 to 128 printable characters");
        return true;
    }
    r->owner = api;
    silt_http_collect(r, SILT_BODY_MAX, on_body);
    return true;
}
