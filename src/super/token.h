/* SPDX-License-Identifier: Apache-2.0 */
/* token: the file of the API token. Created with a random token if missing; a token that is
 * guessable or readable by others is refused. */
#pragma once

#include "base/error.h"

/* Creates the file (0600, 43 base64url characters) if it does not exist, else checks it. */
int silt_token_prepare(const char *path, struct silt_error *e);
/* Opens the file for siltd, at offset 0. */
int silt_token_open(const char *path, int *ret_fd, struct silt_error *e);
