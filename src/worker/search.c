/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "base/glob.h"
#include "worker/pack.h"
#include "worker/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    FILE_MAX = 32 << 20,
    LINE_MAX_TOLD = 1024,
    BINARY_HEAD = 8 << 10, /* a NUL in here: a binary file */
    NEEDLE_MAX = 4096,
};

struct search {
    struct silt_task *task;
    struct silt_pack pack;
    struct silt_worker_done done;
    silt_slice needle; /* lower case if the search ignores case */
};

/* A file in memory, and the version to search: the same, or in lower case. */
struct text {
    char *bytes, *seen;
    size_t len;
};

static void text_fini(struct text *t)
{
    if (t->seen != t->bytes)
        free(t->seen);
    free(t->bytes);
}

static void fold(char *to, const char *from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] | 0x20) : from[i];
}

/* Not mmapped: the guest could truncate the file under us. */
static bool load(int fd, size_t size, struct text *t)
{
    ssize_t n = 0;
    t->bytes = malloc(size);
    while (t->bytes != NULL && t->len < size) {
        n = read(fd, t->bytes + t->len, size - t->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        t->len += (size_t)n;
        if (memchr(t->bytes, 0, t->len < BINARY_HEAD ? t->len : BINARY_HEAD) != NULL)
            return false;
    }
    t->seen = t->bytes;
    return t->bytes != NULL && n >= 0;
}

static bool load_folded(struct text *t)
{
    t->seen = malloc(t->len + 1);
    if (t->seen != NULL)
        fold(t->seen, t->bytes, t->len);
    return t->seen != NULL;
}

/* ---- lines ---- */

struct line {
    size_t begin, end;
    uint64_t number;
};

static struct line line_of(const struct text *t, struct line last, size_t at)
{
    const char *newline;
    while (last.end < at) { /* the lines after the last match */
        last.number++;
        last.begin = last.end + (last.number > 1);
        newline = memchr(t->bytes + last.begin, '\n', t->len - last.begin);
        last.end = newline != NULL ? (size_t)(newline - t->bytes) : t->len;
    }
    return last;
}

/* False: siltd is gone, or the limit is reached. */
static bool tell(struct search *s, silt_slice path, const struct text *t, struct line l, size_t at)
{
    size_t len = l.end - l.begin < LINE_MAX_TOLD ? l.end - l.begin : LINE_MAX_TOLD;
    struct silt_worker_match m = {
        .line = l.number,
        .column = at - l.begin + 1,
        .path_len = (uint32_t)path.len,
        .text_len = (uint32_t)len,
    };
    if (s->task->ask.limit != 0 && s->done.entries >= s->task->ask.limit) {
        s->done.truncated = 1;
        return false;
    }
    s->done.entries++;
    return silt_pack_add(&s->pack, (silt_slice){(const char *)&m, sizeof(m)}, path,
                         (silt_slice){t->bytes + l.begin, len});
}

/* One match per line, like grep. */
static bool search_text(struct search *s, silt_slice path, const struct text *t)
{
    struct line l = {0};
    const char *found;
    for (size_t at = 0; at < t->len; at = l.end + 1) {
        found = memmem(t->seen + at, t->len - at, s->needle.data, s->needle.len);
        if (found == NULL)
            return true;
        at = (size_t)(found - t->seen);
        l = line_of(t, l, at + 1);
        if (!tell(s, path, t, l, at))
            return false;
    }
    return true;
}

/* ---- files ---- */

static bool search_file(struct search *s, int fd, silt_slice path)
{
    struct text t = {0};
    struct stat st;
    bool more = true;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return true;
    if (st.st_size > FILE_MAX) {
        s->done.truncated = 1; /* there may be more in it */
        return true;
    }
    if (load(fd, (size_t)st.st_size, &t)
        && (!silt_task_has(s->task, SILT_WORKER_FOLDED) || load_folded(&t)))
        more = search_text(s, path, &t);
    text_fini(&t);
    s->done.bytes += t.len;
    return more && silt_task_is_wanted(s->task);
}

static int on_item(void *ctx, const struct silt_walk_item *i, struct silt_error *e)
{
    struct search *s = ctx;
    bool wanted = S_ISREG(i->st->st_mode)
                  && (s->task->to[0] == 0
                      || silt_glob_matches(silt_slice_of(s->task->to), silt_slice_of(i->path.data),
                                           SILT_GLOB_OF_SEARCH));
    silt_auto_fd fd = wanted ? silt_open_at(i->dir, i->name, O_RDONLY | O_NOFOLLOW, 0) : -1;
    if (wanted && !search_file(s, fd, i->path))
        return silt_fail(e, s->task->gone ? SILT_GONE : SILT_OK, "enough");
    return 1;
}

/* ---- the operation ---- */

static int run(struct search *s, struct silt_error *e)
{
    struct silt_walk w = {.task = s->task, .enter = on_item, .ctx = s};
    const char *slash = strrchr(s->task->path, '/');
    struct stat st;
    silt_auto_fd fd = -1;
    if (silt_task_open(s->task, s->task->path, O_RDONLY, 0, &fd, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "stat %s", s->task->path);
    if (S_ISDIR(st.st_mode))
        return silt_walk_run(&w, silt_take_fd(&fd), e);
    if (silt_check_regular(&st, s->task->path, e) < 0)
        return -1;
    (void)search_file(s, fd, silt_slice_of(slash != NULL ? slash + 1 : s->task->path));
    return 0;
}

int silt_task_search(struct silt_task *t, struct silt_error *e)
{
    static char folded[NEEDLE_MAX];
    struct search s = {
        .task = t, .pack = {.task = t, .say = SILT_WORKER_SAY_MATCH}, .needle = t->text};
    if (t->text.len == 0 || t->text.len > NEEDLE_MAX)
        return silt_fail(e, SILT_INVALID, "text to search for of %zu bytes, 1 to %d", t->text.len,
                         NEEDLE_MAX);
    if (silt_task_has(t, SILT_WORKER_FOLDED)) {
        fold(folded, t->text.data, t->text.len);
        s.needle.data = folded;
    }
    if (run(&s, e) < 0 && e->code != SILT_OK)
        return -1;
    (void)silt_pack_flush(&s.pack);
    (void)silt_task_done(t, &s.done);
    return 0;
}
