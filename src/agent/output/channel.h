/* SPDX-License-Identifier: Apache-2.0 */
/* channel: silt-init's end of the channel to siltd. Never blocks: frames that do not fit into the
 * socket are queued, and while the queue is not empty no output is read (silt_channel_is_free). */
#pragma once

#include "base/fd.h"
#include "base/list.h"
#include "event/loop.h"
#include "wire/frame.h"

/* Embedded in an object that waits for the channel to be free; called once per wait. */
struct silt_channel_wait {
    struct silt_link link;
    void (*on_free)(struct silt_channel_wait *w);
};

struct silt_channel {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch watch;
    struct silt_link queue; /* frames that did not fit */
    size_t queued;          /* bytes in the queue */
    struct silt_link waits;
    bool gone; /* the peer closed: nothing is sent any more */
    /* One frame; descriptors not taken out of the parcel are closed. */
    void (*on_frame)(struct silt_channel *c, const struct silt_frame *f, size_t body_len,
                     struct silt_parcel *p);
    void (*on_gone)(struct silt_channel *c);
};

/* The socket is borrowed and lives as long as the process. The caller sets the callbacks. */
int silt_channel_open(struct silt_channel *c, struct silt_loop *loop, int sock,
                      struct silt_error *e);

/* A frame whose body is `head` followed by `tail`. */
struct silt_say {
    uint32_t type;
    uint32_t flags;
    uint64_t id;
    silt_slice head;
    silt_slice tail;
};
void silt_channel_say(struct silt_channel *c, const struct silt_say *s);
void silt_channel_say_failed(struct silt_channel *c, uint64_t id, const struct silt_error *e);
/* A new siltd is connected: drops what was queued for the old one. */
void silt_channel_forget(struct silt_channel *c);

bool silt_channel_is_free(const struct silt_channel *c);
/* fine if already waiting */
void silt_channel_wait(struct silt_channel *c, struct silt_channel_wait *w);
