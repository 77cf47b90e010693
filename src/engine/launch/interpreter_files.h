/* SPDX-License-Identifier: Apache-2.0 */
/* interpreter_files: copies the interpreters' files into the template once
 * (engine/launch/template.h). Images need not contain them, they need no mount, and the guest
 * cannot change them. */
#pragma once

#include "base/error.h"

enum { SILT_INTERPRETER_FILES_BYTES_MAX = 32 << 20, SILT_INTERPRETER_FILES_FILES_MAX = 1024 };

/* Copies directories and regular files below `from` into the directory `to`. Does nothing if `from`
 * does not exist. */
int silt_interpreter_files_copy(const char *from, int to, struct silt_error *e);
