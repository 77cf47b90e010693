/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"

#include <stddef.h>
#include <string.h>

static int value_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != 0 ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

static bool parse(const char *text, size_t len, uint8_t ret[SILT_DIGEST_BYTES])
{
    if (len != 2 * (size_t)SILT_DIGEST_BYTES)
        return false;
    for (size_t i = 0; i < SILT_DIGEST_BYTES; i++) {
        int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool silt_digest_next(const char **list, uint8_t ret[SILT_DIGEST_BYTES])
{
    for (;;) {
        *list += strspn(*list, ", ");
        size_t len = strcspn(*list, ", ");
        if (len == 0)
            return false;
        const char *word = *list;
        *list += len;
        if (parse(word, len, ret))
            return true;
    }
}

bool silt_digest_listed(const char *list, const uint8_t digest[SILT_DIGEST_BYTES])
{
    uint8_t one[SILT_DIGEST_BYTES];
    while (silt_digest_next(&list, one))
        if (memcmp(one, digest, sizeof(one)) == 0)
            return true;
    return false;
}
