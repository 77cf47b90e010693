/* SPDX-License-Identifier: Apache-2.0 */
/* upload: streams bytes from a client to a worker in a sandbox and computes their SHA-256. Hashing
 * costs as much as the rest together, so a worker thread does it on whole blocks while siltd's loop
 * sends them. Owned by the file request that feeds it. */
#pragma once

#include "base/share.h"
#include "event/worker.h"

enum {
    SILT_SHA256_HEX_SIZE = 65,
    SILT_UPLOAD_PIECE_MAX = 128 << 10, /* the largest piece that the HTTP side holds at once */
};

struct silt_upload;

struct silt_upload_sink { /* borrowed: must outlive the upload */
    /* False if not accepted; call silt_upload_push when there is room. */
    bool (*feed)(struct silt_upload_sink *sink, silt_slice bytes, bool last);
    void (*room)(struct silt_upload_sink *sink);   /* silt_upload_add may continue */
    void (*hashed)(struct silt_upload_sink *sink); /* the hash is complete, after the last byte */
};

/* `many`: the size is large or unknown; the bytes then lie in memory shared with the worker, so
 * they are copied only once. */
struct silt_upload *silt_upload_new(struct silt_worker *threads, struct silt_upload_sink *sink,
                                    bool many);
/* Allowed while a thread is using it; NULL is fine. */
void silt_upload_free(struct silt_upload *u);
/* The shared memory to pass to the worker before the first `feed`; NULL: the bytes are not in
 * shared memory. */
const struct silt_share *silt_upload_share(const struct silt_upload *u);
/* The best buffer for the next piece. */
char *silt_upload_room(struct silt_upload *u, size_t *ret_size);
/* Accepts the whole piece: bytes read into silt_upload_room, or at most SILT_UPLOAD_PIECE_MAX bytes
 * from elsewhere. False: add no more until `room` is called. */
bool silt_upload_add(struct silt_upload *u, silt_slice piece, bool end);
void silt_upload_push(struct silt_upload *u); /* the worker accepts bytes again */
void silt_upload_taken(
    struct silt_upload *u); /* the worker is done with the oldest fed piece of shared memory */
bool silt_upload_is_sent(const struct silt_upload *u);
bool silt_upload_is_hashed(const struct silt_upload *u);
void silt_upload_hex(struct silt_upload *u,
                     char out[SILT_SHA256_HEX_SIZE]); /* call once, after `hashed` */
