/* SPDX-License-Identifier: Apache-2.0 */
/* language: the supported interpreters, their names and their command lines. */
#pragma once

#include "base/slice.h"
#include "store/store.h"

/* Command line of a context's process, each argument NUL-terminated. */
silt_slice silt_language_command(enum silt_language l);
/* The same for a prestarted process; empty: not supported. */
silt_slice silt_language_spare(enum silt_language l);
const char *silt_language_name(enum silt_language l);
bool silt_language_find(silt_slice name, enum silt_language *ret); /* also by alias */
