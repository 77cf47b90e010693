/* SPDX-License-Identifier: Apache-2.0 */
/* socket: a WebSocket that a client opened: messages in, messages out. While the client takes nothing of what is on its way to it, nothing
 * is read from it. Pings keep everybody in between awake; silence closes nothing. */
#pragma once

#include "http/server.h"
#include "http/websocket.h"

/* What a handshake that is none is answered with. */
enum silt_socket_verdict {
    SILT_SOCKET_FINE = 0,
    SILT_SOCKET_BAD = 400,
    SILT_SOCKET_NOT_ONE = 426, /* no upgrade, or to something else, or another version */
    SILT_SOCKET_ENDING = 503,
};
#define SILT_SOCKET_VERSION "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n" /* fields of a 426 */

/* Embedded in its owner, who sets the callbacks first. Each may close it; the owner is buried then, not freed. */
struct silt_socket {
    void (*on_message)(struct silt_socket *s, bool text, silt_slice bytes);
    void (*on_drain)(struct silt_socket *s); /* pending fell below half of SILT_HTTP_MARK; may be NULL */
    /* The client has closed it, broken the protocol or left: the last call. Not after silt_socket_close. */
    void (*on_closed)(struct silt_socket *s);
    struct silt_loop *loop;            /* borrowed */
    struct silt_http_request *request; /* borrowed; NULL: closed */
    struct silt_ws_reader reader;
    size_t counted; /* of its message in what all have */
    struct silt_timer ping;
    bool held;    /* by the owner */
    bool choked;  /* the client does not take what waits for it */
};

enum silt_socket_verdict silt_socket_judge(const struct silt_http_request *r);
/* After a verdict of FINE, from inside the handler. A message has at most `max` bytes. */
void silt_socket_open(struct silt_socket *s, struct silt_loop *loop, struct silt_http_request *r, size_t max);
void silt_socket_send(struct silt_socket *s, enum silt_ws_op op, silt_slice payload);
size_t silt_socket_pending(const struct silt_socket *s);
void silt_socket_hold(struct silt_socket *s, bool held); /* what is read already still comes */
/* Says goodbye and lets go; fine when it is closed. */
void silt_socket_close(struct silt_socket *s, int code, silt_slice reason);
