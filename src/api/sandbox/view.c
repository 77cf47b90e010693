/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/view.h"
#include "sandbox/core/sandbox.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)

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

/* A sandbox whose processes are being ended still runs; one that starts already does. */
static void add_state(struct silt_buf *b, const struct silt_sandbox *s)
{
    const struct silt_sandbox_row *row = &s->row;
    bool stopped = s->state == SILT_SANDBOX_STOPPED, paused = s->state == SILT_SANDBOX_PAUSED;
    bool starting = s->state == SILT_SANDBOX_STARTING;
    add_text(b, "state", silt_sandbox_state_name(s));
    add_time(b, "stateSince",
             stopped             ? row->death.at_ms
             : paused            ? row->paused_ms
             : starting          ? 0
             : s->resumed_ms > 0 ? s->resumed_ms
                                 : row->started_ms);
    add_text(b, "stateReason", stopped ? row->death.message : paused ? "" : s->remark);
}

static void add_seconds(struct silt_buf *b, const char *key, int64_t seconds)
{
    silt_json_key(b, silt_slice_of(key));
    if (seconds > 0)
        silt_json_i64(b, seconds);
    else
        silt_json_null(b); /* never */
}

static void add_flag(struct silt_buf *b, const char *key, bool flag)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_bool(b, flag);
}

static void add_lifetime(struct silt_buf *b, const struct silt_sandbox_row *row)
{
    add_seconds(b, "sleepAfter", row->sleep_after_s);
    add_seconds(b, "stopAfter", row->stop_after_s);
    add_flag(b, "keepAlive", row->keep_alive);
    add_flag(b, "keepProcesses", !row->let_sleep);
    add_flag(b, "removeAfterStop", row->remove_after_stop);
    add_time(b, "expiresAt", row->expires_ms);
    add_text(b, "autoSnapshot", row->auto_snapshot ? "command" : "off");
}

void silt_api_add_sandbox(struct silt_buf *b, const struct silt_sandbox *s,
                          const struct silt_priv_stat *usage)
{
    const struct silt_sandbox_row *row = &s->row;
    /* Until it runs, the row describes the previous incarnation. */
    bool born = s->state != SILT_SANDBOX_STOPPED && s->state != SILT_SANDBOX_STARTING;
    char hostname[SILT_HOSTNAME_SIZE];
    silt_id_hostname(silt_slice_of(row->id), hostname);
    silt_json_open(b, '{');
    add_text(b, "id", row->id);
    add_state(b, s);
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
    add_lifetime(b, row);
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

void silt_api_refuse_missing(struct silt_http_request *r, silt_slice id)
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
            silt_api_refuse_missing(r, silt_slice_of(l->id));
        } else {
            silt_auto_buf b;
            silt_buf_init(&b, 1 << 20);
            silt_api_add_sandbox(&b, s, stat);
            silt_api_answer(r, l->status, &b);
        }
    }
    free(l);
}

void silt_api_show_sandbox(struct silt_api *api, struct silt_http_request *r,
                           struct silt_sandbox *s, int status)
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
