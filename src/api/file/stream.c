/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/read/stream: a file of any size as events. Every failure is an event, too. */
#include "api/file/file.h"
#include "api/core/sse.h"
#include "base/base64.h"

#include <errno.h>

enum { PIECE_MAX = 7 * SILT_FRAME_BODY_MAX + 8 * SILT_FILE_TEXT_MAX };

struct streaming {
    struct silt_file file;
    bool is_begun, is_known, is_binary;
    uint64_t bytes, most;
    struct silt_json_escape escape;
};

static void begin(struct streaming *g)
{
    if (!g->is_begun)
        silt_http_begin(g->file.request, 200, SILT_LIT("text/event-stream"),
                        SILT_LIT("Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"));
    g->is_begun = true;
}

static void close_event(struct silt_buf *b)
{
    silt_json_close(b, '}');
    silt_buf_add(b, SILT_LIT("\n\n"));
}

static void add_metadata(struct streaming *g, struct silt_buf *b, const struct silt_worker_meta *m)
{
    g->is_binary = !silt_mime_is_text(silt_slice_of(m->mime));
    g->most = m->size;
    silt_sse_open(b, "metadata");
    silt_json_key(b, SILT_LIT("mimeType"));
    silt_json_string(b, silt_slice_of(m->mime));
    silt_json_key(b, SILT_LIT("size"));
    silt_json_u64(b, m->size);
    silt_json_key(b, SILT_LIT("isBinary"));
    silt_json_bool(b, g->is_binary);
    silt_json_key(b, SILT_LIT("encoding"));
    silt_json_string(b, g->is_binary ? SILT_LIT("base64") : SILT_LIT("utf-8"));
    close_event(b);
}

/* Each piece has its own base64 padding; a character cut off by its end is sent with the next
 * one. */
static void add_chunk(struct streaming *g, struct silt_buf *b, silt_slice bytes, bool last)
{
    struct silt_base64 x = {0};
    g->bytes += bytes.len;
    if (bytes.len == 0 && g->escape.part_len == 0)
        return;
    silt_sse_open(b, "chunk");
    silt_json_key(b, SILT_LIT("data"));
    silt_buf_add_byte(b, '"');
    if (g->is_binary) {
        silt_base64_encode(&x, b, bytes);
        silt_base64_encode_end(&x, b);
    } else {
        silt_json_escape(&g->escape, b, bytes);
        if (last)
            silt_json_escape_end(&g->escape, b);
    }
    silt_buf_add_byte(b, '"');
    close_event(b);
}

static void add_complete(struct streaming *g, struct silt_buf *b)
{
    silt_sse_open(b, "complete");
    silt_json_key(b, SILT_LIT("bytesRead"));
    silt_json_u64(b, g->bytes);
    close_event(b);
}

/* Reads up to the size at opening, so that a growing file does not keep us forever. */
static void said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct streaming *g = silt_outer(f, struct streaming, file);
    silt_auto_buf b;
    silt_buf_init(&b, PIECE_MAX);
    if (!g->is_known) {
        struct silt_worker_meta meta;
        if (!silt_file_meta(f, body, &meta, &body))
            return;
        g->is_known = true;
        begin(g);
        add_metadata(g, &b, &meta);
        silt_file_leave_turn(f); /* the file is open: the session need not wait for the reading */
    } else if (type != SILT_WORKER_SAY_DATA) {
        body.len = 0;
    }
    if (body.len >= g->most - g->bytes) {
        body.len = (size_t)(g->most - g->bytes);
        last = true;
    }
    add_chunk(g, &b, body, last);
    if (last)
        add_complete(g, &b);
    silt_http_write(f->request, silt_buf_slice(&b));
    if (last)
        silt_http_end(silt_file_end(f));
    else
        silt_file_mind_client(f);
}

static void end_with(struct streaming *g, silt_slice text)
{
    silt_auto_buf b;
    silt_buf_init(&b, PIECE_MAX);
    begin(g);
    silt_sse_open(&b, "error");
    silt_json_key(&b, SILT_LIT("error"));
    silt_json_string(&b, text);
    close_event(&b);
    silt_http_write(g->file.request, silt_buf_slice(&b));
    silt_http_end(silt_file_end(&g->file));
}

static void failed(struct silt_file *f, const struct silt_error *e)
{
    silt_auto_buf text;
    silt_buf_init(&text, SILT_FILE_TEXT_MAX);
    silt_file_message(f, silt_file_code(f, e), e, &text);
    end_with(silt_outer(f, struct streaming, file), silt_buf_slice(&text));
}

static void dead(struct silt_file *f, struct silt_session *s)
{
    silt_auto_buf text;
    silt_buf_init(&text, SILT_FILE_TEXT_MAX);
    silt_buf_addf(&text, "Session '%s' shell exited (exit code: %d)", s->name, s->exit_code);
    end_with(silt_outer(f, struct streaming, file), silt_buf_slice(&text));
}

static bool parse(struct silt_file *f)
{
    f->ask.ask.flags = SILT_WORKER_MIME;
    return true;
}

static const struct silt_file_kind kind = {
    .op = SILT_WORKER_READ,
    .operation = "file.read",
    .is_paced = true,
    .path_field = "path",
    .is_in_band = true,
    .size = sizeof(struct streaming),
    .parse = parse,
    .said = said,
    .failed = failed,
    .dead = dead,
    .codes = {{ENOENT, SILT_API_FILE_NOT_FOUND},
              {ENOTDIR, SILT_API_FILE_NOT_FOUND},
              {EISDIR, SILT_API_FILE_NOT_FOUND},
              {ENXIO, SILT_API_FILE_NOT_FOUND}},
};

SILT_HANDLER(silt_api_file_read_stream)
{
    silt_file_begin(r, args, &kind);
}
