/* SPDX-License-Identifier: Apache-2.0 */
/* kernels: the interpreters' files, copied once into the template (engine/template.h): no image has
 * to have them, no mount is needed for them, and nobody inside can change them. */
#pragma once

#include "base/error.h"

enum { SILT_KERNELS_BYTES_MAX = 32 << 20, SILT_KERNELS_FILES_MAX = 1024 };

/* Folders and plain files below `from`, into the folder `to`. Without `from`: nothing, that is fine. */
int silt_kernels_copy(const char *from, int to, struct silt_error *e);
