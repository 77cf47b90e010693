/* SPDX-License-Identifier: Apache-2.0 */
/* base64: encodes and decodes the standard alphabet with padding, in pieces of any size. Decoding
 * expects a text that silt_base64_check has accepted. */
#pragma once

#include "base/buf.h"

/* Zero-initialize. */
struct silt_base64 {
    unsigned char part[2]; /* bytes that do not fill a group yet */
    unsigned len;
};
void silt_base64_encode(struct silt_base64 *x, struct silt_buf *b, silt_slice bytes);
void silt_base64_encode_end(struct silt_base64 *x, struct silt_buf *b);

/* NULL, or a message: a byte outside the alphabet, or padding before the end. Padding is optional.
 */
const char *silt_base64_check(silt_slice text);
size_t silt_base64_size(silt_slice text); /* of the bytes that a checked text decodes to */
/* Decodes whole groups of a checked text while their bytes fit, and cuts them off it. Returns the
 * number of bytes. */
size_t silt_base64_decode(silt_slice *text, char *out, size_t room);
