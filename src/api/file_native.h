/* SPDX-License-Identifier: Apache-2.0 */
/* What the routes below /v1/sandboxes/{id}/files share. */
#pragma once

#include "api/file.h"

/* A request whose path is in the query; `size` bytes, cleared. NULL: refused already. */
void *silt_native_new(struct silt_http_request *r, silt_slice id, const struct silt_file_kind *kind, size_t size);
/* true or 1, false or 0, absent (keeps its value). False: refused already. */
bool silt_native_flag(struct silt_http_request *r, const char *name, bool *ret);
/* An octal mode, as 0644; absent: keeps its value. */
bool silt_native_mode(silt_slice text, uint32_t *ret);

enum { SILT_ETAG_SIZE = 80 };
void silt_native_etag(const struct silt_worker_meta *m, char out[SILT_ETAG_SIZE]); /* with its quotes */
void silt_native_meta(struct silt_buf *b, const struct silt_worker_meta *m); /* fields of an open object */
void silt_native_octal(struct silt_buf *b, uint32_t mode);                   /* "mode":"0644" */
void silt_native_time(struct silt_buf *b, const char *key, int64_t ns);
/* Another ask on behalf of the same request; false: it was answered, and is gone. */
bool silt_native_again(struct silt_file *f, uint32_t op);
