/* SPDX-License-Identifier: Apache-2.0 */
/* exposed_port: a port of a sandbox that is reachable from outside. An exposed port has a URL and
 * is kept in the store until it is unexposed or the sandbox destroyed. A direct port serves the
 * API's own callers only and has no URL. silt-proxy knows both by number (wire/preview.h). Owned by
 * the sandbox, in siltd. */
#pragma once

#include "sandbox/core/sandbox.h"

struct silt_preview;

extern const struct silt_facet silt_exposed_port_facet;

enum {
    SILT_PORT_MIN = 1024,
    SILT_PORT_RESERVED = 3000,    /* of the control server inside other implementations */
    SILT_EXPOSED_PORTS_MAX = 256, /* per sandbox */
    SILT_EXPOSED_PORTS_DIRECT_MAX = 64,
    SILT_TOKEN_USUAL_MIN = 8, /* shorter ones can be guessed */
    SILT_SIGNED_URL_SECONDS_MAX = 30 * 86400,
};

/* A caller's choices. */
struct silt_exposed_port_options {
    uint16_t port;
    silt_slice name, token; /* data NULL: unchanged, or none, or generated */
    const bool *locked;     /* NULL: unchanged, or unlocked */
};

/* Exposed ports only; NULL: not exposed. */
struct silt_exposed_port *silt_exposed_port_find(const struct silt_sandbox *s, uint16_t port);
/* SILT_INVALID: bad token; SILT_CONFLICT: another port of the sandbox has it; SILT_LIMIT. A
 * different token or privacy assigns a new number: *ret_former is the replaced one, for
 * silt_preview_drop; 0: none known to silt-proxy. */
int silt_exposed_port_expose(struct silt_sandbox *s, const struct silt_exposed_port_options *o,
                             struct silt_exposed_port **ret, uint64_t *ret_former,
                             struct silt_error *e);
int silt_exposed_port_unexpose(struct silt_exposed_port *x, uint64_t *ret_former,
                               struct silt_error *e);
/* Finds or creates a direct port; NULL: too many in use. */
struct silt_exposed_port *silt_exposed_port_direct(struct silt_sandbox *s, uint16_t port);

/* "http://8000-demo-token.localhost:7459/" */
void silt_exposed_port_url(const struct silt_exposed_port *x, struct silt_buf *b);
/* The same as a path below the domain: "…/preview/demo/8000/token/" */
void silt_exposed_port_path_url(const struct silt_exposed_port *x, struct silt_buf *b);
/* The same, signed until that second. */
void silt_exposed_port_signed_url(const struct silt_exposed_port *x, int64_t until_s,
                                  struct silt_buf *b);

/* Closes the direct ports; calls `on_dropped` as silt_preview_drop does, once per number. Returns
 * how many. */
uint32_t silt_exposed_ports_close_direct(struct silt_sandbox *s, void (*on_dropped)(void *context),
                                         void *context);
