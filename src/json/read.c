/* SPDX-License-Identifier: Apache-2.0 */
/* The reader. It does not recurse: open arrays and objects stand on a stack of SILT_JSON_DEPTH_MAX.
 * Work is linear in the text, also for objects with many keys. */
#include "json/json.h"
#include "json/scan.h"

#include "base/log.h"
#include "base/own.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    PAIRWISE_MAX = 12, /* keys of an object up to which comparing all pairs is fastest */
    NUMBER_MAX = 64,   /* bytes of a number that are copied to the stack, not to the arena */
};

struct level {
    struct silt_json *node; /* the open array or object */
    struct silt_json *last; /* its newest item; NULL: none yet */
};

struct reader {
    const unsigned char *start, *at, *end;
    struct silt_arena *arena;
    struct silt_error *error;
    struct level stack[SILT_JSON_DEPTH_MAX];
    size_t depth;
};

static int refuse(struct reader *r, const char *why)
{
    return silt_fail(r->error, SILT_INVALID, "JSON: %s at byte %zu", why,
                     (size_t)(r->at - r->start));
}

static void *allocate(struct reader *r, size_t size)
{
    void *p = silt_arena_alloc(r->arena, size);
    if (p == NULL)
        (void)silt_fail(r->error, SILT_LIMIT, "JSON: more than %zu bytes of memory at byte %zu",
                        r->arena->max, (size_t)(r->at - r->start));
    return p;
}

/* The next byte that is no space, or -1 at the end. */
static int peek(struct reader *r)
{
    while (r->at < r->end) {
        unsigned char c = *r->at;
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        r->at++;
    }
    return -1;
}

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits at r->at. */
static int read_unit(struct reader *r, uint32_t *ret)
{
    uint32_t unit = 0;
    if (r->end - r->at < 4)
        return refuse(r, "unfinished \\u escape");
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*r->at);
        if (digit < 0)
            return refuse(r, "bad hex digit");
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

/* What follows "\u"; a high surrogate needs its low one. */
static int read_code_point(struct reader *r, uint32_t *ret)
{
    uint32_t c = 0, low = 0;
    if (read_unit(r, &c) < 0)
        return -1;
    if (c < 0xd800 || c > 0xdfff) {
        *ret = c;
        return 0;
    }
    if (c > 0xdbff || r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
        return refuse(r, "lone surrogate");
    r->at += 2;
    if (read_unit(r, &low) < 0)
        return -1;
    if (low < 0xdc00 || low > 0xdfff)
        return refuse(r, "lone surrogate");
    *ret = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    return 0;
}

/* At a backslash. An escape never grows: six bytes become at most three, twelve become four. */
static int read_escape(struct reader *r, unsigned char **out)
{
    static const unsigned char simple[256] = {
        ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
        ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    uint32_t c = 0;
    if (r->end - r->at < 2)
        return refuse(r, "unfinished escape");
    unsigned char kind = r->at[1];
    if (simple[kind] != 0) {
        *(*out)++ = simple[kind];
        r->at += 2;
        return 0;
    }
    if (kind != 'u')
        return refuse(r, "unknown escape");
    r->at += 2;
    if (read_code_point(r, &c) < 0)
        return -1;
    *out = put_utf8(*out, c);
    return 0;
}

/* Moves past bytes that stand for themselves, up to a quote or a backslash. */
static int read_run(struct reader *r)
{
    for (;;) {
        r->at = silt_json_plain(r->at, r->end);
        if (r->at == r->end)
            return refuse(r, "unfinished string");
        unsigned char c = *r->at;
        if (c == '"' || c == '\\')
            return 0;
        if (c < 0x20)
            return refuse(r, "control byte in a string");
        int n = silt_json_sequence(r->at, (size_t)(r->end - r->at));
        if (n <= 0)
            return refuse(r, "ill-formed UTF-8");
        r->at += n;
    }
}

/* The closing quote of the string that r->at is inside of: the first one after an even number of
 * backslashes. */
static const unsigned char *find_quote(const struct reader *r)
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

/* A string with escapes, from its first byte `from` on; r->at is at the first backslash. */
static int read_escaped(struct reader *r, const unsigned char *from, silt_slice *ret)
{
    size_t room = (size_t)(find_quote(r) - from);
    unsigned char *text = allocate(r, room), *out = text;
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

/* At the opening quote. */
static int read_string(struct reader *r, silt_slice *ret)
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

struct number {
    bool negative, whole;
    size_t digits;     /* significant ones that were seen, leading zeros of a fraction included */
    uint64_t mantissa; /* of the first 19 digits */
    int64_t exponent;  /* of ten */
};

static bool is_digit(const struct reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static int read_digits(struct reader *r, struct number *n)
{
    if (!is_digit(r))
        return refuse(r, "expected a digit");
    for (; is_digit(r); r->at++)
        if (n->digits++ < 19)
            n->mantissa = n->mantissa * 10 + (uint64_t)(*r->at - '0');
    return 0;
}

static int read_exponent(struct reader *r, struct number *n)
{
    bool negative = false;
    int64_t value = 0;
    r->at++;
    if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
        negative = *r->at++ == '-';
    if (!is_digit(r))
        return refuse(r, "expected a digit");
    for (; is_digit(r); r->at++)
        if (value < 100000) /* beyond any double */
            value = value * 10 + (*r->at - '0');
    n->exponent += negative ? -value : value;
    return 0;
}

static int scan_number(struct reader *r, struct number *n)
{
    if (*r->at == '-') {
        n->negative = true;
        r->at++;
    }
    bool zero = r->at < r->end && *r->at == '0';
    const unsigned char *first = r->at;
    if (read_digits(r, n) < 0)
        return -1;
    if (zero && r->at - first > 1)
        return refuse(r, "number with a leading zero");
    n->whole = true;
    if (r->at < r->end && *r->at == '.') {
        n->whole = false;
        const unsigned char *fraction = ++r->at;
        if (read_digits(r, n) < 0)
            return -1;
        n->exponent = fraction - r->at;
    }
    if (r->at < r->end && (*r->at | 0x20) == 'e') {
        n->whole = false;
        return read_exponent(r, n);
    }
    return 0;
}

/* Fits int64_t: the value goes to *ret. */
static bool as_integer(const struct number *n, int64_t *ret)
{
    uint64_t most = n->negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    if (!n->whole || n->digits > 19 || n->mantissa > most)
        return false;
    *ret = (int64_t)(n->negative ? 0 - n->mantissa : n->mantissa);
    return true;
}

/* Mantissa and power of ten are exact doubles, so that one operation rounds once (Clinger 1990). */
static bool as_exact_double(const struct number *n, double *ret)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (n->digits > 19 || n->mantissa >= 1ULL << 53 || n->exponent < -22 || n->exponent > 22)
        return false;
    double value = (double)n->mantissa;
    value = n->exponent < 0 ? value / powers[-n->exponent] : value * powers[n->exponent];
    *ret = n->negative ? -value : value;
    return true;
}

/* The library's conversion, in the C locale whatever the process has set. */
static int as_any_double(struct reader *r, const unsigned char *from, double *ret)
{
    char few[NUMBER_MAX];
    size_t len = (size_t)(r->at - from);
    char *text = len < sizeof(few) ? few : allocate(r, len + 1);
    if (text == NULL)
        return -1;
    memcpy(text, from, len);
    text[len] = 0;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return silt_fail(r->error, SILT_LIMIT, "JSON: no memory to read a number");
    double value = strtod_l(text, NULL, c);
    freelocale(c);
    if (!isfinite(value))
        return refuse(r, "number too large");
    *ret = value;
    return 0;
}

static int read_number(struct reader *r, struct silt_json *v)
{
    const unsigned char *from = r->at;
    struct number n = {0};
    if (scan_number(r, &n) < 0)
        return -1;
    v->type = SILT_JSON_INT;
    if (as_integer(&n, &v->integer))
        return 0;
    v->type = SILT_JSON_DOUBLE;
    if (as_exact_double(&n, &v->number))
        return 0;
    return as_any_double(r, from, &v->number);
}

static int read_word(struct reader *r, silt_slice word)
{
    if ((size_t)(r->end - r->at) < word.len || memcmp(r->at, word.data, word.len) != 0)
        return refuse(r, "expected a value");
    r->at += word.len;
    return 0;
}

/* A whole scalar, or the opening bracket of a container. */
static int read_value(struct reader *r, struct silt_json *v)
{
    int c = peek(r);
    switch (c) {
    case '"':
        v->type = SILT_JSON_STRING;
        return read_string(r, &v->string);
    case '{':
    case '[':
        v->type = c == '{' ? SILT_JSON_OBJECT : SILT_JSON_ARRAY;
        r->at++;
        return 0;
    case 't':
        v->type = SILT_JSON_BOOL;
        v->boolean = true;
        return read_word(r, SILT_LIT("true"));
    case 'f':
        v->type = SILT_JSON_BOOL;
        return read_word(r, SILT_LIT("false"));
    case 'n':
        v->type = SILT_JSON_NULL;
        return read_word(r, SILT_LIT("null"));
    default:
        if (c == '-' || (c >= '0' && c <= '9'))
            return read_number(r, v);
        return refuse(r, c < 0 ? "unexpected end" : "expected a value");
    }
}

static int read_key(struct reader *r, silt_slice *ret)
{
    if (peek(r) != '"')
        return refuse(r, "expected a key");
    if (read_string(r, ret) < 0)
        return -1;
    if (peek(r) != ':')
        return refuse(r, "expected ':'");
    r->at++;
    return 0;
}

/* A value with its key, if it needs one, linked to what it belongs to. */
static struct silt_json *read_item(struct reader *r)
{
    struct level *in = r->depth > 0 ? &r->stack[r->depth - 1] : NULL;
    struct silt_json *v = allocate(r, sizeof(*v));
    if (v == NULL)
        return NULL;
    *v = (struct silt_json){0};
    if (in != NULL && in->node->type == SILT_JSON_OBJECT && read_key(r, &v->key) < 0)
        return NULL;
    if (read_value(r, v) < 0)
        return NULL;
    if (in == NULL)
        return v;
    if (in->last != NULL)
        in->last->next = v;
    else
        in->node->items.first = v;
    in->last = v;
    in->node->items.count++;
    return v;
}

static int refuse_duplicate(struct reader *r, silt_slice key)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    return silt_fail(r->error, SILT_INVALID, "JSON: duplicate key \"%s\" before byte %zu",
                     silt_log_quote(key, quoted), (size_t)(r->at - r->start));
}

static int check_few_keys(struct reader *r, const struct silt_json *object)
{
    for (const struct silt_json *a = object->items.first; a != NULL; a = a->next)
        for (const struct silt_json *b = a->next; b != NULL; b = b->next)
            if (silt_slice_eq(a->key, b->key))
                return refuse_duplicate(r, b->key);
    return 0;
}

static uint64_t hash_key(uint64_t seed, silt_slice key)
{
    uint64_t h = seed ^ key.len;
    for (size_t i = 0; i < key.len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, key.data + i, key.len - i < 8 ? key.len - i : 8);
        h = (h ^ word) * 0xff51afd7ed558ccdULL;
        h = (h ^ h >> 32) * 0xc4ceb9fe1a85ec53ULL + seed;
    }
    return h ^ h >> 29;
}

/* A table of its own, gone when the object is read. Seeded: nobody can choose keys that collide. */
static int check_many_keys(struct reader *r, const struct silt_json *object)
{
    uint64_t seed;
    size_t cap = 32;
    while (cap < object->items.count * 2)
        cap *= 2;
    silt_auto_free const struct silt_json **table = calloc(cap, sizeof(struct silt_json *));
    if (table == NULL || getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return silt_fail(r->error, SILT_LIMIT, "JSON: no memory for %zu keys", object->items.count);
    for (const struct silt_json *m = object->items.first; m != NULL; m = m->next) {
        size_t at = hash_key(seed, m->key) & (cap - 1);
        for (; table[at] != NULL; at = (at + 1) & (cap - 1))
            if (silt_slice_eq(table[at]->key, m->key))
                return refuse_duplicate(r, m->key);
        table[at] = m;
    }
    return 0;
}

/* At the closing bracket of the innermost container. */
static int leave(struct reader *r)
{
    const struct silt_json *node = r->stack[--r->depth].node;
    r->at++;
    if (node->type != SILT_JSON_OBJECT || node->items.count < 2)
        return 0;
    if (node->items.count <= PAIRWISE_MAX)
        return check_few_keys(r, node);
    return check_many_keys(r, node);
}

static int closing(const struct reader *r)
{
    return r->stack[r->depth - 1].node->type == SILT_JSON_OBJECT ? '}' : ']';
}

/* After `v`, which may have opened a container: moves to where the next item begins. *ret_end:
 * there is none, the document is complete. */
static int advance(struct reader *r, struct silt_json *v, bool *ret_end)
{
    *ret_end = false;
    if (v->type == SILT_JSON_ARRAY || v->type == SILT_JSON_OBJECT) {
        if (r->depth == SILT_JSON_DEPTH_MAX)
            return refuse(r, "nested too deeply");
        r->stack[r->depth++] = (struct level){.node = v};
        if (peek(r) != closing(r))
            return 0;
        if (leave(r) < 0)
            return -1;
    }
    while (r->depth > 0) {
        int c = peek(r);
        if (c == ',') {
            r->at++;
            return 0;
        }
        if (c != closing(r))
            return refuse(r, c < 0 ? "unexpected end" : "expected ',' or a closing bracket");
        if (leave(r) < 0)
            return -1;
    }
    *ret_end = true;
    return 0;
}

int silt_json_read(struct silt_arena *a, silt_slice text, const struct silt_json **ret,
                   struct silt_error *e)
{
    const unsigned char *start = (const unsigned char *)text.data;
    struct reader r;
    r.start = start;
    r.at = start;
    r.end = start + text.len;
    r.arena = a;
    r.error = e;
    r.depth = 0;
    struct silt_json *root = NULL;
    for (bool end = false; !end;) {
        struct silt_json *v = read_item(&r);
        if (v == NULL)
            return -1;
        if (root == NULL)
            root = v;
        if (advance(&r, v, &end) < 0)
            return -1;
    }
    if (peek(&r) >= 0)
        return refuse(&r, "more after the document");
    *ret = root;
    return 0;
}

const struct silt_json *silt_json_get(const struct silt_json *object, silt_slice key)
{
    if (object == NULL || object->type != SILT_JSON_OBJECT)
        return NULL;
    for (const struct silt_json *m = object->items.first; m != NULL; m = m->next)
        if (silt_slice_eq(m->key, key))
            return m;
    return NULL;
}
