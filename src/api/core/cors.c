/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/cors.h"

enum { FIELDS_MAX = 2048 };

#define COMPATIBLE                                                                                 \
    "Access-Control-Allow-Origin: *\r\n"                                                           \
    "Access-Control-Allow-Methods: GET, POST, PUT, DELETE, OPTIONS\r\n"                            \
    "Access-Control-Allow-Headers: Content-Type, Authorization, X-Session-Id, X-Sandbox-Id, "      \
    "X-Trace-Id\r\n"

const silt_slice silt_cors_compatible = {COMPATIBLE, sizeof(COMPATIBLE) - 1};

#define NATIVE                                                                                     \
    "Vary: Origin\r\n"                                                                             \
    "Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"               \
    "Access-Control-Allow-Headers: Content-Type, Authorization, Accept, Range, If-Match, "         \
    "If-None-Match, Idempotency-Key, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version\r\n"      \
    "Access-Control-Expose-Headers: ETag, Content-Range, X-Silt-Cursor, X-Silt-Dropped, "          \
    "X-Silt-Idempotent, Mcp-Session-Id\r\n"                                                        \
    "Access-Control-Max-Age: 600\r\n"

static bool is_listed(silt_slice list, silt_slice origin)
{
    silt_slice one;
    while (list.len > 0 && silt_slice_split(&list, ',', &one)) {
        one = silt_slice_trim(one);
        if (silt_slice_eq(one, SILT_LIT("*")) || silt_slice_ieq(one, origin))
            return true;
    }
    return false;
}

static void add_fields(struct silt_http_request *r, silt_slice before, silt_slice value,
                       silt_slice after)
{
    silt_slice old = r->more_fields;
    silt_auto_buf b;
    silt_buf_init(&b, FIELDS_MAX + old.len + value.len);
    silt_buf_add(&b, old);
    silt_buf_add(&b, before);
    silt_buf_add(&b, value);
    silt_buf_add(&b, after);
    char *copy = silt_arena_dup(r->arena, silt_buf_slice(&b));
    if (copy != NULL && !b.broken)
        r->more_fields = (silt_slice){copy, b.len};
}

void silt_cors_allow(struct silt_http_request *r, const char *origins, bool native)
{
    if (!native) {
        r->more_fields = silt_cors_compatible;
        return;
    }
    silt_slice origin = silt_http_field(r->head, SILT_LIT("origin"));
    if (origin.len > 0 && is_listed(silt_slice_of(origins), origin))
        add_fields(r, SILT_LIT("Access-Control-Allow-Origin: "), origin, SILT_LIT("\r\n" NATIVE));
}

bool silt_cors_has_token(struct silt_http_request *r, silt_slice token)
{
    static const char prefix[] = "silt.bearer.";
    bool silt = false, right = false;
    size_t tokens = 0;
    for (size_t i = 0; i < r->head->count; i++) {
        silt_slice list = r->head->fields[i].value, one;
        if (!silt_slice_ieq(r->head->fields[i].name, SILT_LIT("sec-websocket-protocol")))
            continue;
        while (list.len > 0 && silt_slice_split(&list, ',', &one)) {
            one = silt_slice_trim(one);
            silt = silt || silt_slice_eq(one, SILT_LIT("silt"));
            if (!silt_slice_starts(one, silt_slice_of(prefix)))
                continue;
            tokens++;
            right = silt_slice_eq_secret(
                (silt_slice){one.data + sizeof(prefix) - 1, one.len - (sizeof(prefix) - 1)}, token);
        }
    }
    if (!r->head->upgrade || !silt || tokens != 1 || !right)
        return false;
    add_fields(r, SILT_LIT("Sec-WebSocket-Protocol: silt\r\n"), (silt_slice){NULL, 0},
               (silt_slice){NULL, 0});
    return true;
}
