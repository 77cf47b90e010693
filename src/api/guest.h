/* SPDX-License-Identifier: Apache-2.0 */
/* guest: a client with a WebSocket, who stays until one of us has enough: what a handshake that is none is answered, and the
 * goodbye when the daemon ends. */
#pragma once

#include "api/api.h"
#include "http/socket.h"

struct silt_guest { /* embedded in its owner */
    struct silt_socket socket;
    struct silt_link link;
    /* The daemon ends: the socket is closed after this call. */
    void (*on_parting)(struct silt_guest *g);
};

/* False: it was refused already; without an upgrade as an unknown path. id: of the sandbox, as the path has it. */
bool silt_guest_may_enter(struct silt_http_request *r, silt_slice id);
/* After that; the callbacks of the socket and of the guest are set. */
void silt_guest_enter(struct silt_guest *g, struct silt_api *api, struct silt_http_request *r, size_t message_max);
void silt_guest_say(struct silt_guest *g, const struct silt_buf *text);
void silt_guest_leave(struct silt_guest *g, int code, silt_slice reason); /* fine when the socket is closed */
