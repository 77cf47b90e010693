/* SPDX-License-Identifier: Apache-2.0 */
/* spool: buffers a command's output until it can be sent: in memory up to a threshold, beyond it in
 * two unlinked files of the sandbox, charged to its disk limit. Runs in siltd, owned by the
 * request; worker threads do all file access. Writing may fail; `settled` reports it. */
#pragma once

#include "base/buf.h"
#include "sandbox/core/sandbox.h"

enum { SILT_SPOOL_MEMORY = 1 << 20 };

struct silt_spool;

struct silt_spool_sink { /* borrowed */
    /* n bytes have been stored: that many more may be added. */
    void (*stored)(struct silt_spool_sink *sink, size_t n);
    /* Everything is stored, after silt_spool_end; or storing failed and nothing more is
     * accepted. */
    void (*settled)(struct silt_spool_sink *sink, const struct silt_error *e);
    /* The piece requested by silt_spool_read; empty at the end of the stream. */
    void (*piece)(struct silt_spool_sink *sink, silt_slice bytes);
};

struct silt_spool *silt_spool_new(struct silt_sandbox *s, struct silt_spool_sink *sink);
/* Allowed while a thread is using it: freed when the thread is done. */
void silt_spool_free(struct silt_spool *s);
void silt_spool_add(struct silt_spool *s, int stream, silt_slice bytes);
void silt_spool_end(struct silt_spool *s); /* `settled` is called, perhaps before this returns */
bool silt_spool_in_memory(const struct silt_spool *s);
silt_slice silt_spool_memory(const struct silt_spool *s,
                             int stream); /* only while it is in memory */
uint64_t silt_spool_size(const struct silt_spool *s, int stream);
/* After `settled`: reads a stream from offset `at`; one read at a time. */
void silt_spool_read(struct silt_spool *s, int stream, uint64_t at);
