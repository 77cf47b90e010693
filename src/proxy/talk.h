/* SPDX-License-Identifier: Apache-2.0 */
/* talk: the channel to siltd of the role `preview` (wire/preview.h). Asks wait here while siltd is away or busy, and are asked again when
 * it died; whoever asks has a deadline of its own, and leaves. */
#pragma once

#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "event/loop.h"
#include "wire/preview.h"

struct silt_talk_ask { /* embedded; must leave before it is freed */
    struct silt_link link;
    uint32_t serial; /* 0: not asked yet */
    bool open;
    /* false: not now; it is asked for again at silt_talk_flush. */
    bool (*fill)(struct silt_talk_ask *a, struct silt_preview_request *q);
    /* It is over. Takes the descriptor in *fd, if it wants it. */
    void (*on_answer)(struct silt_talk_ask *a, const struct silt_preview_answer *n, int *fd);
};

struct silt_talk_hooks {
    void (*on_drop)(void *context, uint64_t route);
    /* May take the descriptors: the connection, and what it said. */
    void (*on_hand)(void *context, const struct silt_preview_answer *n, int fds[2]);
    void *context;
};

enum { SILT_TALK_TELL_MAX = 4096 };

struct silt_talk {
    struct silt_loop *loop; /* borrowed */
    struct silt_talk_hooks hooks;
    struct silt_watch channel;
    struct silt_link waiting, asked; /* asks */
    struct silt_map serials;         /* of those asked */
    size_t count;                    /* of those asked */
    uint32_t last;                   /* serial given */
    struct {
        uint32_t type, serial, using;
        uint64_t route;
    } tells[SILT_TALK_TELL_MAX]; /* a ring of what has no answer */
    size_t first, told;
    bool full; /* the channel */
};

void silt_talk_init(struct silt_talk *t, struct silt_loop *loop, const struct silt_talk_hooks *hooks);
/* Takes channel. All asks wait again; nothing is sent before silt_talk_flush. */
void silt_talk_replace(struct silt_talk *t, int channel);
void silt_talk_flush(struct silt_talk *t);
void silt_talk_ask(struct silt_talk *t, struct silt_talk_ask *a);
void silt_talk_leave(struct silt_talk *t, struct silt_talk_ask *a); /* fine when it is not open */
void silt_talk_use(struct silt_talk *t, uint64_t route, uint32_t using);
void silt_talk_dropped(struct silt_talk *t, uint64_t route);
