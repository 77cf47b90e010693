/* SPDX-License-Identifier: Apache-2.0 */
/* Small responses: ping, version, health. */
#include "api/core/api.h"
#include "base/clock.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/start_frame.h"

#include <stdio.h>

enum { VERSION_MAX = 100 };

static const char database_full[] =
    "The machine's disk is full, and the database has no room for more: nothing can be created, "
    "everything else works. Free room on the disk.";

static void reply_text(struct silt_call *c)
{
    silt_http_reply(c->request, 200, SILT_LIT("text/plain; charset=utf-8"), (silt_slice){NULL, 0},
                    SILT_LIT("Hello from Silt: this sandbox is ready.\n"));
}

static void reply_ping(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("status"));
    silt_json_string(&b, SILT_LIT("healthy"));
    silt_json_key(&b, SILT_LIT("message"));
    silt_json_string(&b, SILT_LIT("healthy"));
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

/* Clients compare it with their own version and warn if they differ; an image may declare the
 * version it suits. */
static silt_slice find_version(const struct silt_sandbox *s)
{
    silt_slice given = silt_env_given(s, SILT_LIT("SANDBOX_VERSION"));
    return given.len > 0 && given.len <= VERSION_MAX ? given : SILT_LIT(SILT_VERSION);
}

static void reply_version(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("version"));
    silt_json_string(&b, find_version(c->sandbox));
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static void reply_commands(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("availableCommands"));
    silt_json_raw(&b, SILT_LIT("[]"));
    silt_json_key(&b, SILT_LIT("count"));
    silt_json_i64(&b, 0);
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind root_call = {.run = reply_text};
static const struct silt_call_kind ping_call = {.run = reply_ping};
static const struct silt_call_kind version_call = {.run = reply_version};
static const struct silt_call_kind commands_call = {.run = reply_commands};

SILT_HANDLER(silt_api_root)
{
    silt_call_begin(r, args, &root_call);
}

SILT_HANDLER(silt_api_ping)
{
    silt_call_begin(r, args, &ping_call);
}

SILT_HANDLER(silt_api_version)
{
    silt_call_begin(r, args, &version_call);
}

SILT_HANDLER(silt_api_commands)
{
    silt_call_begin(r, args, &commands_call);
}

/* For people who open the address, and programs that look what answers there. */
SILT_HANDLER(silt_api_index)
{
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, 2048);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "name", "Silt");
    silt_json_add_text(&b, "version", SILT_VERSION);
    silt_json_add_text(&b, "api", "/v1");
    silt_json_add_text(&b, "docs", "/docs/api");
    silt_json_add_text(&b, "openapi", "/v1/openapi.json");
    silt_json_add_text(&b, "console", "/sandboxes/{id}/terminal");
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

SILT_HANDLER(silt_api_v1_version)
{
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "version", SILT_VERSION);
    silt_json_add_text(&b, "api", "v1");
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

/* 503 if nothing can be written, so that a load balancer goes elsewhere. A full pool is no reason:
 * the sandboxes here can be used and deleted only here. */
SILT_HANDLER(silt_api_healthz)
{
    struct silt_pool_status pool;
    char said[SILT_DISK_POOL_TEXT], message[2 * SILT_DISK_POOL_TEXT];
    silt_auto_buf b;
    (void)args;
    bool full = silt_store_is_full(silt_api_of(r)->registry->store);
    silt_disk_pool_look(&silt_api_of(r)->registry->pool, &pool);
    silt_disk_pool_explain(&pool, said);
    (void)snprintf(message, sizeof(message), "%s%s%s", full ? database_full : "",
                   full && said[0] != 0 ? " " : "", said);
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "status",
                       message[0] == 0                 ? "ok"
                       : silt_disk_pool_is_down(&pool) ? "failed"
                                                       : "degraded");
    if (said[0] != 0)
        silt_json_add_text(&b, "disk", silt_disk_pool_name(&pool));
    if (full)
        silt_json_add_text(&b, "database", "full");
    if (message[0] != 0)
        silt_json_add_text(&b, "message", message);
    silt_json_close(&b, '}');
    silt_api_answer(r, silt_disk_pool_is_down(&pool) ? 503 : 200, &b);
}

static void metric(struct silt_buf *b, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    silt_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name,
                  (unsigned long long)value);
}

static void tcp_metrics(struct silt_buf *b, const struct silt_tcp_memory *m)
{
    struct silt_tcp_sums s;
    silt_tcp_memory_sums(m, &s);
    metric(b, "silt_tcp_connections_reset_total", "counter",
           "Connections reset because a sandbox's TCP sockets held too much memory.",
           s.connections);
    metric(b, "silt_tcp_listeners_closed_total", "counter",
           "Listening sockets closed for that, with what waited there.", s.listeners);
    metric(b, "silt_tcp_kills_total", "counter", "Sandboxes whose processes were killed for that.",
           s.kills);
}

static void pool_metrics(struct silt_buf *b, const struct silt_pool_status *s)
{
    metric(b, "silt_pool_bytes", "gauge", "Size of the disk pool now.", s->size);
    metric(b, "silt_pool_max_bytes", "gauge", "Size that the disk pool may grow to.", s->max);
    metric(b, "silt_pool_left_bytes", "gauge",
           "What sandboxes can still write before the pool grows again.", s->left);
    metric(b, "silt_pool_errors", "gauge", "Errors that the disk of the pool has reported.",
           s->errors);
    metric(b, "silt_disk_free_bytes", "gauge", "Free on the disk of the state directory.",
           s->disk_free);
    metric(b, "silt_disk_reserve_bytes", "gauge", "What stays free there.", s->reserve);
    silt_buf_addf(b, "# HELP silt_pool_state 1: the state that the disk pool is in.\n# TYPE "
                     "silt_pool_state gauge\n");
    for (uint32_t i = 0; i < SILT_POOL_STATE_MAX; i++)
        silt_buf_addf(b, "silt_pool_state{state=\"%s\"} %d\n",
                      silt_disk_pool_name(&(struct silt_pool_status){.state = i}), i == s->state);
}

SILT_HANDLER(silt_api_metrics)
{
    struct silt_api *api = silt_api_of(r);
    const struct silt_registry *g = api->registry;
    uint64_t running = 0, sessions = 0;
    (void)args;
    for (uint32_t i = 0; i < g->settings.slots; i++) {
        const struct silt_sandbox *s = g->by_slot[i];
        if (s == NULL || s->row.id[0] == 0)
            continue;
        running += s->state == SILT_SANDBOX_RUNNING;
        sessions += s->session_count;
    }
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 10);
    metric(&b, "silt_sandboxes", "gauge", "Sandboxes that exist.", g->by_id.used);
    metric(&b, "silt_sandboxes_running", "gauge", "Sandboxes with processes.", running);
    metric(&b, "silt_sandboxes_ready", "gauge", "Prepared sandboxes that wait for a name.",
           g->ready.count);
    metric(&b, "silt_sessions", "gauge", "Open shell sessions.", sessions);
    metric(&b, "silt_sandboxes_created_total", "counter", "Sandboxes created.", g->counts.created);
    metric(&b, "silt_sandboxes_destroyed_total", "counter", "Sandboxes destroyed.",
           g->counts.destroyed);
    metric(&b, "silt_sandbox_claims_total", "counter", "Creates served by a prepared sandbox.",
           g->counts.claims);
    metric(&b, "silt_sandbox_cold_starts_total", "counter", "Starts that were not prepared.",
           g->counts.cold_starts);
    metric(&b, "silt_sandbox_deaths_total", "counter",
           "Ends of a sandbox's processes that have a cause.", g->counts.deaths);
    metric(&b, "silt_oom_kills_total", "counter", "Commands hit by their sandbox's memory limit.",
           g->counts.oom_kills);
    metric(&b, "silt_execs_total", "counter", "Commands started.", g->counts.execs);
    metric(&b, "silt_output_bytes_total", "counter", "Bytes of output received.",
           g->counts.out_bytes);
    struct silt_pool_status pool;
    silt_disk_pool_look(&api->registry->pool, &pool);
    pool_metrics(&b, &pool);
    tcp_metrics(&b, &api->registry->tcp_memory);
    metric(&b, "silt_http_connections", "gauge", "Open HTTP connections.",
           silt_http_server_connections(api->server));
    metric(&b, "silt_http_answer_microseconds_total", "counter",
           "Time from head to answer, summed.", api->answer_us);
    silt_buf_addf(&b, "# HELP silt_http_answers_total Answers by status class.\n"
                      "# TYPE silt_http_answers_total counter\n");
    for (int i = 1; i < 6; i++)
        silt_buf_addf(&b, "silt_http_answers_total{class=\"%dxx\"} %llu\n", i,
                      (unsigned long long)api->answered[i]);
    metric(&b, "silt_database_full", "gauge",
           "1: the disk has no room for more rows of the database.", silt_store_is_full(g->store));
    metric(&b, "silt_watchdog_aborts_total", "counter",
           "Daemons that were ended because they stood still.", api->watchdog_aborts);
    metric(&b, "silt_uptime_seconds", "gauge", "Seconds since the daemon started.",
           (uint64_t)(silt_clock_ms() - api->started_ms) / 1000);
    silt_http_reply(r, 200, SILT_LIT("text/plain; version=0.0.4; charset=utf-8"),
                    (silt_slice){NULL, 0}, silt_buf_slice(&b));
}
