/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/disk_full.h"
#include "base/clock.h"
#include "json/json.h"
#include "sandbox/core/sandbox.h"

enum { EACH_MS = 60000 }; /* between two events of one sandbox, or of the pool */

static bool is_time(int64_t *last_ms)
{
    int64_t now_ms = silt_clock_ms();
    if (*last_ms > 0 && now_ms - *last_ms < EACH_MS)
        return false;
    *last_ms = now_ms;
    return true;
}

static void report(struct silt_registry *r, const char *id, const char *scope, uint64_t limit)
{
    silt_auto_buf b;
    silt_buf_init(&b, 256);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "scope", scope);
    silt_json_add_u64(&b, "limitBytes", limit);
    silt_json_close(&b, '}');
    silt_journal_add(r, id, SILT_EVENT_DISK_FULL, silt_buf_slice(&b));
}

/* Whether it is full. A pool whose keeper is silent is as it was. */
static bool look(struct silt_registry *r)
{
    struct silt_pool_status pool;
    silt_disk_pool_look(&r->pool, &pool);
    if (pool.state == SILT_POOL_OK || pool.state == SILT_POOL_LOW)
        r->pool_full = false;
    if (pool.state != SILT_POOL_FULL)
        return false;
    if (!r->pool_full && is_time(&r->pool_full_ms)) {
        r->pool_full = true;
        report(r, "", "pool", pool.max);
    }
    return true;
}

void silt_disk_full_look(struct silt_registry *r)
{
    (void)look(r);
}

void silt_disk_full_note(struct silt_registry *r, struct silt_sandbox *s)
{
    if (look(r) || s == NULL || s->row.id[0] == 0 || !is_time(&s->disk_full_ms))
        return;
    report(r, s->row.id, "sandbox", s->row.limits.disk_bytes);
}
