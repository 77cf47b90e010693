/* SPDX-License-Identifier: Apache-2.0 */
/* ws_frame: the JSON messages of …/ws, read and written. Knows no socket. */
#pragma once

#include "json/json.h"

enum {
    SILT_WS_ID_MAX = 256,
    SILT_WS_FRAME_ROOM = 8192, /* of a frame, beside what it carries */
};

struct silt_ws_request { /* slices of the message or of the arena */
    silt_slice id, method, path;
    const struct silt_json *body, *headers; /* NULL: none */
};

enum silt_ws_what { SILT_WS_REQUEST, SILT_WS_CANCEL, SILT_WS_NOT_JSON, SILT_WS_INVALID };

/* With CANCEL only the id. */
enum silt_ws_what silt_ws_request_read(struct silt_arena *a, silt_slice message, struct silt_ws_request *ret);
/* As the head and the body of an HTTP request to a sandbox. SILT_INVALID: no request could be that. */
int silt_ws_request_lay(const struct silt_ws_request *q, const char *sandbox, struct silt_buf *head, struct silt_buf *body,
                        struct silt_error *e);

/* Cuts the next whole event off a stream of them. */
bool silt_ws_next_event(silt_slice *text, silt_slice *ret);

void silt_ws_frame_response(struct silt_buf *b, silt_slice id, int status, silt_slice json); /* empty: no body */
void silt_ws_frame_error(struct silt_buf *b, const char *id, const char *code, int status, const char *message);
/* Of an event of a stream; false: it carries nothing. */
bool silt_ws_frame_stream(struct silt_buf *b, silt_slice id, silt_slice event);
