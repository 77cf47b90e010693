/* SPDX-License-Identifier: Apache-2.0 */
/* tls_files: the files of `silt tls dev` in a directory: ca.pem and ca.key, which are kept, and
 * preview.pem and preview.key, which are replaced. */
#pragma once

#include "base/error.h"

/* domain "": only names of this machine. */
int silt_tls_files_make(const char *path, const char *domain, struct silt_error *e);
