/* SPDX-License-Identifier: Apache-2.0 */
/* quote: quotes a client's bytes as one word of a shell command. */
#pragma once

#include "base/buf.h"

/* Uses single quotes; `word` must not contain NUL. */
void silt_shell_quote(struct silt_buf *b, silt_slice word);
