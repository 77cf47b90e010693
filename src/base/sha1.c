/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <assert.h>
#include <string.h>

enum { BLOCK = 64, WORDS = 80 };

static uint32_t turn(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

static void spread(const uint8_t *block, uint32_t w[WORDS])
{
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16
               | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < WORDS; i++)
        w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
}

/* What round i adds for the three words in the middle (FIPS 180-4, 4.1.1 and 4.2.1). */
static uint32_t mix(size_t i, uint32_t b, uint32_t c, uint32_t d)
{
    switch (i / 20) {
    case 0:
        return ((b & c) | (~b & d)) + 0x5a827999;
    case 1:
        return (b ^ c ^ d) + 0x6ed9eba1;
    case 2:
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    }
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t h[5], const uint8_t *block)
{
    uint32_t w[WORDS], v[5];
    spread(block, w);
    memcpy(v, h, sizeof(v));
    for (size_t i = 0; i < WORDS; i++) {
        uint32_t next = turn(v[0], 5) + mix(i, v[1], v[2], v[3]) + v[4] + w[i];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = turn(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (size_t i = 0; i < 5; i++)
        h[i] += v[i];
}

void silt_sha1(silt_slice text, uint8_t ret[SILT_SHA1_BYTES])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t blocks[2 * BLOCK] = {0};
    size_t count = text.len < BLOCK - 8 ? 1 : 2;
    assert(text.len <= SILT_SHA1_TEXT_MAX);
    if (text.len > 0)
        memcpy(blocks, text.data, text.len);
    blocks[text.len] = 0x80;
    blocks[count * BLOCK - 2] = (uint8_t)(text.len * 8 >> 8);
    blocks[count * BLOCK - 1] = (uint8_t)(text.len * 8);
    for (size_t i = 0; i < count; i++)
        add_block(h, blocks + i * BLOCK);
    for (size_t i = 0; i < SILT_SHA1_BYTES; i++)
        ret[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
