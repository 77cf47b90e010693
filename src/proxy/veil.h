/* SPDX-License-Identifier: Apache-2.0 */
/* veil: TLS between a visitor and us. What the rest of the room puts into v->out is plain and stays there until the records that it became
 * are sent, so that whoever asks whether something waits need not know of this. */
#pragma once

#include "proxy/visitor.h"

struct silt_veil *silt_veil_new(struct silt_visitor *v, const struct silt_tls_identity *identity);
void silt_veil_stop(struct silt_veil *l); /* at the end of the visitor, before the loop's turn is over */
void silt_veil_free(struct silt_veil *l);

/* As silt_visitor_recv, silt_visitor_flush and silt_visitor_shut. */
ssize_t silt_veil_recv(struct silt_veil *l, char *out, size_t room);
int silt_veil_flush(struct silt_veil *l);
void silt_veil_shut(struct silt_veil *l);

void silt_veil_shrink(struct silt_veil *l); /* it is idle: memory that is not used goes back */
bool silt_veil_is_up(const struct silt_veil *l); /* the handshake is over */
bool silt_veil_waits(const struct silt_veil *l); /* records are to be sent */
/* More of TLS's own answers wait than anybody needs who reads them. */
bool silt_veil_is_chatty(const struct silt_veil *l);
/* The visitor wants to read: it is called as if its socket were ready, when something has come already. */
void silt_veil_wants(struct silt_veil *l);
