/* SPDX-License-Identifier: Apache-2.0 */
/* siltd_channel: the channel between the role preview and siltd (wire/preview.h). Requests are
 * queued while siltd is away or busy, and are sent again if it dies before it answers. They have
 * no timeout here: the caller has one, and cancels. */
#pragma once

#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "event/loop.h"
#include "wire/preview.h"

struct silt_preview_channel_ask { /* embedded; must leave before it is freed */
    struct silt_link link;
    uint32_t serial; /* 0: not asked yet */
    uint32_t along;  /* serial of the ask that went in the same message; 0: none */
    bool open;
    /* false: not now; called again at silt_preview_channel_flush. */
    bool (*fill)(struct silt_preview_channel_ask *a, struct silt_preview_request *q);
    /* The answer. May take the descriptor in *fd. */
    void (*on_answer)(struct silt_preview_channel_ask *a, const struct silt_preview_answer *n,
                      int *fd);
};

struct silt_preview_channel_hooks {
    void (*on_drop)(void *context, uint64_t route);
    /* May take the descriptors: the connection, and the bytes read from it. */
    void (*on_hand)(void *context, const struct silt_preview_answer *n, int fds[2]);
    void *context;
};

enum { SILT_PREVIEW_CHANNEL_TELL_MAX = 4096 };

struct silt_preview_channel {
    struct silt_loop *loop; /* borrowed */
    struct silt_preview_channel_hooks hooks;
    struct silt_watch channel;
    struct silt_link waiting, asked; /* asks */
    struct silt_map serials;         /* of those asked */
    size_t count;                    /* of those asked */
    uint32_t last;                   /* serial given */
    struct {
        uint32_t type, serial, using;
        uint64_t route;
    } tells[SILT_PREVIEW_CHANNEL_TELL_MAX]; /* a ring of messages without an answer */
    size_t first, told;
    bool full; /* the channel */
};

void silt_preview_channel_init(struct silt_preview_channel *t, struct silt_loop *loop,
                               const struct silt_preview_channel_hooks *hooks);
/* Takes channel. All asks wait again; nothing is sent before silt_preview_channel_flush. */
void silt_preview_channel_replace(struct silt_preview_channel *t, int channel);
void silt_preview_channel_flush(struct silt_preview_channel *t);
void silt_preview_channel_ask(struct silt_preview_channel *t, struct silt_preview_channel_ask *a);
/* Asks for a route and for a socket of it in one message. `dial` is asked alone, as soon as it can
 * be filled, when there is no such message now, or its answer is no route. */
void silt_preview_channel_ask_both(struct silt_preview_channel *t,
                                   struct silt_preview_channel_ask *find,
                                   struct silt_preview_channel_ask *dial, uint32_t wait_ms);
void silt_preview_channel_leave(struct silt_preview_channel *t,
                                struct silt_preview_channel_ask *a); /* fine when it is not open */
void silt_preview_channel_use(struct silt_preview_channel *t, uint64_t route, uint32_t using);
void silt_preview_channel_dropped(struct silt_preview_channel *t, uint64_t route);
