/* SPDX-License-Identifier: Apache-2.0 */
/* entrance: a way for visitors into a sandbox: a port that was exposed, which has a URL and is kept
 * in the store until it is unexposed or the sandbox destroyed; or one that the API's own callers
 * reach directly, which nobody else can name. silt-proxy knows it by its number (wire/preview.h). */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "event/loop.h"
#include "store/store.h"

struct silt_preview;
struct silt_sandbox;

enum {
    SILT_PORT_MIN = 1024,
    SILT_PORT_RESERVED = 3000, /* of the control server that other implementations have inside */
    SILT_ENTRANCES_MAX = 256,  /* exposed ports of one sandbox */
    SILT_ENTRANCES_DIRECT_MAX = 64,
    SILT_TOKEN_USUAL_MIN = 8, /* shorter ones can be guessed */
    SILT_PROOF_SECONDS_MAX = 30 * 86400,
};

struct silt_entrance {
    struct silt_link link;        /* in sandbox->entrances, exposed ones in the order of ports */
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_port_row row;     /* a direct one has no token */
    bool told;                    /* silt-proxy may know the number, perhaps from a former siltd */
    bool found;                   /* it was told by us: it may ask for sockets */
    bool used;                    /* by requests under way: the sandbox is held */
    struct silt_link refused;     /* visitors that wait for the port to open */
    struct silt_timer retry;
    int64_t pause_ms; /* before that */
    struct silt_grave grave;
};

struct silt_entrance_settings {
    const char *domain; /* all borrowed, for ever; "": there are no previews */
    bool https;
    bool short_tokens, old_form, paths, localhost_host;
};

/* What a caller of the API chooses. */
struct silt_entrance_options {
    uint16_t port;
    silt_slice name, token; /* without data: as before, or none, or a new one */
    const bool *locked;     /* NULL: as before, or not */
};

void silt_entrances_init(struct silt_sandbox *s);
void silt_entrances_load(struct silt_sandbox *s, const struct silt_port_row *row);
void silt_entrances_forget_all(struct silt_sandbox *s); /* the daemon ends */

/* Exposed ones: NULL when it is not. */
struct silt_entrance *silt_entrance_find(const struct silt_sandbox *s, uint16_t port);
/* SILT_INVALID: the token; SILT_CONFLICT: another port of the sandbox has it; SILT_LIMIT. A token that is not
 * the one before, or another choice of private, make a new number: *ret_former is that of the one that it
 * replaces, for silt_preview_drop; 0: none that silt-proxy could know. */
int silt_entrance_expose(struct silt_sandbox *s, const struct silt_entrance_options *o, struct silt_entrance **ret,
                         uint64_t *ret_former, struct silt_error *e);
int silt_entrance_unexpose(struct silt_entrance *x, uint64_t *ret_former, struct silt_error *e);
/* Makes one that has no URL, or finds it; NULL: there are too many in use. */
struct silt_entrance *silt_entrance_direct(struct silt_sandbox *s, uint16_t port);

/* "http://8000-demo-token.localhost:7459/" */
void silt_entrance_url(const struct silt_entrance *x, struct silt_buf *b);
/* The same as a path below the domain: "…/preview/demo/8000/token/" */
void silt_entrance_path_url(const struct silt_entrance *x, struct silt_buf *b);
/* With a proof until that second. */
void silt_entrance_signed_url(const struct silt_entrance *x, int64_t until_s, struct silt_buf *b);

/* sandbox.c: it is being destroyed; `on_dropped` as of silt_preview_drop, once for each number. How many? */
uint32_t silt_entrances_close_all(struct silt_sandbox *s, void (*on_dropped)(void *context));
/* container.c: its connections are to be cut; the same for those without a URL, with a context. */
uint32_t silt_entrances_close_direct(struct silt_sandbox *s, void (*on_dropped)(void *context), void *context);
