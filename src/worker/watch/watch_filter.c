/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/watch/watch_filter.h"
#include "base/clock.h"
#include "base/glob.h"

enum { LIMITS_TOLD = 256 }; /* directories named at once when watches run out */

int silt_watch_filter_init(struct silt_watch_filter *t, struct silt_task *task,
                           struct silt_error *e)
{
    silt_slice rest = task->text, one;
    t->task = task;
    while (rest.len > 0 && silt_slice_split(&rest, 0, &one)) {
        if (one.len == 0)
            continue;
        if (t->glob_count == SILT_WATCH_FILTER_GLOBS_MAX || one.len > SILT_WATCH_FILTER_GLOB_MAX)
            return silt_fail(e, SILT_LIMIT,
                             "patterns: more than %d, or one of more than %d characters",
                             SILT_WATCH_FILTER_GLOBS_MAX, SILT_WATCH_FILTER_GLOB_MAX);
        t->globs[t->glob_count++] = one;
    }
    return 0;
}

void silt_watch_filter_flush(struct silt_watch_filter *t, uint32_t flags)
{
    if (t->out_len > 0 || flags != 0)
        (void)silt_task_say(t->task, SILT_WORKER_SAY_EVENT, flags, (silt_slice){t->out, t->out_len},
                            (silt_slice){NULL, 0});
    t->out_len = t->last = 0;
}

/* The kernel sends two events for a write, which are one of ours. */
static bool is_said(const struct silt_watch_filter *t, const struct silt_worker_event *v,
                    const char *path)
{
    const struct silt_worker_event *last = (const void *)(t->out + t->last);
    return t->out_len > 0 && last->what == v->what && last->is_dir == v->is_dir
           && last->path_len == v->path_len && memcmp(last + 1, path, v->path_len) == 0;
}

void silt_watch_filter_say(struct silt_watch_filter *t, uint32_t what, bool is_dir,
                           const char *path)
{
    struct silt_worker_event v = {.time_ms = silt_clock_wall_ms(),
                                  .what = what,
                                  .is_dir = is_dir,
                                  .path_len = (uint32_t)strlen(path)};
    size_t size = (sizeof(v) + v.path_len + 7) & ~(size_t)7;
    if (is_said(t, &v, path))
        return;
    if (t->out_len + size > sizeof(t->out))
        silt_watch_filter_flush(t, 0);
    t->last = t->out_len;
    memset(t->out + t->out_len, 0, size);
    memcpy(t->out + t->out_len, &v, sizeof(v));
    memcpy(t->out + t->out_len + sizeof(v), path, v.path_len);
    t->out_len += size;
}

static bool fits_any(const struct silt_watch_filter *t, const char *path)
{
    for (size_t i = 0; i < t->glob_count; i++)
        if (silt_glob_matches(t->globs[i], silt_slice_of(path), SILT_GLOB_OF_WATCH))
            return true;
    return false;
}

bool silt_watch_filter_is_excluded(const struct silt_watch_filter *t, const char *path)
{
    return !silt_task_has(t->task, SILT_WORKER_INCLUDE) && fits_any(t, path);
}

void silt_watch_filter_tell(struct silt_watch_filter *t, uint32_t what, bool is_dir,
                            const char *path)
{
    if ((t->task->ask.limit & what) != 0
        && (t->glob_count == 0 || fits_any(t, path) == silt_task_has(t->task, SILT_WORKER_INCLUDE)))
        silt_watch_filter_say(t, what, is_dir, path);
}

void silt_watch_filter_tell_limit(struct silt_watch_filter *t, const char *path)
{
    if (t->limits_told++ < LIMITS_TOLD)
        silt_watch_filter_say(t, SILT_WATCH_LIMIT, true, path);
}
