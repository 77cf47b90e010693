/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sandboxes: list, create with options, show, destroy. */
#include "sandbox/core/sandbox.h"
#include "api/sandbox/network.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)

enum {
    PAGE_DEFAULT = 50,
    PAGE_MAX = 1000,
    PAGE_BYTES_MAX = 16 << 20, /* a page of sandboxes with many labels ends early */
    LABELS_MAX = 64,
    LABEL_BYTES_MAX = 256,
    SLEEP_MAX_S = 31536000,
};

/* One sandbox as JSON. */

static void add_time(struct silt_buf *b, const char *key, int64_t ms)
{
    silt_json_key(b, silt_slice_of(key));
    if (ms > 0)
        silt_api_time(b, ms);
    else
        silt_json_null(b);
}

static void add_text(struct silt_buf *b, const char *key, const char *text)
{
    silt_json_key(b, silt_slice_of(key));
    if (text[0] != 0)
        silt_json_string(b, silt_slice_of(text));
    else
        silt_json_null(b);
}

void silt_api_digest(struct silt_buf *b, silt_slice key, const uint8_t digest[SILT_DIGEST_SIZE])
{
    char text[8 + SILT_DIGEST_SIZE * 2] = "sha256:";
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++)
        (void)snprintf(text + 7 + i * 2, 3, "%02x", digest[i]);
    silt_json_key(b, key);
    silt_json_string(b, silt_slice_of(text));
}

static void add_limits(struct silt_buf *b, const struct silt_priv_limits *l)
{
    silt_json_key(b, SILT_LIT("limits"));
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("cpu"));
    if (l->cpu_milli == 0)
        silt_json_null(b); /* unlimited */
    else
        silt_json_double(b, l->cpu_milli == 62 ? 0.0625 : l->cpu_milli / 1000.0);
    silt_json_add_u64(b, "memoryMiB", l->memory_bytes / MIB);
    silt_json_add_u64(b, "pids", l->pids);
    silt_json_add_u64(b, "diskMiB", l->disk_bytes / MIB);
    silt_json_close(b, '}');
}

static void add_usage(struct silt_buf *b, const struct silt_priv_stat *u)
{
    static const struct silt_priv_stat none;
    u = u != NULL ? u : &none;
    silt_json_key(b, SILT_LIT("usage"));
    silt_json_open(b, '{');
    silt_json_add_u64(b, "memoryBytes", u->memory_bytes);
    silt_json_add_u64(b, "memoryPeakBytes", u->memory_peak_bytes);
    silt_json_add_u64(b, "cpuMs", u->cpu_us / 1000);
    silt_json_add_u64(b, "pids", u->pids);
    silt_json_add_u64(b, "diskBytes", u->disk_bytes);
    silt_json_close(b, '}');
}

static void add_death(struct silt_buf *b, const struct silt_death *d)
{
    silt_json_key(b, SILT_LIT("lastDeath"));
    if (d->cause[0] == 0) {
        silt_json_null(b);
        return;
    }
    silt_json_open(b, '{');
    add_text(b, "cause", d->cause);
    add_text(b, "message", d->message);
    add_time(b, "at", d->at_ms);
    if (d->exit_code >= 0) {
        silt_json_key(b, SILT_LIT("exitCode"));
        silt_json_i64(b, d->exit_code);
    }
    if (d->signal > 0) {
        silt_json_key(b, SILT_LIT("signal"));
        silt_json_i64(b, d->signal);
    }
    if (d->limit_bytes > 0) {
        silt_json_add_u64(b, "limitBytes", d->limit_bytes);
        silt_json_add_u64(b, "peakBytes", d->peak_bytes);
    }
    silt_json_close(b, '}');
}

/* A reset connection ends no process: the program sees an error, and this says why. */
static void add_tcp(struct silt_buf *b, const struct silt_sandbox *s)
{
    struct silt_tcp_record r;
    silt_json_key(b, SILT_LIT("tcpMemory"));
    if (!silt_tcp_memory_look(&s->registry->tcp_memory, s->row.slot, s->row.created_ms, &r)) {
        silt_json_null(b);
        return;
    }
    silt_json_open(b, '{');
    add_time(b, "exceededAt", r.at_ms);
    silt_json_add_u64(b, "usedBytes", r.used);
    silt_json_add_u64(b, "limitBytes", r.limit);
    silt_json_close(b, '}');
}

static void add_sandbox(struct silt_buf *b, const struct silt_sandbox *s,
                        const struct silt_priv_stat *usage)
{
    const struct silt_sandbox_row *row = &s->row;
    bool running =
        s->state != SILT_SANDBOX_STOPPED; /* also true while its processes are being ended */
    bool born =
        running
        && s->state
               != SILT_SANDBOX_STARTING; /* until then the row describes the previous incarnation */
    char hostname[SILT_HOSTNAME_SIZE];
    silt_id_hostname(silt_slice_of(row->id), hostname);
    silt_json_open(b, '{');
    add_text(b, "id", row->id);
    add_text(b, "state", running ? "running" : "stopped");
    silt_json_key(b, SILT_LIT("image"));
    silt_json_open(b, '{');
    add_text(b, "name", row->image);
    silt_api_digest(b, SILT_LIT("digest"), row->digest);
    silt_json_close(b, '}');
    add_text(b, "type", row->type);
    add_limits(b, &row->limits);
    add_usage(b, usage);
    add_text(b, "incarnation", born ? row->incarnation : "");
    add_time(b, "createdAt", row->created_ms);
    add_time(b, "startedAt", born ? row->started_ms : 0);
    add_time(b, "lastUsedAt", row->used_ms);
    silt_json_key(b, SILT_LIT("labels"));
    silt_json_raw(b, row->labels != NULL ? silt_slice_of(row->labels) : SILT_LIT("{}"));
    silt_json_key(b, SILT_LIT("sleepAfter"));
    if (row->sleep_after_s > 0)
        silt_json_i64(b, row->sleep_after_s);
    else
        silt_json_null(b);
    silt_json_key(b, SILT_LIT("ephemeral"));
    silt_json_bool(b, row->ephemeral);
    add_text(b, "hostname", hostname);
    add_death(b, &row->death);
    add_tcp(b, s);
    silt_json_close(b, '}');
}

/* Waits for silt-priv's usage numbers, then answers. */
struct look {
    struct silt_api *api;
    struct silt_http_request *request; /* NULL: the client has disconnected */
    int status;
    char id[SILT_ID_MAX + 1];
};

static void on_looker_gone(struct silt_http_request *r)
{
    struct look *l = r->owner;
    l->request = NULL;
}

static void refuse_missing(struct silt_http_request *r, silt_slice id)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("sandboxId"));
    silt_json_string(&b, id);
    silt_json_close(&b, '}');
    silt_api_refuse(r, SILT_API_SANDBOX_NOT_FOUND, silt_buf_slice(&b),
                    "Sandbox '%.*s' does not exist", (int)id.len, id.data);
}

static void on_looked(void *context, const struct silt_priv_stat *stat)
{
    struct look *l = context;
    struct silt_http_request *r = l->request;
    struct silt_sandbox *s = silt_registry_find(l->api->registry, silt_slice_of(l->id));
    if (r != NULL) {
        r->on_gone = NULL;
        if (s == NULL) {
            refuse_missing(r, silt_slice_of(l->id));
        } else {
            silt_auto_buf b;
            silt_buf_init(&b, 1 << 20);
            add_sandbox(&b, s, stat);
            silt_api_answer(r, l->status, &b);
        }
    }
    free(l);
}

static void look_at(struct silt_api *api, struct silt_http_request *r, struct silt_sandbox *s,
                    int status)
{
    struct look *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    *l = (struct look){.api = api, .request = r, .status = status};
    memcpy(l->id, s->row.id, sizeof(l->id));
    r->owner = l;
    r->on_gone = on_looker_gone;
    silt_sandbox_stat(s, on_looked, l);
}

SILT_HANDLER(silt_api_sandbox_get)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    if (silt_id_check(args[0], &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return;
    }
    struct silt_sandbox *s = silt_registry_find(api->registry, args[0]);
    if (s == NULL || s->state == SILT_SANDBOX_DESTROYING)
        refuse_missing(r, args[0]);
    else
        look_at(api, r, s, 200);
}

/* List. */

struct filter {
    size_t count;
    silt_slice keys[LABELS_MAX], values[LABELS_MAX];
};

static bool read_filter(struct silt_http_request *r, struct filter *f)
{
    silt_slice rest = r->head->query, pair, name, label;
    while (rest.len > 0 && silt_slice_split(&rest, '&', &pair)) {
        if (!silt_slice_split(&pair, '=', &name) || !silt_slice_eq(name, SILT_LIT("label")))
            continue;
        if (f->count == LABELS_MAX || !silt_query_decode(r, pair, &label)
            || !silt_slice_split(&label, '=', &f->keys[f->count]) || label.data == NULL) {
            silt_api_refuse_field(r, "label", "must be key=value, at most 64 times");
            return false;
        }
        f->values[f->count++] = label;
    }
    return true;
}

static bool labels_fit(const struct silt_sandbox *s, const struct filter *f)
{
    const struct silt_json *labels = NULL;
    struct silt_error e;
    silt_auto_arena a;
    silt_arena_init(&a, 1 << 20);
    if (f->count == 0)
        return true;
    if (s->row.labels == NULL || silt_json_read(&a, silt_slice_of(s->row.labels), &labels, &e) < 0)
        return false;
    for (size_t i = 0; i < f->count; i++) {
        const struct silt_json *v = silt_json_get(labels, f->keys[i]);
        if (v == NULL || v->type != SILT_JSON_STRING || !silt_slice_eq(v->string, f->values[i]))
            return false;
    }
    return true;
}

SILT_HANDLER(silt_api_sandbox_list)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    uint64_t limit = PAGE_DEFAULT;
    silt_slice text = silt_query(r, SILT_LIT("limit")), after = silt_query(r, SILT_LIT("after"));
    size_t count, shown = 0;
    struct filter filter = {0};
    (void)args;
    if (!read_filter(r, &filter))
        return;
    if (text.data != NULL && silt_slice_to_u64(text, 1, PAGE_MAX, &limit, &e) < 0) {
        silt_api_refuse_field(r, "limit", e.text);
        return;
    }
    if (after.len > 0 && silt_id_check(after, &e) < 0) {
        silt_api_refuse_field(r, "after", e.text);
        return;
    }
    struct silt_sandbox **all = silt_registry_sorted(api->registry, r->arena, &count);
    const char *last = NULL;
    bool more = false;
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 20);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("sandboxes"));
    silt_json_open(&b, '[');
    for (size_t i = 0; all != NULL && i < count && !more; i++) {
        silt_slice id = silt_slice_of(all[i]->row.id);
        char first[SILT_ID_MAX + 1] = "";
        if (after.len > 0)
            memcpy(first, after.data, after.len);
        if (strcmp(id.data, first) <= 0 || all[i]->state == SILT_SANDBOX_DESTROYING
            || !labels_fit(all[i], &filter))
            continue;
        more = shown == limit || b.len > PAGE_BYTES_MAX;
        if (more)
            break;
        add_sandbox(&b, all[i], NULL);
        last = all[i]->row.id;
        shown++;
    }
    silt_json_close(&b, ']');
    if (more) {
        silt_json_key(&b, SILT_LIT("next"));
        silt_json_string(&b, silt_slice_of(last));
    }
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

/* Create. */

struct creation {
    struct silt_sandbox_options options;
    char id[SILT_ID_MAX + 1];
};

static bool read_type(struct silt_call *c, struct silt_sandbox_options *o)
{
    silt_slice type = {NULL, 0};
    if (!silt_body_string(c, "type", &type))
        return false;
    if (type.len == 0)
        type = silt_slice_of(c->api->registry->settings.type);
    const struct silt_priv_limits *limits = silt_type_find(type);
    if (limits == NULL) {
        silt_api_refuse_field(
            c->request, "type",
            "must be one of lite, basic, standard-1, standard-2, standard-3, standard-4");
        return false;
    }
    memcpy(o->type, type.data, type.len);
    o->limits = *limits;
    return true;
}

static bool read_number(struct silt_call *c, const struct silt_json *limits, const char *name,
                        double min, double max, double *ret)
{
    char why[96];
    const struct silt_json *v = silt_json_get(limits, silt_slice_of(name));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    double n = v->type == SILT_JSON_INT      ? (double)v->integer
               : v->type == SILT_JSON_DOUBLE ? v->number
                                             : -1;
    if (!(n >= min && n <= max)) {
        (void)snprintf(why, sizeof(why), "%s must be a number between %g and %g", name, min, max);
        silt_api_refuse_field(c->request, "limits", why);
        return false;
    }
    *ret = n;
    return true;
}

/* All limits together may exceed the pool; a single one that does could never be used up. */
static bool fits_pool(struct silt_call *c, const struct silt_json *limits, double disk)
{
    struct silt_pool_status pool;
    char why[160];
    if (silt_json_get(limits, SILT_LIT("diskMiB")) == NULL)
        return true;
    silt_disk_pool_look(&c->api->registry->pool, &pool);
    if (pool.max == 0 || disk <= (double)(pool.max / MIB))
        return true;
    (void)snprintf(why, sizeof(why),
                   "diskMiB is %.0f, more than the %llu MiB of the disk pool of all sandboxes",
                   disk, (unsigned long long)(pool.max / MIB));
    silt_api_refuse_value(c->request, "limits", why, "DISK_LARGER_THAN_POOL");
    return false;
}

static bool read_limits(struct silt_call *c, struct silt_sandbox_options *o)
{
    const struct silt_json *limits = silt_json_get(c->body, SILT_LIT("limits"));
    double cpu = o->limits.cpu_milli / 1000.0, memory = (double)(o->limits.memory_bytes / MIB);
    double pids = o->limits.pids, disk = (double)(o->limits.disk_bytes / MIB);
    if (limits == NULL || limits->type == SILT_JSON_NULL)
        return true;
    if (limits->type != SILT_JSON_OBJECT) {
        silt_api_refuse_field(c->request, "limits", "must be an object");
        return false;
    }
    if (!read_number(c, limits, "cpu", 0.01, 1024, &cpu)
        || !read_number(c, limits, "memoryMiB", 16, 1 << 24, &memory)
        || !read_number(c, limits, "pids", 8, 4194304, &pids)
        || !read_number(c, limits, "diskMiB", 16, 1 << 28, &disk))
        return false;
    if (!fits_pool(c, limits, disk))
        return false;
    o->type[0] = 0;
    o->limits =
        (struct silt_priv_limits){.cpu_milli = (uint32_t)(cpu * 1000 + 1e-6), /* 1.001 is 1001 */
                                  .memory_bytes = (uint64_t)memory * MIB,
                                  .pids = (uint32_t)pids,
                                  .disk_bytes = (uint64_t)disk * MIB};
    return true;
}

static bool read_sleep(struct silt_call *c, struct silt_sandbox_options *o)
{
    static const char why[] = "must be seconds (a number) or like 30s, 5m, 1h; at most one year";
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("sleepAfter"));
    struct silt_error e;
    uint64_t n = 0, unit = 1;
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (v->type == SILT_JSON_INT && v->integer >= 0) {
        n = (uint64_t)v->integer;
    } else if (v->type == SILT_JSON_STRING && v->string.len > 1) {
        silt_slice digits = {v->string.data, v->string.len - 1};
        char last = v->string.data[v->string.len - 1];
        unit = last == 's' ? 1 : last == 'm' ? 60 : last == 'h' ? 3600 : 0;
        if (unit == 0 || silt_slice_to_u64(digits, 0, SLEEP_MAX_S, &n, &e) < 0) {
            silt_api_refuse_field(c->request, "sleepAfter", why);
            return false;
        }
    } else {
        silt_api_refuse_field(c->request, "sleepAfter", why);
        return false;
    }
    if (n > SLEEP_MAX_S / unit) {
        silt_api_refuse_field(c->request, "sleepAfter", why);
        return false;
    }
    o->sleep_after_s = (int64_t)(n * unit);
    return true;
}

static bool read_labels(struct silt_call *c, struct silt_sandbox_options *o)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("labels"));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    bool good = v->type == SILT_JSON_OBJECT && v->items.count <= LABELS_MAX;
    silt_auto_buf b;
    silt_buf_init(&b, 256 << 10);
    silt_json_open(&b, '{');
    for (const struct silt_json *l = good ? v->items.first : NULL; l != NULL; l = l->next) {
        good = good && l->type == SILT_JSON_STRING && l->key.len > 0
               && l->key.len <= LABEL_BYTES_MAX && l->string.len <= LABEL_BYTES_MAX;
        silt_json_key(&b, l->key);
        silt_json_string(&b, good ? l->string : SILT_LIT(""));
    }
    silt_json_close(&b, '}');
    if (!good || b.broken) {
        silt_api_refuse_field(c->request, "labels",
                              "must be an object of at most 64 strings of at most 256 bytes each");
        return false;
    }
    char *copy = silt_arena_dup(c->request->arena, silt_buf_slice(&b));
    o->labels = copy != NULL ? silt_slice_of(copy) : (silt_slice){NULL, 0};
    return true;
}

static bool read_id(struct silt_call *c, struct creation *q)
{
    silt_slice id = {NULL, 0};
    struct silt_error e;
    if (!silt_body_string(c, "id", &id))
        return false;
    if (id.data == NULL) {
        memcpy(q->id, "sb-", 3);
        silt_id_random(q->id + 3, 16);
        return true;
    }
    if (silt_id_check(id, &e) < 0) {
        silt_api_refuse_field(c->request, "id", e.text);
        return false;
    }
    memcpy(q->id, id.data, id.len);
    q->id[id.len] = 0;
    return true;
}

static void refuse_creation(struct silt_call *c, const struct silt_error *e)
{
    const struct creation *q = c->own;
    if (e->code == SILT_UNAVAILABLE && q->options.network != SILT_NET_DEFAULT)
        silt_api_network_refuse(c->request, e);
    else
        silt_api_refuse_error(c->request, e);
}

static void on_created(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_call *c = silt_outer(w, struct silt_call, waiter);
    if (s == NULL)
        refuse_creation(c, e);
    else
        look_at(c->api, c->request, s, 201);
}

static bool parse_create(struct silt_call *c)
{
    struct creation *q = silt_arena_alloc(c->request->arena, sizeof(*q));
    struct silt_api_network network = {.mode = SILT_NET_DEFAULT};
    struct silt_error e;
    if (q == NULL)
        abort();
    *q = (struct creation){0};
    c->own = q;
    if (!read_id(c, q) || !silt_body_string(c, "image", &q->options.image)
        || !read_type(c, &q->options) || !read_limits(c, &q->options)
        || !silt_body_env(c, "env", SILT_SANDBOX_ENV_MAX, &q->options.env)
        || !read_labels(c, &q->options) || !read_sleep(c, &q->options)
        || !silt_body_bool(c, "ephemeral", &q->options.ephemeral)
        || !silt_api_network_read(c, silt_json_get(c->body, SILT_LIT("network")), "network.allow",
                                  &network))
        return false;
    q->options.network = network.mode;
    q->options.allow = network.allow;
    char spelled[SILT_REFERENCE_SIZE];
    if (q->options.image.data == NULL || silt_reference_read(q->options.image, spelled, &e) == 0)
        return true;
    silt_api_refuse_field(c->request, "image", e.text);
    return false;
}

static void create(struct silt_call *c)
{
    const struct creation *q = c->own;
    struct silt_error e;
    c->waiter.on_ready = on_created;
    if (silt_registry_create(c->api->registry, silt_slice_of(q->id), &q->options, &c->waiter, &e)
        < 0)
        refuse_creation(c, &e);
}

static const struct silt_call_kind create_call = {.body = SILT_BODY_REQUIRED,
                                                  .sandbox = SILT_CALL_NO_SANDBOX,
                                                  .parse = parse_create,
                                                  .run = create};

SILT_HANDLER(silt_api_sandbox_create)
{
    silt_call_begin(r, args, &create_call);
}

/* Destroy. */

struct destruction {
    struct silt_waiter waiter;
    struct silt_http_request
        *request; /* NULL: the client has disconnected; the sandbox is destroyed all the same */
    char id[SILT_ID_MAX + 1];
};

static void answer_destroyed(struct silt_http_request *r, silt_slice id, bool destroyed)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, id);
    silt_json_key(&b, SILT_LIT("destroyed"));
    silt_json_bool(&b, destroyed);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void on_destroyed(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct destruction *d = silt_outer(w, struct destruction, waiter);
    (void)s;
    if (d->request != NULL) {
        d->request->on_gone = NULL;
        if (e != NULL)
            silt_api_refuse_error(d->request, e);
        else
            answer_destroyed(d->request, silt_slice_of(d->id), true);
    }
    free(d);
}

static void on_destroyer_gone(struct silt_http_request *r)
{
    struct destruction *d = r->owner;
    d->request = NULL;
}

SILT_HANDLER(silt_api_sandbox_destroy)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    if (silt_id_check(args[0], &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return;
    }
    struct silt_sandbox *s = silt_registry_find(api->registry, args[0]);
    if (s == NULL) {
        answer_destroyed(r, args[0], false);
        return;
    }
    struct destruction *d = calloc(1, sizeof(*d));
    if (d == NULL)
        abort();
    d->waiter.on_ready = on_destroyed;
    d->request = r;
    memcpy(d->id, args[0].data, args[0].len);
    r->owner = d;
    r->on_gone = on_destroyer_gone;
    silt_sandbox_destroy(s, &d->waiter);
}
