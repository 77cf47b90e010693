/* SPDX-License-Identifier: Apache-2.0 */
/* userns: new namespaces by unshare, clone and clone3, each in a child; in a new user and mount
 * namespace it mounts. */
#define _GNU_SOURCE
#include "attempt.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLONE3 = 435 };

static const struct kind {
    const char *name;
    int flag;
} kinds[] = {
    {"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},  {"net", CLONE_NEWNET},
    {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS},  {"cgroup", 0x02000000}, {"time", 0x00000080},
};

static void by_unshare(const struct kind *k)
{
    char name[32];
    snprintf(name, sizeof name, "unshare-%s", k->name);
    pid_t pid = fork();
    if (pid == 0) {
        attempt(name, unshare(k->flag));
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void by_clone(const struct kind *k)
{
    char name[32];
    if (k->flag == 0x80) /* these bits are the signal in clone */
        return;
    snprintf(name, sizeof name, "clone-%s", k->name);
    long pid = syscall(SYS_clone, (unsigned long)k->flag | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    attempt(name, pid);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
}

static void by_clone3(const struct kind *k)
{
    char name[32];
    uint64_t args[8] = {0};
    args[0] = (uint64_t)(unsigned)k->flag;
    args[4] = SIGCHLD;
    snprintf(name, sizeof name, "clone3-%s", k->name);
    long pid = syscall(CLONE3, args, sizeof args);
    if (pid == 0)
        _exit(0);
    attempt(name, pid);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
}

static void nested(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (attempt("nested", unshare(CLONE_NEWUSER | CLONE_NEWNS)) >= 0) {
            attempt("nested-tmpfs", mount("none", "/mnt", "tmpfs", 0, NULL));
            attempt("nested-overlay", mount("none", "/mnt", "overlay", 0, "lowerdir=/etc:/usr"));
        }
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

int main(void)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        by_unshare(&kinds[i]);
        by_clone(&kinds[i]);
        by_clone3(&kinds[i]);
    }
    nested();
    return 0;
}
