/* SPDX-License-Identifier: Apache-2.0 */
/* websocket: frames and messages of RFC 6455, for either side; strict: reject, never repair.
 * Supports no extensions, so reserved bits are rejected. Pure: there is no connection here. */
#pragma once

#include "base/buf.h"

enum silt_ws_op {
    SILT_WS_CONTINUE = 0,
    SILT_WS_TEXT = 1,
    SILT_WS_BINARY = 2,
    SILT_WS_CLOSE = 8,
    SILT_WS_PING = 9,
    SILT_WS_PONG = 10,
};

enum { /* RFC 6455 7.4 */
       SILT_WS_NORMAL = 1000,
       SILT_WS_GOING = 1001,
       SILT_WS_WRONG = 1002,
       SILT_WS_NO_CODE = 1005, /* never sent on the wire */
       SILT_WS_NOT_UTF8 = 1007,
       SILT_WS_POLICY = 1008,
       SILT_WS_TOO_BIG = 1009,
       SILT_WS_FAILED = 1011,
       SILT_WS_LATER = 1013,
};

enum {
    SILT_WS_HEAD_MAX = 14,
    SILT_WS_CONTROL_MAX = 125,
    SILT_WS_REASON_MAX = 123,
    SILT_WS_ACCEPT_SIZE = 29
};

struct silt_ws_reader {
    bool client; /* reads a server's frames, which are unmasked; otherwise a client's, which must be
                    masked */
    struct silt_buf
        message; /* received so far, up to its limit; memory grows with the bytes received */
    enum silt_ws_op type; /* of the message; SILT_WS_CONTINUE: none in progress */
    bool done;            /* the message was returned: cleared by the next call */
    uint8_t head[SILT_WS_HEAD_MAX];
    size_t head_len;
    bool in_frame; /* the frame head is complete */
    uint64_t left; /* bytes left of its payload */
    size_t at;     /* offset in its payload, for the mask */
    char control[SILT_WS_CONTROL_MAX];
    size_t control_len;
    int code; /* BAD: the code to close with */
};

enum silt_ws_got {
    SILT_WS_MORE,
    SILT_WS_GOT_MESSAGE,
    SILT_WS_GOT_PING,
    SILT_WS_GOT_PONG,
    SILT_WS_GOT_CLOSE,
    SILT_WS_BAD
};

/* A message has at most `max` bytes. */
void silt_ws_reader_init(struct silt_ws_reader *r, bool client, size_t max);
void silt_ws_reader_fini(struct silt_ws_reader *r);
/* Takes bytes from *in up to the end of the next message or control frame. Its payload is valid
 * until the next call; r->type is the type of a message. After BAD nothing more is returned. */
enum silt_ws_got silt_ws_read(struct silt_ws_reader *r, silt_slice *in, silt_slice *ret);
/* The code of a received Close; SILT_WS_NO_CODE if it has none. */
int silt_ws_close_code(silt_slice payload);

/* Writes one frame that is a whole message. A client must pass a mask. */
void silt_ws_put(struct silt_buf *b, enum silt_ws_op op, silt_slice payload, const uint8_t mask[4]);
void silt_ws_put_close(struct silt_buf *b, int code, silt_slice reason,
                       const uint8_t mask[4]); /* truncates the reason */
/* The response to a Sec-WebSocket-Key. */
void silt_ws_accept(silt_slice key, char ret[SILT_WS_ACCEPT_SIZE]);
