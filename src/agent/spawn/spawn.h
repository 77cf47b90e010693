/* SPDX-License-Identifier: Apache-2.0 */
/* spawn: starts one program in a handle. The child has its own memory on purpose: with shared
 * memory (vfork), the guest's OOM killer could choose the child and take PID 1 along. */
#pragma once

#include "agent/spawn/child.h"
#include "agent/spawn/handle.h"
#include "base/error.h"

#include <sys/resource.h>

enum { SILT_JOINS_MAX = 8, SILT_SPAWN_EXTRA = 4, SILT_SPAWN_DIRS = 4 };
#define SILT_SPAWN_NO_EXTRA                                                                        \
    {                                                                                              \
        -1, -1, -1, -1                                                                             \
    }

/* Groups that every child joins in addition to its handle: v1 `tasks` files. */
struct silt_joins {
    int fds[SILT_JOINS_MAX];
    size_t count;
};

/* Resource limits of a process. */
struct silt_limits {
    struct rlimit list[RLIM_NLIMITS];
    uint32_t known; /* bit per resource */
};
void silt_limits_take(struct silt_limits *l, pid_t pid);
/* We hold descriptors for all commands and need a higher limit than each; children start with the
 * original one. */
void silt_limits_raise_files(void);
void silt_limits_lower_files(void); /* after fork */

/* All members are borrowed and used only until silt_launch_start returns. */
struct silt_spawn {
    void (*run)(int in); /* instead of a program: runs this function on standard input */
    const char *path;    /* NULL: argv[0], looked up in PATH of envp */
    char *const *argv;
    char *const *envp;
    int in, out, err;            /* become 0, 1, 2; -1: /dev/null */
    int extra[SILT_SPAWN_EXTRA]; /* become 3, 4, …; -1: none */
    const char *user; /* as in wire/agent.h; NULL: root. A `run` only creates files as this user */
    /* descriptor 3 is the state of another user: the user's variables are added to it */
    bool loads_state;
    /* starts in the first that can be entered, fails if none can */
    const char *dirs[SILT_SPAWN_DIRS];
    pid_t like;                       /* copies directory and ignored signals of this process */
    const struct silt_limits *limits; /* NULL: ours, without the one meant for us alone */
    const char *probe;                /* must be a directory that can be entered; not entered */
    bool background;                  /* SIGINT and SIGQUIT ignored, as for `command &` */
    bool terminal; /* standard output is a terminal: it becomes the controlling terminal */
    const struct silt_handle *handle;
    const struct silt_joins *joins;
};

/* A program from fork to exit; embedded in its owner. Exactly one of on_started and on_failed is
 * called, and on_exited only after on_started. */
struct silt_launch {
    struct silt_loop *loop;         /* borrowed */
    struct silt_children *children; /* borrowed */
    struct silt_child child;
    struct silt_watch report; /* fd -1: the program runs, or there is none */
    void (*on_started)(struct silt_launch *l);
    /* no_dir: a directory could not be entered. */
    void (*on_failed)(struct silt_launch *l, bool no_dir, const struct silt_error *e);
    void (*on_exited)(struct silt_launch *l, int status);
};

int silt_launch_start(struct silt_launch *l, const struct silt_spawn *s, struct silt_error *e);
/* Moves a running child from `from` to `to`; `to` keeps its own callbacks. */
void silt_launch_take(struct silt_launch *to, struct silt_launch *from);
/* Watches a child of ours that another process forked: only on_exited is called. */
void silt_launch_adopt(struct silt_launch *l, pid_t pid);
/* No callback is called any more; the process, if any, becomes an orphan. */
void silt_launch_forget(struct silt_launch *l);

/* Sent by a child that fails before exec. */
struct silt_spawn_report {
    bool no_dir;
    struct silt_error error;
};
