/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/agent/rig.h"
#include "base/clock.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXECS_MAX = 256, HANDLES_MAX = 176 };

struct group {
    char path[256];
};

struct rig {
    int mode;
    pid_t pid;
    int sock;
    unsigned handles;
    struct group top[4]; /* freezer or unified, memory, pids */
    struct rig_exec *execs[EXECS_MAX];
    uint64_t next_id;
    int32_t shell_pid;
};

static const char *const roots[] = {"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified",
                                    "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"};

int64_t rig_now_us(void)
{
    return silt_clock_us();
}

static int complaints = STDERR_FILENO;

static void die(const char *what)
{
    (void)dprintf(complaints, "rig: %s: %s\n", what, strerror(errno));
    _exit(99);
}

/* ---- inside, before silt-init ---- */

static void bind_node(const char *name)
{
    char from[64];
    char to[64];
    (void)snprintf(from, sizeof(from), "/tmp/%s", name);
    (void)snprintf(to, sizeof(to), "/dev/%s", name);
    int fd = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0 || close(fd) < 0 || mount(from, to, NULL, MS_BIND, NULL) < 0)
        die(to);
}

/* A /dev of our own, because /dev/silt must not appear on the machine. The old one is kept at /tmp,
 * which is fresh afterwards, for as long as its nodes are bound. */
static void make_dev(void)
{
    static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
    if (mount("/dev", "/tmp", NULL, MS_BIND, NULL) < 0
        || mount("tmpfs", "/dev", "tmpfs", 0, NULL) < 0)
        die("mount /dev");
    for (size_t i = 0; i < SILT_COUNT(nodes); i++)
        bind_node(nodes[i]);
    if (symlink("/proc/self/fd", "/dev/fd") < 0 || mkdir("/dev/silt", 0700) < 0
        || mkdir("/dev/shm", 01777) < 0 || mount("tmpfs", "/dev/silt", "tmpfs", 0, "mode=0700") < 0)
        die("make /dev");
    if (umount2("/tmp", MNT_DETACH) < 0 || mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0)
        die("mount /tmp");
}

struct birth {
    int mode;
    int program;
    int sock;
    int counters[3];
    int joins[2];
    int njoins;
    int handles[HANDLES_MAX * 3];
    int nhandles;
    unsigned handle_count;
};

/* Moves everything above the numbers that it is given then. */
static void place(int *fds, int count, int *next)
{
    for (int i = 0; i < count; i++, (*next)++)
        if (fds[i] >= 0 && dup2(fds[i], *next) < 0)
            die("place descriptors");
}

static void lift(int *fds, int count)
{
    for (int i = 0; i < count; i++)
        if (fds[i] >= 0)
            fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 400);
}

/* As the engine does: a shell that runs us behind `&` has made us ignore some. */
static void reset_signals(void)
{
    for (int i = 1; i < SIGRTMIN; i++)
        (void)signal(i, SIG_DFL);
}

static int be_init(void *arg)
{
    struct birth *b = arg;
    char texts[3][16];
    int next = SILT_AGENT_FD_CHANNEL;
    /* A test that is killed takes us along. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0
        || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        die("make mounts private");
    make_dev();
    if (mount("proc", "/proc", "proc", 0, NULL) < 0)
        die("mount /proc");
    reset_signals();
    lift(&b->program, 1);
    lift(&b->sock, 1);
    lift(b->counters, 3);
    lift(b->joins, b->njoins);
    lift(b->handles, b->nhandles);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    complaints = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 400);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        die("open /dev/null");
    (void)close_range(3, 399, 0);
    place(&b->sock, 1, &next);
    place(b->counters, 3, &next);
    place(b->joins, b->njoins, &next);
    place(b->handles, b->nhandles, &next);
    struct rlimit files = {.rlim_cur = 1024, .rlim_max = 16384}; /* as the engine sets them */
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        die("limit files");
    (void)snprintf(texts[0], 16, "%d", b->mode);
    (void)snprintf(texts[1], 16, "%d", b->njoins);
    (void)snprintf(texts[2], 16, "%u", b->handle_count);
    char name[] = "silt-init";
    char *const argv[] = {name, texts[0], texts[1], texts[2], NULL};
    char halt[] = "UBSAN_OPTIONS=halt_on_error=1";
    char *const envp[] = {halt, NULL};
    (void)syscall(SYS_execveat, b->program, "", argv, envp, AT_EMPTY_PATH);
    die("exec " SILT_INIT);
    return 1;
}

/* ---- groups ---- */

static int open_in(const char *directory, const char *name, int flags)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%.255s/%.63s", directory, name);
    return open(path, flags | O_CLOEXEC);
}

static int make_group(struct group *g, const char *root, const char *name)
{
    (void)snprintf(g->path, sizeof(g->path), "%s/%s", root, name);
    return mkdir(g->path, 0755);
}

static void set(const struct group *g, const char *name, uint64_t value)
{
    char text[32];
    struct silt_error e;
    char path[1024];
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    (void)snprintf(path, sizeof(path), "%.255s/%.63s", g->path, name);
    if (silt_fd_put(AT_FDCWD, path, text, &e) < 0)
        (void)fprintf(stderr, "rig: %s\n", e.text);
}

static const struct group *handle_root(const struct rig *r)
{
    return &r->top[r->mode == 1 ? 0 : 1];
}

static unsigned fds_each(const struct rig *r)
{
    return r->mode == 1 ? SILT_HANDLE_FDS_V1 : SILT_HANDLE_FDS_V2;
}

static void make_handle(struct rig *r, int *fds)
{
    char name[16];
    struct group g;
    (void)snprintf(name, sizeof(name), "h%u", r->handles++);
    if (make_group(&g, handle_root(r)->path, name) < 0)
        fail_msg("make %s: %s", g.path, strerror(errno));
    if (r->mode == 1) {
        fds[0] = open_in(g.path, "tasks", O_RDWR);
        fds[1] = open_in(g.path, "freezer.state", O_RDWR);
    } else {
        fds[0] = open(g.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fds[1] = open_in(g.path, "cgroup.procs", O_RDONLY);
        fds[2] = open_in(g.path, "cgroup.kill", O_WRONLY);
    }
}

static void make_guest(struct rig *r, const struct rig_options *o, const char *name,
                       struct birth *b)
{
    b->counters[0] = b->counters[1] = b->counters[2] = -1;
    if (o->memory > 0 && make_group(&r->top[2], roots[2], name) == 0) {
        set(&r->top[2], "memory.limit_in_bytes", o->memory);
        b->counters[0] = open_in(r->top[2].path, "memory.oom_control", O_RDONLY);
        b->counters[1] = open_in(r->top[2].path, "memory.max_usage_in_bytes", O_RDONLY);
        b->joins[b->njoins++] = open_in(r->top[2].path, "tasks", O_WRONLY);
    }
    if (o->pids > 0 && make_group(&r->top[3], roots[3], name) == 0) {
        set(&r->top[3], "pids.max", o->pids);
        b->counters[2] = open_in(r->top[3].path, "pids.events", O_RDONLY);
        b->joins[b->njoins++] = open_in(r->top[3].path, "tasks", O_WRONLY);
    }
}

static void remove_groups(struct rig *r)
{
    char path[1024];
    for (unsigned i = 0; i < r->handles; i++) {
        (void)snprintf(path, sizeof(path), "%.255s/h%u", handle_root(r)->path, i);
        for (int n = 0; n < 200 && rmdir(path) < 0 && errno == EBUSY; n++)
            (void)poll(NULL, 0, 5); /* the last process is still leaving */
    }
    for (int i = 0; i < 4; i++)
        for (int n = 0;
             n < 200 && r->top[i].path[0] != 0 && rmdir(r->top[i].path) < 0 && errno == EBUSY; n++)
            (void)poll(NULL, 0, 5);
}

/* ---- life ---- */

static bool may_run(int mode)
{
    struct stat st;
    if (geteuid() != 0) {
        (void)fprintf(stderr, "rig: needs root\n");
        return false;
    }
    if (stat(roots[mode == 1 ? 0 : 1], &st) < 0) {
        (void)fprintf(stderr, "rig: no %s here\n", roots[mode == 1 ? 0 : 1]);
        return false;
    }
    return true;
}

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *one; d != NULL && (one = readdir(d)) != NULL;) {
        char inner[1024];
        (void)snprintf(inner, sizeof(inner), "%.511s/%.255s", path, one->d_name);
        if (one->d_name[0] == 'h')
            (void)rmdir(inner);
    }
    if (d != NULL)
        (void)closedir(d);
    (void)rmdir(path);
}

/* Groups of a test program that was killed. Its processes went with it. */
static void remove_stale_groups(void)
{
    for (size_t i = 0; i < SILT_COUNT(roots); i++) {
        DIR *d = opendir(roots[i]);
        for (struct dirent *one; d != NULL && (one = readdir(d)) != NULL;) {
            char path[512];
            int pid;
            if (sscanf(one->d_name, "silt-unit-%d-", &pid) != 1 || kill(pid, 0) == 0)
                continue;
            (void)snprintf(path, sizeof(path), "%s/%.255s", roots[i], one->d_name);
            remove_tree(path);
        }
        if (d != NULL)
            (void)closedir(d);
    }
}

/* A test that failed did not get to its end. */
static struct rig *current;

static void clean_up(void)
{
    static bool registered;
    if (!registered && atexit(clean_up) == 0) {
        registered = true;
        remove_stale_groups();
    }
    if (current == NULL)
        return;
    memset(current->execs, 0, sizeof(current->execs)); /* they were the test's */
    rig_stop(current);
}

struct rig *rig_start(const struct rig_options *o)
{
    static char stack[256 << 10] __attribute__((aligned(16)));
    static unsigned count;
    int pair[2];
    char name[64];
    struct silt_error e;
    struct birth b = {.mode = o->mode != 0 ? o->mode : 1};
    if (!may_run(b.mode))
        return NULL;
    clean_up();
    b.program = open(SILT_INIT, O_RDONLY | O_CLOEXEC);
    struct rig *r = calloc(1, sizeof(*r));
    r->mode = b.mode;
    r->next_id = 100;
    (void)snprintf(name, sizeof(name), "silt-unit-%d-%u", (int)getpid(), count++);
    if (make_group(&r->top[b.mode == 1 ? 0 : 1], roots[b.mode == 1 ? 0 : 1], name) < 0) {
        (void)fprintf(stderr, "rig: make group %s: %s\n", name, strerror(errno));
        free(r);
        return NULL;
    }
    make_guest(r, o, name, &b);
    b.handle_count = o->handles != 0 ? o->handles : 4;
    for (unsigned i = 0; i < b.handle_count; i++, b.nhandles += (int)fds_each(r))
        make_handle(r, b.handles + b.nhandles);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    b.sock = pair[1];
    r->pid = clone(be_init, stack + sizeof(stack), CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, &b);
    if (r->pid < 0)
        fail_msg("clone: %s", strerror(errno));
    r->sock = pair[0];
    current = r;
    (void)close(pair[1]);
    (void)close(b.program);
    for (int i = 0; i < b.nhandles; i++)
        (void)close(b.handles[i]);
    for (int i = 0; i < b.njoins; i++)
        (void)close(b.joins[i]);
    for (int i = 0; i < 3; i++)
        silt_close_fd(&b.counters[i]);
    return r;
}

void rig_stop(struct rig *r)
{
    current = NULL;
    if (r->pid > 0) {
        (void)kill(r->pid, SIGKILL);
        (void)waitpid(r->pid, NULL, 0);
    }
    silt_close_fd(&r->sock);
    remove_groups(r);
    for (size_t i = 0; i < EXECS_MAX; i++)
        if (r->execs[i] != NULL)
            rig_free(r->execs[i]);
    free(r);
}

bool rig_alive(struct rig *r)
{
    if (r->pid > 0 && waitpid(r->pid, NULL, WNOHANG) == r->pid)
        r->pid = -1;
    return r->pid > 0;
}

pid_t rig_pid(struct rig *r)
{
    return r->pid;
}

void rig_cut(struct rig *r)
{
    silt_close_fd(&r->sock);
}

/* ---- frames ---- */

static void send_all(struct rig *r, struct silt_parcel *p)
{
    struct silt_error e;
    if (silt_fd_send(r->sock, p, &e) < 0)
        fail_msg("%s", e.text);
}

void rig_say(struct rig *r, uint32_t type, uint64_t id, const void *body, size_t len)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX + 64];
    } out;
    out.frame = (struct silt_frame){.type = type, .id = id};
    if (len > 0)
        memcpy(out.frame.body, body, len);
    struct silt_parcel p = {.data = &out, .len = sizeof(struct silt_frame) + len};
    send_all(r, &p);
}

void rig_say_frame(struct rig *r, struct silt_frame *f, size_t body_len)
{
    struct silt_parcel p = {.data = f, .len = sizeof(*f) + body_len};
    send_all(r, &p);
}

void rig_say_fds(struct rig *r, uint32_t type, uint64_t id, const int *fds, int count)
{
    struct silt_frame f = {.type = type, .id = id};
    struct silt_parcel p = {.data = &f, .len = sizeof(f), .nfds = count};
    memcpy(p.fds, fds, sizeof(int) * (size_t)count);
    send_all(r, &p);
}

bool rig_hears(struct rig *r, struct rig_frame *ret, int timeout_ms)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX];
    } in;
    struct silt_error e;
    struct pollfd poll_one = {.fd = r->sock, .events = POLLIN};
    if (poll(&poll_one, 1, timeout_ms) <= 0)
        return false;
    struct silt_parcel p = {.data = &in, .len = sizeof(in)};
    int got = silt_fd_recv(r->sock, &p, &e);
    if (got <= 0)
        fail_msg("silt-init is gone: %s", got < 0 ? e.text : "closed");
    ret->head = in.frame;
    ret->len = p.len - sizeof(struct silt_frame);
    memcpy(ret->body, in.frame.body, ret->len);
    return true;
}

static struct rig_exec *find(struct rig *r, uint64_t id)
{
    for (size_t i = 0; i < EXECS_MAX; i++)
        if (r->execs[i] != NULL && r->execs[i]->id == id)
            return r->execs[i];
    return NULL;
}

static void add(char **text, size_t *len, const struct rig_frame *f)
{
    *text = realloc(*text, *len + f->len + 1);
    memcpy(*text + *len, f->body, f->len);
    *len += f->len;
    (*text)[*len] = 0;
}

void rig_forget(struct rig *r, const struct rig_exec *x)
{
    for (size_t i = 0; i < EXECS_MAX; i++)
        if (r->execs[i] == x)
            r->execs[i] = NULL;
}

static void on_out(struct rig *r, struct rig_exec *x, const struct rig_frame *f)
{
    uint64_t credit = f->len;
    if (f->head.flags == 1)
        add(&x->out, &x->out_len, f);
    else
        add(&x->err, &x->err_len, f);
    if (!x->keep_credit)
        rig_say(r, SILT_AGENT_CREDIT, x->id, &credit, sizeof(credit));
}

static void deal_with(struct rig *r, const struct rig_frame *f)
{
    struct rig_exec *x = find(r, f->head.id);
    if (f->head.type == SILT_AGENT_NEED_HANDLES)
        rig_give_handles(r, f->head.flags);
    if (x == NULL)
        return;
    if (f->head.type == SILT_AGENT_STARTED) {
        x->started = true;
        memcpy(&x->pid, f->body, sizeof(x->pid));
    } else if (f->head.type == SILT_AGENT_OUT) {
        on_out(r, x, f);
    } else if (f->head.type == SILT_AGENT_ENDED) {
        memcpy(&x->end, f->body, sizeof(x->end));
        memcpy(x->cwd_now, f->body + sizeof(x->end), x->end.cwd_len);
        x->cwd_now[x->end.cwd_len] = 0;
        x->ended = true;
        rig_forget(r, x);
    } else if (f->head.type == SILT_AGENT_FAILED) {
        memcpy(&x->error, f->body, sizeof(x->error));
        x->failed = x->ended = true;
        rig_forget(r, x);
    }
}

void rig_hear(struct rig *r, struct rig_frame *ret)
{
    if (!rig_hears(r, ret, RIG_PATIENCE_MS))
        fail_msg("waited in vain for a frame");
    deal_with(r, ret);
}

void rig_expect(struct rig *r, uint32_t type, uint64_t id, struct rig_frame *ret)
{
    do
        rig_hear(r, ret);
    while (ret->head.type != type || ret->head.id != id);
}

void rig_give_handles(struct rig *r, unsigned how_many)
{
    int fds[SILT_FDS_MAX] = {0};
    int count = 0;
    for (unsigned i = 0; i < how_many && r->handles < HANDLES_MAX; i++, count += (int)fds_each(r))
        make_handle(r, fds + count);
    rig_say_fds(r, SILT_AGENT_HANDLES, 0, fds, count);
    for (int i = 0; i < count; i++)
        (void)close(fds[i]);
}

/* ---- requests ---- */

static size_t put(char *at, const void *bytes, size_t len)
{
    if (len > 0)
        memcpy(at, bytes, len);
    return len;
}

static size_t put_env(char *at, const char *env)
{
    size_t len = env != NULL ? strlen(env) : 0;
    for (size_t i = 0; i < len; i++)
        at[i] = env[i] == '\n' ? 0 : env[i];
    if (len > 0 && at[len - 1] != 0)
        at[len++] = 0;
    return len;
}

uint64_t rig_open(struct rig *r, const char *cwd, const char *env)
{
    char body[8192];
    struct rig_frame f;
    uint64_t id = r->next_id++;
    struct silt_agent_start head = {.note_len = 4,
                                    .cwd_len = (uint32_t)(cwd != NULL ? strlen(cwd) : 0)};
    size_t len = sizeof(head);
    len += put(body + len, "note", 4);
    len += put(body + len, cwd, head.cwd_len);
    head.env_len = (uint32_t)put_env(
        body + len,
        env != NULL ? env : "PATH=/usr/bin:/bin\nHOME=/root\nLANG=C.UTF-8\nLC_ALL=C.UTF-8");
    len += head.env_len;
    memcpy(body, &head, sizeof(head));
    rig_say(r, SILT_AGENT_OPEN, id, body, len);
    do
        rig_hear(r, &f);
    while (f.head.id != id);
    if (f.head.type != SILT_AGENT_OPENED)
        fail_msg("session not opened: frame %u %s", f.head.type,
                 f.head.type == SILT_AGENT_FAILED ? ((struct silt_error *)(void *)f.body)->text
                                                  : "");
    memcpy(&r->shell_pid, f.body, sizeof(r->shell_pid));
    return id;
}

int32_t rig_shell_pid(struct rig *r)
{
    return r->shell_pid;
}

void rig_close(struct rig *r, uint64_t session)
{
    struct rig_frame f;
    rig_say(r, SILT_AGENT_CLOSE, session, NULL, 0);
    rig_expect(r, SILT_AGENT_CLOSED, session, &f);
}

static void know(struct rig *r, struct rig_exec *x)
{
    x->id = r->next_id++;
    x->out = calloc(1, 1);
    x->err = calloc(1, 1);
    for (size_t i = 0; i < EXECS_MAX; i++) {
        if (r->execs[i] == NULL) {
            r->execs[i] = x;
            return;
        }
    }
    fail_msg("too many execs");
}

static struct silt_agent_start head_of(const struct rig_exec *x)
{
    return (struct silt_agent_start){
        .session = x->session,
        .mode = x->mode,
        .timeout_ms = x->timeout_ms,
        .cwd_len = (uint32_t)(x->cwd != NULL ? strlen(x->cwd) : 0),
        .user_len = (uint32_t)(x->user != NULL ? strlen(x->user) : 0),
        .flags = x->flags,
    };
}

static size_t put_command(char *at, const struct rig_exec *x)
{
    size_t len = 0;
    if ((x->flags & SILT_START_ARGV) == 0)
        return put(at, x->command, strlen(x->command));
    for (size_t i = 0; x->args[i] != NULL; i++)
        len += put(at + len, x->args[i], strlen(x->args[i]) + 1);
    return len;
}

static void send_exec(struct rig *r, const struct rig_exec *x, char *body, size_t len)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX];
    } out;
    struct silt_parcel p = {.data = &out, .len = sizeof(struct silt_frame) + len};
    out.frame = (struct silt_frame){.type = SILT_AGENT_EXEC, .id = x->id};
    memcpy(out.frame.body, body, len);
    if ((x->flags & SILT_START_LOG) != 0)
        p.fds[p.nfds++] = x->log;
    if ((x->flags & SILT_START_SECRET) != 0)
        p.fds[p.nfds++] = x->secret;
    for (int i = 0; i < 3 && (x->flags & SILT_START_PIPES) != 0; i++)
        p.fds[p.nfds++] = x->pipes[i];
    send_all(r, &p);
}

void rig_send(struct rig *r, struct rig_exec *x)
{
    static char body[SILT_FRAME_BODY_MAX];
    struct silt_agent_start head = head_of(x);
    size_t len = sizeof(head);
    know(r, x);
    len += put(body + len, x->cwd, head.cwd_len);
    if (x->env_raw != NULL)
        head.env_len = (uint32_t)put(body + len, x->env_raw, x->env_raw_len);
    else
        head.env_len = (uint32_t)put_env(body + len, x->env);
    len += head.env_len;
    len += put(body + len, x->user, head.user_len);
    if ((x->flags & SILT_START_ARGV) == 0 && len + strlen(x->command) > sizeof(body))
        fail_msg("use rig_send_large");
    head.command_len = (uint32_t)put_command(body + len, x);
    len += head.command_len;
    memcpy(body, &head, sizeof(head));
    send_exec(r, x, body, len);
}

void rig_send_large(struct rig *r, struct rig_exec *x, silt_slice command)
{
    struct {
        struct silt_frame f;
        struct silt_agent_start head;
    } m = {.f = {.type = SILT_AGENT_EXEC, .flags = SILT_START_IN_MEMFD}, .head = head_of(x)};
    struct silt_error e;
    char env[4096];
    know(r, x);
    m.f.id = x->id;
    m.head.env_len = (uint32_t)put_env(env, x->env);
    m.head.command_len = (uint32_t)command.len;
    silt_auto_fd fd = memfd_create("test", MFD_CLOEXEC);
    if (silt_fd_write_all(fd, (silt_slice){x->cwd, m.head.cwd_len}, &e) < 0
        || silt_fd_write_all(fd, (silt_slice){env, m.head.env_len}, &e) < 0
        || silt_fd_write_all(fd, command, &e) < 0)
        fail_msg("%s", e.text);
    struct silt_parcel p = {.data = &m, .len = sizeof(m), .nfds = 1, .fds = {fd}};
    send_all(r, &p);
}

void rig_until_started(struct rig *r, struct rig_exec *x)
{
    struct rig_frame f;
    while (!x->started && !x->ended)
        rig_hear(r, &f);
    if (!x->started)
        fail_msg("%s: %s", x->command, x->failed ? x->error.text : "did not start");
}

void rig_until_ended(struct rig *r, struct rig_exec *x)
{
    struct rig_frame f;
    while (!x->ended)
        rig_hear(r, &f);
}

void rig_until_out(struct rig *r, struct rig_exec *x, const char *text)
{
    struct rig_frame f;
    while (strstr(x->out, text) == NULL) {
        if (x->ended)
            fail_msg("'%s' ended without saying '%s'", x->command, text);
        rig_hear(r, &f);
    }
}

void rig_free(struct rig_exec *x)
{
    free(x->out);
    free(x->err);
    x->out = x->err = NULL;
    x->out_len = x->err_len = 0;
    x->started = x->ended = x->failed = false;
}

void rig_run(struct rig *r, struct rig_exec *x)
{
    rig_free(x);
    rig_send(r, x);
    rig_until_ended(r, x);
}

int rig_check(struct rig *r, uint64_t session, const char *command, const char *out,
              const char *err)
{
    struct rig_exec x = {.command = command, .session = session, .mode = SILT_EXEC_FOREGROUND};
    rig_run(r, &x);
    if (x.failed)
        fail_msg("'%s': %s", command, x.error.text);
    if (out != NULL && strcmp(x.out, out) != 0)
        fail_msg("'%s' printed '%s', not '%s' (errors: '%s')", command, x.out, out, x.err);
    if (err != NULL && strcmp(x.err, err) != 0)
        fail_msg("'%s' complained '%s', not '%s'", command, x.err, err);
    int code = x.end.code;
    rig_free(&x);
    return code;
}

/* ---- looking ---- */

/* As its own namespace numbers it. */
static int32_t inner_pid(pid_t pid)
{
    char path[40], line[256], *last = NULL;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (last == NULL && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, "NSpid:", 6) == 0)
            last = strrchr(line, '\t');
    (void)fclose(f);
    assert_non_null(last);
    return (int32_t)strtol(last, NULL, 10);
}

pid_t rig_outer_pid(struct rig *r, int32_t inner)
{
    char path[64];
    int pid;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)r->pid, (int)r->pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fscanf(f, "%d", &pid) == 1 && inner_pid(pid) != inner)
        pid = 0;
    (void)fclose(f);
    assert_true(pid > 0);
    return pid;
}

/* The namespace of children made from now on. */
static void enter_pids(int ns)
{
    if (setns(ns, CLONE_NEWPID) < 0)
        fail_msg("setns: %s", strerror(errno));
}

static void be_adopted(struct rig *r, int handle, const char *command)
{
    silt_auto_fd procs =
        r->mode == 1 ? dup(handle) : openat(handle, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (setsid() < 0 || write(procs, "0", 1) != 1)
        _exit(120);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

pid_t rig_adopt(struct rig *r, uint64_t id, const char *command)
{
    int fds[1 + SILT_HANDLE_FDS_V2], count = 1 + (int)fds_each(r);
    struct {
        struct silt_frame frame;
        int32_t pid;
    } __attribute__((packed)) adopt = {.frame = {.type = SILT_AGENT_ADOPT, .id = id}};
    silt_auto_fd home = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    silt_auto_fd init = (int)syscall(SYS_pidfd_open, rig_pid(r), 0);
    make_handle(r, fds + 1);
    enter_pids(init);
    pid_t pid = fork();
    if (pid == 0)
        be_adopted(r, fds[1], command);
    enter_pids(home);
    assert_true(pid > 0);
    adopt.pid = inner_pid(pid);
    fds[0] = (int)syscall(SYS_pidfd_open, pid, 0);
    struct silt_parcel p = {.data = &adopt, .len = sizeof(adopt), .nfds = count};
    memcpy(p.fds, fds, sizeof(int) * (size_t)count);
    send_all(r, &p);
    for (int i = 0; i < count; i++)
        (void)close(fds[i]);
    return pid;
}

unsigned rig_count(struct rig *r, unsigned handle)
{
    char path[1024];
    char *text;
    size_t len;
    struct silt_error e;
    unsigned count = 0;
    (void)snprintf(path, sizeof(path), "%.255s/h%u/%s", handle_root(r)->path, handle,
                   r->mode == 1 ? "tasks" : "cgroup.procs");
    if (silt_fd_read_file(AT_FDCWD, path, 1 << 20, &text, &len, &e) < 0)
        return 0;
    for (size_t i = 0; i < len; i++)
        count += text[i] == '\n';
    free(text);
    return count;
}

unsigned rig_count_all(struct rig *r)
{
    unsigned count = 0;
    for (unsigned i = 0; i < r->handles; i++)
        count += rig_count(r, i);
    return count;
}

void rig_until_count(struct rig *r, unsigned count)
{
    int64_t until = rig_now_us() + RIG_PATIENCE_MS * 1000LL;
    while (rig_count_all(r) != count && rig_now_us() < until)
        (void)poll(NULL, 0, 1);
    assert_int_equal(rig_count_all(r), count);
}

void rig_until_crowd(struct rig *r, unsigned least)
{
    int64_t until = rig_now_us() + RIG_PATIENCE_MS * 1000LL;
    unsigned count;
    while ((count = rig_count_all(r)) < least && rig_now_us() < until)
        (void)poll(NULL, 0, 1);
    assert_true(count >= least);
}

size_t rig_directory_files(struct rig *r, char *names, size_t size)
{
    char path[64];
    size_t count = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/root/dev/silt", (int)r->pid);
    DIR *d = opendir(path);
    names[0] = 0;
    for (struct dirent *one; d != NULL && (one = readdir(d)) != NULL;) {
        size_t len = strlen(names);
        if (one->d_name[0] == '.')
            continue;
        count++;
        (void)snprintf(names + len, size - len, "%s ", one->d_name);
    }
    if (d != NULL)
        (void)closedir(d);
    return count;
}
