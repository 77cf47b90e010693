/* SPDX-License-Identifier: Apache-2.0 */
/* intercept: where the outgoing traffic of captive sandboxes (SILT_NET_CAPTIVE) goes. Each sidecar
 * of the engine socket has one intercept: a port on 127.0.0.1 to which every connection is offered,
 * the names that resolve, and a certificate authority. The caller chooses its number (not 0). It
 * exists independently of the sandboxes that use it (silt_sandbox_options.capture) and is kept in
 * the store. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "event/loop.h"
#include "wire/egress.h"

#include <stdbool.h>

struct silt_registry;

/* A partial update. A new intercept has no port; `internet` and the name `*` are on. */
struct silt_intercept_change {
    bool has_port, has_internet, has_hostnames;
    uint16_t port;
    bool internet;
    silt_slice hostnames; /* globs, one per line, lower case; borrowed */
};
enum { SILT_INTERCEPT_BODY_MAX = 256 << 10 };
/* Parses the body of `PUT /egress`. Slices point into the arena. SILT_INVALID says what is
 * wrong. */
int silt_intercept_read(struct silt_arena *a, silt_slice body, struct silt_intercept_change *ret,
                        struct silt_error *e);

/* Embedded in a request, zero except on_done; call silt_intercept_leave before it is freed. */
struct silt_intercept_ask {
    struct silt_link link;
    struct silt_intercept_setting *setting; /* private to intercept.c */
    /* Exactly once, perhaps before the call returns. `pem`: from silt_intercept_ca, valid during
     * the call. */
    void (*on_done)(struct silt_intercept_ask *a, silt_slice pem, const struct silt_error *e);
};

/* Creates the intercept if needed. Done when it is in force for each of its running sandboxes;
 * later ones have it from their start. After an error the change is kept and takes effect as soon
 * as possible. */
void silt_intercept_set(struct silt_registry *r, uint64_t number,
                        const struct silt_intercept_change *c, struct silt_intercept_ask *a);
/* Returns its certificate. Creates the intercept if needed. */
void silt_intercept_ca(struct silt_registry *r, uint64_t number, struct silt_intercept_ask *a);
void silt_intercept_leave(struct silt_intercept_ask *a); /* no-op if finished */
/* The sidecar is removed. From their next start on, its sandboxes reach nothing. No-op if there is
 * none. */
void silt_intercept_remove(struct silt_registry *r, uint64_t number);
/* Port of its program; 0: unknown. */
uint16_t silt_intercept_port(const struct silt_registry *r, uint64_t number);

/* The rest is for this room. */
extern const struct silt_facet silt_intercept_facet;

struct silt_intercepts {
    struct silt_registry *registry; /* borrowed */
    struct silt_map map;            /* by number */
    struct silt_link settings;      /* in progress */
    uint32_t (*owner)(const struct silt_registry *r,
                      uint64_t number); /* uid of its creator; NULL: root */
};
/* Sends a new silt-proxy the authorities we have and requests the others. */
void silt_intercepts_introduce(struct silt_intercepts *all);
/* silt-proxy's answer; NULL: it has none. */
void silt_intercepts_on_authority(struct silt_intercepts *all, uint64_t number,
                                  const struct silt_egress_authority *authority);
/* Describes the intercept for a CAPTURE of the sandbox whose row has this text. The caller owns the
 * memfd with its globs. */
int silt_intercepts_describe(struct silt_intercepts *all, const char *number,
                             struct silt_egress_request *q, int *ret_fd, struct silt_error *e);
/* Writes the authority to a memfd, owned by the caller, for an AUTHORITY message. -1: there is
 * none. */
int silt_intercepts_authority(struct silt_intercepts *all, uint64_t number, int *ret_fd);
