/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/build_context.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/docker/ignore.h"
#include "cli/core/wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FILE_TOO_LARGE (1ULL << 33) /* eleven octal digits */

enum {
    BLOCK = 512,
    NAME = 100,
    IGNORE_FILE_MAX = 1 << 20,
    DEPTH_MAX = 256,
    DOCKERFILE_ARENA_MAX = 64 << 20,
    EXPLAIN_US = 1000 * 1000
};

/* In the child. */

struct packer {
    int out;
    const char *dockerfile_path;
    struct silt_ignore ignore;
    struct silt_wanted wanted; /* in the directory itself */
    char path[PATH_MAX];       /* of the current entry, relative to the directory */
};

static int put(const struct packer *p, const void *bytes, size_t len, struct silt_error *e)
{
    return silt_fd_write_all(p->out, (silt_slice){bytes, len}, e);
}

static int pad(const struct packer *p, uint64_t size, struct silt_error *e)
{
    static const char zeros[BLOCK];
    size_t rest = (size_t)(size % BLOCK);
    return rest == 0 ? 0 : put(p, zeros, BLOCK - rest, e);
}

struct entry {
    const char *name, *target;
    char type;
    uint32_t mode;
    uint64_t size;
    int64_t mtime_s;
};

static void write_octal(char *out, size_t len, uint64_t value)
{
    for (size_t i = len - 1; i-- > 0; value >>= 3)
        out[i] = (char)('0' + (value & 7));
}

static int put_header(const struct packer *p, const struct entry *x, struct silt_error *e)
{
    char block[BLOCK] = {0};
    unsigned sum = 0;
    (void)memcpy(block, x->name, strnlen(x->name, NAME));
    write_octal(block + 100, 8, x->mode & 07777);
    write_octal(block + 108, 8, 0);
    write_octal(block + 116, 8, 0);
    write_octal(block + 124, 12, x->size);
    write_octal(block + 136, 12, x->mtime_s > 0 ? (uint64_t)x->mtime_s : 0);
    (void)memset(block + 148, ' ', 8);
    block[156] = x->type;
    (void)memcpy(block + 157, x->target, strnlen(x->target, NAME));
    (void)memcpy(block + 257, "ustar  ", 8); /* GNU: long names have entries of their own */
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    (void)snprintf(block + 148, 8, "%06o", sum);
    block[155] = ' ';
    return put(p, block, BLOCK, e);
}

static int put_long(const struct packer *p, const char *text, char type, struct silt_error *e)
{
    struct entry x = {
        .name = "././@LongLink", .target = "", .type = type, .size = strlen(text) + 1};
    if (strlen(text) < NAME)
        return 0;
    return put_header(p, &x, e) < 0 || put(p, text, (size_t)x.size, e) < 0 ? -1 : pad(p, x.size, e);
}

static int put_entry(const struct packer *p, const struct entry *x, struct silt_error *e)
{
    return put_long(p, x->target, 'K', e) < 0 || put_long(p, x->name, 'L', e) < 0
               ? -1
               : put_header(p, x, e);
}

/* Writes exactly the announced number of bytes, even if the file changes meanwhile. */
static int put_content(const struct packer *p, int fd, uint64_t size, struct silt_error *e)
{
    char piece[64 << 10];
    for (uint64_t left = size; left > 0;) {
        ssize_t n = read(fd, piece, left < sizeof(piece) ? (size_t)left : sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "read %s", p->path);
        if (n == 0) {
            (void)memset(piece, 0, sizeof(piece));
            n = (ssize_t)(left < sizeof(piece) ? left : sizeof(piece));
        }
        if (put(p, piece, (size_t)n, e) < 0)
            return -1;
        left -= (uint64_t)n;
    }
    return pad(p, size, e);
}

static int put_file(struct packer *p, int directory, const char *name, const struct stat *st,
                    struct silt_error *e)
{
    silt_auto_fd fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct entry x = {.name = p->path,
                      .target = "",
                      .type = '0',
                      .mode = st->st_mode,
                      .size = (uint64_t)st->st_size,
                      .mtime_s = st->st_mtim.tv_sec};
    if (fd < 0)
        return silt_fail_errno(e, "open %s", p->path);
    if (x.size >= FILE_TOO_LARGE)
        return silt_fail(e, SILT_LIMIT, "%s has 8 GiB or more", p->path);
    return put_entry(p, &x, e) < 0 ? -1 : put_content(p, fd, x.size, e);
}

static int put_link(struct packer *p, int directory, const char *name, const struct stat *st,
                    struct silt_error *e)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(directory, name, target, sizeof(target) - 1);
    struct entry x = {.name = p->path,
                      .target = target,
                      .type = '2',
                      .mode = 0777,
                      .mtime_s = st->st_mtim.tv_sec};
    if (n < 0)
        return silt_fail_errno(e, "read the link %s", p->path);
    target[n] = 0;
    return put_entry(p, &x, e);
}

struct directory {
    int fd, depth;
    const struct silt_wanted *wanted;
};

static int pack_directory(struct packer *p, const struct directory *f, struct silt_error *e);

static int pack_inner(struct packer *p, const struct directory *f, const char *name,
                      struct silt_error *e)
{
    silt_auto_fd fd = openat(f->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct directory inner = {.fd = fd, .depth = f->depth + 1, .wanted = f->wanted};
    return fd < 0 ? silt_fail_errno(e, "open %s", p->path) : pack_directory(p, &inner, e);
}

/* An ignored directory may contain entries that a later rule includes again. */
static int pack_one(struct packer *p, const struct directory *f, const char *name,
                    struct silt_error *e)
{
    struct stat st;
    struct silt_wanted below;
    if (!silt_wanted_enter(f->wanted, name, &below))
        return 0;
    if (fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : silt_fail_errno(e, "stat %s", p->path);
    bool ignored = silt_ignore_fits(&p->ignore, silt_slice_of(p->path))
                   && strcmp(p->path, p->dockerfile_path) != 0;
    if (S_ISDIR(st.st_mode)) {
        struct entry x = {.name = p->path,
                          .target = "",
                          .type = '5',
                          .mode = st.st_mode,
                          .mtime_s = st.st_mtim.tv_sec};
        struct directory around = {.fd = f->fd, .depth = f->depth, .wanted = &below};
        if (ignored && !p->ignore.takes_back)
            return 0;
        return !ignored && put_entry(p, &x, e) < 0 ? -1 : pack_inner(p, &around, name, e);
    }
    if (ignored || !below.all)
        return 0;
    return S_ISREG(st.st_mode)   ? put_file(p, f->fd, name, &st, e)
           : S_ISLNK(st.st_mode) ? put_link(p, f->fd, name, &st, e)
                                 : 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int pack_directory(struct packer *p, const struct directory *f, struct silt_error *e)
{
    struct dirent **names;
    size_t len = strlen(p->path);
    int count = f->depth < DEPTH_MAX ? scandirat(f->fd, ".", &names, NULL, by_name) : -1, done = 0;
    if (count < 0)
        return silt_fail_errno(e, "read the directory %s", len > 0 ? p->path : ".");
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        bool own = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        int n = snprintf(p->path + len, sizeof(p->path) - len, "%s%s", len > 0 ? "/" : "", name);
        if (!own && done == 0)
            done = n < 0 || (size_t)n >= sizeof(p->path) - len
                       ? silt_fail(e, SILT_LIMIT, "%s is too long", p->path)
                       : pack_one(p, f, name, e);
        p->path[len] = 0;
        free(names[i]);
    }
    free(names);
    return done;
}

/* FILE.dockerignore beside a Dockerfile takes precedence, as in docker. */
static int read_rules(struct packer *p, int directory, char **ret_text, struct silt_error *e)
{
    char own[PATH_MAX];
    size_t len = 0;
    (void)snprintf(own, sizeof(own), "%s.dockerignore", p->dockerfile_path);
    if (silt_fd_read_file(directory, own, IGNORE_FILE_MAX, ret_text, &len, e) < 0
        && e->sys == ENOENT
        && silt_fd_read_file(directory, ".dockerignore", IGNORE_FILE_MAX, ret_text, &len, e) < 0)
        return e->sys == ENOENT ? 0 : -1;
    silt_ignore_read(&p->ignore, (silt_slice){*ret_text, len});
    return 0;
}

static int pack(const struct silt_build_context_options *o,
                const struct silt_docker_sources *sources, int out, struct silt_error *e)
{
    static struct packer p;
    static const char end[2 * BLOCK];
    char *rules = NULL; /* freed by the exit of the process */
    p.out = out;
    p.dockerfile_path = o->dockerfile_path;
    silt_auto_fd directory = open(o->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return silt_fail_errno(e, "open %s", o->directory);
    if (read_rules(&p, directory, &rules, e) < 0)
        return -1;
    silt_wanted_begin(&p.wanted, sources, o->dockerfile_path);
    struct directory top = {.fd = directory, .wanted = &p.wanted};
    struct entry first = {.name = SILT_BUILD_CONTEXT_DOCKERFILE,
                          .target = "",
                          .type = '0',
                          .mode = 0644,
                          .size = o->dockerfile.len};
    if (o->dockerfile.data != NULL
        && (put_entry(&p, &first, e) < 0 || put(&p, o->dockerfile.data, o->dockerfile.len, e) < 0
            || pad(&p, first.size, e) < 0))
        return -1;
    return pack_directory(&p, &top, e) < 0 ? -1 : put(&p, end, sizeof(end), e);
}

/* In the parent. */

static void use_all(struct silt_build_context *c, const char *reason)
{
    c->sources = (struct silt_docker_sources){.all = true, .reason = reason};
}

static void read_sources(struct silt_build_context *c, silt_slice text)
{
    struct silt_dockerfile file;
    struct silt_error ignored; /* the daemon will report it */
    silt_arena_init(&c->arena, DOCKERFILE_ARENA_MAX);
    if (silt_dockerfile_read(&c->arena, text, &file, &ignored) < 0)
        use_all(c, "cannot be read");
    else
        silt_docker_sources_read(&c->arena, &file, &c->sources);
}

/* Finds what the Dockerfile can use. Errors are reported later, by the packing or by the daemon. */
static void choose(struct silt_build_context *c, const struct silt_build_context_options *o)
{
    static struct silt_wanted wanted;
    struct silt_error ignored;
    char *text = NULL;
    size_t len = 0;
    silt_auto_fd directory = open(o->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (o->dockerfile.data != NULL)
        read_sources(c, o->dockerfile);
    else if (directory >= 0
             && silt_fd_read_file(directory, o->dockerfile_path, SILT_DOCKERFILE_MAX, &text, &len,
                                  &ignored)
                    == 0)
        read_sources(c, (silt_slice){text, len});
    else
        use_all(c, "cannot be read");
    silt_wanted_begin(&wanted, &c->sources, o->dockerfile_path);
    if (!c->sources.all && (directory < 0 || silt_wanted_has_links(&wanted, directory)))
        use_all(c, "uses a symbolic link");
    free(text);
}

/* After a second: reports the transfer, and why it is large. */
static void explain(struct silt_build_context *c)
{
    if (c->quiet || c->explained || silt_clock_us() - c->progress.start_us < EXPLAIN_US)
        return;
    c->explained = true;
    if (!c->sources.all)
        (void)fprintf(stderr, "sending the build context\n");
    else if (c->sources.line > 0)
        (void)fprintf(stderr,
                      "sending the whole directory: line %u of the Dockerfile %s; a .dockerignore "
                      "leaves out what is not needed\n",
                      c->sources.line, c->sources.reason);
    else
        (void)fprintf(stderr,
                      "sending the whole directory: the Dockerfile %s; a .dockerignore leaves out "
                      "what is not needed\n",
                      c->sources.reason);
}

static int next(struct silt_client_source *s, silt_slice *ret, struct silt_error *e)
{
    struct silt_build_context *c = silt_outer(s, struct silt_build_context, source);
    for (;;) {
        ssize_t n = read(c->fd, c->piece, sizeof(c->piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "read the context");
        *ret = (silt_slice){c->piece, (size_t)n};
        explain(c);
        if (n > 0)
            return 1;
        return silt_build_context_close(c, e);
    }
}

int silt_build_context_open(struct silt_build_context *c,
                            const struct silt_build_context_options *o, struct silt_error *e)
{
    int ends[2];
    choose(c, o);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "make a pipe");
    silt_auto_fd ours = ends[0], theirs = ends[1];
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        return silt_fail_errno(e, "fork");
    if (pid == 0) {
        silt_close_fd(&ours); /* otherwise a reader that stops would not stop the child */
        silt_wait_leave_interrupt();
        (void)signal(SIGPIPE, SIG_DFL);
        int done = pack(o, &c->sources, theirs, e);
        if (done < 0)
            (void)dprintf(STDERR_FILENO, "silt: %s\n", e->text);
        _exit(done < 0);
    }
    c->source = (struct silt_client_source){.next = next, .length = -1};
    c->quiet = o->quiet;
    silt_progress_start(&c->progress, "build context", 0);
    c->progress.live = c->progress.live && !o->quiet;
    c->pid = pid;
    c->fd = silt_take_fd(&ours);
    return 0;
}

int silt_build_context_close(struct silt_build_context *c, struct silt_error *e)
{
    int status = 0;
    silt_close_fd(&c->fd);
    silt_arena_fini(&c->arena);
    silt_progress_end(&c->progress);
    if (c->pid <= 0)
        return 0;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    c->pid = 0;
    return status == 0 ? 0 : silt_fail(e, SILT_INTERNAL, "the context could not be packed");
}
