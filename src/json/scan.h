/* SPDX-License-Identifier: Apache-2.0 */
/* scan: byte scanning shared by the JSON reader and writer. Private to this directory. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte of a word is its lowest");

/* Sets bit 7 of each byte that is '"', '\\', a control character or not ASCII. A borrow can set
 * bits of bytes above a match by mistake, never below: the lowest bit is right. */
static inline uint64_t silt_json_marks(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t quote = (word ^ (ones * '"')) - ones;
    uint64_t slash = (word ^ (ones * '\\')) - ones;
    uint64_t control = word - ones * 0x20;
    return (word | quote | slash | control) & (ones << 7);
}

/* The first byte that is '"', '\\', a control character or not ASCII; `end` if there is none. */
static inline const unsigned char *silt_json_plain(const unsigned char *p, const unsigned char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        uint64_t marks = silt_json_marks(word);
        if (marks != 0)
            return p + __builtin_ctzll(marks) / 8;
    }
    while (p < end && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* Checks the non-ASCII UTF-8 sequence at `p` (table of RFC 3629): returns its length, 0 if the end
 * cuts it off, or minus the length of its maximal ill-formed part. */
static inline int silt_json_sequence(const unsigned char *p, size_t left)
{
    unsigned char a = p[0];
    if (a < 0xc2 || a > 0xf4)
        return -1;
    int need = a < 0xe0 ? 2 : a < 0xf0 ? 3 : 4;
    unsigned char low = a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80;
    unsigned char high = a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf;
    for (int i = 1; i < need; i++) {
        if ((size_t)i == left)
            return 0;
        if (p[i] < low || p[i] > high)
            return -i;
        low = 0x80;
        high = 0xbf;
    }
    return need;
}
