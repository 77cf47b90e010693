/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/write: writes text or base64 of a JSON body to a file. A small one is sent along with
 * the operation. */
#include "api/file/file.h"
#include "base/base64.h"

#include <stdio.h>

/* Room left in a frame beside the longest paths. */
enum {
    RIDES_MAX = SILT_FRAME_BODY_MAX - (int)sizeof(struct silt_worker_ask) - 3 * SILT_WORKER_PATH_MAX
};

struct writing {
    struct silt_file file;
    silt_slice content; /* not yet sent */
    bool is_base64;
};

/* The next piece to send; *ret_rest is what follows it. */
static silt_slice next_piece(const struct writing *g, silt_slice *ret_rest)
{
    static char decoded[SILT_FRAME_BODY_MAX];
    silt_slice rest = g->content, piece = rest;
    if (g->is_base64) {
        piece = (silt_slice){decoded, silt_base64_decode(&rest, decoded, sizeof(decoded))};
    } else {
        piece.len = rest.len < SILT_FRAME_BODY_MAX ? rest.len : SILT_FRAME_BODY_MAX;
        rest.data += piece.len;
        rest.len -= piece.len;
    }
    *ret_rest = rest;
    return piece;
}

static void feed(struct silt_file *f)
{
    struct writing *g = silt_outer(f, struct writing, file);
    while (g->content.len > 0) {
        silt_slice rest, piece = next_piece(g, &rest);
        if (!silt_work_feed(f->work, piece, rest.len == 0))
            return;
        g->content = rest;
    }
}

static void said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    (void)type;
    (void)body;
    if (!last)
        return;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_FILE_TEXT_MAX);
    silt_file_answer(f, &b);
    silt_file_finish(f, &b);
}

static bool read_content(struct writing *g)
{
    struct silt_call *c = g->file.call;
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("content"));
    silt_slice encoding = {NULL, 0};
    if (!silt_body_string(c, "encoding", &encoding))
        return false;
    if (v == NULL || v->type != SILT_JSON_STRING) {
        silt_api_refuse_field(c->request, "content",
                              v == NULL ? "is required" : "must be a string");
        return false;
    }
    g->content = v->string;
    g->is_base64 = silt_slice_eq(encoding, SILT_LIT("base64"));
    const char *wrong = g->is_base64 ? silt_base64_check(g->content) : NULL;
    if (wrong != NULL)
        silt_api_refuse_value(c->request, "content", wrong, "INVALID_BASE64");
    return wrong == NULL;
}

static void let_ride(struct writing *g)
{
    size_t size = g->is_base64 ? silt_base64_size(g->content) : g->content.len;
    if (size > RIDES_MAX)
        return;
    silt_slice text = g->content;
    if (g->is_base64) {
        char *own = silt_arena_alloc(g->file.request->arena, size + 1);
        if (own == NULL)
            return;
        text = (silt_slice){own, silt_base64_decode(&g->content, own, size)};
    }
    g->file.ask.text = text;
    g->file.ask.ask.flags |= SILT_WORKER_ONLY;
    g->content = (silt_slice){NULL, 0};
}

static bool parse(struct silt_file *f)
{
    struct writing *g = silt_outer(f, struct writing, file);
    if (!read_content(g))
        return false;
    g->file.ask.ask.flags = SILT_WORKER_PARENTS;
    g->file.ask.ask.mode = 0666;
    let_ride(g);
    return true;
}

static const struct silt_file_kind kind = {
    .op = SILT_WORKER_WRITE,
    .operation = "file.write",
    .path_field = "path",
    .size = sizeof(struct writing),
    .parse = parse,
    .said = said,
    .room = feed,
};

SILT_HANDLER(silt_api_file_write)
{
    silt_file_begin(r, args, &kind);
}
