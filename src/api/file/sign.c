/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/sandboxes/{id}/files/sign: a URL with which anybody may read or write one file. */
#include "api/core/signature.h"
#include "api/file/file.h"
#include "base/clock.h"
#include "sandbox/core/sandbox.h"

#include <assert.h>

enum { SECONDS = 3600, SECONDS_MAX = 7 * 86400, URL_MAX = 32 << 10, HOST_MAX = 255 };

struct wish {
    silt_slice path, method;
    int64_t seconds;
};

static void add_escaped(struct silt_buf *b, silt_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                     || silt_is_any((char)c, "-._~/");
        if (plain)
            silt_buf_add_byte(b, (char)c);
        else
            silt_buf_addf(b, "%%%02X", c);
    }
}

/* As the client has reached us. */
static void add_origin(struct silt_buf *b, const struct silt_http_request *r)
{
    silt_slice host = silt_http_field(r->head, SILT_LIT("host"));
    silt_slice proto = silt_http_field(r->head, SILT_LIT("x-forwarded-proto"));
    if (host.len == 0 || host.len > HOST_MAX)
        return;
    silt_buf_add(b, silt_slice_eq(proto, SILT_LIT("https")) ? SILT_LIT("https://")
                                                            : SILT_LIT("http://"));
    silt_buf_add(b, host);
}

static void sign(struct silt_call *c)
{
    const struct wish *w = c->own;
    char signature[SILT_SIGNATURE_SIZE];
    int64_t until_s = silt_clock_wall_ms() / 1000 + w->seconds;
    struct silt_signature x = {.method = w->method,
                               .id = c->id,
                               .path = w->path,
                               .created_ms = c->sandbox->row.created_ms,
                               .until_s = (uint64_t)until_s};
    silt_auto_buf b, url;
    silt_signature_make(c->api, &x, signature);
    silt_buf_init(&url, URL_MAX);
    silt_buf_init(&b, 2 * URL_MAX);
    add_origin(&url, c->request);
    silt_buf_add(&url, SILT_LIT("/v1/sandboxes/"));
    silt_buf_add(&url, c->id);
    silt_buf_add(&url, SILT_LIT("/files?path="));
    add_escaped(&url, w->path);
    silt_buf_addf(&url, "&format=raw&expires=%lld&signature=%s", (long long)until_s, signature);
    silt_json_open(&b, '{');
    silt_json_add_slice(&b, "url", silt_buf_slice(&url));
    silt_json_add_slice(&b, "method", w->method);
    silt_json_key(&b, SILT_LIT("expiresAt"));
    silt_api_time(&b, until_s * 1000);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static bool read_seconds(struct silt_call *c, int64_t *ret)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("expiresIn"));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (v->type == SILT_JSON_INT && v->integer >= 1 && v->integer <= SECONDS_MAX) {
        *ret = v->integer;
        return true;
    }
    silt_api_refuse_field(c->request, "expiresIn",
                          "must be a whole number of seconds, 1 to 604800");
    return false;
}

static bool parse(struct silt_call *c)
{
    struct wish *w = silt_arena_alloc(c->request->arena, sizeof(*w));
    assert(w != NULL);
    *w = (struct wish){.method = SILT_LIT("GET"), .seconds = SECONDS};
    c->own = w;
    if (!silt_body_string(c, "path", &w->path) || !silt_body_string(c, "method", &w->method)
        || !read_seconds(c, &w->seconds))
        return false;
    const char *wrong = silt_file_check_path(w->path);
    if (wrong != NULL) {
        silt_api_refuse_value(c->request, "path", wrong, "INVALID_PATH");
        return false;
    }
    if (silt_slice_eq(w->method, SILT_LIT("GET")) || silt_slice_eq(w->method, SILT_LIT("PUT")))
        return true;
    silt_api_refuse_field(c->request, "method", "must be GET or PUT");
    return false;
}

static const struct silt_call_kind sign_call = {.body = SILT_BODY_REQUIRED,
                                                .sandbox = SILT_CALL_LOOKS,
                                                .native = true,
                                                .parse = parse,
                                                .run = sign};

SILT_HANDLER(silt_api_file_sign)
{
    silt_call_begin(r, args, &sign_call);
}
