/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/options.h"
#include "base/clock.h"

#include <stdio.h>

#define MIB ((uint64_t)1 << 20)

enum { LABEL_BYTES_MAX = 256, DURATION_MAX_S = 31536000 };

bool silt_api_read_type(struct silt_call *c, struct silt_sandbox_options *o)
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
    memset(o->type, 0, sizeof(o->type));
    memcpy(o->type, type.data, type.len);
    o->limits = *limits;
    return true;
}

static bool read_number(struct silt_call *c, const struct silt_json *limits, const char *name,
                        bool whole, double min, double max, double *ret)
{
    char why[96];
    const struct silt_json *v = silt_json_get(limits, silt_slice_of(name));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    double n = v->type == SILT_JSON_INT      ? (double)v->integer
               : v->type == SILT_JSON_DOUBLE ? v->number
                                             : -1;
    if (!(n >= min && n <= max) || (whole && n != (double)(uint64_t)n)) {
        (void)snprintf(why, sizeof(why), "%s must be a %s between %.*f and %.0f", name,
                       whole ? "whole number" : "number", whole ? 0 : 2, min, max);
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

bool silt_api_read_limits(struct silt_call *c, struct silt_sandbox_options *o)
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
    if (!read_number(c, limits, "cpu", false, 0.01, 1024, &cpu)
        || !read_number(c, limits, "memoryMiB", true, 16, 1 << 24, &memory)
        || !read_number(c, limits, "pids", true, 8, 4194304, &pids)
        || !read_number(c, limits, "diskMiB", true, 16, 1 << 28, &disk))
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

bool silt_api_read_duration(struct silt_call *c, const char *name, int64_t *ret, bool *ret_null)
{
    static const char why[] = "must be seconds (a number) or like 30s, 5m, 1h; at most one year";
    const struct silt_json *v = silt_json_get(c->body, silt_slice_of(name));
    struct silt_error e;
    uint64_t n = 0, unit = 1;
    *ret_null = v != NULL && v->type == SILT_JSON_NULL;
    if (v == NULL || *ret_null)
        return true;
    bool good = v->type == SILT_JSON_INT && v->integer >= 0;
    if (good) {
        n = (uint64_t)v->integer;
    } else if (v->type == SILT_JSON_STRING && v->string.len > 1) {
        silt_slice digits = {v->string.data, v->string.len - 1};
        char last = v->string.data[v->string.len - 1];
        unit = last == 's' ? 1 : last == 'm' ? 60 : last == 'h' ? 3600 : 0;
        good = unit != 0 && silt_slice_to_u64(digits, 0, DURATION_MAX_S, &n, &e) == 0;
    }
    if (!good || n > DURATION_MAX_S / unit) {
        silt_api_refuse_field(c->request, name, why);
        return false;
    }
    *ret = (int64_t)(n * unit);
    return true;
}

static bool read_ttl(struct silt_call *c, struct silt_lifetime *life)
{
    int64_t ttl_s = -1;
    bool none;
    if (!silt_api_read_duration(c, "ttl", &ttl_s, &none))
        return false;
    if (ttl_s == 0) {
        silt_api_refuse_field(c->request, "ttl", "must be at least one second");
        return false;
    }
    if (none)
        life->expires_ms = 0;
    else if (ttl_s > 0)
        life->expires_ms = silt_clock_wall_ms() + ttl_s * 1000;
    return true;
}

static bool read_auto_snapshot(struct silt_call *c, struct silt_lifetime *life)
{
    silt_slice when = {NULL, 0};
    if (!silt_body_string(c, "autoSnapshot", &when))
        return false;
    if (when.data == NULL)
        return true;
    life->auto_snapshot = silt_slice_eq(when, SILT_LIT("command"));
    if (life->auto_snapshot || silt_slice_eq(when, SILT_LIT("off")))
        return true;
    silt_api_refuse_field(c->request, "autoSnapshot", "must be command or off");
    return false;
}

bool silt_api_read_lifetime(struct silt_call *c, struct silt_lifetime *life)
{
    const struct silt_registry_settings *usual = &c->api->registry->settings;
    bool keep = !life->let_sleep, none;
    if (!silt_api_read_duration(c, "sleepAfter", &life->sleep_after_s, &none))
        return false;
    if (none)
        life->sleep_after_s = usual->sleep_after_s;
    if (!silt_api_read_duration(c, "stopAfter", &life->stop_after_s, &none))
        return false;
    if (none)
        life->stop_after_s = usual->stop_after_s;
    if (!silt_body_bool(c, "keepAlive", &life->keep_alive)
        || !silt_body_bool(c, "keepProcesses", &keep)
        || !silt_body_bool(c, "removeAfterStop", &life->remove_after_stop) || !read_ttl(c, life)
        || !read_auto_snapshot(c, life))
        return false;
    life->let_sleep = !keep;
    return true;
}

/* The labels it had, unless the body names them, too. */
static void keep_labels(struct silt_buf *b, const struct silt_json *old, const struct silt_json *v)
{
    for (const struct silt_json *l = old != NULL ? old->items.first : NULL; l != NULL;
         l = l->next) {
        if (silt_json_get(v, l->key) != NULL)
            continue;
        silt_json_key(b, l->key);
        silt_json_string(b, l->string);
    }
}

static bool add_labels(struct silt_buf *b, const struct silt_json *v)
{
    bool good = true;
    for (const struct silt_json *l = v->items.first; l != NULL; l = l->next) {
        if (l->type == SILT_JSON_NULL)
            continue;
        good = good && l->type == SILT_JSON_STRING && l->key.len > 0
               && l->key.len <= LABEL_BYTES_MAX && l->string.len <= LABEL_BYTES_MAX;
        silt_json_key(b, l->key);
        silt_json_string(b, good ? l->string : SILT_LIT(""));
    }
    return good;
}

static bool few_enough(struct silt_arena *a, silt_slice text)
{
    const struct silt_json *all;
    struct silt_error e;
    return silt_json_read(a, text, &all, &e) == 0 && all->items.count <= SILT_LABELS_MAX;
}

bool silt_api_read_labels(struct silt_call *c, silt_slice before, silt_slice *ret)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("labels")), *old = NULL;
    struct silt_error e;
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    silt_auto_buf b;
    silt_buf_init(&b, 256 << 10);
    silt_json_open(&b, '{');
    bool good = v->type == SILT_JSON_OBJECT;
    if (good && before.len > 0 && silt_json_read(c->request->arena, before, &old, &e) == 0)
        keep_labels(&b, old, v);
    good = good && add_labels(&b, v);
    silt_json_close(&b, '}');
    if (!good || b.broken || !few_enough(c->request->arena, silt_buf_slice(&b))) {
        silt_api_refuse_field(c->request, "labels",
                              "must be an object of at most 64 strings of at most 256 bytes each");
        return false;
    }
    char *copy = silt_arena_dup(c->request->arena, silt_buf_slice(&b));
    *ret = copy != NULL ? silt_slice_of(copy) : (silt_slice){NULL, 0};
    return true;
}
