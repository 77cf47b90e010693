/* SPDX-License-Identifier: Apache-2.0 */
/* capture: where the way out of captive sandboxes (SILT_NET_CAPTIVE) leads. One capture is one sidecar of the engine socket: the port
 * of a program on 127.0.0.1 that every connection is offered to, which names resolve, and a certificate authority. It has a number,
 * the caller's choice and not 0, and is there before, after and while a sandbox belongs to it (silt_sandbox_options.capture). All of it
 * is kept in the store. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "event/loop.h"
#include "wire/egress.h"

#include <stdbool.h>

struct silt_registry;

/* What is to change; the rest stays. A capture that is new has no port, and `internet` and the name `*` are on. */
struct silt_capture_change {
    bool has_port, has_internet, has_hostnames;
    uint16_t port;
    bool internet;
    silt_slice hostnames; /* globs, one a line, lower case; borrowed */
};
enum { SILT_CAPTURE_BODY_MAX = 256 << 10 };
/* The body of `PUT /egress`. Slices are of the arena. SILT_INVALID tells what is wrong with it. */
int silt_capture_read(struct silt_arena *a, silt_slice body, struct silt_capture_change *ret,
                      struct silt_error *e);

/* Embedded in a request, zero but for on_done; silt_capture_leave when that goes. */
struct silt_capture_ask {
    struct silt_link link;
    struct silt_capture_setting *setting; /* capture.c's */
    /* Exactly once, perhaps before the call returns. `pem`: silt_capture_ca's, valid during the call. */
    void (*on_done)(struct silt_capture_ask *a, silt_slice pem, const struct silt_error *e);
};

/* Makes the capture when it is not there. Done when it is in force for each sandbox of it that runs (those that start later have it from
 * their beginning). On an error it is kept all the same, and comes into force as soon as that is possible. */
void silt_capture_set(struct silt_registry *r, uint64_t number, const struct silt_capture_change *c,
                      struct silt_capture_ask *a);
/* Its certificate. Makes the capture when it is not there. */
void silt_capture_ca(struct silt_registry *r, uint64_t number, struct silt_capture_ask *a);
void silt_capture_leave(struct silt_capture_ask *a); /* fine when it is over */
/* The sidecar goes. Sandboxes that belong to it reach nothing any more from their next start on. Fine when there is none. */
void silt_capture_remove(struct silt_registry *r, uint64_t number);
/* Of the program; 0: not known. */
uint16_t silt_capture_port(const struct silt_registry *r, uint64_t number);

/* The rest is for this room. */
struct silt_captures {
    struct silt_registry *registry; /* borrowed */
    struct silt_map map;            /* by number */
    struct silt_link settings;      /* under way */
};
int silt_captures_open(struct silt_registry *r, struct silt_error *e); /* what the store has */
void silt_captures_free(struct silt_captures *all);
/* A new silt-proxy: it is told the authorities that we have, and asked for the others. */
void silt_captures_introduce(struct silt_captures *all);
/* What silt-proxy says; NULL: it has none. */
void silt_captures_on_authority(struct silt_captures *all, uint64_t number,
                                const struct silt_egress_authority *authority);
/* For a CAPTURE of the sandbox whose row has this text. Its globs are the caller's (a memory file). */
int silt_captures_describe(struct silt_captures *all, const char *number, struct silt_egress_request *q,
                           int *ret_fd, struct silt_error *e);
/* For an AUTHORITY of q->authority. -1: there is none to tell. */
int silt_captures_authority(struct silt_captures *all, uint64_t number, int *ret_fd);
