/* SPDX-License-Identifier: Apache-2.0 */
/* json: a strict, bounded reader (RFC 8259; checks UTF-8, rejects duplicate keys) into an arena,
 * and a writer to a buf. Pure. Strings without escapes are slices of the text, which must outlive
 * the tree. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { SILT_JSON_DEPTH_MAX = 64 };

enum silt_json_type {
    SILT_JSON_NULL,
    SILT_JSON_BOOL,
    SILT_JSON_INT,    /* a number without fraction or exponent that fits int64_t */
    SILT_JSON_DOUBLE, /* any other number */
    SILT_JSON_STRING,
    SILT_JSON_ARRAY,
    SILT_JSON_OBJECT,
};

struct silt_json {
    const struct silt_json *next; /* next sibling */
    silt_slice key;               /* name of an object's member; else empty */
    enum silt_json_type type;
    union {
        bool boolean;
        int64_t integer;
        double number;
        silt_slice string;
        struct {
            const struct silt_json *first;
            size_t count;
        } items; /* of an array or object */
    };
};

/* SILT_INVALID names the byte offset; SILT_LIMIT if the arena is full. */
int silt_json_read(struct silt_arena *a, silt_slice text, const struct silt_json **ret,
                   struct silt_error *e);
/* A member, or NULL; also if `object` is not an object. */
const struct silt_json *silt_json_get(const struct silt_json *object, silt_slice key);

/* Writing. The writer adds commas by looking at the last byte of the buf, so a buf holds one
 * document at a time. Keys and strings: see silt_json_escape. */
void silt_json_open(struct silt_buf *b, char bracket);  /* '{' or '[' */
void silt_json_close(struct silt_buf *b, char bracket); /* '}' or ']' */
void silt_json_key(struct silt_buf *b, silt_slice key);
void silt_json_string(struct silt_buf *b, silt_slice s);
void silt_json_i64(struct silt_buf *b, int64_t v);
void silt_json_u64(struct silt_buf *b, uint64_t v);
void silt_json_double(struct silt_buf *b, double v); /* shortest form that reads back the same */
void silt_json_bool(struct silt_buf *b, bool v);
/* Adds a member of an object. */
void silt_json_add_slice(struct silt_buf *b, const char *key, silt_slice value);
void silt_json_add_text(struct silt_buf *b, const char *key, const char *value);
void silt_json_add_i64(struct silt_buf *b, const char *key, int64_t value);
void silt_json_add_u64(struct silt_buf *b, const char *key, uint64_t value);
void silt_json_add_bool(struct silt_buf *b, const char *key, bool value);
void silt_json_null(struct silt_buf *b);
void silt_json_raw(struct silt_buf *b, silt_slice json); /* adds a value that is already JSON */
void silt_json_value(struct silt_buf *b,
                     const struct silt_json *v); /* a parsed tree, without its key */

/* Writes the inside of a JSON string from arbitrary bytes that arrive in pieces: escapes what must
 * be escaped, replaces each maximal ill-formed part by U+FFFD (as TextDecoder does), and keeps a
 * sequence cut off by the end of a piece for the next one. Initialize to zero. */
struct silt_json_escape {
    unsigned char part[4]; /* unfinished sequence */
    unsigned part_len;
    bool drop_nul; /* set by the caller: NUL bytes are dropped instead of becoming \u0000 */
};
void silt_json_escape(struct silt_json_escape *x, struct silt_buf *b, silt_slice bytes);
void silt_json_escape_end(struct silt_json_escape *x, struct silt_buf *b);
