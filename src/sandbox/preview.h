/* SPDX-License-Identifier: Apache-2.0 */
/* preview: siltd's side of the channel to silt-proxy's role preview (wire/preview.h): it tells which
 * entrance a visitor means, has sockets to it made, and is told when one is closed. silt-proxy faces
 * strangers and is not trusted: it may only name entrances that it was told of or whose token it
 * knows, and what it makes us keep is bounded. */
#pragma once

#include "base/map.h"
#include "event/loop.h"
#include "sandbox/entrance.h"
#include "wire/preview.h"

struct silt_registry;

enum {
    SILT_PREVIEW_BUCKETS = 256,  /* of wrong guesses */
    SILT_PREVIEW_VISITS_MAX = 256, /* of one sandbox, that wait for their sockets */
};

struct silt_preview {
    struct silt_registry *registry; /* borrowed */
    struct silt_watch watch;        /* fd -1: there is no silt-proxy now */
    struct silt_link queue;         /* what is to be said; nothing is read meanwhile */
    struct silt_map by_number;      /* struct silt_entrance */
    struct silt_map by_alias;       /* struct silt_sandbox */
    struct silt_link visits;        /* sandbox/visit.c: asks for sockets */
    uint32_t visit_count;           /* of them, also of those that only silt-priv's answer holds */
    struct silt_link drops;
    char secret[SILT_SECRET_SIZE];
    uint64_t seed; /* of the buckets */
    struct {
        uint32_t wrong;
        int64_t at_ms;
    } buckets[SILT_PREVIEW_BUCKETS];
};

struct silt_preview *silt_preview_new(struct silt_registry *r); /* the secret comes from the store, later */
void silt_preview_close(struct silt_preview *p); /* nobody is told or asked any more */
void silt_preview_free(struct silt_preview *p);
void silt_preview_connect(struct silt_preview *p, int fd); /* takes it; also in place of an earlier one */
silt_slice silt_preview_secret(const struct silt_preview *p);

/* The number leads nowhere; on_dropped (may be NULL) comes, from the loop, when silt-proxy has cut what was
 * open of it, or two seconds later. */
void silt_preview_drop(struct silt_preview *p, uint64_t number, void (*on_dropped)(void *context), void *context);
/* Whoever waited with this context is not told any more. */
void silt_preview_leave(struct silt_preview *p, const void *context);
/* A visitor that was let in: takes both descriptors, also when it fails (there is no silt-proxy now). */
struct silt_preview_visitor {
    int connection, said; /* a socket, and a memory file of `bytes` bytes */
    uint32_t bytes, flags;
};
int silt_preview_hand_over(struct silt_entrance *x, struct silt_preview_visitor v, struct silt_error *e);

/* For entrance.c. */
void silt_preview_add(struct silt_entrance *x);
void silt_preview_remove(struct silt_entrance *x); /* who waits at it is told that there is none */
void silt_preview_add_alias(struct silt_sandbox *s);
void silt_preview_remove_alias(struct silt_sandbox *s);

/* For this noun's own files. */
/* Descriptors are the callee's, also when it is not sent. */
void silt_preview_say(struct silt_preview *p, const struct silt_preview_answer *a, const int *fds, int nfds);
/* preview_find.c: fills in the answer. */
void silt_preview_find(struct silt_preview *p, const struct silt_preview_find *f, struct silt_preview_answer *ret);
