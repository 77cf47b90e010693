/* SPDX-License-Identifier: Apache-2.0 */
/* source: request bodies that are read from a descriptor or from the response of another request.
 */
#pragma once

#include "cli/core/client.h"
#include "cli/file/tar.h"

enum { SILT_SOURCE_PIECE = 256 * 1024 };

struct silt_source_fd {
    struct silt_client_source source;
    int fd; /* borrowed */
    struct silt_tar
        *tar; /* NULL, or the tar that writes to it: the body is complete only if tar succeeds */
    char piece[SILT_SOURCE_PIECE];
};

struct silt_source_answer {
    struct silt_client_source source;
    struct silt_client *client; /* borrowed; the head of its response was read */
};

/* Reads until the end of the file. */
void silt_source_from_fd(struct silt_source_fd *s, int fd, struct silt_tar *tar);
void silt_source_from_answer(struct silt_source_answer *s, struct silt_client *client);
