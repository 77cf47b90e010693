/* SPDX-License-Identifier: Apache-2.0 */
/* frame: reads and writes the JSON messages of …/ws. Pure: it does not touch the socket. */
#pragma once

#include "json/json.h"

enum {
    SILT_WS_ID_MAX = 256,
    SILT_WS_FRAME_ROOM = 8192, /* size of a frame beside its payload */
};

struct silt_ws_request { /* slices of the message or of the arena */
    silt_slice id, method, path;
    const struct silt_json *body, *headers; /* NULL: none */
};

enum silt_ws_what { SILT_WS_REQUEST, SILT_WS_CANCEL, SILT_WS_NOT_JSON, SILT_WS_INVALID };

/* For CANCEL, only the id is set. */
enum silt_ws_what silt_ws_request_read(struct silt_arena *a, silt_slice message,
                                       struct silt_ws_request *ret);
/* Writes the message as head and body of an HTTP request to a sandbox. SILT_INVALID if it cannot be
 * one. */
int silt_ws_request_lay(const struct silt_ws_request *q, const char *sandbox, struct silt_buf *head,
                        struct silt_buf *body, struct silt_error *e);

/* Takes the next complete event off the front of a stream. */
bool silt_ws_next_event(silt_slice *text, silt_slice *ret);

void silt_ws_frame_response(struct silt_buf *b, silt_slice id, int status,
                            silt_slice json); /* empty: no body */
void silt_ws_frame_error(struct silt_buf *b, const char *id, const char *code, int status,
                         const char *message);
/* Writes a stream event as a frame; false if the event carries no data. */
bool silt_ws_frame_stream(struct silt_buf *b, silt_slice id, silt_slice event);
