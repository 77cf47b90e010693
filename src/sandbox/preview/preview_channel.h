/* SPDX-License-Identifier: Apache-2.0 */
/* preview_channel: siltd's end of the channel to silt-proxy's role preview (wire/preview.h). It
 * resolves URLs to exposed ports, provides sockets to them, and has connections cut when a port
 * closes. silt-proxy faces the internet and is untrusted: it may only name ports that siltd told it
 * or whose token it presents, and the state it can cause here is bounded. */
#pragma once

#include "base/map.h"
#include "event/loop.h"
#include "sandbox/preview/exposed_port.h"
#include "wire/preview.h"

struct silt_registry;

enum {
    SILT_PREVIEW_BUCKETS = 256,    /* for failed guesses */
    SILT_PREVIEW_VISITS_MAX = 256, /* per sandbox, waiting for a socket */
};

struct silt_preview {
    struct silt_registry *registry; /* borrowed */
    struct silt_watch watch;        /* fd -1: silt-proxy is not connected */
    struct silt_link queue;         /* messages to send; nothing is read meanwhile */
    struct silt_map by_number;      /* struct silt_exposed_port */
    struct silt_map by_alias;       /* struct silt_sandbox */
    struct silt_link visits;        /* sandbox/preview/preview_dial.c: requests for sockets */
    uint32_t visit_count;           /* including those only awaiting silt-priv's answer */
    struct silt_link drops;
    char secret[SILT_SECRET_SIZE];
    uint64_t seed; /* of the buckets */
    struct {
        uint32_t wrong;
        int64_t at_ms;
    } buckets[SILT_PREVIEW_BUCKETS];
};

extern const struct silt_facet silt_preview_facet;
/* Takes fd; replaces an earlier one. */
void silt_preview_connect(struct silt_preview *p, int fd);
silt_slice silt_preview_secret(const struct silt_preview *p);

/* Invalidates the number. Calls on_dropped (may be NULL) from the loop, when silt-proxy has closed
 * its connections or after two seconds. */
void silt_preview_drop(struct silt_preview *p, uint64_t number, void (*on_dropped)(void *context),
                       void *context);
/* Cancels the callbacks with this context. */
void silt_preview_leave(struct silt_preview *p, const void *context);
/* An admitted client connection: takes both descriptors, also on failure (silt-proxy is not
 * connected). */
struct silt_preview_visitor {
    int connection, said; /* a socket, and a memfd of `bytes` bytes */
    uint32_t bytes, flags;
};
int silt_preview_hand_over(struct silt_exposed_port *x, struct silt_preview_visitor v,
                           struct silt_error *e);

/* For exposed_port.c. */
void silt_preview_add(struct silt_exposed_port *x);
/* Waiting dials are answered that the port does not exist. */
void silt_preview_remove(struct silt_exposed_port *x);
void silt_preview_add_alias(struct silt_sandbox *s);
void silt_preview_remove_alias(struct silt_sandbox *s);

/* For this room. */
/* Takes the descriptors, also if nothing is sent. */
void silt_preview_say(struct silt_preview *p, const struct silt_preview_answer *a, const int *fds,
                      int nfds);
/* find.c: fills in the answer. */
void silt_preview_find(struct silt_preview *p, const struct silt_preview_find *f,
                       struct silt_preview_answer *ret);
