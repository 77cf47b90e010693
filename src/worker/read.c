/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "worker/type/mime.h"
#include "worker/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
    FIRST_MAX = SILT_FRAME_BODY_MAX - (int)sizeof(struct silt_worker_meta),
    SIZELESS_MAX = 8 << 20, /* for files of /proc without a size; some of them are endless */
};

static char room[SILT_FRAME_BODY_MAX];

struct range {
    uint64_t at, left;
};

static struct range range_of(const struct silt_task *t, uint64_t size)
{
    struct range r = {.at = t->ask.offset < size ? t->ask.offset : size};
    r.left = size - r.at;
    if (t->ask.length != 0 && t->ask.length < r.left)
        r.left = t->ask.length;
    return r;
}

/* Reads as much as there is, up to `want`. */
static int read_full(const struct silt_task *t, int fd, uint64_t at, size_t want, size_t *ret_len,
                     struct silt_error *e)
{
    size_t len = 0;
    while (len < want) {
        ssize_t n = pread(fd, room + len, want - len, (off_t)(at + len));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "read %s", t->path);
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *ret_len = len;
    return 0;
}

static bool say_meta(struct silt_task *t, const struct silt_worker_meta *m, silt_slice content,
                     bool last)
{
    return silt_task_say(t, SILT_WORKER_SAY_META, last ? SILT_WORKER_LAST : 0,
                         (silt_slice){(const char *)m, sizeof(*m)}, content);
}

static bool say_data(struct silt_task *t, silt_slice content, bool last)
{
    return silt_task_say(t, SILT_WORKER_SAY_DATA, last ? SILT_WORKER_LAST : 0, content,
                         (silt_slice){NULL, 0});
}

/* If the file is truncated meanwhile, less is sent than announced; siltd counts. */
static int send_rest(struct silt_task *t, int fd, struct range r, struct silt_error *e)
{
    size_t n, want;
    do {
        want = r.left < sizeof(room) ? (size_t)r.left : sizeof(room);
        if (read_full(t, fd, r.at, want, &n, e) < 0)
            return -1;
        r.at += n;
        r.left = n < want ? 0 : r.left - n;
    } while (say_data(t, (silt_slice){room, n}, r.left == 0) && r.left > 0);
    return 0;
}

static int read_sized(struct silt_task *t, int fd, struct silt_worker_meta *m, struct silt_error *e)
{
    struct range r = range_of(t, m->size);
    size_t n, want = r.left < FIRST_MAX ? (size_t)r.left : FIRST_MAX;
    if (silt_task_has(t, SILT_WORKER_MIME) && silt_mime_find(t->path, fd, m->mime, e) < 0)
        return -1;
    if (read_full(t, fd, r.at, want, &n, e) < 0)
        return -1;
    if (n < want) { /* files of /sys report a page and contain a line */
        m->size = r.at + n;
        r.left = n;
    }
    r.at += n;
    r.left -= n;
    if (!say_meta(t, m, (silt_slice){room, n}, r.left == 0) || r.left == 0)
        return 0;
    return send_rest(t, fd, r, e);
}

static int slurp(const struct silt_task *t, int fd, struct silt_buf *all, struct silt_error *e)
{
    ssize_t n;
    while ((n = read(fd, room, sizeof(room))) != 0 && !all->broken) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "read %s", t->path);
        silt_buf_add(all, (silt_slice){room, (size_t)n});
    }
    if (!all->broken)
        return 0;
    errno = EFBIG;
    return silt_fail_errno(e, "read %s", t->path);
}

/* Reads everything before sending, because siltd needs the size first. */
static int read_sizeless(struct silt_task *t, int fd, struct silt_worker_meta *m,
                         struct silt_error *e)
{
    silt_auto_buf all = {.max = SIZELESS_MAX};
    if (slurp(t, fd, &all, e) < 0)
        return -1;
    m->size = all.len;
    if (silt_task_has(t, SILT_WORKER_MIME))
        silt_mime_of(t->path, silt_buf_slice(&all), m->mime);
    struct range r = range_of(t, m->size);
    size_t n = r.left < FIRST_MAX ? (size_t)r.left : FIRST_MAX;
    bool wanted = say_meta(t, m, n > 0 ? (silt_slice){all.data + r.at, n} : (silt_slice){NULL, 0},
                           r.left == n);
    for (r.at += n, r.left -= n; wanted && r.left > 0; r.at += n, r.left -= n) {
        n = r.left < SILT_FRAME_BODY_MAX ? (size_t)r.left : SILT_FRAME_BODY_MAX;
        wanted = say_data(t, (silt_slice){all.data + r.at, n}, r.left == n);
    }
    return 0;
}

int silt_task_read(struct silt_task *t, struct silt_error *e)
{
    silt_auto_fd fd = -1;
    struct stat st;
    struct silt_worker_meta meta;
    if (silt_task_open_file(t, O_RDONLY, &fd, &st, e) < 0)
        return -1;
    silt_meta_of(&st, &meta);
    return st.st_size > 0 ? read_sized(t, fd, &meta, e) : read_sizeless(t, fd, &meta, e);
}
