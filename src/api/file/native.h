/* SPDX-License-Identifier: Apache-2.0 */
/* native: helpers shared by the routes below /v1/sandboxes/{id}/files. Runs in siltd. */
#pragma once

#include "api/file/file.h"

/* Reads the path from the query. False: already answered with an error. */
bool silt_native_path(struct silt_file *f);
/* Reads an octal mode such as 0644; *ret is unchanged if absent. */
bool silt_native_mode(silt_slice text, uint32_t *ret);

enum { SILT_ETAG_SIZE = 80 };
void silt_native_etag(const struct silt_worker_meta *m,
                      char out[SILT_ETAG_SIZE]); /* quotes included */
void silt_native_meta(struct silt_buf *b,
                      const struct silt_worker_meta *m);   /* adds members to an open object */
void silt_native_octal(struct silt_buf *b, uint32_t mode); /* "mode":"0644" */
void silt_native_time(struct silt_buf *b, const char *key, int64_t ns);
/* Sends another operation to the worker for the same request; false: the request was answered and
 * is gone. */
bool silt_native_again(struct silt_file *f, uint32_t op);
