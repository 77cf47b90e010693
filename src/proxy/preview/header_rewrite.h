/* SPDX-License-Identifier: Apache-2.0 */
/* header_rewrite: rewrites the head of a request for the service and of a response for the client.
 * Framing and hop-by-hop fields are written anew, X-Forwarded-* are always ours, and every other
 * field is forwarded. */
#pragma once

#include "proxy/preview/body_framing.h"
#include "proxy/preview/host.h"

enum { SILT_HEADER_REWRITE_MAX = 2 * SILT_HTTP_HEAD_MAX }; /* a head with what we add */

struct silt_header_rewrite_visit {
    const struct silt_host *host; /* borrowed */
    const char *address;          /* the visitor's; borrowed */
    uint32_t flags;               /* SILT_PREVIEW_LOCALHOST ... */
    uint16_t port;
    bool tls;
    bool upgrade; /* it is asked for */
};

/* Breaks `out` when Connection names more fields than anybody has; so does
 * silt_header_rewrite_answer. */
void silt_header_rewrite_request(struct silt_buf *out, const struct silt_http_head *h,
                                 const struct silt_header_rewrite_visit *v);

struct silt_header_rewrite_answer {
    enum silt_body_framing_kind as;
    uint32_t flags;
    bool close;
    bool old;          /* HTTP/1.0 that asked to stay */
    silt_slice cookie; /* ours, as the value of Set-Cookie; empty: none */
};

void silt_header_rewrite_answer(struct silt_buf *out, const struct silt_http_head *h,
                                const struct silt_header_rewrite_answer *a);

/* Whether a field of that name lists it. */
bool silt_header_rewrite_lists(const struct silt_http_head *h, silt_slice name, silt_slice token);
/* The query without our parameter, behind its '?'; nothing when it was all. */
void silt_header_rewrite_put_query(struct silt_buf *out, silt_slice query);
/* "silt-proof=...; HttpOnly ..." */
void silt_header_rewrite_put_cookie(struct silt_buf *out, const struct silt_host *host,
                                    uint32_t lasts_s, bool tls);
/* Every answer to a caged preview has it. */
extern const char silt_header_rewrite_cage[];
