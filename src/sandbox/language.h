/* SPDX-License-Identifier: Apache-2.0 */
/* language: what interpreters there are, by which names, and how they are started. */
#pragma once

#include "base/slice.h"
#include "store/store.h"

/* The arguments, each with its NUL, of a process that is to be such a context, */
silt_slice silt_language_command(enum silt_language l);
/* and of one that waits to be one; empty: there are none. */
silt_slice silt_language_spare(enum silt_language l);
const char *silt_language_name(enum silt_language l);
bool silt_language_find(silt_slice name, enum silt_language *ret); /* aliases too */
