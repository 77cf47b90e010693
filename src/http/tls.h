/* SPDX-License-Identifier: Apache-2.0 */
/* tls: TLS 1.2 and 1.3 on bytes, for servers and for the command line as a client: the owner of the
 * connection passes in received bytes and sends what is in `out`; there is no socket here. Used by
 * silt-proxy and silt. A broken peer makes the connection fail with EPROTO. The only place that
 * includes OpenSSL's TLS headers. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

enum {
    SILT_TLS_FIRST = 0x16, /* the first byte of every TLS connection and of no HTTP request */
    SILT_TLS_PEM_MAX = 256 << 10,           /* for a certificate with its chain, and for a key */
    SILT_TLS_RECORD_MAX = (16 << 10) + 512, /* of one record with its overhead, approximately */
    SILT_TLS_NAME_MAX = 254,                /* including the terminator */
};

/* A certificate, its key, and the keys of the session tickets issued with it. */
struct silt_tls_identity;

/* Both in PEM; the chain may follow the certificate. */
int silt_tls_identity_new(silt_slice certificate, silt_slice key, struct silt_tls_identity **ret,
                          struct silt_error *e);
void silt_tls_identity_free(struct silt_tls_identity *i); /* existing connections keep using it */
int64_t silt_tls_identity_until_s(const struct silt_tls_identity *i);
/* The first name the certificate is for; "" if it has none. */
void silt_tls_identity_name(const struct silt_tls_identity *i, char out[SILT_TLS_NAME_MAX]);
bool silt_tls_identity_is_for(const struct silt_tls_identity *i, const char *host);

/* One connection. */
struct silt_tls;

/* `out` (borrowed) receives the bytes to send. */
struct silt_tls *silt_tls_new(const struct silt_tls_identity *i, struct silt_buf *out);
/* The client's side. The server must be `host`, a name or an address, by the authorities of the
 * file (PEM), or those of this machine if it is NULL. The first silt_tls_read, of nothing, begins.
 */
int silt_tls_dial(const char *host, const char *authorities, struct silt_buf *out,
                  struct silt_tls **ret, struct silt_error *e);
/* After a broken handshake of a client: what is wrong with the certificate; NULL: nothing. */
const char *silt_tls_distrust(const struct silt_tls *t);
void silt_tls_free(struct silt_tls *t);
/* Decrypts from *wire, which is shortened by the bytes used. Like recv: 0 when the peer announced
 * its end; -1 with EAGAIN if more bytes are needed, with EPROTO if they are invalid: `out` then
 * holds the alert for the peer, and the connection is dead. */
ssize_t silt_tls_read(struct silt_tls *t, silt_slice *wire, char *plain, size_t room);
bool silt_tls_has_more(const struct silt_tls *t); /* readable without more bytes from the wire */
int silt_tls_write(struct silt_tls *t, silt_slice plain); /* writes everything; -1: broken */
void silt_tls_end(struct silt_tls *t);                    /* sends close_notify */
bool silt_tls_is_open(
    const struct silt_tls *t); /* the handshake is complete and nothing has failed */
bool silt_tls_is_broken(const struct silt_tls *t);
