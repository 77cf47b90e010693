/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/share.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum {
    SOCKET_BUFFER = 1 << 20, /* the kernel may give less: net.core.wmem_max */
    LIFE_MS = 5000,          /* between signs of life: a fraction of siltd's timeout */
};

static union {
    struct silt_frame frame;
    char bytes[SILT_FRAME_MAX];
} incoming;

static void *unconst(const void *p)
{
    union {
        const void *in;
        void *out;
    } u = {.in = p}; /* sendmsg does not write to the buffers */
    return u.out;
}

/* The kernel had no memory for a frame: the sandbox is at its limit. There is no notification when
 * that ends. */
static bool is_for_now(int sys)
{
    if (sys == ENOBUFS || sys == ENOMEM)
        (void)poll(NULL, 0, 1);
    return sys == EINTR || sys == ENOBUFS || sys == ENOMEM;
}

bool silt_task_say(struct silt_task *t, uint32_t type, uint32_t flags, silt_slice head,
                   silt_slice tail)
{
    struct silt_frame f = {.type = type, .flags = flags};
    struct iovec parts[] = {
        {.iov_base = &f, .iov_len = sizeof(f)},
        {.iov_base = unconst(head.data), .iov_len = head.len},
        {.iov_base = unconst(tail.data), .iov_len = tail.len},
    };
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = SILT_COUNT(parts)};
    ssize_t n = -1;
    while (!t->gone && (n = sendmsg(t->sock, &m, MSG_NOSIGNAL)) < 0)
        t->gone = !is_for_now(errno);
    t->told = t->told || (flags & SILT_WORKER_LAST) != 0;
    t->said_ms = silt_clock_ms();
    return !t->gone;
}

bool silt_task_done(struct silt_task *t, const struct silt_worker_done *d)
{
    return silt_task_say(t, SILT_WORKER_SAY_DONE, SILT_WORKER_LAST,
                         (silt_slice){(const char *)d, sizeof(*d)}, (silt_slice){NULL, 0});
}

/* Bytes of the next frame's body, or -1. */
static ssize_t receive(struct silt_task *t)
{
    struct silt_error e;
    struct silt_parcel p = {.data = incoming.bytes, .len = SILT_FRAME_MAX};
    int got = silt_fd_recv(t->sock, &p, &e);
    bool good = got > 0 && p.len >= sizeof(struct silt_frame);
    if (good && incoming.frame.type == SILT_WORKER_SHARE)
        good =
            p.nfds == 1 && t->share.data == NULL && silt_share_look(p.fds[0], &t->share, &e) == 0;
    silt_parcel_close(&p);
    if (!good) {
        t->gone = true;
        return -1;
    }
    return (ssize_t)(p.len - sizeof(struct silt_frame));
}

static bool find_span(const struct silt_task *t, size_t len, silt_slice *ret)
{
    struct silt_worker_span span;
    if (len != sizeof(span))
        return false;
    memcpy(&span, incoming.frame.body, sizeof(span));
    if (span.offset > t->share.len || span.length > t->share.len - span.offset)
        return false;
    *ret = (silt_slice){t->share.data + span.offset, (size_t)span.length};
    return true;
}

static bool say_taken(struct silt_task *t)
{
    t->owes = false;
    return silt_task_say(t, SILT_WORKER_SAY_TAKEN, 0, (silt_slice){NULL, 0}, (silt_slice){NULL, 0});
}

int silt_task_next(struct silt_task *t, silt_slice *ret, bool *ret_last)
{
    if (t->owes && !say_taken(t))
        return 0;
    ssize_t n = receive(t);
    if (n >= 0 && incoming.frame.type == SILT_WORKER_SHARE)
        n = receive(t);
    if (n < 0)
        return 0;
    *ret = (silt_slice){incoming.frame.body, (size_t)n};
    *ret_last = (incoming.frame.flags & SILT_WORKER_LAST) != 0;
    t->owes = t->share.data != NULL;
    t->gone = incoming.frame.type != SILT_WORKER_DATA || (t->owes && !find_span(t, (size_t)n, ret));
    return t->gone ? 0 : 1;
}

bool silt_task_is_wanted(struct silt_task *t)
{
    struct pollfd p = {.fd = t->sock, .events = 0};
    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0)
        t->gone = true;
    if (!t->gone && !t->told && silt_clock_ms() - t->said_ms >= LIFE_MS)
        (void)silt_task_say(t, SILT_WORKER_SAY_DATA, 0, (silt_slice){NULL, 0},
                            (silt_slice){NULL, 0});
    return !t->gone || t->finishing;
}

/* openat2 is strict: O_PATH allows only O_DIRECTORY, O_NOFOLLOW and O_CLOEXEC. */
static int open_how(int dir, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags | O_CLOEXEC
                 | ((flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY),
        .mode = makes ? mode : 0,
        .resolve = RESOLVE_NO_MAGICLINKS | resolve,
    };
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

int silt_open_at(int dir, const char *path, int flags, mode_t mode)
{
    return open_how(dir, path, flags, mode, 0);
}

int silt_open_beneath(int dir, const char *path, int flags, mode_t mode)
{
    return open_how(dir, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* If the process is gone, the directory its session started in. */
int silt_task_base(const struct silt_task *t, int *ret_fd, struct silt_error *e)
{
    char path[32];
    const char *base = t->cwd[0] != 0 ? t->cwd : "/";
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd", t->ask.cwd_pid);
    *ret_fd = t->ask.cwd_pid > 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*ret_fd < 0)
        *ret_fd = silt_open_at(AT_FDCWD, base, O_PATH | O_DIRECTORY, 0);
    return *ret_fd >= 0 ? 0 : silt_fail_errno(e, "open %s", base);
}

int silt_task_open(const struct silt_task *t, const char *path, int flags, mode_t mode, int *ret_fd,
                   struct silt_error *e)
{
    silt_auto_fd base = -1;
    if (path[0] != '/' && silt_task_base(t, &base, e) < 0)
        return -1;
    *ret_fd = silt_open_at(base >= 0 ? base : AT_FDCWD, path, flags, mode);
    return *ret_fd >= 0 ? 0 : silt_fail_errno(e, "open %s", path);
}

int silt_task_open_file(const struct silt_task *t, int flags, int *ret_fd, struct stat *ret_st,
                        struct silt_error *e)
{
    silt_auto_fd fd = -1;
    if (silt_task_open(t, t->path, flags, 0, &fd, e) < 0)
        return -1;
    if (fstat(fd, ret_st) < 0)
        return silt_fail_errno(e, "stat %s", t->path);
    if (silt_check_regular(ret_st, t->path, e) < 0)
        return -1;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_check_regular(const struct stat *st, const char *path, struct silt_error *e)
{
    if (S_ISREG(st->st_mode))
        return 0;
    if (S_ISDIR(st->st_mode)) {
        errno = EISDIR;
        return silt_fail_errno(e, "open %s", path);
    }
    (void)silt_fail(e, SILT_INVALID, "open %s: Not a regular file", path);
    e->sys = ENXIO; /* the errno of opening a missing device */
    return -1;
}

/* ---- serving ---- */

static const struct {
    silt_task_run *run;
} ops[SILT_WORKER_OP_MAX] = {
    [SILT_WORKER_READ] = {silt_task_read},         [SILT_WORKER_WRITE] = {silt_task_write},
    [SILT_WORKER_DELETE] = {silt_task_delete},     [SILT_WORKER_MOVE] = {silt_task_move},
    [SILT_WORKER_MKDIR] = {silt_task_mkdir},       [SILT_WORKER_LIST] = {silt_task_list},
    [SILT_WORKER_STAT] = {silt_task_stat},         [SILT_WORKER_CHMOD] = {silt_task_chmod},
    [SILT_WORKER_CHOWN] = {silt_task_chown},       [SILT_WORKER_SYMLINK] = {silt_task_symlink},
    [SILT_WORKER_READLINK] = {silt_task_readlink}, [SILT_WORKER_TRUNCATE] = {silt_task_truncate},
    [SILT_WORKER_SEARCH] = {silt_task_search},     [SILT_WORKER_TAR] = {silt_task_tar},
    [SILT_WORKER_UNTAR] = {silt_task_untar},       [SILT_WORKER_WATCH] = {silt_task_watch},
    [SILT_WORKER_PORT] = {silt_task_port},         [SILT_WORKER_DIRECTORY] = {silt_task_directory},
};

static bool cut(silt_slice *rest, uint32_t len, char out[SILT_WORKER_PATH_MAX + 1])
{
    if (len > rest->len || len > SILT_WORKER_PATH_MAX)
        return false;
    memcpy(out, rest->data, len);
    out[len] = 0;
    rest->data += len;
    rest->len -= len;
    return memchr(out, 0, len) == NULL;
}

int silt_task_parse(struct silt_task *t, const struct silt_frame *f, size_t len,
                    struct silt_error *e)
{
    silt_slice rest = {f->body, len};
    t->op = f->type;
    if (t->op >= SILT_WORKER_OP_MAX || ops[t->op].run == NULL || len < sizeof(t->ask))
        return silt_fail(e, SILT_PROTOCOL, "operation %u of %zu bytes", t->op, len);
    memcpy(&t->ask, rest.data, sizeof(t->ask));
    rest.data += sizeof(t->ask);
    rest.len -= sizeof(t->ask);
    if (!cut(&rest, t->ask.cwd_len, t->cwd) || !cut(&rest, t->ask.path_len, t->path)
        || !cut(&rest, t->ask.to_len, t->to) || rest.len != t->ask.text_len)
        return silt_fail(e, SILT_PROTOCOL, "parts of an operation do not add up");
    t->text = rest;
    return 0;
}

static void serve_one(struct silt_task *t, size_t len)
{
    struct silt_error e = {0};
    t->told = t->finishing = false;
    t->said_ms = silt_clock_ms();
    bool done = silt_task_parse(t, &incoming.frame, len, &e) == 0 && ops[t->op].run(t, &e) == 0;
    t->owes = false;
    if (!done && !t->told)
        (void)silt_task_say(t, SILT_WORKER_SAY_FAILED, SILT_WORKER_LAST,
                            (silt_slice){(const char *)&e, sizeof(e)}, (silt_slice){NULL, 0});
}

/* A larger socket buffer means fewer context switches for large data. */
static void prepare(int sock)
{
    int room = SOCKET_BUFFER;
    (void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    (void)umask(022);
    (void)signal(SIGPIPE, SIG_IGN);
    /* the guest's file size limit must fail the write, not kill us */
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* After a failed upload, its remaining bytes are skipped up to the next request. */
void silt_worker_serve(int sock)
{
    static struct silt_task t;
    t = (struct silt_task){.sock = sock};
    prepare(sock);
    while (!t.gone) {
        ssize_t n = receive(&t);
        if (n >= 0 && incoming.frame.type != SILT_WORKER_DATA
            && incoming.frame.type != SILT_WORKER_SHARE)
            serve_one(&t, (size_t)n);
        silt_share_forget(&t.share);
    }
}
