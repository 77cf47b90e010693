/* SPDX-License-Identifier: Apache-2.0 */
/* client: a client connected by WebSocket: the response to an invalid handshake, and the close
 * message when siltd stops or has nothing more to send. Embedded in its owner; runs in siltd's
 * loop. */
#pragma once

#include "api/core/api.h"
#include "http/socket.h"

struct silt_ws_client { /* embedded in its owner */
    struct silt_socket socket;
    struct silt_link link;
    /* siltd or the owner is closing the connection: the socket is closed after this call. */
    void (*on_parting)(struct silt_ws_client *g);
};

/* False: already answered with an error (as an unknown path if no upgrade was requested). `id`: the
 * sandbox id as in the path. */
bool silt_ws_client_may_enter(struct silt_http_request *r, silt_slice id);
/* Call after silt_ws_client_may_enter, with the callbacks of the socket and the client set. */
void silt_ws_client_enter(struct silt_ws_client *g, struct silt_api *api,
                          struct silt_http_request *r, size_t message_max);
void silt_ws_client_say(struct silt_ws_client *g, const struct silt_buf *text);
void silt_ws_client_leave(struct silt_ws_client *g, int code,
                          silt_slice reason); /* no effect if the socket is closed */
/* The same for all clients whose connections have this tag; NULL: all clients. */
void silt_ws_clients_leave(struct silt_api *api, const void *tag, int code, silt_slice reason);
