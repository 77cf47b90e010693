/* SPDX-License-Identifier: Apache-2.0 */
/* reader: the state of parsing one document. Private to this directory. */
#pragma once

#include "json/json.h"

struct silt_json_level {
    struct silt_json *node; /* the open array or object */
    struct silt_json *last; /* its last item; NULL: none yet */
};

struct silt_json_reader {
    const unsigned char *start, *at, *end;
    struct silt_arena *arena;
    struct silt_error *error;
    struct silt_json_level stack[SILT_JSON_DEPTH_MAX];
    size_t depth;
};

/* Sets the error at the reader's position; returns -1. */
int silt_json_refuse(struct silt_json_reader *r, const char *why);
void *silt_json_allocate(struct silt_json_reader *r, size_t size); /* NULL: the error is set */
int silt_json_read_string(struct silt_json_reader *r,
                          silt_slice *ret); /* called at the opening quote */
int silt_json_read_number(struct silt_json_reader *r, struct silt_json *v);
