/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_conn: siltd's connection to one interpreter process: four pipes, for requests (one JSON
 * object per line), replies, stdout and stderr. siltd creates all four and never blocks on its
 * ends; pipes, because a socket could pass us descriptors of the guest. Input is untrusted and
 * bounded. Output written before a line is delivered before that line. */
#pragma once

#include "base/buf.h"
#include "event/loop.h"
#include "sandbox/core/fair_queue.h"
#include "wire/super.h"

enum {
    SILT_KERNEL_REQUESTS, /* the only one we write to */
    SILT_KERNEL_OUT,
    SILT_KERNEL_ERR,
    SILT_KERNEL_LINES,
    SILT_KERNEL_FDS, /* silt-super stores them in this order */
};
_Static_assert((int)SILT_KERNEL_FDS == (int)SILT_SUPER_CONTEXT_FDS,
               "silt-super keeps what a kernel has");

enum {
    SILT_KERNEL_LINE_MAX = 32 << 20,
    SILT_KERNEL_SHORT = 64 << 10, /* longer lines need a place in the fair queue */
    SILT_KERNEL_LONG = 256 << 10, /* longer lines would block the loop: parsed on a thread */
    SILT_KERNEL_LANES = 16,       /* over all kernels: half a gigabyte */
    SILT_KERNEL_LANES_EACH = 2,   /* per sandbox */
    SILT_KERNEL_LINE_MS = 30000,  /* to receive the rest of a line */
};

struct silt_kernel_end {
    struct silt_watch watch; /* fd owned; -1: closed */
    struct silt_kernel *kernel;
};

struct silt_kernel {
    struct silt_loop *loop; /* borrowed */
    struct silt_kernel_end ends[SILT_KERNEL_FDS];
    struct silt_buf line;  /* incomplete line */
    struct silt_buf after; /* bytes that followed a long line */
    struct silt_buf unsent;
    size_t unsent_at;           /* how much of it is sent */
    size_t *unsent_sums[2];     /* borrowed: totals of the sandbox and of siltd; may be NULL */
    struct silt_timer patience; /* while a line is incomplete */
    struct silt_fair_queue_turn lane; /* place for a long line; nothing is read while it waits */
    bool listening;
    bool held;   /* the listener's buffers are full */
    bool failed; /* on_closed has been called */
    bool ending; /* is_full is not asked any more */
    bool busy; /* the owner has a long line: nothing is read or delivered until silt_kernel_go_on */
    int pieces_left; /* ending: limit on what a surviving child may still write */

    /* No callback may close the kernel; its owner does so later. */
    void (*on_output)(struct silt_kernel *k, int stream, silt_slice bytes); /* 1 or 2 */
    void (*on_line)(struct silt_kernel *k, silt_slice line); /* without its newline */
    /* A line longer than SILT_KERNEL_LONG: takes it. Call silt_kernel_go_on later, not in the
     * callback. */
    void (*on_long_line)(struct silt_kernel *k, struct silt_buf *line);
    bool (*is_full)(struct silt_kernel *k); /* asked before each read; true: stop until resume */
    /* Every writer is gone (NULL), or the protocol was violated. The last callback. */
    void (*on_closed)(struct silt_kernel *k, const char *why);
    void (*on_finished)(struct silt_kernel *k); /* once, after silt_kernel_finish; may close it */
};

/* The callbacks, loop, and the lane's `all` and `user` must be set; every fd must be -1. */
void silt_kernel_init(struct silt_kernel *k);
/* Creates the four pipes; the caller owns all descriptors. */
int silt_kernel_make(int ret_ours[SILT_KERNEL_FDS], int ret_theirs[SILT_KERNEL_FDS],
                     struct silt_error *e);
/* The same for a kernel; the caller owns *ret_theirs. */
int silt_kernel_open(struct silt_kernel *k, int ret_theirs[SILT_KERNEL_FDS], struct silt_error *e);
void silt_kernel_adopt(struct silt_kernel *k, const int fds[SILT_KERNEL_FDS]); /* takes them */
void silt_kernel_fds(const struct silt_kernel *k, int ret[SILT_KERNEL_FDS]);   /* borrowed */
/* Allowed at any time, also in a callback. While not listening, data stays in the pipes and their
 * writers block. */
void silt_kernel_listen(struct silt_kernel *k, bool on);
void silt_kernel_resume(struct silt_kernel *k);
/* Sends a line with its newline, queued until the kernel reads it. Empties the buf. */
void silt_kernel_send(struct silt_kernel *k, struct silt_buf *line);
/* Protocol violation by the kernel: calls on_closed and stops reading. */
void silt_kernel_refuse(struct silt_kernel *k, const char *why);
/* The long line has been handled. */
void silt_kernel_go_on(struct silt_kernel *k);
/* The process is gone: delivers what is left in the pipes, then calls on_finished, at once or when
 * the long lines among it are handled. */
void silt_kernel_finish(struct silt_kernel *k);
void silt_kernel_close(struct silt_kernel *k); /* no-op if closed */
