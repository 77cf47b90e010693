/* SPDX-License-Identifier: Apache-2.0 */
/* …/stats: a container's resource usage, once or every second. Docker clients compute the
 * difference of two samples themselves. */
#include "api/engine/engine.h"
#include "json/json.h"
#include "sandbox/core/sandbox.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_MS = 1000 };

struct sample {
    uint64_t cpu_ns, system_ns;
    int64_t wall_ms;
};

struct watching {
    struct silt_engine *engine;        /* borrowed */
    struct silt_http_request *request; /* NULL: the client has disconnected */
    char container[SILT_CONTAINER_ID_SIZE];
    bool streams, begun;
    bool asked; /* waiting for silt-priv's response */
    unsigned samples;
    struct sample before;
    struct silt_timer timer;
};

static void leave(struct watching *t)
{
    silt_loop_cancel(t->engine->api->loop, &t->timer);
    t->request = NULL;
    if (!t->asked)
        free(t);
}

static void on_gone(struct silt_http_request *r)
{
    leave(r->owner);
}

static void end(struct watching *t)
{
    struct silt_http_request *r = t->request;
    r->on_gone = NULL;
    leave(t);
    silt_http_end(r);
}

/* Time of all processors, as Docker counts it. */
static struct sample now(uint64_t cpu_us)
{
    struct timespec up, wall;
    (void)clock_gettime(CLOCK_BOOTTIME, &up);
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t ns = (uint64_t)up.tv_sec * 1000000000U + (uint64_t)up.tv_nsec;
    return (struct sample){.cpu_ns = cpu_us * 1000,
                           .system_ns = ns * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
                           .wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000};
}

static void add_cpu(struct silt_buf *b, const char *key, const struct sample *s)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("cpu_usage"));
    silt_json_open(b, '{');
    silt_json_add_u64(b, "total_usage", s->cpu_ns);
    silt_json_close(b, '}');
    silt_json_add_u64(b, "system_cpu_usage", s->system_ns);
    silt_json_add_i64(b, "online_cpus", sysconf(_SC_NPROCESSORS_ONLN));
    silt_json_close(b, '}');
}

static void add_time(struct silt_buf *b, const char *key, int64_t ms)
{
    silt_json_key(b, silt_slice_of(key));
    silt_api_time(b, ms);
}

static void write_sample(struct watching *t, const struct silt_container *c,
                         const struct silt_priv_stat *stat)
{
    const struct silt_sandbox *s =
        silt_registry_find(t->engine->api->registry, silt_slice_of(c->sandbox));
    struct sample own = now(stat != NULL ? stat->cpu_us : 0);
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 10);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "id", c->row.id);
    silt_json_key(&b, SILT_LIT("name"));
    silt_auto_buf name;
    silt_buf_init(&name, SILT_CONTAINER_NAME_MAX + 2);
    silt_buf_addf(&name, "/%s", c->row.name);
    silt_json_string(&b, silt_buf_slice(&name));
    add_time(&b, "read", own.wall_ms);
    add_time(&b, "preread", t->before.wall_ms);
    add_cpu(&b, "cpu_stats", &own);
    add_cpu(&b, "precpu_stats", &t->before);
    silt_json_key(&b, SILT_LIT("memory_stats"));
    silt_json_open(&b, '{');
    silt_json_add_u64(&b, "usage", stat != NULL ? stat->memory_bytes : 0);
    silt_json_add_u64(&b, "limit", s != NULL ? s->row.limits.memory_bytes : 0);
    silt_json_key(&b, SILT_LIT("stats"));
    silt_json_raw(&b, SILT_LIT("{}"));
    silt_json_close(&b, '}');
    silt_json_key(&b, SILT_LIT("pids_stats"));
    silt_json_open(&b, '{');
    silt_json_add_u64(&b, "current", stat != NULL ? stat->pids : 0);
    silt_json_close(&b, '}');
    silt_json_key(&b, SILT_LIT("blkio_stats"));
    silt_json_raw(&b, SILT_LIT("{\"io_service_bytes_recursive\":[]}"));
    silt_json_key(&b, SILT_LIT("networks"));
    silt_json_raw(&b, SILT_LIT("{}"));
    silt_json_close(&b, '}');
    silt_buf_add_byte(&b, '\n');
    t->before = own;
    silt_http_write(t->request, silt_buf_slice(&b));
}

static void on_stat(void *context, const struct silt_priv_stat *stat)
{
    struct watching *t = context;
    t->asked = false;
    if (t->request == NULL) {
        leave(t);
        return;
    }
    const struct silt_container *c =
        silt_container_find(t->engine->all, silt_slice_of(t->container));
    bool first = t->samples++ == 0;
    if (c == NULL) {
        end(t);
        return;
    }
    if (first && t->before.wall_ms == 0 && !t->streams) /* a single sample has no processor usage:
                                                           take a second one shortly after */
        t->before = now(stat != NULL ? stat->cpu_us : 0);
    else
        write_sample(t, c, stat);
    if (!first && !t->streams)
        end(t);
    else
        silt_loop_after(t->engine->api->loop, &t->timer, t->streams ? PERIOD_MS : PERIOD_MS / 4);
}

static void ask(struct watching *t)
{
    const struct silt_container *c =
        silt_container_find(t->engine->all, silt_slice_of(t->container));
    struct silt_sandbox *s =
        c != NULL ? silt_registry_find(t->engine->api->registry, silt_slice_of(c->sandbox)) : NULL;
    t->asked = s != NULL;
    if (s != NULL)
        silt_sandbox_stat(s, on_stat, t);
    else
        on_stat(t, NULL);
}

static void on_time(struct silt_timer *timer)
{
    ask(silt_outer(timer, struct watching, timer));
}

SILT_HANDLER(silt_engine_container_stats)
{
    const struct silt_container *c = silt_engine_container(r, args[0]);
    if (c == NULL)
        return;
    struct watching *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    *t =
        (struct watching){.engine = silt_engine_of(r), .request = r, .timer = {.on_time = on_time}};
    t->streams = silt_engine_query(r, "stream").data == NULL || silt_engine_query_bool(r, "stream");
    memcpy(t->container, c->row.id, sizeof(t->container));
    r->owner = t;
    r->on_gone = on_gone;
    silt_http_begin(r, 200, SILT_LIT("application/json"),
                    SILT_LIT("Api-Version: " SILT_ENGINE_API "\r\n"));
    ask(t);
}
