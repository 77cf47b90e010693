/* SPDX-License-Identifier: Apache-2.0 */
/* websocket: frames and messages of RFC 6455, for either side; strict: reject, never repair. No extensions, so reserved bits are
 * refused. Knows no connection. */
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
    SILT_WS_NO_CODE = 1005, /* never sent */
    SILT_WS_NOT_UTF8 = 1007,
    SILT_WS_POLICY = 1008,
    SILT_WS_TOO_BIG = 1009,
    SILT_WS_FAILED = 1011,
    SILT_WS_LATER = 1013,
};

enum { SILT_WS_HEAD_MAX = 14, SILT_WS_CONTROL_MAX = 125, SILT_WS_REASON_MAX = 123, SILT_WS_ACCEPT_SIZE = 29 };

struct silt_ws_reader {
    bool client;             /* frames of a server come here: they have no mask. Else they must have one */
    struct silt_buf message; /* what came of it, up to its ceiling; the memory grows with what arrives */
    enum silt_ws_op type;    /* of the message; SILT_WS_CONTINUE: none has begun */
    bool done;               /* the message was handed out: goes with the next call */
    uint8_t head[SILT_WS_HEAD_MAX];
    size_t head_len;
    bool in_frame; /* its head is whole */
    uint64_t left; /* of its payload */
    size_t at;     /* in its payload: where the mask is */
    char control[SILT_WS_CONTROL_MAX];
    size_t control_len;
    int code; /* BAD: what to close with */
};

enum silt_ws_got { SILT_WS_MORE, SILT_WS_GOT_MESSAGE, SILT_WS_GOT_PING, SILT_WS_GOT_PONG, SILT_WS_GOT_CLOSE, SILT_WS_BAD };

/* A message has at most `max` bytes. */
void silt_ws_reader_init(struct silt_ws_reader *r, bool client, size_t max);
void silt_ws_reader_fini(struct silt_ws_reader *r);
/* Takes bytes from *in up to the end of the next thing. Its payload is valid until the next call; of a message r->type tells
 * which. After BAD nothing more comes. */
enum silt_ws_got silt_ws_read(struct silt_ws_reader *r, silt_slice *in, silt_slice *ret);
/* Of a Close that was got: SILT_WS_NO_CODE when it has none. */
int silt_ws_close_code(silt_slice payload);

/* One frame that is a whole message. With a mask for a client. */
void silt_ws_put(struct silt_buf *b, enum silt_ws_op op, silt_slice payload, const uint8_t mask[4]);
void silt_ws_put_close(struct silt_buf *b, int code, silt_slice reason, const uint8_t mask[4]); /* cuts the reason */
/* What a server answers to a Sec-WebSocket-Key. */
void silt_ws_accept(silt_slice key, char ret[SILT_WS_ACCEPT_SIZE]);
