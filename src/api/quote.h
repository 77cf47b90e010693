/* SPDX-License-Identifier: Apache-2.0 */
/* quote: bytes of a caller as one word of a shell's command. */
#pragma once

#include "base/buf.h"

/* Between single quotes; `word` holds no NUL character. */
void silt_shell_quote(struct silt_buf *b, silt_slice word);
