/* SPDX-License-Identifier: Apache-2.0 */
/* channel: silt-init's end of the line to siltd. Nothing here waits: what does not fit into the
 * socket is queued, and while something is queued nobody reads output (silt_channel_is_free). */
#pragma once

#include "base/fd.h"
#include "base/list.h"
#include "event/loop.h"
#include "wire/frame.h"

/* Embedded in whoever wants to know that the channel is free again; called once per wait. */
struct silt_channel_wait {
    struct silt_link link;
    void (*on_free)(struct silt_channel_wait *w);
};

struct silt_channel {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch watch;
    struct silt_link queue; /* frames that did not fit */
    size_t queued;          /* their bytes */
    struct silt_link waits;
    bool gone; /* the peer closed: nothing is sent any more */
    /* One frame; descriptors that it does not take out of the parcel are closed. */
    void (*on_frame)(struct silt_channel *c, const struct silt_frame *f, size_t body_len,
                     struct silt_parcel *p);
    void (*on_gone)(struct silt_channel *c);
};

/* Takes nothing: the socket lives as long as the process. The callbacks are set by the caller. */
int silt_channel_open(struct silt_channel *c, struct silt_loop *loop, int sock,
                      struct silt_error *e);

/* Says or queues one frame whose body is `head` followed by `tail`. */
struct silt_say {
    uint32_t type;
    uint32_t flags;
    uint64_t id;
    silt_slice head;
    silt_slice tail;
};
void silt_channel_say(struct silt_channel *c, const struct silt_say *s);
/* A new siltd is there: what was queued for the old one goes. */
void silt_channel_forget(struct silt_channel *c);

bool silt_channel_is_free(const struct silt_channel *c);
void silt_channel_wait(struct silt_channel *c, struct silt_channel_wait *w); /* fine when waiting */
