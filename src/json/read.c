/* SPDX-License-Identifier: Apache-2.0 */
/* The reader. It does not recurse: open arrays and objects are on a stack of SILT_JSON_DEPTH_MAX.
 * Time is linear in the text, also for objects with many keys. */
#include "json/reader.h"
#include "base/log.h"
#include "base/own.h"

#include <stdlib.h>
#include <sys/random.h>

enum { PAIRWISE_MAX = 12 }; /* for up to this many keys, comparing all pairs is fastest */

int silt_json_refuse(struct silt_json_reader *r, const char *why)
{
    return silt_fail(r->error, SILT_INVALID, "JSON: %s at byte %zu", why,
                     (size_t)(r->at - r->start));
}

void *silt_json_allocate(struct silt_json_reader *r, size_t size)
{
    void *p = silt_arena_alloc(r->arena, size);
    if (p == NULL)
        (void)silt_fail(r->error, SILT_LIMIT, "JSON: more than %zu bytes of memory at byte %zu",
                        r->arena->max, (size_t)(r->at - r->start));
    return p;
}

/* The next byte that is not white space, or -1 at the end. */
static int peek(struct silt_json_reader *r)
{
    while (r->at < r->end) {
        unsigned char c = *r->at;
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        r->at++;
    }
    return -1;
}

static int read_word(struct silt_json_reader *r, silt_slice word)
{
    if ((size_t)(r->end - r->at) < word.len || memcmp(r->at, word.data, word.len) != 0)
        return silt_json_refuse(r, "expected a value");
    r->at += word.len;
    return 0;
}

/* A complete scalar, or the opening bracket of a container. */
static int read_value(struct silt_json_reader *r, struct silt_json *v)
{
    int c = peek(r);
    switch (c) {
    case '"':
        v->type = SILT_JSON_STRING;
        return silt_json_read_string(r, &v->string);
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
            return silt_json_read_number(r, v);
        return silt_json_refuse(r, c < 0 ? "unexpected end" : "expected a value");
    }
}

static int read_key(struct silt_json_reader *r, silt_slice *ret)
{
    if (peek(r) != '"')
        return silt_json_refuse(r, "expected a key");
    if (silt_json_read_string(r, ret) < 0)
        return -1;
    if (peek(r) != ':')
        return silt_json_refuse(r, "expected ':'");
    r->at++;
    return 0;
}

/* A value with its key, if it needs one, linked into its container. */
static struct silt_json *read_item(struct silt_json_reader *r)
{
    struct silt_json_level *in = r->depth > 0 ? &r->stack[r->depth - 1] : NULL;
    struct silt_json *v = silt_json_allocate(r, sizeof(*v));
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

static int refuse_duplicate(struct silt_json_reader *r, silt_slice key)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    return silt_fail(r->error, SILT_INVALID, "JSON: duplicate key \"%s\" before byte %zu",
                     silt_log_quote(key, quoted), (size_t)(r->at - r->start));
}

static int check_few_keys(struct silt_json_reader *r, const struct silt_json *object)
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

/* Uses a temporary hash table, seeded so that nobody can choose colliding keys. */
static int check_many_keys(struct silt_json_reader *r, const struct silt_json *object)
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

/* Called at the closing bracket of the innermost container. */
static int leave(struct silt_json_reader *r)
{
    const struct silt_json *node = r->stack[--r->depth].node;
    r->at++;
    if (node->type != SILT_JSON_OBJECT || node->items.count < 2)
        return 0;
    if (node->items.count <= PAIRWISE_MAX)
        return check_few_keys(r, node);
    return check_many_keys(r, node);
}

static int closing(const struct silt_json_reader *r)
{
    return r->stack[r->depth - 1].node->type == SILT_JSON_OBJECT ? '}' : ']';
}

/* Called after `v`, which may have opened a container: moves to the start of the next item.
 * *ret_end: the document is complete. */
static int advance(struct silt_json_reader *r, struct silt_json *v, bool *ret_end)
{
    *ret_end = false;
    if (v->type == SILT_JSON_ARRAY || v->type == SILT_JSON_OBJECT) {
        if (r->depth == SILT_JSON_DEPTH_MAX)
            return silt_json_refuse(r, "nested too deeply");
        r->stack[r->depth++] = (struct silt_json_level){.node = v};
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
            return silt_json_refuse(r,
                                    c < 0 ? "unexpected end" : "expected ',' or a closing bracket");
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
    struct silt_json_reader r;
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
        return silt_json_refuse(&r, "more after the document");
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
