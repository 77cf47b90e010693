/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ws/frame.h"
#include "base/own.h"

/* ---- requests ---- */

static silt_slice text_of(const struct silt_json *message, silt_slice key)
{
    const struct silt_json *v = silt_json_get(message, key);
    return v != NULL && v->type == SILT_JSON_STRING ? v->string : (silt_slice){NULL, 0};
}

static bool is_id(silt_slice id)
{
    return id.len > 0 && id.len <= SILT_WS_ID_MAX && !silt_slice_has_byte(id, 0);
}

enum silt_ws_what silt_ws_request_read(struct silt_arena *a, silt_slice message,
                                       struct silt_ws_request *ret)
{
    const struct silt_json *m;
    struct silt_error e;
    if (silt_json_read(a, message, &m, &e) < 0)
        return SILT_WS_NOT_JSON;
    silt_slice type = text_of(m, SILT_LIT("type"));
    *ret = (struct silt_ws_request){
        .id = text_of(m, SILT_LIT("id")),
        .method = text_of(m, SILT_LIT("method")),
        .path = text_of(m, SILT_LIT("path")),
        .body = silt_json_get(m, SILT_LIT("body")),
        .headers = silt_json_get(m, SILT_LIT("headers")),
    };
    if (!is_id(ret->id))
        return SILT_WS_INVALID;
    return silt_slice_eq(type, SILT_LIT("request"))  ? SILT_WS_REQUEST
           : silt_slice_eq(type, SILT_LIT("cancel")) ? SILT_WS_CANCEL
                                                     : SILT_WS_INVALID;
}

/* Connection headers are set by us; authentication happened when the socket was opened. */
static bool is_callers(silt_slice name)
{
    static const char *const ours[] = {"host",
                                       "content-length",
                                       "transfer-encoding",
                                       "connection",
                                       "upgrade",
                                       "expect",
                                       "keep-alive",
                                       "te",
                                       "trailer",
                                       "authorization",
                                       "cookie",
                                       "origin",
                                       "content-type"};
    for (size_t i = 0; i < SILT_COUNT(ours); i++)
        if (silt_slice_ieq(name, silt_slice_of(ours[i])))
            return false;
    return true;
}

/* Prevents header injection; the parser finds other faults. */
static bool is_one_line(silt_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.data[i] < 0x20 || s.data[i] == 0x7f)
            return false;
    return true;
}

static bool add_field(struct silt_buf *head, silt_slice name, silt_slice value)
{
    silt_buf_add(head, name);
    silt_buf_add(head, SILT_LIT(": "));
    silt_buf_add(head, value);
    silt_buf_add(head, SILT_LIT("\r\n"));
    return is_one_line(name) && is_one_line(value) && !silt_slice_has_byte(name, ':');
}

static silt_slice type_of(const struct silt_json *headers)
{
    const struct silt_json *h =
        headers != NULL && headers->type == SILT_JSON_OBJECT ? headers->items.first : NULL;
    for (; h != NULL; h = h->next)
        if (h->type == SILT_JSON_STRING && silt_slice_ieq(h->key, SILT_LIT("content-type")))
            return h->string;
    return SILT_LIT("application/json");
}

static bool add_fields(struct silt_buf *head, const struct silt_json *headers)
{
    const struct silt_json *h =
        headers != NULL && headers->type == SILT_JSON_OBJECT ? headers->items.first : NULL;
    bool good = add_field(head, SILT_LIT("Content-Type"), type_of(headers));
    for (; h != NULL && good; h = h->next)
        if (h->type == SILT_JSON_STRING && is_callers(h->key))
            good = add_field(head, h->key, h->string);
    return good;
}

static bool is_method(silt_slice m)
{
    return silt_slice_eq(m, SILT_LIT("GET")) || silt_slice_eq(m, SILT_LIT("POST"))
           || silt_slice_eq(m, SILT_LIT("PUT")) || silt_slice_eq(m, SILT_LIT("DELETE"));
}

static bool is_target(silt_slice path)
{
    return path.len > 0 && path.data[0] == '/' && is_one_line(path)
           && !silt_slice_has_byte(path, ' ');
}

int silt_ws_request_lay(const struct silt_ws_request *q, const char *sandbox, struct silt_buf *head,
                        struct silt_buf *body, struct silt_error *e)
{
    bool has_body = q->body != NULL && q->method.len > 0 && q->method.data[0] == 'P';
    if (!is_method(q->method))
        return silt_fail(e, SILT_INVALID, "The method must be GET, POST, PUT or DELETE");
    if (!is_target(q->path))
        return silt_fail(e, SILT_INVALID,
                         "The path must begin with a slash and be escaped as in a URL");
    if (has_body)
        silt_json_value(body, q->body);
    silt_buf_add(head, q->method);
    silt_buf_addf(head, " /sandboxes/%s", sandbox);
    silt_buf_add(head, q->path);
    silt_buf_addf(head, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n", body->len);
    bool good = add_fields(head, q->headers);
    silt_buf_add(head, SILT_LIT("\r\n"));
    if (!good || head->broken || body->broken)
        return silt_fail(e, SILT_INVALID, "The request is too large, or a header is malformed");
    return 0;
}

/* ---- responses ---- */

void silt_ws_frame_response(struct silt_buf *b, silt_slice id, int status, silt_slice json)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("type"));
    silt_json_string(b, SILT_LIT("response"));
    silt_json_key(b, SILT_LIT("id"));
    silt_json_string(b, id);
    silt_json_key(b, SILT_LIT("status"));
    silt_json_i64(b, status);
    if (json.len > 0) {
        silt_json_key(b, SILT_LIT("body"));
        silt_json_raw(b, json);
    }
    silt_json_key(b, SILT_LIT("done"));
    silt_json_bool(b, true);
    silt_json_close(b, '}');
}

void silt_ws_frame_error(struct silt_buf *b, const char *id, const char *code, int status,
                         const char *message)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("type"));
    silt_json_string(b, SILT_LIT("error"));
    if (id != NULL) {
        silt_json_key(b, SILT_LIT("id"));
        silt_json_string(b, silt_slice_of(id));
    }
    silt_json_key(b, SILT_LIT("code"));
    silt_json_string(b, silt_slice_of(code));
    silt_json_key(b, SILT_LIT("message"));
    silt_json_string(b, silt_slice_of(message));
    silt_json_key(b, SILT_LIT("status"));
    silt_json_i64(b, status);
    silt_json_close(b, '}');
}

bool silt_ws_next_event(silt_slice *text, silt_slice *ret)
{
    const char *end = text->len > 0 ? memmem(text->data, text->len, "\n\n", 2) : NULL;
    if (end == NULL)
        return false;
    *ret = (silt_slice){text->data, (size_t)(end - text->data)};
    text->len -= ret->len + 2;
    text->data = end + 2;
    return true;
}

/* The value after the field's name, without the optional space. */
static bool is_field(silt_slice line, silt_slice name, silt_slice *ret)
{
    if (!silt_slice_starts(line, name))
        return false;
    *ret = (silt_slice){line.data + name.len, line.len - name.len};
    if (ret->len > 0 && ret->data[0] == ' ')
        *ret = (silt_slice){ret->data + 1, ret->len - 1};
    return true;
}

static void add_data(struct silt_buf *b, silt_slice event)
{
    struct silt_json_escape x = {0};
    silt_slice line, data;
    bool first = true;
    silt_json_key(b, SILT_LIT("data"));
    silt_buf_add_byte(b, '"');
    while (silt_slice_split(&event, '\n', &line))
        if (is_field(line, SILT_LIT("data:"), &data)) {
            silt_buf_add(b, first ? SILT_LIT("") : SILT_LIT("\\n"));
            silt_json_escape(&x, b, data);
            first = false;
        }
    silt_json_escape_end(&x, b);
    silt_buf_add_byte(b, '"');
}

bool silt_ws_frame_stream(struct silt_buf *b, silt_slice id, silt_slice event)
{
    silt_slice rest = event, line, value, name = {NULL, 0};
    bool has_data = false;
    while (silt_slice_split(&rest, '\n', &line)) {
        has_data = has_data || is_field(line, SILT_LIT("data:"), &value);
        if (is_field(line, SILT_LIT("event:"), &value))
            name = value;
    }
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("type"));
    silt_json_string(b, SILT_LIT("stream"));
    silt_json_key(b, SILT_LIT("id"));
    silt_json_string(b, id);
    if (name.len > 0) {
        silt_json_key(b, SILT_LIT("event"));
        silt_json_string(b, name);
    }
    add_data(b, event);
    silt_json_close(b, '}');
    return has_data;
}
