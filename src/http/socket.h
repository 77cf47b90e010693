/* SPDX-License-Identifier: Apache-2.0 */
/* socket: the server's end of a WebSocket: messages in, messages out. While the client does not
 * read its pending messages, nothing is read from it. Pings keep intermediaries from timing out;
 * silence closes nothing. Embedded in its owner; runs in the loop. */
#pragma once

#include "http/server.h"
#include "http/websocket.h"

/* The result of checking a handshake; the value is the response's status. */
enum silt_socket_verdict {
    SILT_SOCKET_FINE = 0,
    SILT_SOCKET_BAD = 400,
    SILT_SOCKET_NOT_ONE = 426, /* no upgrade, or to another protocol or version */
    SILT_SOCKET_ENDING = 503,
};
#define SILT_SOCKET_VERSION                                                                        \
    "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n" /* headers of a 426 response */

/* Embedded in its owner, which sets the callbacks first. Any callback may close the socket; the
 * owner must then be buried, not freed. */
struct silt_socket {
    void (*on_message)(struct silt_socket *s, bool text, silt_slice bytes);
    void (*on_drain)(
        struct silt_socket *s); /* pending fell below half of SILT_HTTP_MARK; may be NULL */
    /* The client closed it, broke the protocol or left: the last call. Not called after
     * silt_socket_close. */
    void (*on_closed)(struct silt_socket *s);
    struct silt_loop *loop;            /* borrowed */
    struct silt_http_request *request; /* borrowed; NULL: closed */
    struct silt_ws_reader reader;
    size_t counted; /* its message's share of the total of all sockets */
    struct silt_timer ping;
    bool held;   /* paused by the owner */
    bool choked; /* the client does not read its pending messages */
};

enum silt_socket_verdict silt_socket_judge(const struct silt_http_request *r);
/* Call after a verdict of FINE, from inside the handler. A message has at most `max` bytes. */
void silt_socket_open(struct silt_socket *s, struct silt_loop *loop, struct silt_http_request *r,
                      size_t max);
void silt_socket_send(struct silt_socket *s, enum silt_ws_op op, silt_slice payload);
size_t silt_socket_pending(const struct silt_socket *s);
void silt_socket_hold(struct silt_socket *s,
                      bool held); /* messages already read are still delivered */
/* Sends a close frame and releases the request; no effect if closed. */
void silt_socket_close(struct silt_socket *s, int code, silt_slice reason);
