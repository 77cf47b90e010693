/* SPDX-License-Identifier: Apache-2.0 */
/* heads: what a service is told of a visitor's request, and a visitor of the answer. Framing and everything that is said from one hop to
 * the next is written anew; what fronts vouch for (X-Forwarded-*) is our word alone; the rest passes. */
#pragma once

#include "proxy/body.h"
#include "proxy/host.h"

enum { SILT_HEADS_MAX = 2 * SILT_HTTP_HEAD_MAX }; /* a head with what we add */

struct silt_heads_visit {
    const struct silt_host *host; /* borrowed */
    const char *address;          /* the visitor's; borrowed */
    uint32_t flags;               /* SILT_PREVIEW_LOCALHOST ... */
    uint16_t port;
    bool tls;
    bool upgrade; /* it is asked for */
};

/* Breaks `out` when Connection names more fields than anybody has; so does silt_heads_answer. */
void silt_heads_request(struct silt_buf *out, const struct silt_http_head *h, const struct silt_heads_visit *v);

struct silt_heads_answer {
    enum silt_body_kind as;
    uint32_t flags;
    bool close;
    bool old;          /* HTTP/1.0 that asked to stay */
    silt_slice cookie; /* ours, as the value of Set-Cookie; empty: none */
};

void silt_heads_answer(struct silt_buf *out, const struct silt_http_head *h, const struct silt_heads_answer *a);

/* Whether a field of that name lists it. */
bool silt_heads_lists(const struct silt_http_head *h, silt_slice name, silt_slice token);
/* The query without our parameter, behind its '?'; nothing when it was all. */
void silt_heads_put_query(struct silt_buf *out, silt_slice query);
/* "silt-proof=...; HttpOnly ..." */
void silt_heads_put_cookie(struct silt_buf *out, const struct silt_host *host, uint32_t lasts_s, bool tls);
/* Every answer to a caged preview has it. */
extern const char silt_heads_cage[];
