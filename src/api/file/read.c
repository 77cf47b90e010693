/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/read: a whole file as a JSON string. A file larger than one frame is sent in
 * pieces. */
#include "api/file/file.h"
#include "base/base64.h"

#include <errno.h>

enum {
    READ_MAX = 32 << 20, /* as the official server has it */
    PIECE_MAX =
        7 * SILT_FRAME_BODY_MAX + 8 * SILT_FILE_TEXT_MAX, /* a byte is at most six in JSON */
};

enum wish { BY_TYPE, TEXT, BINARY };

struct reading {
    struct silt_file file;
    enum wish wish;
    bool is_known; /* META has arrived */
    bool is_begun; /* the response head has been sent */
    bool is_binary;
    uint64_t bytes;
    struct silt_worker_meta meta;
    struct silt_base64 base64;
    struct silt_json_escape escape;
};

static void refuse_large(struct reading *g)
{
    struct silt_file *f = &g->file;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_FILE_TEXT_MAX * 2);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("path"));
    silt_json_string(&b, f->path);
    silt_json_key(&b, SILT_LIT("operation"));
    silt_json_string(&b, silt_slice_of(f->kind->operation));
    silt_json_key(&b, SILT_LIT("actualSize"));
    silt_json_u64(&b, g->meta.size);
    silt_json_key(&b, SILT_LIT("maxSize"));
    silt_json_u64(&b, READ_MAX);
    silt_json_close(&b, '}');
    silt_file_refuse_with(f, SILT_API_FILE_TOO_LARGE, silt_buf_slice(&b),
                          SILT_LIT("The file is larger than 32 MiB: read it as a stream"));
}

static void add_prefix(struct reading *g, struct silt_buf *b)
{
    silt_slice mime = silt_slice_of(g->meta.mime);
    g->is_binary = g->wish == BINARY || (g->wish == BY_TYPE && !silt_mime_is_text(mime));
    silt_file_answer(&g->file, b);
    silt_json_key(b, SILT_LIT("content"));
    silt_buf_add_byte(b, '"');
}

static void add_bytes(struct reading *g, struct silt_buf *b, silt_slice bytes)
{
    static const char bom[] = {'\xef', '\xbb', '\xbf'};
    bool is_first = g->bytes == 0;
    g->bytes += bytes.len;
    if (g->is_binary) {
        silt_base64_encode(&g->base64, b, bytes);
        return;
    }
    if (is_first && silt_slice_starts(bytes, (silt_slice){bom, sizeof(bom)})) {
        bytes.data += sizeof(bom);
        bytes.len -= sizeof(bom);
    }
    silt_json_escape(&g->escape, b, bytes);
}

static void add_suffix(struct reading *g, struct silt_buf *b)
{
    if (g->is_binary)
        silt_base64_encode_end(&g->base64, b);
    else
        silt_json_escape_end(&g->escape, b);
    silt_buf_add_byte(b, '"');
    silt_api_timestamp(b);
    silt_json_key(b, SILT_LIT("encoding"));
    silt_json_string(b, g->is_binary ? SILT_LIT("base64") : SILT_LIT("utf-8"));
    silt_json_key(b, SILT_LIT("isBinary"));
    silt_json_bool(b, g->is_binary);
    silt_json_key(b, SILT_LIT("mimeType"));
    silt_json_string(b, silt_slice_of(g->meta.mime));
    silt_json_key(b, SILT_LIT("size"));
    silt_json_u64(b, g->meta.size);
    silt_json_close(b, '}');
}

/* Sends a piece of the response; for a small file the last piece is the whole response. */
static void send_piece(struct reading *g, struct silt_buf *b, bool last)
{
    struct silt_file *f = &g->file;
    if (last && !g->is_begun) {
        silt_api_answer(silt_file_end(f), 200, b);
        return;
    }
    if (!g->is_begun)
        silt_http_begin(f->request, 200, SILT_LIT("application/json"), (silt_slice){NULL, 0});
    g->is_begun = true;
    silt_http_write(f->request, silt_buf_slice(b));
    if (last)
        silt_http_end(silt_file_end(f));
    else
        silt_file_mind_client(f);
}

static void said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct reading *g = silt_outer(f, struct reading, file);
    silt_auto_buf b;
    silt_buf_init(&b, PIECE_MAX);
    if (!g->is_known) {
        if (!silt_file_meta(f, body, &g->meta, &body))
            return;
        if (g->meta.size > READ_MAX) {
            refuse_large(g);
            return;
        }
        g->is_known = true;
        add_prefix(g, &b);
    } else if (type != SILT_WORKER_SAY_DATA) {
        body.len = 0;
    }
    if (g->bytes + body.len > READ_MAX) { /* more than requested */
        silt_http_cut(silt_file_end(f));
        return;
    }
    add_bytes(g, &b, body);
    if (last)
        add_suffix(g, &b);
    send_piece(g, &b, last);
}

static void failed(struct silt_file *f, const struct silt_error *e)
{
    struct reading *g = silt_outer(f, struct reading, file);
    if (g->is_begun)
        silt_http_cut(silt_file_end(f));
    else
        silt_file_refuse(f, e);
}

static bool parse(struct silt_file *f)
{
    silt_slice encoding = {NULL, 0};
    struct reading *g = silt_outer(f, struct reading, file);
    if (!silt_body_string(f->call, "encoding", &encoding))
        return false;
    g->wish =
        silt_slice_eq(encoding, SILT_LIT("base64")) ? BINARY
        : silt_slice_eq(encoding, SILT_LIT("utf-8")) || silt_slice_eq(encoding, SILT_LIT("utf8"))
            ? TEXT
            : BY_TYPE;
    g->file.ask.ask.flags = SILT_WORKER_MIME;
    g->file.ask.ask.length = READ_MAX;
    return true;
}

static const struct silt_file_kind kind = {
    .op = SILT_WORKER_READ,
    .operation = "file.read",
    .path_field = "path",
    .size = sizeof(struct reading),
    .parse = parse,
    .said = said,
    .failed = failed,
    .codes = {{ENOENT, SILT_API_FILE_NOT_FOUND},
              {ENOTDIR, SILT_API_FILE_NOT_FOUND},
              {EISDIR, SILT_API_FILE_NOT_FOUND},
              {ENXIO, SILT_API_FILE_NOT_FOUND}}, /* neither file nor directory */
};

SILT_HANDLER(silt_api_file_read)
{
    silt_file_begin(r, args, &kind);
}
