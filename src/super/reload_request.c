/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides of <run>/reload: "NUMBER done" or "NUMBER failed: why". */
#include "base/clock.h"
#include "base/fd.h"
#include "super/instance_dirs.h"
#include "super/reload.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

enum { FILE_MAX = 1024, WAIT_MS = 85000, LOOK_MS = 20, COMM_MAX = 32 };

static const char file_name[] = "reload";

struct result {
    uint64_t number;
    char text[FILE_MAX + 1];
};

static int read_small(const struct silt_config *c, const char *name, char out[FILE_MAX + 1],
                      struct silt_error *e)
{
    char path[PATH_MAX + 32];
    silt_auto_free char *text = NULL;
    size_t len;
    (void)snprintf(path, sizeof(path), "%s/%s", c->run, name);
    if (silt_fd_read_file(AT_FDCWD, path, FILE_MAX, &text, &len, e) < 0)
        return -1;
    return silt_slice_to_cstr((silt_slice){text, strcspn(text, "\n")}, out, FILE_MAX + 1, e);
}

static int read_result(const struct silt_config *c, struct result *ret, struct silt_error *e)
{
    char line[FILE_MAX + 1];
    if (read_small(c, file_name, line, e) < 0)
        return -1;
    silt_slice rest = silt_slice_of(line), number;
    (void)silt_slice_split(&rest, ' ', &number);
    if (silt_slice_to_u64(number, 0, UINT64_MAX, &ret->number, e) < 0)
        return -1;
    return silt_slice_to_cstr(rest, ret->text, sizeof(ret->text), e);
}

/* In silt-super. */

static void write_result(const struct silt_config *c, uint64_t number, const char *text)
{
    char line[FILE_MAX];
    struct silt_error e;
    (void)snprintf(line, sizeof(line), "%llu %.900s\n", (unsigned long long)number, text);
    if (silt_instance_dirs_tell(c, file_name, line, &e) < 0)
        silt_log(SILT_LOG_ERROR, "reload.tell", "error=\"%s\"", e.text);
}

void silt_reload_offer(const struct silt_config *c)
{
    struct result before;
    struct silt_error ignored;
    if (read_result(c, &before, &ignored) < 0)
        write_result(c, 0, "none yet");
}

void silt_reload_tell(const struct silt_config *c, const char *error)
{
    char text[FILE_MAX];
    struct result before = {0};
    struct silt_error ignored;
    if (read_result(c, &before, &ignored) < 0)
        before.number = 0;
    if (error == NULL)
        silt_log(SILT_LOG_INFO, "reload.done", "number=%llu version=" SILT_VERSION,
                 (unsigned long long)before.number + 1);
    else
        silt_log(SILT_LOG_ERROR, "reload.failed", "number=%llu error=\"%s\"",
                 (unsigned long long)before.number + 1, error);
    (void)snprintf(text, sizeof(text), "%s%.900s",
                   error == NULL ? "done" : "failed: ", error == NULL ? "" : error);
    write_result(c, before.number + 1, text);
}

/* In silt-super --reload. */

static int find_super(const struct silt_config *c, pid_t *ret, int *ret_pidfd, struct silt_error *e)
{
    char text[FILE_MAX + 1], path[64], comm[COMM_MAX] = "";
    uint64_t pid;
    if (read_small(c, "pid", text, e) < 0
        || silt_slice_to_u64(silt_slice_of(text), 1, INT32_MAX, &pid, e) < 0)
        return silt_because(e, "no instance runs with this run directory");
    *ret = (pid_t)pid;
    silt_auto_fd pidfd = (int)syscall(SYS_pidfd_open, *ret, 0);
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", *ret);
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (pidfd < 0 || fd < 0 || read(fd, comm, sizeof(comm) - 1) < 0
        || strcmp(comm, "silt-super\n") != 0)
        return silt_fail(e, SILT_NOT_FOUND, "process %d is no silt-super: the instance has ended",
                         *ret);
    *ret_pidfd = silt_take_fd(&pidfd);
    return 0;
}

static int await_result(const struct silt_config *c, int pidfd, uint64_t before, struct result *ret,
                        struct silt_error *e)
{
    int64_t until_ms = silt_clock_ms() + WAIT_MS;
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    while (read_result(c, ret, e) < 0 || ret->number <= before) {
        if (poll(&p, 1, LOOK_MS) > 0)
            return silt_fail(e, SILT_GONE, "silt-super has ended; see its log");
        if (silt_clock_ms() > until_ms)
            return silt_fail(e, SILT_TIMEOUT, "no result after %d s; see the log", WAIT_MS / 1000);
    }
    return 0;
}

int silt_reload_request(const struct silt_config *c, struct silt_error *e)
{
    struct result before, now;
    silt_auto_fd pidfd = -1;
    pid_t pid;
    if (find_super(c, &pid, &pidfd, e) < 0)
        return -1;
    if (read_result(c, &before, e) < 0) /* to an older one the signal would be the end */
        return silt_because(e, "the running silt-super cannot reload; restart it instead");
    if (syscall(SYS_pidfd_send_signal, pidfd, SIGUSR2, NULL, 0) < 0)
        return silt_fail_errno(e, "signal silt-super, process %d", pid);
    if (await_result(c, pidfd, before.number, &now, e) < 0)
        return -1;
    return strcmp(now.text, "done") == 0 ? 0 : silt_fail(e, SILT_INTERNAL, "%.480s", now.text);
}
