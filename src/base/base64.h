/* SPDX-License-Identifier: Apache-2.0 */
/* base64: the standard alphabet with padding, in pieces of any size. */
#pragma once

#include "base/buf.h"

/* Zero-initialize. */
struct silt_base64 {
    unsigned char part[2]; /* bytes that do not fill a group yet */
    unsigned len;
};
void silt_base64_encode(struct silt_base64 *x, struct silt_buf *b, silt_slice bytes);
void silt_base64_encode_end(struct silt_base64 *x, struct silt_buf *b);

/* NULL, or what is wrong: a byte outside of the alphabet, or padding that is not at the end. Padding may be
 * left out. */
const char *silt_base64_check(silt_slice text);
size_t silt_base64_size(silt_slice text); /* of what a checked text stands for */
/* Cuts whole groups off a checked text as long as their bytes fit; the number of bytes. */
size_t silt_base64_decode(silt_slice *text, char *out, size_t room);
