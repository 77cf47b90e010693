/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/header_rewrite.h"
#include "base/own.h"
#include "base/test_switch.h"

const char silt_header_rewrite_cage[] =
    "Content-Security-Policy: sandbox allow-scripts allow-forms\r\n"
    "X-Content-Type-Options: nosniff\r\n";

enum {
    UP = 1,    /* not forwarded to the service */
    DOWN = 2,  /* not forwarded to the client */
    CAGED = 4, /* not forwarded from a caged preview: it affects the whole origin */
};

enum { HOPS_MAX = 32 };

static const struct drop {
    silt_slice name;
    unsigned where;
} drops[] = {
    {{"host", 4}, UP}, /* these are rewritten */
    {{"content-length", 14}, UP | DOWN},
    {{"transfer-encoding", 17}, UP | DOWN},
    {{"connection", 10}, UP | DOWN},
    {{"upgrade", 7}, UP | DOWN},
    {{"expect", 6}, UP},
    {{"keep-alive", 10}, UP | DOWN},
    {{"te", 2}, UP | DOWN},
    {{"trailer", 7}, UP | DOWN}, /* trailers are dropped */
    {{"proxy-connection", 16}, UP | DOWN},
    {{"proxy-authorization", 19}, UP | DOWN},
    {{"proxy-authenticate", 18}, UP | DOWN},
    {{"http2-settings", 14}, UP},
    {{"forwarded", 9}, UP}, /* claims about the client */
    {{"x-real-ip", 9}, UP},
    {{"x-verified-user", 15}, UP},
    {{"alt-svc", 7}, DOWN}, /* would name ports of this machine */
    {{"set-cookie", 10}, CAGED},
    {{"cookie", 6}, CAGED},
    {{"clear-site-data", 15}, CAGED},
    {{"strict-transport-security", 25}, CAGED},
    {{"service-worker-allowed", 22}, CAGED},
};

static bool is_dropped(silt_slice name, unsigned where)
{
    for (size_t i = 0; i < SILT_COUNT(drops); i++)
        if (drops[i].name.len == name.len && (drops[i].where & where) != 0
            && silt_slice_ieq(drops[i].name, name))
            return true;
    return (where & UP) != 0 && name.len > 12 && !silt_without("preview_fields")
           && silt_slice_ieq((silt_slice){name.data, 12}, SILT_LIT("x-forwarded-"));
}

bool silt_header_rewrite_lists(const struct silt_http_head *h, silt_slice name, silt_slice token)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->fields[i].name.len == name.len && silt_slice_ieq(h->fields[i].name, name)
            && silt_http_lists(h->fields[i].value, token))
            return true;
    return false;
}

/* The hop-by-hop fields that Connection lists. */
struct hops {
    size_t count;
    silt_slice names[HOPS_MAX];
};

/* -1: too many. Each field is compared with the list, so it must be short. */
static int read_hops(const struct silt_http_head *h, struct hops *ret)
{
    ret->count = 0;
    for (size_t i = 0; i < h->count; i++) {
        silt_slice list = h->fields[i].value, item;
        if (!silt_slice_ieq(h->fields[i].name, SILT_LIT("connection")))
            continue;
        while (silt_slice_split(&list, ',', &item)) {
            if (ret->count == HOPS_MAX)
                return -1;
            ret->names[ret->count++] = silt_slice_trim(item);
        }
    }
    return 0;
}

static bool is_hop(const struct hops *hops, silt_slice name)
{
    for (size_t i = 0; i < hops->count; i++)
        if (silt_slice_ieq(hops->names[i], name))
            return true;
    return false;
}

static void put_field(struct silt_buf *out, silt_slice name, silt_slice value)
{
    silt_buf_add(out, name);
    silt_buf_add(out, SILT_LIT(": "));
    silt_buf_add(out, value);
    silt_buf_add(out, SILT_LIT("\r\n"));
}

/* Fields that are forwarded in this direction. */
static void put_fields(struct silt_buf *out, const struct silt_http_head *h, unsigned where,
                       void (*put)(struct silt_buf *, const struct silt_http_field *))
{
    struct hops hops;
    if (read_hops(h, &hops) < 0) {
        out->broken = true;
        return;
    }
    for (size_t i = 0; i < h->count; i++)
        if (!is_dropped(h->fields[i].name, where) && !is_hop(&hops, h->fields[i].name))
            put(out, &h->fields[i]);
}

static unsigned cage(uint32_t flags)
{
    return (flags & SILT_PREVIEW_CAGED) != 0 ? CAGED : 0U;
}

/* Requests */

void silt_header_rewrite_put_query(struct silt_buf *out, silt_slice query)
{
    char before = '?';
    silt_slice pair;
    while (silt_slice_split(&query, '&', &pair)) {
        if (silt_host_is_proof(pair))
            continue;
        silt_buf_add_byte(out, before);
        silt_buf_add(out, pair);
        before = '&';
    }
}

static void put_target(struct silt_buf *out, const struct silt_http_head *h,
                       const struct silt_host *host)
{
    if (host->path.len == 0 || (host->path.data[0] != '/' && host->path.data[0] != '*'))
        silt_buf_add_byte(out, '/');
    silt_buf_add(out, host->path);
    if (host->signed_url)
        silt_header_rewrite_put_query(out, h->query);
    else if (h->query.data != NULL) {
        silt_buf_add_byte(out, '?');
        silt_buf_add(out, h->query);
    }
}

/* Cookies ignore ports: the cookie of siltd's own pages may be sent, too, if they share this host.
 */
static bool is_ours(silt_slice cookie)
{
    return silt_host_is_proof(cookie) || silt_slice_starts(cookie, SILT_LIT(SILT_LOGIN_COOKIE "="));
}

/* All cookies except ours. */
static void put_cookies(struct silt_buf *out, silt_slice value)
{
    silt_slice one;
    bool first = true;
    while (silt_slice_split(&value, ';', &one)) {
        one = silt_slice_trim(one);
        if (one.len == 0 || is_ours(one))
            continue;
        silt_buf_add(out, first ? SILT_LIT("Cookie: ") : SILT_LIT("; "));
        silt_buf_add(out, one);
        first = false;
    }
    if (!first)
        silt_buf_add(out, SILT_LIT("\r\n"));
}

static void put_request_field(struct silt_buf *out, const struct silt_http_field *f)
{
    if (silt_slice_ieq(f->name, SILT_LIT("cookie")))
        put_cookies(out, f->value);
    else
        put_field(out, f->name, f->value);
}

static void put_body_fields(struct silt_buf *out, const struct silt_http_head *h)
{
    if (h->chunked)
        silt_buf_add(out, SILT_LIT("Transfer-Encoding: chunked\r\n"));
    else if (h->has_length)
        silt_buf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)h->length);
    if (h->expect_continue)
        silt_buf_add(out, SILT_LIT("Expect: 100-continue\r\n"));
}

/* A list of protocol names (Upgrade). */
static void put_upgrade(struct silt_buf *out, const struct silt_http_head *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (silt_slice_ieq(h->fields[i].name, SILT_LIT("upgrade")))
            put_field(out, SILT_LIT("Upgrade"), h->fields[i].value);
    silt_buf_add(out, SILT_LIT("Connection: Upgrade\r\n"));
}

void silt_header_rewrite_request(struct silt_buf *out, const struct silt_http_head *h,
                                 const struct silt_header_rewrite_visit *v)
{
    silt_buf_add(out, h->method);
    silt_buf_add_byte(out, ' ');
    put_target(out, h, v->host);
    silt_buf_add(out, SILT_LIT(" HTTP/1.1\r\n"));
    if ((v->flags & SILT_PREVIEW_LOCALHOST) != 0)
        silt_buf_addf(out, "Host: localhost:%u\r\n", v->port);
    else
        put_field(out, SILT_LIT("Host"), h->host);
    put_fields(out, h, UP | cage(v->flags), put_request_field);
    put_body_fields(out, h);
    put_field(out, SILT_LIT("X-Forwarded-For"), silt_slice_of(v->address));
    put_field(out, SILT_LIT("X-Forwarded-Host"), h->host);
    put_field(out, SILT_LIT("X-Forwarded-Proto"), v->tls ? SILT_LIT("https") : SILT_LIT("http"));
    if (v->upgrade)
        put_upgrade(out, h);
    silt_buf_add(out, SILT_LIT("\r\n"));
}

/* Answers */

/* However browsers would read its name: with a Domain attribute it could shadow the proofs of other
 * previews. */
static bool is_our_cookie(silt_slice set)
{
    silt_slice name;
    return silt_slice_split(&set, '=', &name)
           && silt_slice_ieq(silt_slice_trim(name), SILT_LIT(SILT_PREVIEW_PROOF_NAME));
}

static void put_answer_field(struct silt_buf *out, const struct silt_http_field *f)
{
    if (!silt_slice_ieq(f->name, SILT_LIT("set-cookie")) || !is_our_cookie(f->value))
        put_field(out, f->name, f->value);
}

static void put_answer_fields(struct silt_buf *out, const struct silt_http_head *h,
                              const struct silt_header_rewrite_answer *a)
{
    put_fields(out, h, DOWN | cage(a->flags), put_answer_field);
    if ((a->flags & SILT_PREVIEW_CAGED) != 0 && !silt_without("preview_cage"))
        silt_buf_add(out, silt_slice_of(silt_header_rewrite_cage));
    if (a->cookie.len > 0)
        put_field(out, SILT_LIT("Set-Cookie"), a->cookie);
}

/* The length is also told of a body that is not sent (HEAD, 304), but never of what has none (204).
 */
static void put_answer_framing(struct silt_buf *out, const struct silt_http_head *h,
                               const struct silt_header_rewrite_answer *a)
{
    if (h->status < 200 || h->status == 204)
        return;
    if (a->as == SILT_BODY_FRAMING_CHUNKED)
        silt_buf_add(out, SILT_LIT("Transfer-Encoding: chunked\r\n"));
    else if (h->has_length)
        silt_buf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)h->length);
}

void silt_header_rewrite_answer(struct silt_buf *out, const struct silt_http_head *h,
                                const struct silt_header_rewrite_answer *a)
{
    silt_buf_addf(out, "HTTP/1.1 %d ", h->status);
    silt_buf_add(out, h->reason);
    silt_buf_add(out, SILT_LIT("\r\n"));
    put_answer_fields(out, h, a);
    put_answer_framing(out, h, a);
    if (h->status == 101)
        put_upgrade(out, h);
    else if (a->close && h->status >= 200)
        silt_buf_add(out, SILT_LIT("Connection: close\r\n"));
    else if (a->old && h->status >= 200)
        silt_buf_add(out, SILT_LIT("Connection: keep-alive\r\n"));
    silt_buf_add(out, SILT_LIT("\r\n"));
}

void silt_header_rewrite_put_cookie(struct silt_buf *out, const struct silt_host *host,
                                    uint32_t lasts_s, bool tls)
{
    silt_buf_addf(out, "%s=%s; HttpOnly; SameSite=Lax; Max-Age=%u; Path=", SILT_PREVIEW_PROOF_NAME,
                  host->proof, lasts_s);
    silt_buf_add(out, host->prefix);
    silt_buf_addf(out, "/%s", tls ? "; Secure" : "");
}
