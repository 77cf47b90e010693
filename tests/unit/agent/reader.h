/* SPDX-License-Identifier: Apache-2.0 */
/* reader: reads a log as wire/log.h says that one does, while it is written. */
#pragma once

#include "unit/base/unit.h"
#include "wire/log.h"

struct reader {
    int fd;
    uint64_t at; /* the next record */
};

struct reader_record {
    struct silt_log_record head;
    char bytes[SILT_LOG_RECORD_MAX];
};

struct silt_log_head reader_head(int fd);
/* 1: a record; 0: none yet; -1: what was here is gone: `at` is where the log begins now. */
int reader_next(struct reader *r, struct reader_record *ret);
/* Both streams of what is there, in one text each, terminated, to be freed. Answers the bytes that
 * gaps tell of. */
uint64_t reader_all(int fd, char **ret_out, char **ret_err);
