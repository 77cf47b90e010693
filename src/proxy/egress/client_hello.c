/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/client_hello.h"

enum {
    HANDSHAKE = 22,
    CLIENT_HELLO = 1,
    MESSAGE_HEAD = 4, /* type, length of 24 bits */
    RANDOM = 32,
    SESSION_MAX = 32,
    EXTENSION_SNI = 0,
    EXTENSION_EARLY = 42,
    EXTENSION_ECH = 0xfe0d,
    HOST_NAME = 0,
};

/* A reader whose first error is final. */
struct cursor {
    silt_slice rest;
    bool broken;
};

static silt_slice take(struct cursor *c, size_t n)
{
    if (c->broken || n > c->rest.len) {
        c->broken = true;
        return (silt_slice){"", 0};
    }
    silt_slice got = {c->rest.data, n};
    c->rest.data += n;
    c->rest.len -= n;
    return got;
}

static size_t take_number(struct cursor *c, size_t bytes)
{
    silt_slice s = take(c, bytes);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n = n << 8 | (uint8_t)s.data[i];
    return n;
}

/* Bytes with their length before them. */
static struct cursor take_vector(struct cursor *c, size_t length_bytes)
{
    size_t n = take_number(c, length_bytes);
    silt_slice s = take(c, n);
    return (struct cursor){.rest = s, .broken = c->broken};
}

/* Assembles the message from its records, as far as it has arrived. */
static enum silt_client_hello_state join(silt_slice bytes, char *out, size_t *ret_len,
                                         size_t *ret_used)
{
    size_t have = 0, want = MESSAGE_HEAD;
    struct cursor c = {.rest = bytes};
    while (have < want) {
        if (c.rest.len > 0 && c.rest.data[0] != HANDSHAKE)
            return SILT_CLIENT_HELLO_BROKEN;
        if (c.rest.len > 1 && c.rest.data[1] != 3)
            return SILT_CLIENT_HELLO_BROKEN;
        if (c.rest.len < SILT_CLIENT_HELLO_RECORD)
            return SILT_CLIENT_HELLO_MORE;
        (void)take(&c, 3);
        size_t size = take_number(&c, 2);
        if (size == 0 || size > SILT_CLIENT_HELLO_RECORD_MAX)
            return SILT_CLIENT_HELLO_BROKEN;
        size_t there = size < c.rest.len ? size : c.rest.len;
        if (have == 0 && there > 0 && c.rest.data[0] != CLIENT_HELLO)
            return SILT_CLIENT_HELLO_OTHER;
        if (there > MESSAGE_HEAD + SILT_CLIENT_HELLO_MAX - have)
            return SILT_CLIENT_HELLO_BROKEN;
        memcpy(out + have, c.rest.data, there);
        have += there;
        if (have >= MESSAGE_HEAD)
            want = MESSAGE_HEAD
                   + ((size_t)(uint8_t)out[1] << 16 | (size_t)(uint8_t)out[2] << 8
                      | (size_t)(uint8_t)out[3]);
        if (want > MESSAGE_HEAD + SILT_CLIENT_HELLO_MAX)
            return SILT_CLIENT_HELLO_BROKEN;
        if (there < size)
            return SILT_CLIENT_HELLO_MORE;
        (void)take(&c, there);
    }
    *ret_len = want;
    *ret_used = bytes.len - c.rest.len;
    return have == want ? SILT_CLIENT_HELLO_WHOLE
                        : SILT_CLIENT_HELLO_BROKEN; /* no other message may share its record */
}

/* Exactly one name, of type host_name. */
static bool read_sni(struct cursor e, silt_slice *name)
{
    struct cursor list = take_vector(&e, 2);
    size_t kind = take_number(&list, 1);
    struct cursor host = take_vector(&list, 2);
    if (host.broken || e.rest.len > 0 || list.rest.len > 0 || kind != HOST_NAME
        || host.rest.len == 0 || name->data != NULL)
        return false;
    *name = host.rest;
    return true;
}

static bool read_extensions(struct cursor c, struct silt_client_hello *h)
{
    while (c.rest.len > 0) {
        size_t type = take_number(&c, 2);
        struct cursor e = take_vector(&c, 2);
        if (e.broken || (type == EXTENSION_SNI && !read_sni(e, &h->name)))
            return false;
        h->hidden = h->hidden || type == EXTENSION_ECH;
        h->early = h->early || type == EXTENSION_EARLY;
    }
    return true;
}

static bool read_hello(silt_slice message, struct silt_client_hello *h)
{
    struct cursor c = {.rest = message};
    (void)take(&c, MESSAGE_HEAD);
    silt_slice version = take(&c, 2);
    (void)take(&c, RANDOM);
    struct cursor session = take_vector(&c, 1), ciphers = take_vector(&c, 2),
                  compressions = take_vector(&c, 1);
    if (c.broken || version.data[0] != 3 || session.rest.len > SESSION_MAX || ciphers.rest.len < 2
        || compressions.rest.len < 1)
        return false;
    if (c.rest.len == 0)
        return true; /* an old client without extensions */
    struct cursor extensions = take_vector(&c, 2);
    return !extensions.broken && c.rest.len == 0 && read_extensions(extensions, h);
}

enum silt_client_hello_state silt_client_hello_parse(silt_slice bytes,
                                                     struct silt_client_hello *ret)
{
    static char message[MESSAGE_HEAD + SILT_CLIENT_HELLO_MAX];
    size_t len;
    *ret = (struct silt_client_hello){0};
    enum silt_client_hello_state s = join(bytes, message, &len, &ret->len);
    if (s == SILT_CLIENT_HELLO_WHOLE && !read_hello((silt_slice){message, len}, ret))
        return SILT_CLIENT_HELLO_BROKEN;
    return s;
}
