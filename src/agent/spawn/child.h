/* SPDX-License-Identifier: Apache-2.0 */
/* child: reaps the children of PID 1, which inherits every orphan of the sandbox. Children we
 * started have an owner that is notified; orphans are only reaped. */
#pragma once

#include "base/list.h"
#include "event/loop.h"

#include <sys/types.h>

struct silt_child {
    struct silt_link link;
    pid_t pid;
    /* status as from waitpid; the child is forgotten */
    void (*on_exited)(struct silt_child *c, int status);
};

struct silt_children {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch watch;
    struct silt_link list;
    void (*on_reaped)(struct silt_children *all); /* after each batch, also for orphans */
};

/* Blocks all signals of this process: SIGCHLD is read from a descriptor. */
int silt_children_open(struct silt_children *all, struct silt_loop *loop, struct silt_error *e);
bool silt_child_is_known(const struct silt_children *all, pid_t pid);
void silt_child_add(struct silt_children *all, struct silt_child *c);
void silt_child_forget(struct silt_child *c); /* it becomes an orphan; fine if it is one */
