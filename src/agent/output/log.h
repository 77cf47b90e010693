/* SPDX-License-Identifier: Apache-2.0 */
/* log: writes a process's output to its log file (wire/log.h). The newest output is kept, the
 * oldest overwritten. Writes never wait for disk space: what does not fit is dropped, counted and
 * recorded as a gap once a write succeeds again. */
#pragma once

#include "wire/log.h"

#include <stdbool.h>
#include <stddef.h>

struct silt_log_writer {
    int fd;                    /* owned; -1: no log */
    struct silt_log_head head; /* as in the file, or as it will be after the next write */
    uint64_t lost;             /* bytes dropped and not yet recorded in a gap */
};

/* Maximum of unread bytes before a process whose output must not be lost has to wait. */
enum { SILT_LOG_UNREAD_MAX = SILT_LOG_RING - (192 << 10) };

/* Takes fd. */
void silt_log_writer_open(struct silt_log_writer *w, int fd);
void silt_log_writer_close(struct silt_log_writer *w); /* fine if there is no log */

/* A shared buffer of SILT_LOG_RECORD_MAX bytes: the next put writes its contents. */
char *silt_log_writer_room(void);
void silt_log_writer_put(struct silt_log_writer *w, enum silt_log_stream stream, size_t len);
/* No more output follows. */
void silt_log_writer_end(struct silt_log_writer *w, const struct silt_agent_end *end);
