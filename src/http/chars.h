/* SPDX-License-Identifier: Apache-2.0 */
/* chars: tables of the bytes allowed in header names and values. Private to this directory. */
#pragma once

#include <stdbool.h>

extern const bool silt_http_is_token[256]; /* names: RFC 9110 5.6.2 */
extern const bool silt_http_is_text[256];  /* values: VCHAR, SP, HTAB, obs-text */
