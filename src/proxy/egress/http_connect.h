/* SPDX-License-Identifier: Apache-2.0 */
/* http_connect: the CONNECT request by which silt-proxy offers an intercepted connection to the
 * sidecar: what the first bytes reveal about the destination, and the parser of the response.
 * Works on bytes only, without sockets. */
#pragma once

#include "base/buf.h"
#include "wire/egress.h"

#include <sys/socket.h>

enum { SILT_HTTP_CONNECT_PEEK_MAX = 24 << 10 }; /* more bytes are never asked for */

struct silt_http_connect_hints { /* as silt_policy_clean makes them; "": none */
    char sni[SILT_EGRESS_NAME];  /* the server's name in TLS */
    char host[SILT_EGRESS_NAME]; /* of a request of HTTP/1 to port 80 */
};

/* Whether it is worth a look when `new` has come behind `before`: a head that comes byte by byte is
 * not read again for each. */
bool silt_http_connect_has_more(silt_slice before, silt_slice new);
/* `bytes`: the first ones, at least one. true: all is known that ever will be; false: more bytes
 * could tell more. */
bool silt_http_connect_look(silt_slice bytes, uint16_t port, struct silt_http_connect_hints *ret);
void silt_http_connect_write(struct silt_buf *out, const struct sockaddr_storage *to,
                             const struct sockaddr_storage *from,
                             const struct silt_http_connect_hints *h);
/* >0: size of the answer's head, and its status; 0: there is more to come; <0: that is no answer.
 */
int silt_http_connect_read(silt_slice bytes, int *ret_status);
