/* SPDX-License-Identifier: Apache-2.0 */
/* mime: a file's MIME type: by the extension of its name, else by its first bytes, named as file(1)
 * does. We do not run the image's `file`: that would start a program of the guest for each read,
 * and for types unknown here it reports application/octet-stream too, or a binary type that no
 * client treats differently. */
#pragma once

#include "base/slice.h"
#include "wire/worker.h"

#include <sys/types.h>

void silt_mime_of(const char *path, silt_slice head, char out[SILT_WORKER_MIME_SIZE]);
/* Reads the file only if the name does not decide. Does not move the offset. */
int silt_mime_find(const char *path, int fd, char out[SILT_WORKER_MIME_SIZE], struct silt_error *e);
/* For everything but regular files. */
const char *silt_mime_of_mode(mode_t mode);

/* Private to this directory. */
const char *silt_sniff(silt_slice head);
const char *silt_sniff_text(silt_slice head); /* NULL: not text */
const char *silt_sniff_json(silt_slice head); /* NULL: not JSON */
