/* SPDX-License-Identifier: Apache-2.0 */
/* spool: output of one command that is kept until it can be answered: up to a mark in memory, beyond it in
 * two nameless files of the sandbox, counted against its disk. Files are touched by worker threads only. */
#pragma once

#include "base/buf.h"
#include "sandbox/sandbox.h"

enum { SILT_SPOOL_MEMORY = 1 << 20 };

struct silt_spool;

struct silt_spool_sink { /* borrowed */
    /* n bytes are stored: as many more may come. */
    void (*stored)(struct silt_spool_sink *sink, size_t n);
    /* Everything is stored, after silt_spool_end; or storing failed (then nothing more is taken). */
    void (*settled)(struct silt_spool_sink *sink, const struct silt_error *e);
    /* The next piece that silt_spool_read asked for; empty at the end of the stream. */
    void (*piece)(struct silt_spool_sink *sink, silt_slice bytes);
};

struct silt_spool *silt_spool_new(struct silt_sandbox *s, struct silt_spool_sink *sink);
/* Also while a thread works for it: it goes when that is done. */
void silt_spool_free(struct silt_spool *s);
void silt_spool_add(struct silt_spool *s, int stream, silt_slice bytes);
void silt_spool_end(struct silt_spool *s); /* settled is called, perhaps at once */
bool silt_spool_in_memory(const struct silt_spool *s);
silt_slice silt_spool_memory(const struct silt_spool *s, int stream); /* while in memory */
uint64_t silt_spool_size(const struct silt_spool *s, int stream);
/* After settled: the bytes of a stream from `at` on; one question at a time. */
void silt_spool_read(struct silt_spool *s, int stream, uint64_t at);
