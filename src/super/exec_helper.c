/* SPDX-License-Identifier: Apache-2.0 */
#include "super/exec_helper.h"
#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdnoreturn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#ifdef SILT_SANITIZED
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

extern char **environ;

enum { ANSWER_TIMEOUT_S = 10, PARKED_FD = 32, ENV_MAX = 8, MEMORY_MAX = 1 << 30 };

struct order {
    uint32_t program;
    uint32_t fresh;
};

struct answer {
    pid_t pid; /* 0: see error */
    struct silt_error error;
};

/* All programs are in one directory, installed or not. */
static const char *const programs[SILT_EXEC_HELPER_PROGRAMS] = {
    [SILT_PROGRAM_SILTD] = "siltd",        [SILT_PROGRAM_PRIV] = "silt-priv",
    [SILT_PROGRAM_PROXY] = "silt-proxy",   [SILT_PROGRAM_DIAL] = "silt-proxy",
    [SILT_PROGRAM_PREVIEW] = "silt-proxy", [SILT_PROGRAM_CHECK] = "silt-super",
};

/* argv[0] of each; silt-proxy derives its role from it. */
static const char *const names[SILT_EXEC_HELPER_PROGRAMS] = {
    [SILT_PROGRAM_SILTD] = "siltd",          [SILT_PROGRAM_PRIV] = "silt-priv",
    [SILT_PROGRAM_PROXY] = "silt-proxy",     [SILT_PROGRAM_DIAL] = "silt-dial",
    [SILT_PROGRAM_PREVIEW] = "silt-preview", [SILT_PROGRAM_CHECK] = "silt-super --check",
};

/* The helper's table of what it may start: built once, so that nothing is allocated after clone. */
struct recipe {
    char path[PATH_MAX];
    char **args;
    char **fresh_args;
};

struct book {
    struct recipe recipes[SILT_EXEC_HELPER_PROGRAMS];
    char *env[ENV_MAX + 1];
    uid_t uid;
    gid_t gid;
    uid_t proxy;
};

/* All programs are in one directory, installed or in the build directory. */
static int find_program(enum silt_program p, char out[PATH_MAX], struct silt_error *e)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return silt_fail_errno(e, "read /proc/self/exe");
    self[n] = 0;
    *strrchr(self, '/') = 0;
    int len = snprintf(out, PATH_MAX, "%s/%s", self, programs[p]);
    if (len < 0 || len >= PATH_MAX || access(out, X_OK) < 0)
        return silt_fail_errno(e, "find program %s beside silt-super in %s", programs[p], self);
    return 0;
}

int silt_exec_helper_find(struct silt_error *e)
{
    char path[PATH_MAX];
    for (int p = 0; p < SILT_EXEC_HELPER_PROGRAMS; p++)
        if (find_program((enum silt_program)p, path, e) < 0)
            return -1;
    return 0;
}

static void fill_env(struct book *b)
{
    /* Programs are configured by flags only. These variables are for test builds. */
    static const char *const passed[] = {
#ifdef SILT_UNSAFE_TESTS
        "SILT_WITHOUT",
#endif
        "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"};
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    size_t n = 0;
    b->env[n++] = path;
    for (size_t i = 0; i < SILT_COUNT(passed); i++) {
        const char *value = getenv(passed[i]);
        if (value != NULL && asprintf(&b->env[n++], "%s=%s", passed[i], value) < 0)
            abort();
    }
    assert(n <= ENV_MAX);
}

char **silt_exec_helper_super_args(const struct silt_exec_helper *s, int handover, bool check)
{
    size_t count = 0, n = 0;
    while (s->argv[count] != NULL)
        count++;
    char **args = calloc(count + 3, sizeof(char *));
    if (args == NULL || count == 0)
        abort();
    for (size_t i = 0; i < count; i++)
        if (strncmp(s->argv[i], "--handover=", strlen("--handover=")) != 0
            && (args[n++] = strdup(s->argv[i])) == NULL)
            abort();
    if (asprintf(&args[n++], "--handover=%d", handover) < 0
        || (check && (args[n++] = strdup("--check")) == NULL))
        abort();
    return args;
}

static int fill_book(const struct silt_exec_helper *s, struct book *b, struct silt_error *e)
{
    *b = (struct book){.uid = s->uid, .gid = s->gid, .proxy = s->proxy};
    for (int p = 0; p < SILT_PROGRAM_MAX; p++) {
        if (find_program((enum silt_program)p, b->recipes[p].path, e) < 0)
            return -1;
        b->recipes[p].args = silt_config_to_args(s->config, names[p], NULL);
        b->recipes[p].fresh_args = silt_config_to_args(s->config, names[p], "--fresh");
    }
    b->recipes[SILT_PROGRAM_CHECK].args =
        silt_exec_helper_super_args(s, SILT_EXEC_HELPER_FIRST_FD, true);
    fill_env(b);
    return find_program(SILT_PROGRAM_CHECK, b->recipes[SILT_PROGRAM_CHECK].path, e);
}

/* After clone, before exec: the child's last steps. */

static int place_fds(const struct silt_parcel *p, struct silt_error *e)
{
    int parked[SILT_EXEC_HELPER_FDS_MAX];
    for (int i = 0; i < p->nfds; i++) {
        parked[i] = fcntl(p->fds[i], F_DUPFD_CLOEXEC, PARKED_FD);
        if (parked[i] < 0)
            return silt_fail_errno(e, "park descriptor");
    }
    for (int i = 0; i < p->nfds; i++)
        if (dup2(parked[i], SILT_EXEC_HELPER_FIRST_FD + i) < 0)
            return silt_fail_errno(e, "place descriptor");
    /* Not closed yet: the pipe for an error is among them. */
    unsigned rest = (unsigned)(SILT_EXEC_HELPER_FIRST_FD + p->nfds);
    if (syscall(SYS_close_range, rest, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return silt_fail_errno(e, "mark descriptors close-on-exec");
    return 0;
}

static int lose_rights(uid_t uid, gid_t gid, struct silt_error *e)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return silt_fail_errno(e, "drop capability %lu", cap);
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return silt_fail_errno(e, "become uid %u gid %u", uid, gid);
    if (syscall(SYS_capset, &head, none) < 0
        || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return silt_fail_errno(e, "clear capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return silt_fail_errno(e, "set no_new_privs");
    return 0;
}

/* The gateway's namespace is the descriptor after the channel: entered, then no longer needed. */
static int enter_gate(struct silt_error *e)
{
    if (setns(SILT_EXEC_HELPER_FIRST_FD + 1, CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "enter the gate");
    (void)close(SILT_EXEC_HELPER_FIRST_FD + 1);
    return 0;
}

/* Programs that face the network limit what they keep per client; this catches what was overlooked.
 * One that needs more is killed and restarted. Sanitizers need more address space. */
static int limit_memory(enum silt_program program, struct silt_error *e)
{
    struct rlimit data = {.rlim_cur = MEMORY_MAX, .rlim_max = MEMORY_MAX};
    bool proxies = program == SILT_PROGRAM_PROXY || program == SILT_PROGRAM_DIAL
                   || program == SILT_PROGRAM_PREVIEW;
    if (!SANITIZED && proxies && setrlimit(RLIMIT_DATA, &data) < 0)
        return silt_fail_errno(e, "set RLIMIT_DATA");
    return 0;
}

/* siltd and silt-proxy hold descriptors per sandbox and connection; silt-priv is fast because it
 * holds few. */
static int set_limits(enum silt_program program, struct silt_error *e)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return silt_fail_errno(e, "read RLIMIT_NOFILE");
    files.rlim_cur = program == SILT_PROGRAM_PRIV ? 1024 : files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        return silt_fail_errno(e, "set RLIMIT_NOFILE");
    return limit_memory(program, e);
}

static int prepare_child(const struct book *b, enum silt_program program,
                         const struct silt_parcel *p, struct silt_error *e)
{
    sigset_t none;
    for (int i = 1; i < SIGRTMIN; i++)
        (void)signal(i, SIG_DFL); /* our parent may have ignored it */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir("/") < 0)
        return silt_fail_errno(e, "change to /");
    if (set_limits(program, e) < 0 || place_fds(p, e) < 0)
        return -1;
    if (program == SILT_PROGRAM_SILTD) {
        (void)umask(0077);
        return lose_rights(b->uid, b->gid, e);
    }
    if (program == SILT_PROGRAM_DIAL && enter_gate(e) < 0)
        return -1;
    if (program == SILT_PROGRAM_PRIV || program == SILT_PROGRAM_CHECK)
        return 0;
    return lose_rights(b->proxy, b->proxy, e);
}

noreturn static void run_child(const struct book *b, const struct order *o,
                               const struct silt_parcel *p, int report)
{
    enum silt_program program = (enum silt_program)o->program;
    const struct recipe *r = &b->recipes[program];
    struct silt_error e;
    if (prepare_child(b, program, p, &e) == 0) {
        (void)execve(r->path, o->fresh != 0 ? r->fresh_args : r->args,
                     program == SILT_PROGRAM_CHECK ? environ : b->env);
        (void)silt_fail_errno(&e, "exec %s", r->path);
    }
    (void)silt_fd_write_all(report, (silt_slice){(const char *)&e, sizeof(e)}, &e);
    _exit(127);
}

/* In the helper. */

static pid_t clone_sibling(void)
{
    /* CLONE_PARENT reuses our own exit signal, SIGCHLD */
    struct clone_args args = {.flags = CLONE_PARENT};
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int spawn(const struct book *b, const struct order *o, const struct silt_parcel *p,
                 pid_t *ret_pid, struct silt_error *e)
{
    int ends[2];
    if (o->program >= SILT_EXEC_HELPER_PROGRAMS || p->nfds > SILT_EXEC_HELPER_FDS_MAX)
        return silt_fail(e, SILT_PROTOCOL, "order for unknown program %u", o->program);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create pipe");
    silt_auto_fd in = ends[0], out = ends[1];
    pid_t pid = clone_sibling();
    if (pid < 0)
        return silt_fail_errno(e, "clone");
    if (pid == 0)
        run_child(b, o, p, out);
    silt_close_fd(&out);
    ssize_t n = read(in, e, sizeof(*e)); /* end of file: the program runs */
    if (n != 0)
        return n == (ssize_t)sizeof(*e) ? -1 : silt_fail(e, SILT_INTERNAL, "child broke off");
    *ret_pid = pid;
    return 0;
}

static int serve_one(int channel, const struct book *b)
{
    struct order order;
    struct answer answer = {0};
    struct silt_error e;
    struct silt_parcel in = {.data = &order, .len = sizeof(order)};
    if (silt_fd_recv(channel, &in, &e) <= 0 || in.len != sizeof(order))
        return -1;
    if (spawn(b, &order, &in, &answer.pid, &answer.error) < 0)
        answer.pid = 0;
    silt_parcel_close(&in);
    struct silt_parcel out = {.data = &answer, .len = sizeof(answer)};
    return silt_fd_send(channel, &out, &e);
}

noreturn static void serve(int channel, const struct book *b)
{
    (void)setsid(); /* Ctrl-C on the terminal is for silt-super alone, which shuts down in order */
    (void)prctl(PR_SET_NAME, "silt-starter", 0, 0, 0);
    if (dup2(channel, SILT_EXEC_HELPER_FIRST_FD) < 0
        || syscall(SYS_close_range, SILT_EXEC_HELPER_FIRST_FD + 1, ~0U, 0) < 0)
        _exit(1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0
        || fcntl(SILT_EXEC_HELPER_FIRST_FD, F_SETFD, FD_CLOEXEC) < 0)
        _exit(1);
    while (serve_one(SILT_EXEC_HELPER_FIRST_FD, b) == 0)
        ;
    _exit(0);
}

/* In silt-super. */

int silt_exec_helper_open(struct silt_exec_helper *s, struct silt_error *e)
{
    static struct book book; /* borrowed by the child, which is a copy of us */
    struct timeval patience = {.tv_sec = ANSWER_TIMEOUT_S};
    int pair[2];
    if (book.env[0] == NULL && fill_book(s, &book, e) < 0)
        return -1;
    memcpy(s->super_path, book.recipes[SILT_PROGRAM_CHECK].path, sizeof(s->super_path));
    if (silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    silt_auto_fd ours = pair[0], theirs = pair[1];
    if (setsockopt(ours, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        return silt_fail_errno(e, "set timeout");
    pid_t pid = fork();
    if (pid < 0)
        return silt_fail_errno(e, "fork starter");
    if (pid == 0)
        serve(theirs, &book);
    s->pid = pid;
    s->channel = silt_take_fd(&ours);
    return 0;
}

void silt_exec_helper_close(struct silt_exec_helper *s)
{
    silt_close_fd(&s->channel);
    if (s->pid > 0)
        (void)waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void silt_exec_helper_died(struct silt_exec_helper *s)
{
    silt_close_fd(&s->channel);
    s->pid = 0;
}

static int ask(struct silt_exec_helper *s, const struct silt_exec_helper_order *order,
               struct answer *ret, struct silt_error *e)
{
    struct order wire = {.program = (uint32_t)order->program, .fresh = order->fresh};
    struct silt_parcel out = {.data = &wire, .len = sizeof(wire), .nfds = order->count};
    struct silt_parcel in = {.data = ret, .len = sizeof(*ret)};
    memcpy(out.fds, order->fds, sizeof(int) * (size_t)order->count);
    if (silt_fd_send(s->channel, &out, e) < 0)
        return -1;
    int got = silt_fd_recv(s->channel, &in, e);
    silt_parcel_close(&in);
    if (got == 0 || (got > 0 && in.len != sizeof(*ret)))
        return silt_fail(e, SILT_GONE, "starter broke off");
    return got < 0 ? -1 : 0;
}

int silt_exec_helper_start(struct silt_exec_helper *s, const struct silt_exec_helper_order *order,
                           pid_t *ret_pid, struct silt_error *e)
{
    struct answer answer;
    if (s->channel < 0 && silt_exec_helper_open(s, e) < 0)
        return -1;
    if (ask(s, order, &answer, e) < 0) {
        /* Dead or out of sync: the next order gets a new one. */
        if (s->pid > 0)
            (void)kill(s->pid, SIGKILL);
        silt_close_fd(&s->channel);
        return silt_because(e, "order %s", names[order->program]);
    }
    if (answer.pid == 0) {
        *e = answer.error;
        return silt_because(e, "start %s", names[order->program]);
    }
    *ret_pid = answer.pid;
    return 0;
}
