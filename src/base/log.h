/* SPDX-License-Identifier: Apache-2.0 */
/* log: one event a line on stderr: a stable name, then fields.
 *     silt_log(SILT_LOG_INFO, "exec.exit", "sandbox=%s status=%d ms=%lld", id, status, ms);
 * A value from outside goes through silt_log_quote first, so that a line stays a line. */
#pragma once

#include "base/slice.h"

enum silt_log_level { SILT_LOG_DEBUG, SILT_LOG_INFO, SILT_LOG_WARN, SILT_LOG_ERROR };

void silt_log_open(const char *program, enum silt_log_level least);
bool silt_log_wants(enum silt_log_level level);
void silt_log(enum silt_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* From now on lines of `debug` level gather in memory, for a program that writes many of them from one
 * thread: they leave when the buffer is full or at silt_log_flush. Everything else leaves at once. */
void silt_log_gather(void);
bool silt_log_waiting(void); /* something has gathered */
void silt_log_flush(void);

enum { SILT_LOG_QUOTE_SIZE = 200 };
/* Printable ASCII stays, everything else becomes \xNN; cut with "..." when longer. Returns out. */
const char *silt_log_quote(silt_slice s, char out[SILT_LOG_QUOTE_SIZE]);
