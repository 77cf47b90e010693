/* SPDX-License-Identifier: Apache-2.0 */
/* kernel: siltd's end of the talk with one interpreter process: two pipes with one JSON object per line, requests to it and
 * lines from it, and those of its standard output and error. We made all four, and our ends never wait; pipes, because
 * a socket would bring us descriptors of the guest's. What comes is hostile and bounded; output that was written before
 * a line is told before it. */
#pragma once

#include "base/buf.h"
#include "event/loop.h"
#include "sandbox/lane.h"
#include "wire/super.h"

enum {
    SILT_KERNEL_REQUESTS, /* the only one that we write to */
    SILT_KERNEL_OUT,
    SILT_KERNEL_ERR,
    SILT_KERNEL_LINES,
    SILT_KERNEL_FDS, /* in this order also in silt-super's store */
};
_Static_assert((int)SILT_KERNEL_FDS == (int)SILT_SUPER_CONTEXT_FDS, "silt-super keeps what a kernel has");

enum {
    SILT_KERNEL_LINE_MAX = 32 << 20,
    SILT_KERNEL_SHORT = 64 << 10,  /* longer ones need a lane */
    SILT_KERNEL_LONG = 256 << 10,  /* longer ones would hold up the loop */
    SILT_KERNEL_LANES = 16,        /* of all kernels: half a gigabyte */
    SILT_KERNEL_LANES_EACH = 2,    /* of those of one sandbox */
    SILT_KERNEL_LINE_MS = 30000,   /* for the rest of a line */
};

struct silt_kernel_end {
    struct silt_watch watch; /* fd owned; -1: closed */
    struct silt_kernel *kernel;
};

struct silt_kernel {
    struct silt_loop *loop; /* borrowed */
    struct silt_kernel_end ends[SILT_KERNEL_FDS];
    struct silt_buf line;   /* that has not ended */
    struct silt_buf after;  /* what came along with the end of a long line */
    struct silt_buf unsent;
    size_t unsent_at;           /* what of it is sent */
    size_t *unsent_sums[2];     /* borrowed: of its sandbox, and of all; may be NULL */
    struct silt_timer patience; /* with an unfinished line */
    struct silt_lane lane;      /* for a long line; while it waits for one nothing is read */
    bool listening;
    bool held;   /* whoever listens has enough for now */
    bool failed; /* on_closed was called */
    bool ending; /* nobody is asked whether they have enough */
    bool busy;   /* its owner has a long line: nothing is read or told until silt_kernel_go_on */
    int pieces_left; /* ending: of what a child of the process may go on to say */

    /* None of them may close the kernel; ending it is the owner's, later. */
    void (*on_output)(struct silt_kernel *k, int stream, silt_slice bytes); /* 1 or 2 */
    void (*on_line)(struct silt_kernel *k, silt_slice line);                /* without its end */
    /* One of more than SILT_KERNEL_LONG: takes it. Later, and not in the callback: silt_kernel_go_on. */
    void (*on_long_line)(struct silt_kernel *k, struct silt_buf *line);
    bool (*is_full)(struct silt_kernel *k); /* asked before each read; then nothing until resume */
    /* Nobody can say any more lines (NULL), or it broke the rules. Nothing comes after it. */
    void (*on_closed)(struct silt_kernel *k, const char *why);
    void (*on_finished)(struct silt_kernel *k); /* after silt_kernel_finish, once: may close it */
};

/* The callbacks, loop, and all and user of the lane are set; every fd is -1. */
void silt_kernel_init(struct silt_kernel *k);
/* Makes the four pipes; all descriptors are the caller's. */
int silt_kernel_make(int ret_ours[SILT_KERNEL_FDS], int ret_theirs[SILT_KERNEL_FDS], struct silt_error *e);
/* The same for a kernel; *ret_theirs are the caller's. */
int silt_kernel_open(struct silt_kernel *k, int ret_theirs[SILT_KERNEL_FDS], struct silt_error *e);
void silt_kernel_adopt(struct silt_kernel *k, const int fds[SILT_KERNEL_FDS]); /* takes them */
void silt_kernel_fds(const struct silt_kernel *k, int ret[SILT_KERNEL_FDS]);   /* borrowed */
/* Fine at any time, also in a callback. Without listening everything stays where it is: in the pipes,
 * whose writers wait. */
void silt_kernel_listen(struct silt_kernel *k, bool on);
void silt_kernel_resume(struct silt_kernel *k);
/* A line with its end; kept until the kernel takes it. The buf is empty afterwards. */
void silt_kernel_send(struct silt_kernel *k, struct silt_buf *line);
/* What it said breaks the rules: on_closed is called, and nothing more is heard. */
void silt_kernel_refuse(struct silt_kernel *k, const char *why);
/* The long line was dealt with. */
void silt_kernel_go_on(struct silt_kernel *k);
/* The process is gone: tells what it left in the pipes, then on_finished; at once, or when the long
 * lines among it were dealt with. */
void silt_kernel_finish(struct silt_kernel *k);
void silt_kernel_close(struct silt_kernel *k); /* fine when it is closed */
