/* SPDX-License-Identifier: Apache-2.0 */
/* upload: bytes on their way from a client to a worker inside a sandbox, and their sha256. The hash takes as
 * long as everything else together, so a thread makes it from blocks that gather here, while the loop sends
 * them on. */
#pragma once

#include "base/share.h"
#include "event/worker.h"

enum {
    SILT_SHA256_HEX_SIZE = 65,
    SILT_UPLOAD_PIECE_MAX = 128 << 10, /* what the HTTP side has at most in its hands at once */
};

struct silt_upload;

struct silt_upload_sink { /* borrowed: must outlive the upload */
    /* False: not taken; silt_upload_push when there is room. */
    bool (*feed)(struct silt_upload_sink *sink, silt_slice bytes, bool last);
    void (*room)(struct silt_upload_sink *sink);   /* silt_upload_add may go on */
    void (*hashed)(struct silt_upload_sink *sink); /* all of it, after its end */
};

/* `many` bytes, or nobody knows how many, lie in memory that the worker sees: they are copied once. */
struct silt_upload *silt_upload_new(struct silt_worker *threads, struct silt_upload_sink *sink, bool many);
/* Also while a thread works for it; NULL is fine. */
void silt_upload_free(struct silt_upload *u);
/* For the worker, before the first `feed`: where the bytes are that it gets; NULL: nowhere that it could see. */
const struct silt_share *silt_upload_share(const struct silt_upload *u);
/* Where the next piece lies best. */
char *silt_upload_room(struct silt_upload *u, size_t *ret_size);
/* Takes all of it: what has been read to silt_upload_room, or at most SILT_UPLOAD_PIECE_MAX bytes from elsewhere.
 * False: no more before `room`. */
bool silt_upload_add(struct silt_upload *u, silt_slice piece, bool end);
void silt_upload_push(struct silt_upload *u); /* the worker takes bytes again */
void silt_upload_taken(struct silt_upload *u); /* the worker has used up what was fed first, of shared memory */
bool silt_upload_is_sent(const struct silt_upload *u);
bool silt_upload_is_hashed(const struct silt_upload *u);
void silt_upload_hex(struct silt_upload *u, char out[SILT_SHA256_HEX_SIZE]); /* once, when hashed */
