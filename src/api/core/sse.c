/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/sse.h"
#include "base/own.h"

enum { KEEPALIVE_MS = 15000, OUTPUT_MAX = 8 << 20 };

static void fill_silence(struct silt_sse *s)
{
    silt_http_write(s->request, SILT_LIT(": keep-alive\n\n"));
    silt_loop_after(s->loop, &s->keepalive, KEEPALIVE_MS);
}

static void on_keepalive(struct silt_timer *t)
{
    fill_silence(silt_outer(t, struct silt_sse, keepalive));
}

void silt_sse_probe(struct silt_sse *s)
{
    if (s->begun)
        fill_silence(s);
}

void silt_sse_init(struct silt_sse *s, struct silt_loop *loop, struct silt_http_request *r)
{
    *s = (struct silt_sse){.request = r, .loop = loop, .keepalive = {.on_time = on_keepalive}};
}

void silt_sse_begin(struct silt_sse *s)
{
    if (s->begun)
        return;
    s->begun = true;
    silt_http_begin(s->request, 200, SILT_LIT("text/event-stream"),
                    SILT_LIT("Cache-Control: no-cache\r\n"));
    silt_loop_after(s->loop, &s->keepalive, KEEPALIVE_MS);
}

void silt_sse_open(struct silt_buf *b, const char *type)
{
    silt_buf_addf(b, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

void silt_sse_send(struct silt_sse *s, struct silt_buf *b)
{
    silt_json_close(b, '}');
    silt_sse_send_raw(s, b);
}

void silt_sse_send_raw(struct silt_sse *s, struct silt_buf *b)
{
    silt_buf_add(b, SILT_LIT("\n\n"));
    silt_sse_send_whole(s, silt_buf_slice(b));
}

void silt_sse_send_whole(struct silt_sse *s, silt_slice event)
{
    silt_http_write(s->request, event);
    silt_loop_after(s->loop, &s->keepalive, KEEPALIVE_MS);
}

void silt_sse_send_output(struct silt_sse *s, struct silt_json_escape *x, silt_slice bytes)
{
    silt_auto_buf b;
    silt_buf_init(&b, OUTPUT_MAX);
    silt_sse_open(&b, "output");
    silt_json_key(&b, SILT_LIT("data"));
    silt_buf_add_byte(&b, '"');
    silt_json_escape(x, &b, bytes);
    silt_buf_add_byte(&b, '"');
    silt_sse_send(s, &b);
}

struct silt_http_request *silt_sse_fini(struct silt_sse *s)
{
    silt_loop_cancel(s->loop, &s->keepalive);
    s->request->on_gone = NULL;
    s->request->on_drain = NULL;
    s->request->on_halved = NULL;
    return s->request;
}
