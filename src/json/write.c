/* SPDX-License-Identifier: Apache-2.0 */
/* The writer. Its output is valid JSON in UTF-8, whatever bytes a string holds. */
#include "json/json.h"
#include "json/scan.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline void put(struct silt_buf *b, const void *bytes, size_t n)
{
    if (b->broken || b->cap - b->len < n) {
        silt_buf_add(b, (silt_slice){bytes, n});
        return;
    }
    if (n > 0)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
}

/* A comma is needed after a byte that can end a value; not after '{', '[', ':', nor after text that
 * a stream puts before a document. */
static void separate(struct silt_buf *b)
{
    if (b->len == 0)
        return;
    char last = b->data[b->len - 1];
    bool word = last == 'e' || last == 'l'; /* true, false, null */
    if (last == '"' || last == '}' || last == ']' || word || (last >= '0' && last <= '9'))
        put(b, ",", 1);
}

void silt_json_open(struct silt_buf *b, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    separate(b);
    put(b, &bracket, 1);
}

void silt_json_close(struct silt_buf *b, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    put(b, &bracket, 1);
}

static void quote(struct silt_buf *b, silt_slice s)
{
    struct silt_json_escape x = {0};
    put(b, "\"", 1);
    silt_json_escape(&x, b, s);
    silt_json_escape_end(&x, b);
    put(b, "\"", 1);
}

void silt_json_key(struct silt_buf *b, silt_slice key)
{
    separate(b);
    quote(b, key);
    put(b, ":", 1);
}

void silt_json_string(struct silt_buf *b, silt_slice s)
{
    separate(b);
    quote(b, s);
}

void silt_json_u64(struct silt_buf *b, uint64_t v)
{
    char text[20], *at = text + sizeof(text);
    do
        *--at = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    separate(b);
    put(b, at, (size_t)(text + sizeof(text) - at));
}

void silt_json_i64(struct silt_buf *b, int64_t v)
{
    if (v >= 0) {
        silt_json_u64(b, (uint64_t)v);
        return;
    }
    separate(b);
    put(b, "-", 1); /* no comma is written after it */
    silt_json_u64(b, 0 - (uint64_t)v);
}

/* 15 digits always survive text to double to text; 17 always identify a double. Subnormal numbers
 * have fewer significant digits. */
static int print_shortest(char *out, size_t size, double v)
{
    int digits = fabs(v) < DBL_MIN ? 1 : 15;
    int n = snprintf(out, size, "%.*g", digits, v);
    while (digits < 17 && strtod(out, NULL) != v)
        n = snprintf(out, size, "%.*g", ++digits, v);
    return n;
}

void silt_json_double(struct silt_buf *b, double v)
{
    char text[40];
    locale_t c = isfinite(v) ? newlocale(LC_ALL_MASK, "C", (locale_t)0) : (locale_t)0;
    if (c == (locale_t)0) {
        silt_json_null(b);
        return;
    }
    locale_t before = uselocale(c);
    int n = print_shortest(text, sizeof(text), v);
    (void)uselocale(before);
    freelocale(c);
    separate(b);
    put(b, text, (size_t)n);
    if (v == 0 && signbit(v))
        put(b, ".0", 2); /* "-0" would be read as the integer 0 */
}

void silt_json_bool(struct silt_buf *b, bool v)
{
    silt_json_raw(b, v ? SILT_LIT("true") : SILT_LIT("false"));
}

void silt_json_add_slice(struct silt_buf *b, const char *key, silt_slice value)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, value);
}

void silt_json_add_text(struct silt_buf *b, const char *key, const char *value)
{
    silt_json_add_slice(b, key, silt_slice_of(value));
}

void silt_json_add_i64(struct silt_buf *b, const char *key, int64_t value)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_i64(b, value);
}

void silt_json_add_u64(struct silt_buf *b, const char *key, uint64_t value)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_u64(b, value);
}

void silt_json_add_bool(struct silt_buf *b, const char *key, bool value)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_bool(b, value);
}

void silt_json_null(struct silt_buf *b)
{
    silt_json_raw(b, SILT_LIT("null"));
}

void silt_json_raw(struct silt_buf *b, silt_slice json)
{
    separate(b);
    put(b, json.data, json.len);
}

static void put_replacement(struct silt_buf *b)
{
    put(b, "\xef\xbf\xbd", 3);
}

static void put_special(struct silt_buf *b, unsigned char c)
{
    static const char letters[256] = {['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\t'] = 't',
                                      ['\n'] = 'n', ['\f'] = 'f',  ['\r'] = 'r'};
    static const char hex[] = "0123456789abcdef";
    if (letters[c] != 0)
        put(b, (char[]){'\\', letters[c]}, 2);
    else
        put(b, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

/* Completes the kept partial sequence with bytes of this piece. Its beginning was well-formed, so
 * only the newest byte can make it ill-formed, and that byte is then examined as the start of the
 * next sequence. */
static void finish_part(struct silt_json_escape *x, struct silt_buf *b, silt_slice *bytes)
{
    while (x->part_len > 0 && bytes->len > 0) {
        x->part[x->part_len++] = (unsigned char)bytes->data[0];
        int n = silt_json_sequence(x->part, x->part_len);
        if (n >= 0) {
            bytes->data++;
            bytes->len--;
        }
        if (n == 0)
            continue;
        if (n > 0)
            put(b, x->part, x->part_len);
        else
            put_replacement(b);
        x->part_len = 0;
    }
}

/* The end of the run from `p` that can be copied unchanged. *ret_bad: see silt_json_sequence. */
static const unsigned char *find_end_of_run(const unsigned char *p, const unsigned char *end,
                                            int *ret_bad)
{
    *ret_bad = 0;
    for (;;) {
        p = silt_json_plain(p, end);
        if (p == end || *p < 0x80)
            return p;
        int n = silt_json_sequence(p, (size_t)(end - p));
        if (n <= 0) {
            *ret_bad = n;
            return p;
        }
        p += n;
    }
}

void silt_json_escape(struct silt_json_escape *x, struct silt_buf *b, silt_slice bytes)
{
    if (bytes.len == 0)
        return;
    finish_part(x, b, &bytes);
    const unsigned char *p = (const unsigned char *)bytes.data, *end = p + bytes.len;
    while (p < end) {
        int bad;
        const unsigned char *run = find_end_of_run(p, end, &bad);
        put(b, p, (size_t)(run - p));
        p = run;
        if (p == end)
            break;
        if (*p < 0x80) {
            if (*p != 0 || !x->drop_nul)
                put_special(b, *p);
            p++;
        } else if (bad < 0) {
            put_replacement(b);
            p += -bad;
        } else {
            x->part_len = (unsigned)(end - p);
            memcpy(x->part, p, x->part_len);
            break;
        }
    }
}

void silt_json_escape_end(struct silt_json_escape *x, struct silt_buf *b)
{
    if (x->part_len > 0)
        put_replacement(b);
    x->part_len = 0;
}

static void write_items(struct silt_buf *b, const struct silt_json *v)
{
    bool object = v->type == SILT_JSON_OBJECT;
    silt_json_open(b, object ? '{' : '[');
    for (const struct silt_json *it = v->items.first; it != NULL && !b->broken; it = it->next) {
        if (object)
            silt_json_key(b, it->key);
        silt_json_value(b, it);
    }
    silt_json_close(b, object ? '}' : ']');
}

/* Recursion is bounded by the reader's SILT_JSON_DEPTH_MAX. */
void silt_json_value(struct silt_buf *b, const struct silt_json *v)
{
    switch (v->type) {
    case SILT_JSON_NULL:
        silt_json_null(b);
        return;
    case SILT_JSON_BOOL:
        silt_json_bool(b, v->boolean);
        return;
    case SILT_JSON_INT:
        silt_json_i64(b, v->integer);
        return;
    case SILT_JSON_DOUBLE:
        silt_json_double(b, v->number);
        return;
    case SILT_JSON_STRING:
        silt_json_string(b, v->string);
        return;
    case SILT_JSON_ARRAY:
    case SILT_JSON_OBJECT:
        write_items(b, v);
        return;
    }
}
