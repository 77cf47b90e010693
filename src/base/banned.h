/* SPDX-License-Identifier: Apache-2.0 */
/* banned: makes the C functions that Silt has replaced fail to compile. Included before every file.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With _FORTIFY_SOURCE glibc defines these as macros for clang. */
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol atoll      \
    system popen
