/* SPDX-License-Identifier: Apache-2.0 */
/* error_page: responses that silt-proxy writes itself instead of the service: HTML for browsers,
 * JSON for programs. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

enum silt_error_page_kind {
    SILT_ERROR_PAGE_MALFORMED, /* `status` says how */
    SILT_ERROR_PAGE_UNKNOWN,   /* no such preview: the same for every reason */
    SILT_ERROR_PAGE_LOCKED,
    SILT_ERROR_PAGE_CLOSED,   /* nobody listens on the port */
    SILT_ERROR_PAGE_LATE,     /* nobody told in time */
    SILT_ERROR_PAGE_ENDED,    /* the sandbox; text says why */
    SILT_ERROR_PAGE_BROKEN,   /* the service broke off before it answered */
    SILT_ERROR_PAGE_NOT_HTTP, /* the service says something else than HTTP/1.1 */
    SILT_ERROR_PAGE_BUSY,
    SILT_ERROR_PAGE_GUESSING, /* too many unknown names from one address */
    SILT_ERROR_PAGE_MAX
};

struct silt_error_page {
    enum silt_error_page_kind kind;
    int status;       /* MALFORMED */
    uint16_t port;    /* 0: none is known */
    uint32_t wait_ms; /* CLOSED: how long was waited */
    const char *text; /* ENDED; NULL: none */
    bool html;        /* people read it */
    bool head_only;
    bool close;
    bool old; /* HTTP/1.0 that asked to stay */
};

enum { SILT_ERROR_PAGE_MAX_BYTES = 8192 };
void silt_error_page_write(struct silt_buf *out, const struct silt_error_page *p);

struct silt_error_page_move {
    silt_slice to, query; /* where to; the query is without our parameter already */
    silt_slice cookie;
    bool close, old;
};
struct silt_error_page_lift {
    silt_slice host, target;
    bool close, old;
};
/* A 308 to https. */
void silt_error_page_write_lift(struct silt_buf *out, const struct silt_error_page_lift *l);
/* A 302 that keeps no trace of the proof. */
void silt_error_page_write_move(struct silt_buf *out, const struct silt_error_page_move *m);
