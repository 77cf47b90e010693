/* SPDX-License-Identifier: Apache-2.0 */
/* child: whatever dies in the sandbox comes to PID 1. The ones we started have an owner who is
 * told; the others are orphans and only reaped. */
#pragma once

#include "base/list.h"
#include "event/loop.h"

#include <sys/types.h>

struct silt_child {
    struct silt_link link;
    pid_t pid;
    void (*on_exited)(struct silt_child *c, int status); /* as of waitpid; the child is forgotten */
};

struct silt_children {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch watch;
    struct silt_link list;
    void (*on_reaped)(struct silt_children *all); /* after each batch, orphans too */
};

/* Blocks every signal for this process: SIGCHLD is read from a descriptor. */
int silt_children_open(struct silt_children *all, struct silt_loop *loop, struct silt_error *e);
void silt_child_add(struct silt_children *all, struct silt_child *c);
void silt_child_forget(struct silt_child *c); /* it becomes an orphan; fine when it is one */
