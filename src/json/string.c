/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: well-formed UTF-8 without control characters. A string without escapes is a slice of the
 * text. */
#include "json/reader.h"
#include "json/scan.h"

/* Four hex digits at r->at. */
static int read_unit(struct silt_json_reader *r, uint32_t *ret)
{
    uint32_t unit = 0;
    if (r->end - r->at < 4)
        return silt_json_refuse(r, "unfinished \\u escape");
    for (int i = 0; i < 4; i++) {
        int digit = silt_hex_digit((char)*r->at);
        if (digit < 0)
            return silt_json_refuse(r, "bad hex digit");
        unit = unit << 4 | (uint32_t)digit;
        r->at++;
    }
    *ret = unit;
    return 0;
}

static unsigned char *put_utf8(unsigned char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (unsigned char)c;
        return out;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    *out++ = (unsigned char)(lead[more] | c >> (6 * more));
    while (more-- > 0)
        *out++ = (unsigned char)(0x80 | (c >> (6 * more) & 0x3f));
    return out;
}

/* What follows "\u"; a high surrogate must be followed by a low one. */
static int read_code_point(struct silt_json_reader *r, uint32_t *ret)
{
    uint32_t c = 0, low = 0;
    if (read_unit(r, &c) < 0)
        return -1;
    if (c < 0xd800 || c > 0xdfff) {
        *ret = c;
        return 0;
    }
    if (c > 0xdbff || r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
        return silt_json_refuse(r, "lone surrogate");
    r->at += 2;
    if (read_unit(r, &low) < 0)
        return -1;
    if (low < 0xdc00 || low > 0xdfff)
        return silt_json_refuse(r, "lone surrogate");
    *ret = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    return 0;
}

/* Called at a backslash. Decoding never grows: six bytes become at most three, twelve become
 * four. */
static int read_escape(struct silt_json_reader *r, unsigned char **out)
{
    static const unsigned char simple[256] = {
        ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
        ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    uint32_t c = 0;
    if (r->end - r->at < 2)
        return silt_json_refuse(r, "unfinished escape");
    unsigned char kind = r->at[1];
    if (simple[kind] != 0) {
        *(*out)++ = simple[kind];
        r->at += 2;
        return 0;
    }
    if (kind != 'u')
        return silt_json_refuse(r, "unknown escape");
    r->at += 2;
    if (read_code_point(r, &c) < 0)
        return -1;
    *out = put_utf8(*out, c);
    return 0;
}

/* Skips literal bytes, up to a quote or a backslash. */
static int read_run(struct silt_json_reader *r)
{
    for (;;) {
        r->at = silt_json_plain(r->at, r->end);
        if (r->at == r->end)
            return silt_json_refuse(r, "unfinished string");
        unsigned char c = *r->at;
        if (c == '"' || c == '\\')
            return 0;
        if (c < 0x20)
            return silt_json_refuse(r, "control byte in a string");
        int n = silt_json_sequence(r->at, (size_t)(r->end - r->at));
        if (n <= 0)
            return silt_json_refuse(r, "ill-formed UTF-8");
        r->at += n;
    }
}

/* Finds the closing quote of the current string: the first one after an even number of
 * backslashes. */
static const unsigned char *find_quote(const struct silt_json_reader *r)
{
    const unsigned char *from = r->at;
    for (;;) {
        const unsigned char *quote = memchr(from, '"', (size_t)(r->end - from));
        if (quote == NULL)
            return r->end;
        const unsigned char *p = quote;
        while (p > from && p[-1] == '\\')
            p--;
        if ((quote - p) % 2 == 0)
            return quote;
        from = quote + 1;
    }
}

/* A string with escapes that starts at `from`; r->at is at the first backslash. */
static int read_escaped(struct silt_json_reader *r, const unsigned char *from, silt_slice *ret)
{
    size_t room = (size_t)(find_quote(r) - from);
    unsigned char *text = silt_json_allocate(r, room), *out = text;
    if (text == NULL)
        return -1;
    const unsigned char *run = from;
    for (;;) {
        memcpy(out, run, (size_t)(r->at - run));
        out += r->at - run;
        if (*r->at == '"')
            break;
        if (read_escape(r, &out) < 0)
            return -1;
        run = r->at;
        if (read_run(r) < 0)
            return -1;
    }
    r->at++;
    *ret = (silt_slice){(char *)text, (size_t)(out - text)};
    return 0;
}

int silt_json_read_string(struct silt_json_reader *r, silt_slice *ret)
{
    const unsigned char *from = ++r->at;
    if (read_run(r) < 0)
        return -1;
    if (*r->at == '\\')
        return read_escaped(r, from, ret);
    *ret = (silt_slice){(const char *)from, (size_t)(r->at - from)};
    r->at++;
    return 0;
}
