/* SPDX-License-Identifier: Apache-2.0 */
/* spawn: start one program in a handle. The child has its own memory, on purpose: a child that
 * shares ours (vfork) and is chosen by the guest's out-of-memory killer would take PID 1 along. */
#pragma once

#include "agent/child.h"
#include "agent/handle.h"
#include "base/error.h"

#include <sys/resource.h>

enum { SILT_JOINS_MAX = 8, SILT_SPAWN_EXTRA = 4, SILT_SPAWN_DIRS = 4 };
#define SILT_SPAWN_NO_EXTRA                                                                        \
    {                                                                                              \
        -1, -1, -1, -1                                                                             \
    }

/* What every child enters beside its handle: v1 `tasks` files of the guest's groups. */
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
/* We hold descriptors for everybody and need more than each; children begin with what we began
 * with. */
void silt_limits_raise_files(void);
void silt_limits_lower_files(void); /* after fork */

/* Everything is borrowed and used before silt_launch_start returns. */
struct silt_spawn {
    void (*run)(int in); /* instead of a program: works on standard input until it is done */
    const char *path;    /* NULL: argv[0], looked up in PATH of envp */
    char *const *argv;
    char *const *envp;
    int in, out, err;                  /* become 0, 1, 2; -1: /dev/null */
    int extra[SILT_SPAWN_EXTRA];       /* become 3, 4, …; -1: none */
    const char *user;                  /* as in wire/agent.h; NULL: root. A `run` only makes files in their name */
    bool loads_state;                  /* number 3 is the state of another user: the user's variables go there */
    const char *dirs[SILT_SPAWN_DIRS]; /* starts in the first that can be entered; else it fails */
    pid_t like;                        /* takes directory and ignored signals of this process */
    const struct silt_limits *limits;  /* NULL: ours, without the one that is for us alone */
    const char *probe;                 /* must be a directory that can be entered; not entered */
    bool background;                   /* SIGINT and SIGQUIT ignored, as for `command &` */
    bool terminal;                     /* standard output is one: it controls the session */
    const struct silt_handle *handle;
    const struct silt_joins *joins;
};

/* A program from its fork to its exit; embedded in its owner. Of on_started and on_failed exactly
 * one is called, and on_exited only after on_started. */
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
/* The process of `from`, which runs, is `to`'s, which has its callbacks. */
void silt_launch_take(struct silt_launch *to, struct silt_launch *from);
/* No callback comes any more; the process, if there is one, is an orphan. */
void silt_launch_forget(struct silt_launch *l);

/* What the child tells when it does not get to exec. */
struct silt_spawn_report {
    bool no_dir;
    struct silt_error error;
};
