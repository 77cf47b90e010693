/* SPDX-License-Identifier: Apache-2.0 */
/* tls: the server's end of TLS 1.2 and 1.3, over bytes. Whoever owns the connection hands in what came from it and sends what
 * lies in `out`; nothing here knows a socket. The only place that includes OpenSSL's TLS. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

enum {
    SILT_TLS_FIRST = 0x16,                  /* how every TLS connection begins, and no HTTP request does */
    SILT_TLS_PEM_MAX = 256 << 10,           /* of a certificate with its chain, and of a key */
    SILT_TLS_RECORD_MAX = (16 << 10) + 512, /* with what it is wrapped in, about */
    SILT_TLS_NAME_MAX = 254,                /* with its terminator */
};

/* A certificate, its key, and the keys of the tickets that were given with it. */
struct silt_tls_identity;

/* Both in PEM; behind the certificate may stand those that vouch for it. */
int silt_tls_identity_new(silt_slice certificate, silt_slice key, struct silt_tls_identity **ret, struct silt_error *e);
void silt_tls_identity_free(struct silt_tls_identity *i); /* connections that have it go on */
int64_t silt_tls_identity_until_s(const struct silt_tls_identity *i);
/* The first name that it is for; "" without any. */
void silt_tls_identity_name(const struct silt_tls_identity *i, char out[SILT_TLS_NAME_MAX]);
bool silt_tls_identity_is_for(const struct silt_tls_identity *i, const char *host);

/* One connection. */
struct silt_tls;

/* `out` (borrowed) gets what is to be sent. */
struct silt_tls *silt_tls_new(const struct silt_tls_identity *i, struct silt_buf *out);
void silt_tls_free(struct silt_tls *t);
/* What the peer says in *wire, which is shortened by what was used. As recv: 0 at the end that the peer announced; -1 with EAGAIN when
 * more of the wire is needed, with EPROTO when it is no good: then `out` says so to the peer, and nothing else will come. */
ssize_t silt_tls_read(struct silt_tls *t, silt_slice *wire, char *plain, size_t room);
bool silt_tls_has_more(const struct silt_tls *t); /* to be read, without any more of the wire */
int silt_tls_write(struct silt_tls *t, silt_slice plain); /* all of it; -1: broken */
void silt_tls_end(struct silt_tls *t);                    /* announces that we say no more */
bool silt_tls_is_open(const struct silt_tls *t);          /* the handshake is over, and nothing is broken */
bool silt_tls_is_broken(const struct silt_tls *t);
