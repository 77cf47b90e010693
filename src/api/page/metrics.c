/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics, in Prometheus' text format. Only what siltd knows: nobody is asked. */
#include "api/core/api.h"
#include "base/clock.h"
#include "sandbox/core/sandbox.h"

enum {
    EACH_MAX = 1000, /* sandboxes with rows of their own */
    METRICS_MAX = 4 << 20,
};

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

static bool is_there(const struct silt_sandbox *s)
{
    return s != NULL && s->row.id[0] != 0 && s->state != SILT_SANDBOX_DESTROYING;
}

static void state_metrics(struct silt_buf *b, const struct silt_registry *g)
{
    static const char *const names[] = {"running", "paused", "stopped"};
    uint64_t counts[SILT_COUNT(names)] = {0}, sessions = 0;
    for (uint32_t i = 0; i < g->settings.slots; i++) {
        const struct silt_sandbox *s = g->by_slot[i];
        if (!is_there(s))
            continue;
        sessions += s->session_count;
        for (size_t n = 0; n < SILT_COUNT(names); n++)
            counts[n] += strcmp(silt_sandbox_state_name(s), names[n]) == 0;
    }
    silt_buf_addf(b, "# HELP silt_sandboxes Sandboxes that exist.\n"
                     "# TYPE silt_sandboxes gauge\n");
    for (size_t n = 0; n < SILT_COUNT(names); n++)
        silt_buf_addf(b, "silt_sandboxes{state=\"%s\"} %llu\n", names[n],
                      (unsigned long long)counts[n]);
    metric(b, "silt_sandboxes_ready", "gauge", "Prepared sandboxes that wait for a name.",
           g->ready.count);
    metric(b, "silt_sessions", "gauge", "Open shell sessions.", sessions);
}

/* ---- rows of each sandbox ---- */

static uint64_t is_running(const struct silt_sandbox *s)
{
    return s->state != SILT_SANDBOX_STOPPED && s->state != SILT_SANDBOX_PAUSED;
}

static uint64_t sessions_of(const struct silt_sandbox *s)
{
    return s->session_count;
}

static uint64_t commands_of(const struct silt_sandbox *s)
{
    return s->exec_count;
}

static uint64_t started_of(const struct silt_sandbox *s)
{
    return s->execs_started;
}

static uint64_t output_of(const struct silt_sandbox *s)
{
    return s->out_bytes;
}

static const struct each_metric {
    const char *name, *type, *help;
    uint64_t (*of)(const struct silt_sandbox *s);
} each_metrics[] = {
    {"silt_sandbox_running", "gauge", "1: its processes run; 0: paused or stopped.", is_running},
    {"silt_sandbox_sessions", "gauge", "Its open shell sessions.", sessions_of},
    {"silt_sandbox_commands", "gauge", "Its running commands, processes and contexts.",
     commands_of},
    {"silt_sandbox_execs_total", "counter", "Commands started in it.", started_of},
    {"silt_sandbox_output_bytes_total", "counter", "Bytes of output received from it.", output_of},
};

static void each_metric(struct silt_buf *b, const struct silt_registry *g,
                        const struct each_metric *m)
{
    uint64_t rows = 0;
    silt_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
    for (uint32_t i = 0; i < g->settings.slots && rows < EACH_MAX; i++) {
        const struct silt_sandbox *s = g->by_slot[i];
        if (!is_there(s))
            continue;
        silt_buf_addf(b, "%s{sandbox=\"%s\"} %llu\n", m->name, s->row.id,
                      (unsigned long long)m->of(s));
        rows++;
    }
}

SILT_HANDLER(silt_api_metrics)
{
    struct silt_api *api = silt_api_of(r);
    const struct silt_registry *g = api->registry;
    (void)args;
    silt_auto_buf b;
    silt_buf_init(&b, METRICS_MAX);
    state_metrics(&b, g);
    silt_timing_write(&b, g->timings);
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
    for (size_t i = 0; api->sandbox_metrics && i < SILT_COUNT(each_metrics); i++)
        each_metric(&b, g, &each_metrics[i]);
    metric(&b, "silt_database_full", "gauge",
           "1: the disk has no room for more rows of the database.", silt_store_is_full(g->store));
    metric(&b, "silt_watchdog_aborts_total", "counter",
           "Daemons that were ended because they stood still.", api->watchdog_aborts);
    metric(&b, "silt_uptime_seconds", "gauge", "Seconds since the daemon started.",
           (uint64_t)(silt_clock_ms() - api->started_ms) / 1000);
    silt_http_reply(r, 200, SILT_LIT("text/plain; version=0.0.4; charset=utf-8"),
                    (silt_slice){NULL, 0}, silt_buf_slice(&b));
}
