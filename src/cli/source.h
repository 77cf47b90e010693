/* SPDX-License-Identifier: Apache-2.0 */
/* source: bodies of requests that come from a descriptor or from the answer of another request. */
#pragma once

#include "cli/client.h"
#include "cli/tar.h"

enum { SILT_SOURCE_PIECE = 256 * 1024 };

struct silt_source_fd {
    struct silt_client_source source;
    int fd;               /* borrowed */
    struct silt_tar *tar; /* NULL, or who writes to it: the body is whole only when it says so */
    char piece[SILT_SOURCE_PIECE];
};

struct silt_source_answer {
    struct silt_client_source source;
    struct silt_client *client; /* borrowed; its answer's head was read */
};

/* Until the descriptor's end. */
void silt_source_from_fd(struct silt_source_fd *s, int fd, struct silt_tar *tar);
void silt_source_from_answer(struct silt_source_answer *s, struct silt_client *client);
