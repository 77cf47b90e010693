/* SPDX-License-Identifier: Apache-2.0 */
/* log: the file that the output of a process is kept in, as wire/log.h says. The newest output
 * stays, the oldest goes. Nobody waits for the disk's room: what it does not take is lost, counted,
 * and told by a gap as soon as it takes something again. */
#pragma once

#include "wire/log.h"

#include <stdbool.h>
#include <stddef.h>

struct silt_log_writer {
    int fd;                    /* owned; -1: no log */
    struct silt_log_head head; /* as it is in the file, or will be with the next write */
    uint64_t lost;             /* bytes that are in no record, and that no gap tells of yet */
};

/* Most of what may be unread before somebody who must not lose anything has to wait. */
enum { SILT_LOG_UNREAD_MAX = SILT_LOG_RING - (192 << 10) };

/* Takes fd. */
void silt_log_writer_open(struct silt_log_writer *w, int fd);
void silt_log_writer_close(struct silt_log_writer *w); /* fine when there is none */

/* SILT_LOG_RECORD_MAX bytes, the same for all: what is put there is written by the next put. */
char *silt_log_writer_room(void);
void silt_log_writer_put(struct silt_log_writer *w, enum silt_log_stream stream, size_t len);
/* Nothing comes any more. */
void silt_log_writer_end(struct silt_log_writer *w, const struct silt_agent_end *end);
