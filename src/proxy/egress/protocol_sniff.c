/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/protocol_sniff.h"
#include "base/test_switch.h"
#include "http/chars.h"
#include "proxy/egress/client_hello.h"
#include "proxy/policy/policy.h"

enum {
    CHANGE_CIPHER = 20,
    ALERT = 21,
    HANDSHAKE = 22,
    APPLICATION = 23,
    LINE_MAX_BYTES = 8192 + 64, /* of a first line: method, target, version */
    SSL2_HELLO = 1,
    CLIENT_HELLO = 1,
    LENGTH_TOP_MAX = 2, /* the first of three bytes of a hello's length */
    SESSION_AT = 38,    /* in a hello: the length of its session */
    SESSION_MAX = 32,
};

static enum silt_protocol_sniff_result refuse(struct silt_protocol_sniff *i,
                                              enum silt_egress_reason why)
{
    i->reason = why;
    return SILT_PROTOCOL_SNIFF_REFUSE;
}

static enum silt_protocol_sniff_result pass(size_t len, size_t *ret_len)
{
    *ret_len = len;
    return SILT_PROTOCOL_SNIFF_PASS;
}

/* TLS */

static enum silt_protocol_sniff_result on_hello(struct silt_protocol_sniff *i,
                                                const struct silt_client_hello *h, size_t *ret_len)
{
    if (h->hidden)
        return refuse(i, SILT_REFUSED_PROTOCOL);
    if (h->name.data == NULL || !silt_policy_clean(h->name, i->name))
        return refuse(i, SILT_REFUSED_NAMELESS);
    i->state = SILT_PROTOCOL_SNIFF_HELLO;
    i->early = i->early || h->early;
    *ret_len = h->len;
    return SILT_PROTOCOL_SNIFF_NAMED;
}

static enum silt_protocol_sniff_result free_from_here(struct silt_protocol_sniff *i,
                                                      silt_slice bytes, size_t *ret_len)
{
    i->state = SILT_PROTOCOL_SNIFF_FREE;
    return pass(bytes.len, ret_len);
}

/* After CHANGE_CIPHER a record of an older TLS is encrypted, and may begin like a hello by chance;
 * a hello has a length that servers take, and a short session behind its random bytes. Its version
 * says nothing: servers forgive that one. A record too small for all this may be a piece. */
static bool can_be_hello(silt_slice bytes)
{
    const uint8_t *b = (const uint8_t *)bytes.data, *message = b + SILT_CLIENT_HELLO_RECORD;
    size_t size = (size_t)b[3] << 8 | b[4];
    if (size == 0 || message[0] != CLIENT_HELLO)
        return size == 0; /* no use but to hide what follows */
    return size <= SESSION_AT
           || (message[1] <= LENGTH_TOP_MAX && message[SESSION_AT] <= SESSION_MAX);
}

/* The head of a record, and as much of it as can_be_hello looks at. */
static bool has_beginning(silt_slice bytes)
{
    const uint8_t *b = (const uint8_t *)bytes.data;
    if (bytes.len < SILT_CLIENT_HELLO_RECORD)
        return false;
    size_t size = (size_t)b[3] << 8 | b[4];
    size_t want = size <= SESSION_AT ? size > 0 : SESSION_AT + 1;
    return bytes.len >= SILT_CLIENT_HELLO_RECORD + want;
}

/* Behind a hello: a server may ask for another one, which may come behind early data. */
static enum silt_protocol_sniff_result next_hello(struct silt_protocol_sniff *i, silt_slice bytes,
                                                  size_t *ret_len)
{
    struct silt_client_hello h;
    uint8_t type = (uint8_t)bytes.data[0];
    if (i->record > 0) {
        size_t n = i->record < bytes.len ? (size_t)i->record : bytes.len;
        i->record -= n;
        return pass(n, ret_len);
    }
    if (type == HANDSHAKE) {
        if (!has_beginning(bytes))
            return SILT_PROTOCOL_SNIFF_MORE;
        enum silt_client_hello_state s =
            can_be_hello(bytes) ? silt_client_hello_parse(bytes, &h) : SILT_CLIENT_HELLO_OTHER;
        if (s == SILT_CLIENT_HELLO_WHOLE)
            return on_hello(i, &h, ret_len);
        if (s == SILT_CLIENT_HELLO_MORE)
            return SILT_PROTOCOL_SNIFF_MORE;
        return s == SILT_CLIENT_HELLO_BROKEN ? refuse(i, SILT_REFUSED_PROTOCOL)
                                             : free_from_here(i, bytes, ret_len);
    }
    /* Some servers go on after an alert. */
    if (type != CHANGE_CIPHER && type != ALERT && !(type == APPLICATION && i->early))
        return free_from_here(i, bytes, ret_len);
    if (bytes.len < SILT_CLIENT_HELLO_RECORD)
        return SILT_PROTOCOL_SNIFF_MORE;
    i->record =
        SILT_CLIENT_HELLO_RECORD + ((uint64_t)(uint8_t)bytes.data[3] << 8 | (uint8_t)bytes.data[4]);
    return next_hello(i, bytes, ret_len);
}

static enum silt_protocol_sniff_result first_hello(struct silt_protocol_sniff *i, silt_slice bytes,
                                                   size_t *ret_len)
{
    struct silt_client_hello h;
    switch (silt_client_hello_parse(bytes, &h)) {
    case SILT_CLIENT_HELLO_MORE:
        return SILT_PROTOCOL_SNIFF_MORE;
    case SILT_CLIENT_HELLO_WHOLE:
        return on_hello(i, &h, ret_len);
    case SILT_CLIENT_HELLO_OTHER:
    case SILT_CLIENT_HELLO_BROKEN:
        break;
    }
    return refuse(i, SILT_REFUSED_PROTOCOL);
}

/* HTTP/1 */

/* "name", "name:80" */
static bool clean_host(silt_slice host, char out[SILT_EGRESS_NAME])
{
    silt_slice name, rest = host;
    if (!silt_slice_split(&rest, ':', &name) || silt_slice_has_byte(rest, ':'))
        return false;
    for (size_t i = 0; i < rest.len; i++)
        if (rest.data[i] < '0' || rest.data[i] > '9')
            return false;
    return silt_policy_clean(name, out);
}

/* The host of the target and that of the field are the same, or somebody wants two to be heard. */
static bool is_one_host(const struct silt_http_head *h)
{
    silt_slice field = silt_http_field(h, SILT_LIT("host"));
    return field.data == NULL || silt_slice_ieq(field, h->host);
}

/* Nothing else that a server may turn to is known to have one listener only. The first request, so
 * that the first answer is the one to it. */
static bool is_websocket(const struct silt_protocol_sniff *i, const struct silt_http_head *h)
{
    size_t offers = 0;
    for (size_t n = 0; n < h->count; n++)
        offers += silt_slice_ieq(h->fields[n].name, SILT_LIT("upgrade"));
    return !i->asked && offers == 1 && h->minor == 1 && !h->chunked && !h->has_length
           && silt_slice_eq(h->method, SILT_LIT("GET"))
           && silt_slice_ieq(silt_http_field(h, SILT_LIT("upgrade")), SILT_LIT("websocket"));
}

static enum silt_protocol_sniff_result head(struct silt_protocol_sniff *i, silt_slice bytes,
                                            size_t *ret_len)
{
    static struct silt_http_head h;
    int len = silt_http_parse(&h, bytes, SILT_HTTP_REQUEST);
    if (len < 0)
        return refuse(i, SILT_REFUSED_PROTOCOL);
    if (len == 0)
        return SILT_PROTOCOL_SNIFF_MORE;
    if (!is_one_host(&h))
        return refuse(i, SILT_REFUSED_MISMATCH);
    if (!clean_host(h.host, i->name))
        return refuse(i, SILT_REFUSED_NAMELESS);
    i->chunked = h.chunked;
    i->chunks = (struct silt_http_chunks){0};
    i->left = h.has_length ? h.length : 0;
    i->state = is_websocket(i, &h)         ? SILT_PROTOCOL_SNIFF_TURN
               : i->chunked || i->left > 0 ? SILT_PROTOCOL_SNIFF_BODY
                                           : SILT_PROTOCOL_SNIFF_HEAD;
    i->asked = true;
    *ret_len = (size_t)len;
    return SILT_PROTOCOL_SNIFF_NAMED;
}

static enum silt_protocol_sniff_result chunks(struct silt_protocol_sniff *i, silt_slice bytes,
                                              size_t *ret_len)
{
    silt_slice in = bytes, data;
    for (;;) {
        switch (silt_http_dechunk(&i->chunks, &in, &data)) {
        case SILT_HTTP_CHUNK_BAD:
            return refuse(i, SILT_REFUSED_PROTOCOL);
        case SILT_HTTP_CHUNK_DATA:
            continue;
        case SILT_HTTP_CHUNK_END:
            i->state = SILT_PROTOCOL_SNIFF_HEAD;
            return pass(bytes.len - in.len, ret_len);
        case SILT_HTTP_CHUNK_MORE:
            return pass(bytes.len - in.len, ret_len);
        }
    }
}

static enum silt_protocol_sniff_result body(struct silt_protocol_sniff *i, silt_slice bytes,
                                            size_t *ret_len)
{
    if (i->chunked)
        return chunks(i, bytes, ret_len);
    size_t n = i->left < bytes.len ? (size_t)i->left : bytes.len;
    i->left -= n;
    if (i->left == 0)
        i->state = SILT_PROTOCOL_SNIFF_HEAD;
    return pass(n, ret_len);
}

void silt_protocol_sniff_hear(struct silt_protocol_sniff *i, silt_slice bytes)
{
    static const char turned[] = "HTTP/1.1 101 ";
    for (size_t n = 0; n < bytes.len && i->state == SILT_PROTOCOL_SNIFF_TURN; n++) {
        if (bytes.data[n] != turned[i->turning])
            i->state = SILT_PROTOCOL_SNIFF_HEAD;
        else if (++i->turning == sizeof(turned) - 1)
            i->state = SILT_PROTOCOL_SNIFF_FREE;
    }
}

/* The first bytes */

static bool has_http(silt_slice line)
{
    for (size_t i = 0; i + 5 <= line.len; i++)
        if (silt_slice_ieq((silt_slice){line.data + i, 5}, SILT_LIT("HTTP/")))
            return true;
    return false;
}

static enum silt_protocol_sniff_result nameless(struct silt_protocol_sniff *i, silt_slice bytes,
                                                size_t *ret_len)
{
    (void)free_from_here(i, bytes, ret_len);
    return SILT_PROTOCOL_SNIFF_NAMELESS;
}

/* What a request's method may end with, to a server that forgives (RFC 9112 3). */
static bool is_gap(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

/* git's own protocol begins with a size of four digits; no line ever ends in it. */
static bool is_git(silt_slice bytes)
{
    for (size_t i = 0; i < 4 && i < bytes.len; i++)
        if ((bytes.data[i] < '0' || bytes.data[i] > '9')
            && (bytes.data[i] < 'a' || bytes.data[i] > 'f'))
            return false;
    return bytes.len >= 8 && memcmp(bytes.data + 4, "git-", 4) == 0;
}

static size_t word_of(silt_slice bytes)
{
    size_t n = 0;
    while (n < bytes.len && silt_http_is_token[(unsigned char)bytes.data[n]])
        n++;
    return n;
}

/* What begins with a word and a gap can be a request to somebody, whatever bytes follow: the whole
 * line is waited for. One that speaks of HTTP must be a request, exactly; other lines (SSH's, a
 * mail client's) and other bytes are a protocol of their own. */
static enum silt_protocol_sniff_result first_line(struct silt_protocol_sniff *i, silt_slice bytes,
                                                  size_t *ret_len)
{
    size_t word = word_of(bytes);
    const char *end = memchr(bytes.data, '\n', bytes.len);
    size_t len = end != NULL ? (size_t)(end - bytes.data) : bytes.len;
    if (is_git(bytes) || word == 0 || (word < bytes.len && !is_gap(bytes.data[word])))
        return nameless(i, bytes, ret_len);
    if (len > LINE_MAX_BYTES)
        return refuse(i, SILT_REFUSED_PROTOCOL);
    if (end == NULL)
        return SILT_PROTOCOL_SNIFF_MORE;
    if (!has_http((silt_slice){bytes.data, len}))
        return nameless(i, bytes, ret_len);
    i->state = SILT_PROTOCOL_SNIFF_HEAD;
    return head(i, bytes, ret_len);
}

static enum silt_protocol_sniff_result first(struct silt_protocol_sniff *i, silt_slice bytes,
                                             size_t *ret_len)
{
    char c = bytes.data[0];
    if (c == HANDSHAKE)
        return first_hello(i, bytes, ret_len);
    if (c == '\r' || c == '\n' || c == ' ' || c == '\t')
        return refuse(i, SILT_REFUSED_PROTOCOL); /* many servers forgive that before a request */
    if ((c & 0x80) != 0 && bytes.len < 3)
        return SILT_PROTOCOL_SNIFF_MORE;
    if ((c & 0x80) != 0 && bytes.data[2] == SSL2_HELLO)
        return refuse(i, SILT_REFUSED_NAMELESS);
    return first_line(i, bytes, ret_len);
}

enum silt_protocol_sniff_result silt_protocol_sniff_next(struct silt_protocol_sniff *i,
                                                         silt_slice bytes, size_t *ret_len)
{
    i->name[0] = 0;
    if (silt_without("allow_clear"))
        i->state = SILT_PROTOCOL_SNIFF_FREE;
    switch (i->state) {
    case SILT_PROTOCOL_SNIFF_FIRST:
        return first(i, bytes, ret_len);
    case SILT_PROTOCOL_SNIFF_HELLO:
        return next_hello(i, bytes, ret_len);
    case SILT_PROTOCOL_SNIFF_HEAD:
        return head(i, bytes, ret_len);
    case SILT_PROTOCOL_SNIFF_BODY:
        return body(i, bytes, ret_len);
    case SILT_PROTOCOL_SNIFF_TURN:
        return SILT_PROTOCOL_SNIFF_MORE;
    case SILT_PROTOCOL_SNIFF_FREE:
        break;
    }
    return pass(bytes.len, ret_len);
}
