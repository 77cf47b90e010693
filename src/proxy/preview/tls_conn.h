/* SPDX-License-Identifier: Apache-2.0 */
/* tls_conn: TLS between a client and silt-proxy. v->out holds plaintext, which stays there until
 * the records made from it are sent: code that asks whether output is pending need not know about
 * TLS. */
#pragma once

#include "proxy/preview/client_conn.h"

struct silt_tls_conn *silt_tls_conn_new(struct silt_client_conn *v,
                                        const struct silt_tls_identity *identity);
void silt_tls_conn_stop(
    struct silt_tls_conn *l); /* when the client is gone, in the same loop turn */
void silt_tls_conn_free(struct silt_tls_conn *l);

/* As silt_client_conn_recv, silt_client_conn_flush and silt_client_conn_shut. */
ssize_t silt_tls_conn_recv(struct silt_tls_conn *l, char *out, size_t room);
int silt_tls_conn_flush(struct silt_tls_conn *l);
void silt_tls_conn_shut(struct silt_tls_conn *l);

void silt_tls_conn_shrink(struct silt_tls_conn *l);      /* idle: frees unused memory */
bool silt_tls_conn_is_up(const struct silt_tls_conn *l); /* the handshake is complete */
bool silt_tls_conn_waits(const struct silt_tls_conn *l); /* records are pending */
/* Too many TLS responses are pending: the client does not read them. */
bool silt_tls_conn_is_chatty(const struct silt_tls_conn *l);
/* Calls the client's on_ready soon if input is already buffered. */
void silt_tls_conn_wants(struct silt_tls_conn *l);
