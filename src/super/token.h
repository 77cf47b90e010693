/* SPDX-License-Identifier: Apache-2.0 */
/* token: the API token's file. Made with a random token when missing; one that could be guessed, or
 * that others can read, is refused. */
#pragma once

#include "base/error.h"

/* Makes the file (0600, 43 base64url characters) when it is not there, else checks it. */
int silt_token_prepare(const char *path, struct silt_error *e);
/* A descriptor at the file's beginning, for siltd. */
int silt_token_open(const char *path, int *ret_fd, struct silt_error *e);
