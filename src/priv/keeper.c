/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/keeper.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/storage/pool_room.h"
#include "base/test_switch.h"
#include "wire/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    SOON_MS = 100, /* while sandboxes write */
    LATER_MS = 1000,
    BALANCE_FIRST_MS = 5000,
    BALANCE_MAX_MS = 600000,
    FAILURE_MS = 30000, /* between two log lines about the same failure */
};

static const uint64_t mib = 1 << 20;

struct view {
    struct silt_keeper *keeper;
    const struct silt_volumes *volumes;
    struct silt_pool_status status;
    struct silt_pool_room room;
    uint64_t last_free;
    uint64_t limit; /* of all sandboxes together */
    int64_t balance_at_ms, balance_wait_ms;
    int64_t failed_at_ms;
};

int silt_keeper_open(struct silt_keeper *k, const char *state_dir, const char *run_dir,
                     uint64_t max, uint64_t reserve, struct silt_error *e)
{
    char path[PATH_MAX];
    *k = (struct silt_keeper){.status = -1, .max = max, .reserve = reserve};
    if (snprintf(path, sizeof(path), "%s/pool", run_dir) >= (int)sizeof(path))
        return silt_fail(e, SILT_INVALID, "name of the run directory too long");
    if (silt_pool_file_open(state_dir, max, reserve, &k->file, e) < 0)
        return -1;
    k->status = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (k->status < 0)
        return silt_fail_errno(e, "open %s", path);
    return 0;
}

void silt_keeper_close(struct silt_keeper *k)
{
    silt_pool_file_close(&k->file);
    silt_close_fd(&k->status);
}

static void report(struct view *w, const struct silt_error *e)
{
    int64_t now = silt_clock_ms();
    if (w->failed_at_ms != 0 && now - w->failed_at_ms < FAILURE_MS)
        return;
    w->failed_at_ms = now;
    silt_log(SILT_LOG_WARN, "pool.keeper", "error=\"%s\"", e->text);
}

static bool is_native(const struct view *w)
{
    return w->keeper->file.image < 0;
}

static uint64_t kept_free(const struct view *w)
{
    return is_native(w) ? w->keeper->reserve : silt_pool_room_margin(&w->room);
}

static uint64_t disk_free(const struct view *w)
{
    return is_native(w) ? w->room.free : silt_pool_file_disk_free(w->keeper->file.image);
}

static bool is_low(const struct view *w)
{
    const struct silt_keeper *k = w->keeper;
    if (is_native(w))
        return w->room.free < 2 * k->reserve;
    return w->room.size + mib < k->max && w->room.unallocated < silt_pool_file_ahead(k->max)
           && disk_free(w) < k->reserve + 64 * mib;
}

static enum silt_pool_state find_state(const struct view *w)
{
    if (w->room.read_only)
        return SILT_POOL_READ_ONLY;
    if (w->room.errors > 0)
        return SILT_POOL_FAILING;
    if (w->status.left < 4 * mib)
        return SILT_POOL_FULL;
    return is_low(w) ? SILT_POOL_LOW : SILT_POOL_OK;
}

static void write_status(struct view *w, bool busy)
{
    static const char *const names[SILT_POOL_STATE_MAX] = {
        [SILT_POOL_OK] = "ok",
        [SILT_POOL_LOW] = "low",
        [SILT_POOL_FULL] = "full",
        [SILT_POOL_FAILING] = "failing",
        [SILT_POOL_READ_ONLY] = "read_only",
    };
    struct silt_pool_status *s = &w->status;
    enum silt_pool_state before = (enum silt_pool_state)s->state, now = find_state(w);
    *s = (struct silt_pool_status){.magic = SILT_POOL_MAGIC,
                                   .state = now,
                                   .native = is_native(w),
                                   .busy = busy,
                                   .size = w->room.size,
                                   .max = is_native(w) ? w->room.size : w->keeper->max,
                                   .left = s->left,
                                   .disk_free = disk_free(w),
                                   .reserve = w->keeper->reserve,
                                   .errors = w->room.errors,
                                   .at_ms = silt_clock_ms()};
    if (pwrite(w->keeper->status, s, sizeof(*s), 0) != (ssize_t)sizeof(*s)) {
        struct silt_error e;
        (void)silt_fail_errno(&e, "write the status of the pool");
        report(w, &e);
    }
    if (now != before)
        silt_log(now == SILT_POOL_OK ? SILT_LOG_INFO : SILT_LOG_WARN, "pool.state",
                 "state=%s was=%s left_mib=%llu size_mib=%llu disk_free_mib=%llu reserve_mib=%llu "
                 "errors=%llu",
                 names[now], names[before], (unsigned long long)(s->left / mib),
                 (unsigned long long)(s->size / mib), (unsigned long long)(s->disk_free / mib),
                 (unsigned long long)(s->reserve / mib), (unsigned long long)s->errors);
}

/* A balance that gains nothing is tried less and less often. */
static int balance(struct view *w, struct silt_error *e)
{
    int64_t now = silt_clock_ms();
    uint64_t before = w->room.unallocated;
    if (is_native(w) || !silt_pool_room_is_wasted(&w->room) || now < w->balance_at_ms)
        return 0;
    write_status(w, true);
    int done = silt_pool_room_balance(w->volumes, &w->room, e);
    if (done == 0)
        done = silt_pool_room_look(w->volumes, &w->room, e);
    bool gained = done == 0 && w->room.unallocated > before;
    w->balance_wait_ms =
        gained || w->balance_wait_ms == 0 ? BALANCE_FIRST_MS : w->balance_wait_ms * 2;
    w->balance_wait_ms = w->balance_wait_ms > BALANCE_MAX_MS ? BALANCE_MAX_MS : w->balance_wait_ms;
    w->balance_at_ms = gained ? 0 : silt_clock_ms() + w->balance_wait_ms;
    silt_log(SILT_LOG_INFO, "pool.balance", "ms=%lld unallocated_mib=%llu was=%llu",
             (long long)(silt_clock_ms() - now), (unsigned long long)(w->room.unallocated / mib),
             (unsigned long long)(before / mib));
    return done;
}

static int tend(struct view *w, bool *ret_more, struct silt_error *e)
{
    const struct silt_volumes *v = w->volumes;
    if (silt_pool_room_look(v, &w->room, e) < 0)
        return -1;
    if (w->room.read_only)
        return 0;
    if (silt_pool_file_tend(&w->keeper->file, v->slots, ret_more, e) < 0)
        report(w, e); /* sandboxes are limited by the present size anyway */
    if (*ret_more && silt_pool_room_look(v, &w->room, e) < 0)
        return -1;
    w->status.left = silt_pool_room_left(&w->room, kept_free(w));
    if (!silt_without("pool_ahead") && silt_pool_room_limit(v, w->status.left, &w->limit, e) < 0)
        return -1;
    return balance(w, e);
}

_Noreturn void silt_keeper_run(struct silt_keeper *k, const struct silt_volumes *v)
{
    static struct view w;
    struct silt_error e;
    w = (struct view){.keeper = k, .volumes = v};
    if (k->file.image >= 0)
        silt_pool_room_forget_balance(v);
    silt_pool_room_gather(v);
    for (;;) {
        bool more = false;
        if (tend(&w, &more, &e) < 0)
            report(&w, &e);
        write_status(&w, false);
        bool moves = w.room.free != w.last_free;
        w.last_free = w.room.free;
        (void)poll(NULL, 0, more || moves ? SOON_MS : LATER_MS);
    }
}
