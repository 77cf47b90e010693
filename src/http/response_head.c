/* SPDX-License-Identifier: Apache-2.0 */
/* response_head: formats a response into memory whose size is computed first. */
#include "http/conn.h"
#include "base/clock.h"
#include "http/field.h"

#include <assert.h>

enum {
    HEAD_ROOM = 256, /* status line and our own fields */
    DATE_MS = 250,   /* how stale the Date field may be */
};

static const char *reason_of(int status)
{
    static const char *const reasons[600] = {
        [100] = "Continue",
        [101] = "Switching Protocols",
        [200] = "OK",
        [201] = "Created",
        [202] = "Accepted",
        [204] = "No Content",
        [206] = "Partial Content",
        [303] = "See Other",
        [304] = "Not Modified",
        [400] = "Bad Request",
        [401] = "Unauthorized",
        [403] = "Forbidden",
        [404] = "Not Found",
        [405] = "Method Not Allowed",
        [406] = "Not Acceptable",
        [408] = "Request Timeout",
        [409] = "Conflict",
        [410] = "Gone",
        [411] = "Length Required",
        [412] = "Precondition Failed",
        [413] = "Content Too Large",
        [414] = "URI Too Long",
        [415] = "Unsupported Media Type",
        [416] = "Range Not Satisfiable",
        [417] = "Expectation Failed",
        [422] = "Unprocessable Content",
        [426] = "Upgrade Required",
        [429] = "Too Many Requests",
        [431] = "Request Header Fields Too Large",
        [500] = "Internal Server Error",
        [501] = "Not Implemented",
        [502] = "Bad Gateway",
        [503] = "Service Unavailable",
        [504] = "Gateway Timeout",
        [505] = "HTTP Version Not Supported",
        [507] = "Insufficient Storage",
    };
    return reasons[status] != NULL ? reasons[status] : "Other";
}

static silt_slice date_now(struct silt_http_server *s)
{
    if (s->date[0] == 0 || s->loop->now_ms - s->date_ms >= DATE_MS) {
        silt_http_date(silt_clock_wall_ms() / 1000, s->date);
        s->date_ms = s->loop->now_ms;
    }
    return (silt_slice){s->date, sizeof(s->date) - 1};
}

static char *lay(char *at, silt_slice s)
{
    if (s.len > 0)
        memcpy(at, s.data, s.len);
    return at + s.len;
}

static char *lay_number(char *at, uint64_t v)
{
    char text[20], *p = text + sizeof(text);
    do
        *--p = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    return lay(at, (silt_slice){p, (size_t)(text + sizeof(text) - p)});
}

static char *lay_framing(char *at, const struct silt_http_answer *a, bool last)
{
    if (a->framing == SILT_HTTP_LENGTH || a->framing == SILT_HTTP_SIZED) {
        at = lay(at, SILT_LIT("Content-Length: "));
        at = lay_number(at, a->framing == SILT_HTTP_SIZED ? a->length : a->body.len);
        at = lay(at, SILT_LIT("\r\n"));
    } else if (a->framing == SILT_HTTP_CHUNKED) {
        at = lay(at, SILT_LIT("Transfer-Encoding: chunked\r\n"));
    }
    if (last)
        return lay(at, SILT_LIT("Connection: close\r\n"));
    return a->old ? lay(at, SILT_LIT("Connection: keep-alive\r\n")) : at;
}

static char *lay_status(char *at, const struct silt_http_answer *a)
{
    assert(a->status >= 100 && a->status < 600);
    at = lay(at, SILT_LIT("HTTP/1.1 "));
    at = lay_number(at, (uint64_t)a->status);
    *at++ = ' ';
    at = lay(at, a->reason.len > 0 ? a->reason : silt_slice_of(reason_of(a->status)));
    return lay(at, SILT_LIT("\r\nDate: "));
}

void silt_http_lay_answer(struct silt_http_conn *c, struct silt_buf *b,
                          const struct silt_http_answer *a)
{
    struct silt_http_server *s = c->server;
    bool with_body = a->framing == SILT_HTTP_LENGTH && !a->head_only;
    silt_slice body = with_body ? a->body : (silt_slice){NULL, 0};
    size_t most = HEAD_ROOM + a->reason.len + a->type.len + a->fields.len + a->more_fields.len
                  + s->hooks.extra_fields.len + body.len;
    char *at = silt_buf_room(b, most), *from = at;
    if (at == NULL)
        return;
    at = lay_status(at, a);
    at = lay(at, date_now(s));
    at = lay(at, SILT_LIT("\r\n"));
    if (a->type.len > 0) {
        at = lay(at, SILT_LIT("Content-Type: "));
        at = lay(at, a->type);
        at = lay(at, SILT_LIT("\r\n"));
    }
    at = lay_framing(at, a, c->last);
    at = lay(at, a->fields);
    at = lay(at, a->more_fields);
    at = lay(at, s->hooks.extra_fields);
    at = lay(at, SILT_LIT("\r\n"));
    at = lay(at, body);
    b->len += (size_t)(at - from);
    assert((size_t)(at - from) <= most);
}
