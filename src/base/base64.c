/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The value of a digit plus one; 0: not a digit. */
static const unsigned char values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

static char *put_group(char *out, const unsigned char *p)
{
    unsigned bits = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
    out[0] = digits[bits >> 18];
    out[1] = digits[bits >> 12 & 63];
    out[2] = digits[bits >> 6 & 63];
    out[3] = digits[bits & 63];
    return out + 4;
}

void silt_base64_encode(struct silt_base64 *x, struct silt_buf *b, silt_slice bytes)
{
    if (bytes.len == 0)
        return;
    const unsigned char *p = (const unsigned char *)bytes.data, *end = p + bytes.len;
    char *at = silt_buf_room(b, (x->len + bytes.len) / 3 * 4 + 4), *from = at;
    if (at == NULL)
        return;
    if (x->len > 0 && x->len + bytes.len >= 3) {
        unsigned char group[3] = {x->part[0], x->len > 1 ? x->part[1] : p[0], 0};
        p += 3 - x->len;
        group[2] = p[-1];
        at = put_group(at, group);
        x->len = 0;
    }
    for (; x->len == 0 && end - p >= 3; p += 3)
        at = put_group(at, p);
    b->len += (size_t)(at - from);
    while (p < end)
        x->part[x->len++] = *p++;
}

void silt_base64_encode_end(struct silt_base64 *x, struct silt_buf *b)
{
    char group[4];
    if (x->len == 0)
        return;
    (void)put_group(group, (const unsigned char[]){x->part[0], x->len > 1 ? x->part[1] : 0, 0});
    if (x->len == 1)
        group[2] = '=';
    group[3] = '=';
    silt_buf_add(b, (silt_slice){group, sizeof(group)});
    x->len = 0;
}

static silt_slice without_padding(silt_slice text)
{
    for (int i = 0; i < 2 && text.len > 0 && text.data[text.len - 1] == '='; i++)
        text.len--;
    return text;
}

const char *silt_base64_check(silt_slice text)
{
    silt_slice inner = without_padding(text);
    bool padded = inner.len < text.len;
    for (size_t i = 0; i < inner.len; i++)
        if (values[(unsigned char)inner.data[i]] == 0)
            return inner.data[i] == '=' ? "Invalid base64 padding" : "Invalid base64 characters";
    if (inner.len % 4 == 1 || (padded && text.len % 4 != 0))
        return "Invalid base64 padding";
    return NULL;
}

size_t silt_base64_size(silt_slice text)
{
    size_t len = without_padding(text).len;
    return len / 4 * 3 + (len % 4 > 0 ? len % 4 - 1 : 0);
}

static unsigned value_at(silt_slice s, size_t i)
{
    return i < s.len ? (values[(unsigned char)s.data[i]] - 1u) & 63 : 0;
}

size_t silt_base64_decode(silt_slice *text, char *out, size_t room)
{
    silt_slice s = without_padding(*text);
    size_t used = 0, made = 0;
    for (; used < s.len; used += 4) {
        size_t left = s.len - used, bytes = left >= 4 ? 3 : left - 1;
        if (made + bytes > room)
            break;
        unsigned bits = value_at(s, used) << 18 | value_at(s, used + 1) << 12
                        | value_at(s, used + 2) << 6 | value_at(s, used + 3);
        for (size_t i = 0; i < bytes; i++)
            out[made++] = (char)(bits >> (16 - 8 * i));
    }
    used = used >= s.len ? text->len : used; /* the padding belongs to the last group */
    text->data += used;
    text->len -= used;
    return made;
}
