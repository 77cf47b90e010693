/* SPDX-License-Identifier: Apache-2.0 */
/* Containers: create, inspect, start, wait, kill, stop, remove. */
#include "api/engine/engine.h"
#include "json/json.h"
#include "sandbox/core/sandbox.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { ANSWER_MAX = 8 << 20 };

static void *alloc(struct silt_http_request *r, size_t size)
{
    void *p = silt_arena_alloc(r->arena, size);
    assert(p != NULL);
    memset(p, 0, size);
    return p;
}

/* JSON */

static void add_time(struct silt_buf *b, const char *key, int64_t ms)
{
    silt_json_key(b, silt_slice_of(key));
    if (ms > 0)
        silt_api_time(b, ms);
    else
        silt_json_string(b, SILT_LIT("0001-01-01T00:00:00Z"));
}

static void add_digest(struct silt_buf *b, const char *key, const uint8_t digest[SILT_DIGEST_SIZE])
{
    char text[8 + 2 * SILT_DIGEST_SIZE];
    memcpy(text, "sha256:", 8);
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++)
        (void)snprintf(text + 7 + i * 2, 3, "%02x", digest[i]);
    silt_json_add_text(b, key, text);
}

static void add_words(struct silt_buf *b, const char *key, const struct silt_words *w)
{
    silt_json_key(b, silt_slice_of(key));
    if (!w->given) {
        silt_json_null(b);
        return;
    }
    silt_json_open(b, '[');
    for (size_t i = 0; i < w->count; i++)
        silt_json_string(b, w->items[i]);
    silt_json_close(b, ']');
}

static void add_env(struct silt_buf *b, silt_slice env)
{
    silt_slice one;
    silt_json_key(b, SILT_LIT("Env"));
    silt_json_open(b, '[');
    while (env.len > 0 && silt_slice_split(&env, 0, &one))
        if (one.len > 0)
            silt_json_string(b, one);
    silt_json_close(b, ']');
}

static void add_labels(struct silt_buf *b, const struct silt_json *labels)
{
    silt_json_key(b, SILT_LIT("Labels"));
    if (labels != NULL)
        silt_json_value(b, labels);
    else
        silt_json_raw(b, SILT_LIT("{}"));
}

static void add_name(struct silt_buf *b, const char *key, const struct silt_container *c)
{
    silt_auto_buf name;
    silt_buf_init(&name, SILT_CONTAINER_NAME_MAX + 2);
    silt_buf_add_byte(&name, '/');
    silt_buf_add(&name, silt_slice_of(c->row.name));
    if (key != NULL)
        silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, silt_buf_slice(&name));
}

static void add_state(struct silt_buf *b, const struct silt_container *c)
{
    bool runs = silt_container_runs(c);
    silt_json_key(b, SILT_LIT("State"));
    silt_json_open(b, '{');
    silt_json_add_text(b, "Status", silt_container_status(c));
    silt_json_add_bool(b, "Running", runs);
    silt_json_add_bool(b, "Paused", false);
    silt_json_add_bool(b, "Restarting", false);
    silt_json_add_bool(b, "OOMKilled", false);
    silt_json_add_bool(b, "Dead", false);
    silt_json_add_i64(b, "Pid", runs ? 1 : 0);
    silt_json_add_i64(b, "ExitCode", runs ? 0 : c->row.exit_code);
    silt_json_add_text(b, "Error", silt_container_last_words(c));
    add_time(b, "StartedAt", c->row.started_ms);
    add_time(b, "FinishedAt", runs ? 0 : c->row.ended_ms);
    silt_json_close(b, '}');
}

static void add_ports(struct silt_buf *b, const struct silt_container *c)
{
    char port[8];
    (void)snprintf(port, sizeof(port), "%u", c->row.port);
    silt_json_key(b, SILT_LIT("Ports"));
    silt_json_open(b, '{');
    if (c->spec.kind == SILT_CONTAINER_SIDECAR && silt_container_runs(c)) {
        silt_json_key(b, SILT_LIT("39001/tcp"));
        silt_json_open(b, '[');
        silt_json_open(b, '{');
        silt_json_add_text(b, "HostIp", "127.0.0.1");
        silt_json_add_text(b, "HostPort", port);
        silt_json_close(b, '}');
        silt_json_close(b, ']');
    }
    silt_json_close(b, '}');
}

static void add_config(struct silt_buf *b, const struct silt_container *c)
{
    silt_json_key(b, SILT_LIT("Config"));
    silt_json_open(b, '{');
    char hostname[16];
    (void)snprintf(hostname, sizeof(hostname), "%.12s", c->row.id);
    silt_json_add_text(b, "Hostname", hostname);
    silt_json_add_slice(b, "Image", c->spec.image);
    silt_json_add_slice(b, "User", c->spec.user);
    silt_json_add_slice(b, "WorkingDir", c->spec.workdir);
    silt_json_add_bool(b, "Tty", false);
    silt_json_add_bool(b, "OpenStdin", false);
    add_env(b, c->spec.env);
    add_words(b, "Cmd", &c->spec.cmd);
    add_words(b, "Entrypoint", &c->spec.entrypoint);
    add_labels(b, c->spec.labels);
    silt_json_close(b, '}');
}

static void add_host_config(struct silt_buf *b, const struct silt_container *c)
{
    silt_auto_buf mode;
    silt_buf_init(&mode, 1024);
    if (c->spec.sidecar.len > 0)
        silt_buf_add(&mode, SILT_LIT("container:"));
    silt_buf_add(&mode, c->spec.sidecar.len > 0 ? c->spec.sidecar : SILT_LIT("bridge"));
    silt_json_key(b, SILT_LIT("HostConfig"));
    silt_json_open(b, '{');
    silt_json_add_slice(b, "NetworkMode", silt_buf_slice(&mode));
    silt_json_add_bool(b, "Privileged", false);
    silt_json_add_bool(b, "AutoRemove", c->spec.auto_remove);
    silt_json_key(b, SILT_LIT("LogConfig"));
    silt_json_raw(b, SILT_LIT("{\"Type\":\"json-file\",\"Config\":{}}"));
    silt_json_close(b, '}');
}

static void write_container(struct silt_buf *b, const struct silt_container *c)
{
    silt_json_open(b, '{');
    silt_json_add_text(b, "Id", c->row.id);
    add_time(b, "Created", c->row.created_ms);
    add_name(b, "Name", c);
    add_digest(b, "Image", c->row.digest);
    silt_json_add_text(b, "Driver", "silt");
    silt_json_add_text(b, "Platform", "linux");
    silt_json_add_i64(b, "RestartCount", 0);
    add_state(b, c);
    add_config(b, c);
    add_host_config(b, c);
    silt_json_key(b, SILT_LIT("NetworkSettings"));
    silt_json_open(b, '{');
    add_ports(b, c);
    silt_json_close(b, '}');
    silt_json_key(b, SILT_LIT("Mounts"));
    silt_json_open(b, '[');
    for (size_t i = 0; i < c->spec.mount_count; i++) {
        silt_json_open(b, '{');
        silt_json_add_text(b, "Type", "volume");
        silt_json_add_slice(b, "Name", c->spec.mounts[i].volume);
        silt_json_add_slice(b, "Destination", c->spec.mounts[i].target);
        silt_json_add_bool(b, "RW", !c->spec.mounts[i].read_only);
        silt_json_close(b, '}');
    }
    silt_json_close(b, ']');
    silt_json_add_text(b, "SiltSandbox", c->spec.kind == SILT_CONTAINER_APP ? c->sandbox : "");
    silt_json_close(b, '}');
}

/* Lists */

static bool has_ancestor(struct silt_engine *g, const struct silt_json *filters,
                         const struct silt_container *c)
{
    const struct silt_json *wanted = silt_json_get(filters, SILT_LIT("ancestor"));
    if (silt_engine_passes(filters, "ancestor", c->spec.image, false))
        return true;
    if (wanted == NULL || c->spec.kind != SILT_CONTAINER_APP)
        return false;
    for (const struct silt_json *i = wanted->items.first; i != NULL; i = i->next) {
        struct silt_container_image image;
        struct silt_error e;
        silt_slice want = wanted->type == SILT_JSON_OBJECT ? i->key
                          : i->type == SILT_JSON_STRING    ? i->string
                                                           : SILT_LIT("");
        if (silt_container_image(g->all->registry, want, &image, &e) == 0
            && memcmp(image.digest, c->row.digest, SILT_DIGEST_SIZE) == 0)
            return true;
    }
    return false;
}

/* name, or name=value; all of them must match. */
static bool has_labels(const struct silt_json *filters, const struct silt_container *c)
{
    const struct silt_json *wanted = silt_json_get(filters, SILT_LIT("label"));
    if (wanted == NULL || (wanted->type != SILT_JSON_ARRAY && wanted->type != SILT_JSON_OBJECT))
        return true;
    for (const struct silt_json *i = wanted->items.first; i != NULL; i = i->next) {
        silt_slice value = wanted->type == SILT_JSON_OBJECT ? i->key
                           : i->type == SILT_JSON_STRING    ? i->string
                                                            : SILT_LIT(""),
                   name = {NULL, 0};
        (void)silt_slice_split(&value, '=', &name);
        const struct silt_json *label = silt_json_get(c->spec.labels, name);
        if (label == NULL || label->type != SILT_JSON_STRING
            || (value.data != NULL && !silt_slice_eq(value, label->string)))
            return false;
    }
    return true;
}

/* Rejects unknown filters: ignoring one would list containers that were not asked for, and clients
 * remove what is listed. */
static bool knows_filters(struct silt_http_request *r, const struct silt_json *filters)
{
    static const char *const known[] = {"status", "name", "id", "ancestor", "label"};
    for (const struct silt_json *i = filters != NULL ? filters->items.first : NULL; i != NULL;
         i = i->next) {
        bool good = false;
        for (size_t k = 0; k < SILT_COUNT(known); k++)
            good = good || silt_slice_eq(i->key, silt_slice_of(known[k]));
        if (!good) {
            silt_engine_refuse(r, 400, "invalid filter '%.*s'",
                               (int)(i->key.len < 80 ? i->key.len : 80), i->key.data);
            return false;
        }
    }
    return true;
}

static bool is_listed(struct silt_engine *g, const struct silt_json *filters, bool all,
                      const struct silt_container *c)
{
    bool by_status = silt_json_get(filters, SILT_LIT("status")) != NULL;
    if (!all && !by_status && !silt_container_runs(c))
        return false;
    return silt_engine_passes(filters, "status", silt_slice_of(silt_container_status(c)), false)
           && silt_engine_passes(filters, "name", silt_slice_of(c->row.name), true)
           && silt_engine_passes(filters, "id", silt_slice_of(c->row.id), true)
           && has_labels(filters, c) && has_ancestor(g, filters, c);
}

static void write_item(struct silt_buf *b, const struct silt_container *c)
{
    char status[48];
    (void)snprintf(status, sizeof(status),
                   silt_container_runs(c) ? "Up"
                   : c->row.ended_ms > 0  ? "Exited (%d)"
                                          : "Created",
                   c->row.exit_code);
    silt_json_open(b, '{');
    silt_json_add_text(b, "Id", c->row.id);
    silt_json_key(b, SILT_LIT("Names"));
    silt_json_open(b, '[');
    add_name(b, NULL, c);
    silt_json_close(b, ']');
    silt_json_add_slice(b, "Image", c->spec.image);
    add_digest(b, "ImageID", c->row.digest);
    silt_json_add_slice(b, "Command", c->spec.cmd.count > 0 ? c->spec.cmd.items[0] : SILT_LIT(""));
    silt_json_add_i64(b, "Created", c->row.created_ms / 1000);
    silt_json_add_text(b, "State", silt_container_status(c));
    silt_json_add_text(b, "Status", status);
    silt_json_key(b, SILT_LIT("Ports"));
    silt_json_raw(b, SILT_LIT("[]"));
    add_labels(b, c->spec.labels);
    silt_json_close(b, '}');
}

/* Kept files are listed as an exited container. Not with an image filter: wrangler uses that to
 * find what to remove when it exits, and kept files must survive until it is back. */
static bool is_kept_listed(const struct silt_json *filters, bool all, const struct silt_kept *k)
{
    return all && silt_json_get(filters, SILT_LIT("ancestor")) == NULL
           && silt_json_get(filters, SILT_LIT("label")) == NULL
           && silt_engine_passes(filters, "status", SILT_LIT("exited"), false)
           && silt_engine_passes(filters, "name", k->name, true)
           && silt_engine_passes(filters, "id", silt_slice_of(k->id), true);
}

static void add_kept_name(struct silt_buf *b, const struct silt_kept *k)
{
    silt_auto_buf name;
    silt_buf_init(&name, SILT_CONTAINER_NAME_MAX + 2);
    silt_buf_add_byte(&name, '/');
    silt_buf_add(&name, k->name);
    silt_json_string(b, silt_buf_slice(&name));
}

static void write_kept_item(struct silt_buf *b, const struct silt_kept *k)
{
    silt_json_open(b, '{');
    silt_json_add_text(b, "Id", k->id);
    silt_json_key(b, SILT_LIT("Names"));
    silt_json_open(b, '[');
    add_kept_name(b, k);
    silt_json_close(b, ']');
    silt_json_add_text(b, "Image", k->sandbox->row.image);
    add_digest(b, "ImageID", k->sandbox->row.digest);
    silt_json_add_text(b, "Command", "");
    silt_json_add_i64(b, "Created", k->sandbox->row.created_ms / 1000);
    silt_json_add_text(b, "State", "exited");
    silt_json_add_text(b, "Status", "Removed, files kept");
    silt_json_key(b, SILT_LIT("Ports"));
    silt_json_raw(b, SILT_LIT("[]"));
    add_labels(b, NULL);
    silt_json_close(b, '}');
}

static void write_kept(struct silt_buf *b, const struct silt_kept *k)
{
    const struct silt_sandbox_row *row = &k->sandbox->row;
    silt_json_open(b, '{');
    silt_json_add_text(b, "Id", k->id);
    add_time(b, "Created", row->created_ms);
    silt_json_key(b, SILT_LIT("Name"));
    add_kept_name(b, k);
    add_digest(b, "Image", row->digest);
    silt_json_key(b, SILT_LIT("State"));
    silt_json_open(b, '{');
    silt_json_add_text(b, "Status", "exited");
    silt_json_add_bool(b, "Running", false);
    silt_json_add_i64(b, "Pid", 0);
    silt_json_add_i64(b, "ExitCode", 0);
    silt_json_add_text(b, "Error", "removed; its files wait for the next container of this name");
    add_time(b, "StartedAt", row->started_ms);
    add_time(b, "FinishedAt", row->used_ms);
    silt_json_close(b, '}');
    silt_json_key(b, SILT_LIT("Config"));
    silt_json_open(b, '{');
    silt_json_add_text(b, "Image", row->image);
    silt_json_close(b, '}');
    silt_json_key(b, SILT_LIT("NetworkSettings"));
    silt_json_raw(b, SILT_LIT("{\"Ports\":{}}"));
    silt_json_add_text(b, "SiltSandbox", row->id);
    silt_json_close(b, '}');
}

static void add_kept(struct silt_buf *b, struct silt_engine *g, struct silt_arena *a,
                     const struct silt_json *filters, bool all)
{
    uint32_t slot = 0;
    struct silt_kept k;
    while (all && silt_kept_next(g->all, a, &slot, &k))
        if (is_kept_listed(filters, all, &k))
            write_kept_item(b, &k);
}

void silt_engine_add_containers(struct silt_buf *b, struct silt_engine *g, struct silt_arena *a)
{
    silt_json_open(b, '[');
    silt_list_each(it, &g->all->list) write_item(b, silt_outer(it, struct silt_container, link));
    add_kept(b, g, a, NULL, true);
    silt_json_close(b, ']');
}

SILT_HANDLER(silt_engine_container_list)
{
    struct silt_engine *g = silt_engine_of(r);
    const struct silt_json *filters;
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, ANSWER_MAX);
    bool all = silt_engine_query_bool(r, "all");
    if (!silt_engine_take_filters(r, &filters) || !knows_filters(r, filters))
        return;
    silt_json_open(&b, '[');
    silt_list_each(it, &g->all->list)
    {
        const struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (is_listed(g, filters, all, c))
            write_item(&b, c);
    }
    add_kept(&b, g, r->arena, filters, all || silt_json_get(filters, SILT_LIT("status")) != NULL);
    silt_json_close(&b, ']');
    silt_engine_answer(r, 200, &b);
}

SILT_HANDLER(silt_engine_container_inspect)
{
    struct silt_engine *g = silt_engine_of(r);
    silt_slice name = silt_percent_decode(r->arena, args[0]);
    const struct silt_container *c = silt_container_find(g->all, name);
    struct silt_kept k;
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    if (c == NULL && silt_kept_find(g->all, r->arena, name, &k))
        write_kept(&b, &k);
    else if ((c = silt_engine_container(r, args[0])) == NULL)
        return;
    else
        write_container(&b, c);
    silt_engine_answer(r, 200, &b);
}

/* Operations that take a while */

struct deed {
    struct silt_container_ask ask;
    struct silt_http_request *request;
    struct silt_containers *all; /* borrowed */
    char id[SILT_CONTAINER_ID_SIZE];
};

static void on_gone(struct silt_http_request *r)
{
    struct deed *d = r->owner;
    silt_container_ask_leave(&d->ask);
}

static struct deed *new_deed(struct silt_http_request *r,
                             void (*on_done)(struct silt_container_ask *,
                                             const struct silt_error *))
{
    struct deed *d = alloc(r, sizeof(*d));
    d->request = r;
    d->all = silt_engine_of(r)->all;
    d->ask.on_done = on_done;
    silt_list_init(&d->ask.link);
    r->owner = d;
    r->on_gone = on_gone;
    return d;
}

/* workerd shows a Worker the whole reason of a failed wait, but nothing of a refused start: so the
 * failure is reported by the wait. */
static bool tell_later(struct silt_http_request *r, struct silt_container *c,
                       const struct silt_error *e)
{
    if (silt_container_class(c).data == NULL)
        return false;
    silt_container_note_failure(c, e);
    c->refused = true;
    silt_engine_empty(r, 204);
    return true;
}

static void on_started(struct silt_container_ask *a, const struct silt_error *e)
{
    struct deed *d = silt_outer(a, struct deed, ask);
    struct silt_container *c = silt_container_find(d->all, silt_slice_of(d->id));
    if (e == NULL)
        silt_engine_empty(d->request, 204);
    else if (c != NULL && tell_later(d->request, c, e))
        return;
    else if (e->code == SILT_NOT_FOUND || e->code == SILT_DENIED)
        silt_engine_refuse(d->request, 400, "%s",
                           e->text); /* its program failed to start; the container exists */
    else
        silt_engine_refuse_error(d->request, e);
}

static void answer_created(struct silt_http_request *r, const char *id)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "Id", id);
    silt_json_key(&b, SILT_LIT("Warnings"));
    silt_json_raw(&b, SILT_LIT("[]"));
    silt_json_close(&b, '}');
    silt_engine_answer(r, 201, &b);
}

static void on_made(struct silt_container_ask *a, const struct silt_error *e)
{
    struct deed *d = silt_outer(a, struct deed, ask);
    if (e == NULL)
        answer_created(d->request, d->id);
    else
        silt_engine_refuse_error(d->request, e);
}

/* U+0080 to U+009F: C1 controls, which terminals obey like escape sequences. */
static bool ends_control(silt_slice name, size_t i)
{
    return i > 0 && name.data[i - 1] == '\xc2' && (unsigned char)name.data[i] >= 0x80
           && (unsigned char)name.data[i] < 0xa0;
}

static bool is_good_name(silt_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        /* workerd's names contain what its users chose: more than Docker's grammar, nothing
         * harmful */
        if ((c >= 0 && (c < ' ' || c == 0x7f || c == '/' || (i == 0 && !letter)))
            || ends_control(name, i))
            return false;
    }
    return name.len <= SILT_CONTAINER_NAME_MAX;
}

SILT_HANDLER(silt_engine_container_create)
{
    struct silt_engine *g = silt_engine_of(r);
    silt_slice name = silt_engine_query(r, "name");
    struct silt_container *c = NULL;
    struct silt_error e;
    (void)args;
    if (name.len > 0 && name.data[0] == '/')
        name = (silt_slice){name.data + 1, name.len - 1};
    if (!is_good_name(name)) {
        silt_engine_refuse(r, 400,
                           "Invalid container name: it has to begin with a letter or a digit, "
                           "without control characters, of at most %d bytes",
                           SILT_CONTAINER_NAME_MAX);
        return;
    }
    if (silt_container_create(g->all, name, r->body, silt_http_peer(r), &c, &e) < 0) {
        silt_engine_refuse_error(r, &e);
        return;
    }
    struct deed *d = new_deed(r, on_made);
    memcpy(d->id, c->row.id, sizeof(d->id));
    if (silt_container_is_made(c, &d->ask))
        answer_created(r, c->row.id);
}

SILT_HANDLER(silt_engine_container_start)
{
    struct silt_container *c = silt_engine_container(r, args[0]);
    struct silt_error e;
    if (c == NULL)
        return;
    if (silt_container_runs(c)) {
        silt_engine_empty(r, 304);
        return;
    }
    bool clearing = c->state == SILT_CONTAINER_IS_CLEARING;
    if (clearing || c->state >= SILT_CONTAINER_IS_STUCK) {
        silt_engine_refuse(r, 409, "container %s is being %s", c->row.id,
                           clearing ? "made" : "removed");
        return;
    }
    if (silt_container_check_place(c, &e) < 0) {
        if (!tell_later(r, c, &e))
            silt_engine_refuse(r, 503, "%s", e.text);
        return;
    }
    struct deed *d = new_deed(r, on_started);
    memcpy(d->id, c->row.id, sizeof(d->id));
    silt_container_start(c, &d->ask);
}

static void on_removed(struct silt_container_ask *a, const struct silt_error *e)
{
    struct silt_http_request *r = silt_outer(a, struct deed, ask)->request;
    if (e == NULL)
        silt_engine_empty(r, 204);
    else
        silt_engine_refuse(
            r, 500, "the container has ended, but its files could not be removed: %s", e->text);
}

struct discarding {
    struct silt_waiter waiter;
    struct silt_http_request *request;
};

static void on_discarder_gone(struct silt_http_request *r)
{
    struct discarding *d = r->owner;
    silt_waiter_leave(&d->waiter);
}

static void on_discarded(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_http_request *r = silt_outer(w, struct discarding, waiter)->request;
    (void)s;
    if (e == NULL)
        silt_engine_empty(r, 204);
    else
        silt_engine_refuse_error(r, e);
}

/* Kept files are deleted when a person asks for it; for workerd, which asks by name, the container
 * is already gone. */
static bool discard(struct silt_http_request *r, silt_slice raw, bool unsure)
{
    struct silt_engine *g = silt_engine_of(r);
    silt_slice name = silt_percent_decode(r->arena, raw);
    struct silt_kept k;
    if (silt_container_find(g->all, name) != NULL || !silt_kept_find(g->all, r->arena, name, &k)
        || (unsure && silt_slice_eq(name, k.name)))
        return false;
    struct discarding *d = alloc(r, sizeof(*d));
    *d = (struct discarding){.request = r, .waiter = {.on_ready = on_discarded}};
    silt_list_init(&d->waiter.link);
    r->owner = d;
    r->on_gone = on_discarder_gone;
    silt_sandbox_destroy(k.sandbox, &d->waiter);
    return true;
}

SILT_HANDLER(silt_engine_container_remove)
{
    bool force = silt_engine_query_bool(r, "force");
    bool unsure =
        silt_slice_eq(silt_engine_query(r, "force"),
                      SILT_LIT("true")); /* workerd's spelling; the docker command sends 1 */
    if (discard(r, args[0], unsure))
        return;
    struct silt_container *c = silt_engine_container(r, args[0]);
    if (c == NULL)
        return;
    if (silt_container_is_going(c)) {
        if (force && !unsure)
            silt_container_condemn(c);
        silt_engine_refuse(r, 409, "removal of container %s is already in progress", c->row.id);
        return;
    }
    if (!force && (silt_container_runs(c) || c->state == SILT_CONTAINER_IS_STARTING)) {
        silt_engine_refuse(
            r, 409, "cannot remove container %s: it is running; stop it first or force the removal",
            c->row.id);
        return;
    }
    silt_container_remove(c, unsure, &new_deed(r, on_removed)->ask);
}

/* Signals */

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},       {"QUIT", SIGQUIT}, {"ILL", SIGILL},
    {"TRAP", SIGTRAP}, {"ABRT", SIGABRT},     {"BUS", SIGBUS},   {"FPE", SIGFPE},
    {"KILL", SIGKILL}, {"USR1", SIGUSR1},     {"SEGV", SIGSEGV}, {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE}, {"ALRM", SIGALRM},     {"TERM", SIGTERM}, {"STKFLT", SIGSTKFLT},
    {"CHLD", SIGCHLD}, {"CONT", SIGCONT},     {"STOP", SIGSTOP}, {"TSTP", SIGTSTP},
    {"TTIN", SIGTTIN}, {"TTOU", SIGTTOU},     {"URG", SIGURG},   {"XCPU", SIGXCPU},
    {"XFSZ", SIGXFSZ}, {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH},
    {"IO", SIGIO},     {"PWR", SIGPWR},       {"SYS", SIGSYS},
};

static int signal_of(silt_slice text)
{
    uint64_t number;
    struct silt_error e;
    if (text.len == 0)
        return SIGKILL;
    if (silt_slice_to_u64(text, 1, 64, &number, &e) == 0)
        return (int)number;
    if (text.len > 3 && silt_slice_ieq((silt_slice){text.data, 3}, SILT_LIT("SIG")))
        text = (silt_slice){text.data + 3, text.len - 3};
    for (size_t i = 0; i < SILT_COUNT(signals); i++)
        if (silt_slice_ieq(text, silt_slice_of(signals[i].name)))
            return signals[i].number;
    return 0;
}

SILT_HANDLER(silt_engine_container_kill)
{
    struct silt_container *c = silt_engine_container(r, args[0]);
    struct silt_error e;
    if (c == NULL)
        return;
    int signal = signal_of(silt_engine_query(r, "signal"));
    if (signal == 0)
        silt_engine_refuse(r, 400, "Invalid signal");
    else if (silt_container_kill(c, signal, &e) < 0)
        silt_engine_refuse_error(r, &e);
    else
        silt_engine_empty(r, 204);
}

/* Waits */

struct wait {
    struct silt_container_wait wait;
    struct silt_http_request *request;
    bool stops; /* the response is that of a stop */
    bool begun; /* the response head has been sent */
};

static void on_wait_gone(struct silt_http_request *r)
{
    struct wait *w = r->owner;
    silt_container_wait_leave(&w->wait);
}

static void answer_code(struct silt_http_request *r, int32_t code)
{
    silt_auto_buf b;
    silt_buf_init(&b, 256);
    silt_json_open(&b, '{');
    silt_json_add_i64(&b, "StatusCode", code);
    silt_json_close(&b, '}');
    silt_engine_answer(r, 200, &b);
}

static void finish_code(struct silt_http_request *r, int32_t code)
{
    char text[48];
    (void)snprintf(text, sizeof(text), "{\"StatusCode\":%d}\n", (int)code);
    silt_http_write(r, silt_slice_of(text));
    silt_http_end(r);
}

static void on_waited(struct silt_container_wait *w, int32_t code)
{
    struct wait *wait = silt_outer(w, struct wait, wait);
    if (wait->stops)
        silt_engine_empty(wait->request, 204);
    else if (wait->begun)
        finish_code(wait->request, code);
    else
        answer_code(wait->request, code);
}

static struct wait *new_wait(struct silt_http_request *r, bool removed, bool stops)
{
    struct wait *w = alloc(r, sizeof(*w));
    *w = (struct wait){
        .request = r, .wait = {.removed = removed, .on_done = on_waited}, .stops = stops};
    r->owner = w;
    r->on_gone = on_wait_gone;
    return w;
}

SILT_HANDLER(silt_engine_container_wait)
{
    struct silt_container *c = silt_engine_container(r, args[0]);
    int32_t code;
    if (c == NULL)
        return;
    silt_slice condition = silt_engine_query(r, "condition");
    bool removed = silt_slice_eq(condition, SILT_LIT("removed"));
    if (!removed && condition.len > 0 && !silt_slice_eq(condition, SILT_LIT("not-running"))
        && !silt_slice_eq(condition, SILT_LIT("next-exit"))) {
        silt_engine_refuse(r, 400, "invalid condition: \"%.*s\"",
                           (int)(condition.len < 100 ? condition.len : 100), condition.data);
        return;
    }
    if (!removed && c->refused) {
        silt_engine_refuse(r, 500, "%s", silt_container_last_words(c));
        return;
    }
    struct wait *w = new_wait(r, removed, false);
    w->wait.next = silt_slice_eq(condition, SILT_LIT("next-exit"));
    if (silt_container_wait(c, &w->wait, &code)) {
        answer_code(r, code);
    } else if (w->wait.next || (removed && c->spec.auto_remove)) {
        w->begun =
            true; /* `docker run` starts the container only after the head of the wait's response */
        silt_http_begin(r, 200, SILT_LIT("application/json"),
                        SILT_LIT("Api-Version: " SILT_ENGINE_API "\r\n"));
    } else if (silt_http_connection(r) >= 0) {
        silt_container_wait_keep(&w->wait, silt_http_connection(r));
    }
}

SILT_HANDLER(silt_engine_container_stop)
{
    struct silt_container *c = silt_engine_container(r, args[0]);
    uint64_t seconds;
    struct silt_error e;
    int32_t code;
    if (c == NULL)
        return;
    if (!silt_container_runs(c)) {
        silt_engine_empty(r, 304);
        return;
    }
    if (silt_slice_to_u64(silt_engine_query(r, "t"), 0, 3600, &seconds, &e) < 0)
        seconds = c->spec.stop_timeout_s;
    struct wait *w = new_wait(r, false, true);
    if (silt_container_is_up(c) && silt_container_stop(c, (uint32_t)seconds, &e) < 0)
        silt_engine_refuse_error(r, &e);
    else if (silt_container_wait(c, &w->wait, &code))
        silt_engine_empty(r, 204);
}
