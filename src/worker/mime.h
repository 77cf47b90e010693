/* SPDX-License-Identifier: Apache-2.0 */
/* mime: the type of a file: by the extension of its name, else by how it begins, in the words of
 * file(1). The image's own `file` is not asked: it would be a program of the guest's, started for
 * each read, and for what is not known here it says application/octet-stream as well, or some kind
 * of binary that no caller treats otherwise. */
#pragma once

#include "base/slice.h"
#include "wire/worker.h"

#include <sys/types.h>

void silt_mime_of(const char *path, silt_slice head, char out[SILT_WORKER_MIME_SIZE]);
/* Looks into the file only when the name does not tell. Moves no offset. */
int silt_mime_find(const char *path, int fd, char out[SILT_WORKER_MIME_SIZE], struct silt_error *e);
/* Of what is not a regular file. */
const char *silt_mime_of_mode(mode_t mode);

/* For this room. */
const char *silt_sniff(silt_slice head);
const char *silt_sniff_text(silt_slice head); /* NULL: not text */
const char *silt_sniff_json(silt_slice head); /* NULL: not JSON */
