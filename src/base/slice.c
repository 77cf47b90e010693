/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slice.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool silt_slice_ieq(silt_slice a, silt_slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

bool silt_slice_starts(silt_slice s, silt_slice prefix)
{
    return s.len >= prefix.len && silt_slice_eq((silt_slice){s.data, prefix.len}, prefix);
}

bool silt_slice_has_byte(silt_slice s, char byte)
{
    return s.len > 0 && memchr(s.data, byte, s.len) != NULL;
}

bool silt_slice_eq_secret(silt_slice a, silt_slice b)
{
    if (a.len != b.len)
        return false;
    unsigned char differ = 0;
    for (size_t i = 0; i < a.len; i++)
        differ |= (unsigned char)(a.data[i] ^ b.data[i]);
    return differ == 0;
}

bool silt_slice_split(silt_slice *s, char byte, silt_slice *ret_head)
{
    if (s->data == NULL)
        return false;
    const char *at = s->len > 0 ? memchr(s->data, byte, s->len) : NULL;
    if (at == NULL) {
        *ret_head = *s;
        *s = (silt_slice){NULL, 0};
        return true;
    }
    size_t n = (size_t)(at - s->data);
    *ret_head = (silt_slice){s->data, n};
    *s = (silt_slice){at + 1, s->len - n - 1};
    return true;
}

silt_slice silt_slice_trim(silt_slice s)
{
    while (s.len > 0 && (s.data[0] == ' ' || s.data[0] == '\t')) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
        s.len--;
    return s;
}

int silt_slice_to_u64(silt_slice s, uint64_t min, uint64_t max, uint64_t *ret, struct silt_error *e)
{
    uint64_t value = 0;
    if (s.len == 0 || s.len > 20 || (s.len > 1 && s.data[0] == '0'))
        return silt_fail(e, SILT_INVALID, "not a plain decimal number");
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        if (c < '0' || c > '9')
            return silt_fail(e, SILT_INVALID, "not a plain decimal number");
        if (__builtin_mul_overflow(value, 10U, &value)
            || __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
            return silt_fail(e, SILT_INVALID, "number too large");
    }
    if (value < min || value > max)
        return silt_fail(e, SILT_INVALID, "%llu is not between %llu and %llu",
                         (unsigned long long)value, (unsigned long long)min,
                         (unsigned long long)max);
    *ret = value;
    return 0;
}

int silt_slice_to_cstr(silt_slice s, char *out, size_t size, struct silt_error *e)
{
    if (s.len >= size)
        return silt_fail(e, SILT_INVALID, "text of %zu bytes, at most %zu", s.len, size - 1);
    if (silt_slice_has_byte(s, '\0'))
        return silt_fail(e, SILT_INVALID, "text with a NUL byte");
    if (s.len > 0)
        memcpy(out, s.data, s.len);
    out[s.len] = 0;
    return 0;
}

int silt_slice_to_path(silt_slice s, char out[PATH_MAX], struct silt_error *e)
{
    if (s.len == 0)
        return silt_fail(e, SILT_INVALID, "empty path");
    return silt_slice_to_cstr(s, out, PATH_MAX, e);
}

/* Length of the sequence at `p`; 0 if it is not well-formed UTF-8 (table of RFC 3629). */
static size_t sequence(const unsigned char *p, size_t left)
{
    unsigned char a = p[0];
    if (a < 0x80)
        return 1;
    if (a < 0xc2 || a > 0xf4)
        return 0;
    size_t n = a < 0xe0 ? 2 : a < 0xf0 ? 3 : 4;
    if (left < n)
        return 0;
    unsigned char low = a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80;
    unsigned char high = a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

bool silt_slice_is_utf8(silt_slice s)
{
    const unsigned char *p = (const unsigned char *)s.data;
    for (size_t i = 0; i < s.len;) {
        size_t n = sequence(p + i, s.len - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

int silt_slice_unescape(silt_slice *s)
{
    bool escaped = s->data[0] == '%';
    int high = escaped && s->len > 2 ? silt_hex_digit(s->data[1]) : -1;
    int low = escaped && s->len > 2 ? silt_hex_digit(s->data[2]) : -1;
    int byte = escaped ? high * 16 + low : (unsigned char)s->data[0];
    if (escaped && (high < 0 || low < 0))
        return -1;
    s->data += escaped ? 3 : 1;
    s->len -= escaped ? 3 : 1;
    return byte;
}
