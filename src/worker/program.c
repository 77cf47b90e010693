/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PIPE_SIZE = 1 << 20, NOT_STARTED = 127 };

static const char *const directories[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                          "/usr/bin",        "/sbin",          "/bin"};
static const char *const environment[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root",
    NULL};

static bool find(const char *name, char out[PATH_MAX])
{
    for (size_t i = 0; i < SILT_COUNT(directories); i++) {
        (void)snprintf(out, PATH_MAX, "%s/%s", directories[i], name);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

int silt_program_check(const char *name, struct silt_error *e)
{
    char path[PATH_MAX];
    return find(name, path)
               ? 0
               : silt_fail(e, SILT_UNAVAILABLE, "the program %s is not in this image", name);
}

/* ---- starting ---- */

/* Between fork and exec. Standard input is our socket: the program always gets another one. */
static _Noreturn void become(const char *path, char *const argv[], int dir, const int io[3],
                             pid_t parent)
{
    union {
        const char *const *in;
        char *const *out;
    } env = {.in = environment};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    bool ready = getppid() == parent && setpgid(0, 0) == 0 && fchdir(dir) == 0;
    for (int i = 0; ready && i < 3; i++)
        ready = dup2(io[i], i) >= 0;
    if (ready && syscall(SYS_close_range, 3U, ~0U, 0) == 0)
        (void)execve(path, argv, env.out);
    _exit(NOT_STARTED);
}

static int keep_above_2(int *fd)
{
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    silt_close_fd(fd);
    *fd = high;
    return high >= 0 ? 0 : -1;
}

/* Numbers above 2, so that one dup2 does not overwrite what the next one needs. */
static int make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (ends[i] <= 2 && keep_above_2(&ends[i]) < 0)
            return -1;
    return 0;
}

static int launch(struct silt_program *p, char *const argv[], int dir, const int io[3],
                  struct silt_error *e)
{
    char path[PATH_MAX];
    pid_t self = getpid();
    if (!find(argv[0], path))
        return silt_program_check(argv[0], e);
    p->pid = fork();
    if (p->pid == 0)
        become(path, argv, dir, io, self);
    if (p->pid > 0)
        return 0;
    p->pid = 0;
    return silt_fail_errno(e, "start %s", argv[0]);
}

int silt_program_start(struct silt_program *p, char *const argv[], int dir, bool feeds,
                       struct silt_error *e)
{
    int main_pipe[2] = {-1, -1}, err_pipe[2] = {-1, -1}, answer = -1;
    silt_auto_fd null = open("/dev/null", O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    p->name = argv[0];
    p->pipe = p->err = -1;
    p->pid = 0;
    if (null >= 0 && make_pipe(main_pipe) == 0 && make_pipe(err_pipe) == 0
        && (null > 2 || keep_above_2(&null) == 0)) {
        const int io[3] = {feeds ? main_pipe[0] : null, feeds ? null : main_pipe[1], err_pipe[1]};
        (void)fcntl(main_pipe[0], F_SETPIPE_SZ, PIPE_SIZE); /* fewer context switches */
        answer = launch(p, argv, dir, io, e);
    } else {
        (void)silt_fail_errno(e, "start %s", argv[0]);
    }
    p->pipe = silt_take_fd(&main_pipe[feeds ? 1 : 0]);
    p->err = silt_take_fd(&err_pipe[0]);
    silt_close_fd(&main_pipe[feeds ? 0 : 1]);
    silt_close_fd(&err_pipe[1]);
    if (answer == 0
        && (fcntl(p->pipe, F_SETFL, O_NONBLOCK) < 0 || fcntl(p->err, F_SETFL, O_NONBLOCK) < 0))
        return silt_fail_errno(e, "start %s", argv[0]);
    return answer;
}

/* ---- reading its output ---- */

static bool has(const char *line, const char *const words[])
{
    for (; *words != NULL; words++)
        if (strstr(line, *words) != NULL)
            return true;
    return false;
}

static void end_line(struct silt_program *p)
{
    static const char *const full[] = {"No space left on device", "Disk quota exceeded",
                                       ": Wrote only ", NULL};
    static const char *const changed[] = {"file changed as we read it",
                                          "File removed before we read it", NULL};
    static const char *const farewell[] = {
        "Exiting with failure status", "Error is not recoverable", "Child returned status", NULL};
    p->line[p->line_len] = 0;
    p->no_space = p->no_space || has(p->line, full);
    p->changed = p->changed || has(p->line, changed);
    if (p->line_len > 0 && (p->said[0] == 0 || !has(p->line, farewell)))
        memcpy(p->said, p->line, p->line_len + 1);
    p->line_len = 0;
}

static void hear(struct silt_program *p, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == '\n')
            end_line(p);
        else if (p->line_len < sizeof(p->line) - 1)
            p->line[p->line_len++] = bytes[i];
}

/* False: its standard error is closed. */
static bool drain_err(struct silt_program *p)
{
    char bytes[1024];
    ssize_t n = read(p->err, bytes, sizeof(bytes));
    if (n > 0)
        hear(p, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        silt_close_fd(&p->err);
    return p->err >= 0;
}

/* Waits until the pipe is ready or at its end; without a pipe until standard error is closed. -1:
 * siltd is gone. */
static int wait_for(struct silt_program *p, short what)
{
    for (;;) {
        struct pollfd fds[] = {
            {.fd = p->pipe, .events = what},
            {.fd = p->err, .events = POLLIN},
            {.fd = p->task->sock, .events = 0},
        };
        if (p->pipe < 0 && p->err < 0)
            return 0;
        if (poll(fds, SILT_COUNT(fds), -1) < 0 && errno != EINTR)
            return -1;
        if ((fds[2].revents & (POLLHUP | POLLERR)) != 0) {
            p->task->gone = true;
            return -1;
        }
        if (fds[1].revents != 0)
            (void)drain_err(p);
        if (fds[0].revents != 0)
            return 0;
    }
}

int silt_program_read(struct silt_program *p, char *to, size_t size, size_t *ret_len)
{
    ssize_t n = 0;
    size_t len = 0;
    while (len < size) { /* fill frames, whatever pieces it writes */
        n = read(p->pipe, to + len, size - len);
        if (n < 0 && errno == EAGAIN) {
            if (wait_for(p, POLLIN) < 0)
                return -1;
            continue;
        }
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    *ret_len = len;
    return len > 0 ? 1 : 0;
}

int silt_program_write(struct silt_program *p, silt_slice bytes)
{
    while (bytes.len > 0 && p->pipe >= 0) {
        ssize_t n = write(p->pipe, bytes.data, bytes.len);
        if (n < 0 && errno == EAGAIN && wait_for(p, POLLOUT) < 0)
            return -1;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            silt_close_fd(&p->pipe);
        if (n > 0) {
            bytes.data += n;
            bytes.len -= (size_t)n;
        }
    }
    return p->pipe >= 0 ? 1 : 0;
}

/* ---- the end ---- */

static int judge(const struct silt_program *p, int status, struct silt_error *e)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED && p->said[0] == 0)
        return silt_fail(e, SILT_UNAVAILABLE, "the program %s of this image cannot be started",
                         p->name);
    if (p->said[0] != 0)
        (void)silt_fail(e, p->no_space ? SILT_NO_SPACE : SILT_INVALID, "%s", p->said);
    else
        (void)silt_fail(e, SILT_INVALID, "%s did not end well", p->name);
    e->sys = p->no_space ? ENOSPC : 0;
    return -1;
}

int silt_program_end(struct silt_program *p, struct silt_error *e)
{
    int status;
    silt_close_fd(&p->pipe);
    if (wait_for(p, 0) < 0) /* standard error closes when the program has ended, or nearly so */
        return silt_fail(e, SILT_GONE, "nobody waits any more");
    while (waitpid(p->pid, &status, 0) < 0)
        if (errno != EINTR)
            return silt_fail_errno(e, "wait for %s", p->name);
    p->pid = 0;
    end_line(p);
    if (p->changed && WIFEXITED(status) && WEXITSTATUS(status) == 1)
        return 0; /* others change the directory meanwhile: not a failure */
    return judge(p, status, e);
}

void silt_program_fini(struct silt_program *p)
{
    if (p->pid > 0) {
        (void)kill(-p->pid, SIGKILL);
        (void)kill(p->pid, SIGKILL); /* if it has no process group of its own yet */
        (void)waitpid(p->pid, NULL, 0);
    }
    p->pid = 0;
    silt_close_fd(&p->pipe);
    silt_close_fd(&p->err);
}
