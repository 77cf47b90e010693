/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"

static int value_of(char c)
{
    return silt_is_any(c, "ABCDEF") ? -1 : silt_hex_digit(c);
}

bool silt_digest_parse(silt_slice text, uint8_t ret[SILT_DIGEST_BYTES])
{
    if (text.len != 2 * (size_t)SILT_DIGEST_BYTES)
        return false;
    for (size_t i = 0; i < SILT_DIGEST_BYTES; i++) {
        int high = value_of(text.data[2 * i]), low = value_of(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
