/* SPDX-License-Identifier: Apache-2.0 */
/* Each step returns 0 (continue), MORE (the bytes end inside it) or minus a status. No decision
 * depends on later bytes, so a head that arrives in pieces gets the same result as a complete
 * one. */
#include "http/parse.h"
#include "http/chars.h"
#include "base/own.h"

enum {
    MORE = 1,
    METHOD_MAX = 32,
    TARGET_MAX = 8192,      /* RFC 9112 3 requires at least 8000 */
    LENGTH_DIGITS_MAX = 18, /* always fits 63 bits */
};

const bool silt_http_is_token[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};
const bool silt_http_is_text[256] = {['\t'] = 1, [' ' ... '~'] = 1, [0x80 ... 0xff] = 1};
/* In a target: visible ASCII; fragments are not sent. */
static const bool is_target[256] = {['!' ... '"'] = 1, ['$' ... '~'] = 1};
/* In Host: reg-name, IP-literal and port of RFC 3986. */
static const bool is_host[256] = {
    ['!'] = 1,         ['$'] = 1, ['%'] = 1,         ['&' ... '.'] = 1, ['0' ... '9'] = 1,
    [':'] = 1,         [';'] = 1, ['='] = 1,         ['['] = 1,         [']'] = 1,
    ['A' ... 'Z'] = 1, ['_'] = 1, ['a' ... 'z'] = 1, ['~'] = 1,
};

struct cursor {
    const char *at, *end;
};

/* The longest run of allowed bytes; may be empty or reach the end of the bytes. */
static silt_slice take_run(struct cursor *c, const bool allowed[256])
{
    const char *from = c->at;
    while (c->at < c->end && allowed[(unsigned char)*c->at])
        c->at++;
    return (silt_slice){from, (size_t)(c->at - from)};
}

static int take_byte(struct cursor *c, char byte)
{
    if (c->at == c->end)
        return MORE;
    if (*c->at != byte)
        return -400;
    c->at++;
    return 0;
}

static int take_newline(struct cursor *c)
{
    int r = take_byte(c, '\r');
    return r != 0 ? r : take_byte(c, '\n');
}

static bool all_of(silt_slice s, const bool allowed[256])
{
    for (size_t i = 0; i < s.len; i++)
        if (!allowed[(unsigned char)s.data[i]])
            return false;
    return true;
}

/* "HTTP/1.0" or "HTTP/1.1" */
static int take_version(struct cursor *c, struct silt_http_head *h)
{
    const char *v = c->at;
    size_t left = (size_t)(c->end - v);
    if (left > 0 && memcmp(v, "HTTP/", left < 5 ? left : 5) != 0)
        return -400;
    if (left < 8)
        return MORE;
    if (v[5] < '0' || v[5] > '9' || v[6] != '.' || v[7] < '0' || v[7] > '9')
        return -400;
    if (v[5] != '1' || v[7] > '1')
        return -505;
    h->minor = v[7] - '0';
    c->at += 8;
    return 0;
}

/* "http://host/path": this host replaces the Host field (RFC 9112 3.2.2). */
static int split_absolute(struct silt_http_head *h, silt_slice *ret_rest)
{
    silt_slice t = h->target;
    size_t scheme = 0;
    if (t.len > 7 && silt_slice_ieq((silt_slice){t.data, 7}, SILT_LIT("http://")))
        scheme = 7;
    else if (t.len > 8 && silt_slice_ieq((silt_slice){t.data, 8}, SILT_LIT("https://")))
        scheme = 8;
    else
        return -400;
    silt_slice host = {t.data + scheme, 0};
    while (scheme + host.len < t.len && host.data[host.len] != '/' && host.data[host.len] != '?')
        host.len++;
    if (host.len == 0 || !all_of(host, is_host))
        return -400;
    h->host = host;
    *ret_rest = (silt_slice){host.data + host.len, t.len - scheme - host.len};
    return 0;
}

static int split_target(struct silt_http_head *h, enum silt_http_kind kind)
{
    silt_slice rest = h->target;
    bool connect = silt_slice_eq(h->method, SILT_LIT("CONNECT"));
    if (kind == SILT_HTTP_CONNECT)
        return connect ? 0 : -400;
    if (connect)
        return -501;
    if (silt_slice_eq(rest, SILT_LIT("*")) && silt_slice_eq(h->method, SILT_LIT("OPTIONS"))) {
        h->path = rest;
        return 0;
    }
    if (rest.data[0] != '/' && split_absolute(h, &rest) < 0)
        return -400;
    const char *mark = rest.len > 0 ? memchr(rest.data, '?', rest.len) : NULL;
    size_t len = mark != NULL ? (size_t)(mark - rest.data) : rest.len;
    h->path = len > 0 ? (silt_slice){rest.data, len} : SILT_LIT("/");
    if (mark != NULL)
        h->query = (silt_slice){mark + 1, rest.len - len - 1};
    return 0;
}

static int take_request_line(struct cursor *c, struct silt_http_head *h, enum silt_http_kind kind)
{
    int r;
    if (c->at < c->end && *c->at == '\r' && (r = take_newline(c)) != 0)
        return r; /* one empty line before a request is tolerated (RFC 9112 2.2) */
    h->method = take_run(c, silt_http_is_token);
    if (h->method.len > METHOD_MAX || (h->method.len == 0 && c->at < c->end))
        return -400;
    if ((r = take_byte(c, ' ')) != 0)
        return r;
    h->target = take_run(c, is_target);
    if (h->target.len > TARGET_MAX)
        return -414;
    if (h->target.len == 0 && c->at < c->end)
        return -400;
    if ((r = take_byte(c, ' ')) != 0 || (r = take_version(c, h)) != 0)
        return r;
    return split_target(h, kind);
}

static int take_status_line(struct cursor *c, struct silt_http_head *h)
{
    int r = take_version(c, h);
    if (r != 0 || (r = take_byte(c, ' ')) != 0)
        return r;
    for (int i = 0; i < 3; i++) {
        if (c->at == c->end)
            return MORE;
        if (*c->at < '0' || *c->at > '9')
            return -400;
        h->status = h->status * 10 + (*c->at++ - '0');
    }
    if (h->status < 100)
        return -400;
    if (c->at < c->end && *c->at != '\r' && (r = take_byte(c, ' ')) != 0)
        return r;
    h->reason = take_run(c, silt_http_is_text);
    return 0;
}

static int on_host(struct silt_http_head *h, silt_slice value)
{
    if (h->method.data == NULL)
        return 0; /* meaningless in a response */
    if (!all_of(value, is_host))
        return -400;
    if (h->host.data
        == NULL) /* otherwise the target named it; duplicate fields are found at the end */
        h->host = value;
    return 0;
}

static int on_length(struct silt_http_head *h, silt_slice value)
{
    if (h->has_length || value.len == 0 || value.len > LENGTH_DIGITS_MAX)
        return -400;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.data[i];
        if (c < '0' || c > '9')
            return -400;
        h->length = h->length * 10 + (uint64_t)(c - '0');
    }
    h->has_length = true;
    return 0;
}

static int on_encoding(struct silt_http_head *h, silt_slice value)
{
    if (h->chunked)
        return -400;
    if (!silt_slice_ieq(value, SILT_LIT("chunked")))
        return -501;
    h->chunked = true;
    return 0;
}

static int on_connection(struct silt_http_head *h, silt_slice value)
{
    h->close = h->close || silt_http_lists(value, SILT_LIT("close"));
    h->keep_alive = h->keep_alive || silt_http_lists(value, SILT_LIT("keep-alive"));
    return 0;
}

/* A server may offer HTTP/2 in a response; in a request we reject it, because the two sides of a
 * proxy would disagree about the protocol. */
static int on_upgrade(struct silt_http_head *h, silt_slice value)
{
    h->upgrade = true;
    return h->method.data != NULL && silt_http_lists(value, SILT_LIT("h2c")) ? -400 : 0;
}

static int on_expect(struct silt_http_head *h, silt_slice value)
{
    if (h->method.data == NULL)
        return 0; /* meaningless in a response */
    if (!silt_slice_ieq(value, SILT_LIT("100-continue")))
        return -417;
    h->expect_continue = true;
    return 0;
}

/* The fields that change how a message is parsed. */
static const struct meaning {
    silt_slice name;
    int (*apply)(struct silt_http_head *h, silt_slice value);
} meanings[] = {
    {{"host", 4}, on_host},
    {{"content-length", 14}, on_length},
    {{"transfer-encoding", 17}, on_encoding},
    {{"connection", 10}, on_connection},
    {{"upgrade", 7}, on_upgrade},
    {{"expect", 6}, on_expect},
};

static int apply_field(struct silt_http_head *h, silt_slice name, silt_slice value)
{
    for (size_t i = 0; i < SILT_COUNT(meanings); i++)
        if (meanings[i].name.len == name.len && silt_slice_ieq(meanings[i].name, name))
            return meanings[i].apply(h, value);
    return 0;
}

static int take_field(struct cursor *c, struct silt_http_head *h)
{
    int r;
    silt_slice name = take_run(
        c, silt_http_is_token); /* a folded line begins with a space, which is not a token */
    if (name.len == 0 && c->at < c->end)
        return -400;
    if ((r = take_byte(c, ':')) != 0)
        return r;
    silt_slice value = silt_slice_trim(take_run(c, silt_http_is_text));
    if ((r = take_newline(c)) != 0)
        return r;
    if (h->count == SILT_HTTP_FIELDS_MAX)
        return -431;
    h->fields[h->count++] = (struct silt_http_field){name, value};
    return apply_field(h, name, value);
}

static size_t count_fields(const struct silt_http_head *h, silt_slice name)
{
    size_t count = 0;
    for (size_t i = 0; i < h->count; i++)
        count += silt_slice_ieq(h->fields[i].name, name);
    return count;
}

/* Checks that need the complete head. */
static int check_head(struct silt_http_head *h, enum silt_http_kind kind)
{
    if (h->chunked && (h->has_length || h->minor == 0))
        return -400;
    if (kind == SILT_HTTP_CONNECT && (h->chunked || h->length > 0))
        return -400;
    if (kind != SILT_HTTP_RESPONSE) {
        size_t hosts = count_fields(h, SILT_LIT("host"));
        if (hosts > 1 || (hosts == 0 && h->minor == 1 && kind == SILT_HTTP_REQUEST))
            return -400;
    }
    if (h->minor == 0) {
        h->expect_continue = false; /* RFC 9110 10.1.1 */
        h->close = h->close || !h->keep_alive;
    }
    return 0;
}

static int take_head(struct cursor *c, struct silt_http_head *h, enum silt_http_kind kind)
{
    int r = kind == SILT_HTTP_RESPONSE ? take_status_line(c, h) : take_request_line(c, h, kind);
    if (r != 0 || (r = take_newline(c)) != 0)
        return r;
    while (c->at < c->end && *c->at != '\r')
        if ((r = take_field(c, h)) != 0)
            return r;
    if ((r = take_newline(c)) != 0)
        return r;
    return check_head(h, kind);
}

int silt_http_parse(struct silt_http_head *h, silt_slice bytes, enum silt_http_kind kind)
{
    memset(h, 0, offsetof(struct silt_http_head, fields));
    if (bytes.len == 0)
        return 0;
    struct cursor c = {bytes.data, bytes.data + bytes.len};
    if (bytes.len > SILT_HTTP_HEAD_MAX)
        c.end = bytes.data + SILT_HTTP_HEAD_MAX;
    int r = take_head(&c, h, kind);
    if (r == MORE)
        r = bytes.len < SILT_HTTP_HEAD_MAX ? 0 : -431;
    else if (r == 0)
        return (int)(c.at - bytes.data);
    return r < 0 && kind == SILT_HTTP_RESPONSE ? -502 : r;
}

silt_slice silt_http_field(const struct silt_http_head *h, silt_slice name)
{
    for (size_t i = 0; i < h->count; i++)
        if (silt_slice_ieq(h->fields[i].name, name))
            return h->fields[i].value;
    return (silt_slice){NULL, 0};
}

bool silt_http_lists(silt_slice list, silt_slice word)
{
    silt_slice item;
    while (silt_slice_split(&list, ',', &item))
        if (silt_slice_ieq(silt_slice_trim(item), word))
            return true;
    return false;
}

bool silt_http_is_own(const struct silt_http_head *h)
{
    static const silt_slice schemes[] = {{"http://", 7}, {"https://", 8}};
    silt_slice origin = silt_http_field(h, SILT_LIT("origin"));
    if (h->host.len == 0 || count_fields(h, SILT_LIT("origin")) != 1)
        return false; /* none, or several, which two parsers could read differently */
    for (size_t i = 0; i < SILT_COUNT(schemes); i++)
        if (silt_slice_starts(origin, schemes[i]))
            return silt_slice_ieq(
                (silt_slice){origin.data + schemes[i].len, origin.len - schemes[i].len}, h->host);
    return false;
}
