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

/* Buffers lines of level `debug` from now on, for a program that writes many of them from one
 * thread. They are written when the buffer is full or by silt_log_flush; all other lines are
 * written at once. */
void silt_log_gather(void);
bool silt_log_waiting(void); /* the buffer holds lines */
void silt_log_flush(void);

enum { SILT_LOG_QUOTE_SIZE = 200 };
/* Keeps printable ASCII, writes other bytes as \xNN, ends with "..." if cut. Returns out. */
const char *silt_log_quote(silt_slice s, char out[SILT_LOG_QUOTE_SIZE]);
