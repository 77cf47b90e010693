/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/worker/rig.h"
#include "base/fd.h"
#include "base/share.h"
#include "worker/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const struct timeval deadline = {.tv_sec = 20};

struct rig *rig_start(void)
{
    struct silt_error e;
    int pair[2];
    struct rig *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    r->frame = malloc(SILT_FRAME_MAX + 64);
    assert_non_null(r->frame);
    (void)snprintf(r->root, sizeof(r->root), "/tmp/silt-worker-XXXXXX");
    assert_non_null(mkdtemp(r->root));
    assert_int_equal(chdir(r->root), 0);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)), 0);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        (void)close(pair[0]);
        silt_worker_serve(pair[1]);
        _exit(0);
    }
    (void)close(pair[1]);
    r->sock = pair[0];
    return r;
}

void rig_hang_up(struct rig *r)
{
    int status;
    silt_close_fd(&r->sock);
    if (r->pid > 0) {
        (void)alarm(120); /* a worker that does not go fails the test */
        assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
        (void)alarm(0);
        assert_int_equal(status, 0);
    }
    r->pid = 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *f)
{
    (void)st, (void)kind, (void)f;
    return remove(path);
}

void rig_stop(struct rig *r)
{
    rig_hang_up(r);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(nftw(r->root, remove_one, 32, FTW_DEPTH | FTW_PHYS), 0);
    free(r->frame);
    free(r);
}

static size_t put(char *to, size_t at, const void *bytes, size_t len)
{
    if (len > 0)
        memcpy(to + at, bytes, len);
    return at + len;
}

void rig_ask(struct rig *r, const struct rig_ask *q)
{
    struct silt_frame f = {.type = q->op};
    struct silt_worker_ask ask = q->ask;
    const char *cwd = q->cwd != NULL ? q->cwd : r->root, *to = q->to != NULL ? q->to : "";
    ask.flags = q->flags;
    ask.cwd_len = (uint32_t)strlen(cwd);
    ask.path_len = (uint32_t)strlen(q->path);
    ask.to_len = (uint32_t)strlen(to);
    ask.text_len = (uint32_t)(q->text == NULL    ? 0
                              : q->text_len != 0 ? q->text_len
                                                 : strlen(q->text));
    size_t len = put(r->frame, 0, &f, sizeof(f));
    len = put(r->frame, len, &ask, sizeof(ask));
    len = put(r->frame, len, cwd, ask.cwd_len);
    len = put(r->frame, len, q->path, ask.path_len);
    len = put(r->frame, len, to, ask.to_len);
    len = put(r->frame, len, q->text, ask.text_len);
    assert_int_equal(send(r->sock, r->frame, len, MSG_NOSIGNAL), len);
}

void rig_send(struct rig *r, const void *bytes, size_t len, bool last)
{
    struct silt_frame f = {.type = SILT_WORKER_DATA, .flags = last ? SILT_WORKER_LAST : 0};
    size_t all = put(r->frame, put(r->frame, 0, &f, sizeof(f)), bytes, len);
    (void)send(r->sock, r->frame, all, MSG_NOSIGNAL);
}

void rig_share(struct rig *r, const struct silt_share *s)
{
    struct silt_frame f = {.type = SILT_WORKER_SHARE};
    struct silt_parcel p = {.data = &f, .len = sizeof(f), .fds = {s->reader}, .nfds = 1};
    struct silt_error e;
    assert_int_equal(silt_fd_send(r->sock, &p, &e), 0);
}

void rig_send_span(struct rig *r, uint64_t offset, uint64_t length, bool last)
{
    struct silt_worker_span span = {.offset = offset, .length = length};
    rig_send(r, &span, sizeof(span), last);
}

static void add(struct rig_answer *a, const char *bytes, size_t len)
{
    a->bytes = realloc(a->bytes, a->len + len + 1);
    assert_non_null(a->bytes);
    a->len = put(a->bytes, a->len, bytes, len);
    a->bytes[a->len] = 0;
}

static void take(struct rig_answer *a, const struct silt_frame *f, size_t len)
{
    size_t skip = 0;
    switch ((enum silt_worker_say)f->type) {
    case SILT_WORKER_SAY_META:
        assert_true(len >= sizeof(a->meta));
        memcpy(&a->meta, f->body, sizeof(a->meta));
        a->has_meta = true;
        skip = sizeof(a->meta);
        break;
    case SILT_WORKER_SAY_DONE:
        assert_int_equal(len, sizeof(a->done));
        memcpy(&a->done, f->body, sizeof(a->done));
        a->has_done = true;
        skip = len;
        break;
    case SILT_WORKER_SAY_FAILED:
        assert_int_equal(len, sizeof(a->error));
        memcpy(&a->error, f->body, sizeof(a->error));
        a->failed = true;
        skip = len;
        break;
    case SILT_WORKER_SAY_DATA:
    case SILT_WORKER_SAY_ENTRIES:
    case SILT_WORKER_SAY_MATCH:
    case SILT_WORKER_SAY_EVENT:
        break;
    case SILT_WORKER_SAY_TAKEN:
        assert_int_equal(len, 0);
        a->taken++;
        break;
    case SILT_WORKER_SAY_MAX:
        fail_msg("a frame of no type");
    }
    add(a, f->body + skip, len - skip);
}

void rig_hear(struct rig *r, struct rig_answer *ret)
{
    struct silt_frame *f = (struct silt_frame *)(void *)r->frame;
    memset(ret, 0, sizeof(*ret));
    add(ret, "", 0);
    do {
        ssize_t n = recv(r->sock, r->frame, SILT_FRAME_MAX + 64, 0);
        if (n < (ssize_t)sizeof(*f))
            fail_msg("the worker says nothing: %s", n < 0 ? strerror(errno) : "end");
        assert_true(n <= SILT_FRAME_MAX);
        ret->frames++;
        take(ret, f, (size_t)n - sizeof(*f));
    } while ((f->flags & SILT_WORKER_LAST) == 0);
}

void rig_forget(struct rig_answer *a)
{
    free(a->bytes);
}

struct rig_answer rig_do(struct rig *r, const struct rig_ask *q)
{
    struct rig_answer a;
    rig_ask(r, q);
    rig_hear(r, &a);
    return a;
}

void rig_must(struct rig *r, const struct rig_ask *q)
{
    struct rig_answer a = rig_do(r, q);
    if (a.failed)
        fail_msg("operation %u: %s", q->op, a.error.text);
    rig_forget(&a);
}

void rig_must_fail(struct rig *r, int sys, const struct rig_ask *q)
{
    struct rig_answer a = rig_do(r, q);
    if (!a.failed || a.error.sys != sys)
        fail_msg("operation %u on %s: %s, want %s", q->op, q->path,
                 a.failed ? a.error.text : "success", strerror(sys));
    rig_forget(&a);
}

void rig_put(const char *path, const char *text)
{
    struct silt_error e;
    silt_auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(silt_fd_write_all(fd, silt_slice_of(text), &e), 0);
}

void assert_file(const char *path, const char *text)
{
    struct silt_error e;
    char *data;
    size_t len;
    if (silt_fd_read_file(AT_FDCWD, path, 1 << 20, &data, &len, &e) < 0)
        fail_msg("%s", e.text);
    assert_slice(((silt_slice){data, len}), silt_slice_of(text));
    free(data);
}

size_t rig_count(const char *directory)
{
    size_t n = 0;
    DIR *d = opendir(directory);
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    (void)closedir(d);
    return n - 2;
}

bool rig_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}
