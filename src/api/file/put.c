/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/sandboxes/{id}/files?path=…: writes a body of any size to a file, all or nothing, or
 * unpacks a tar into a directory. The body is not read until a worker waits for it, and only as
 * fast as the worker takes it: at most one piece is buffered. */
#include "api/file/native.h"
#include "api/file/upload.h"
#include "http/field.h"

#include <errno.h>

enum { UPLOAD_GIB = 64, NO_MODE = UINT32_MAX, MANY_BYTES = 512 << 10 };

/* LOOKING (If-Match) --fine--> TAKING --DONE--> DRESSING (sets the mode) --DONE--> MEASURING
 *                                                                         --> answered */
enum state { LOOKING, TAKING, DRESSING, MEASURING };

struct putting {
    struct silt_file file;
    struct silt_upload_sink sink;
    struct silt_upload *upload; /* NULL before a worker waits, and after the upload */
    enum state state;
    bool is_taken; /* the worker has everything; only the hash is missing */
    uint32_t mode; /* NO_MODE: not requested */
    struct silt_worker_done done;
};

static void ended(struct silt_file *f)
{
    struct putting *g = silt_outer(f, struct putting, file);
    silt_upload_free(g->upload);
    g->upload = NULL;
}

/* The response. */

static void add_sha256(struct putting *g, struct silt_buf *b)
{
    char text[SILT_SHA256_HEX_SIZE];
    silt_upload_hex(g->upload, text);
    silt_json_key(b, SILT_LIT("sha256"));
    silt_json_string(b, silt_slice_of(text));
}

static void answer(struct putting *g)
{
    struct silt_file *f = &g->file;
    g->is_taken = true;
    if (!silt_upload_is_hashed(g->upload))
        return; /* called again later */
    silt_auto_buf b;
    char etag[SILT_ETAG_SIZE];
    silt_buf_init(&b, SILT_FILE_TEXT_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("path"));
    silt_json_string(&b, f->path);
    if (f->kind->op == SILT_WORKER_UNTAR) {
        silt_json_add_u64(&b, "entries", g->done.entries);
        silt_json_add_u64(&b, "bytes", g->done.bytes);
        add_sha256(g, &b);
    } else {
        silt_native_etag(&g->done.meta, etag);
        silt_json_add_u64(&b, "size", g->done.bytes);
        add_sha256(g, &b);
        silt_native_octal(&b, g->done.meta.mode);
        silt_json_key(&b, SILT_LIT("etag"));
        silt_json_string(&b, silt_slice_of(etag));
    }
    silt_json_close(&b, '}');
    bool is_new = (f->ask.ask.flags & SILT_WORKER_NEW) != 0;
    silt_api_answer(silt_file_end(f), is_new ? 201 : 200, &b);
}

/* The body. */

static bool feed(struct silt_upload_sink *sink, silt_slice bytes, bool last)
{
    return silt_work_feed(silt_outer(sink, struct putting, sink)->file.work, bytes, last);
}

static void go_on(struct silt_upload_sink *sink)
{
    silt_http_pause(silt_outer(sink, struct putting, sink)->file.request, false);
}

static void hashed(struct silt_upload_sink *sink)
{
    struct putting *g = silt_outer(sink, struct putting, sink);
    if (g->is_taken)
        answer(g);
}

static char *room_for_body(struct silt_http_request *r, size_t *ret_size)
{
    struct putting *g = r->owner;
    return silt_upload_room(g->upload, ret_size);
}

static void on_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    struct putting *g = r->owner;
    if (!silt_upload_add(g->upload, piece, end) && !end)
        silt_http_pause(r, true);
}

/* The worker accepts more; the first time, the client may begin. */
static void room(struct silt_file *f)
{
    struct putting *g = silt_outer(f, struct putting, file);
    if (g->state != TAKING)
        return;
    if (g->upload != NULL) {
        silt_upload_push(g->upload);
        return;
    }
    g->sink = (struct silt_upload_sink){.feed = feed, .room = go_on, .hashed = hashed};
    const struct silt_http_head *head = f->request->head;
    g->upload = silt_upload_new(f->call->api->registry->worker, &g->sink,
                                head->chunked || head->length >= MANY_BYTES);
    silt_work_share(f->work, silt_upload_share(g->upload));
    f->request->on_room = room_for_body;
    silt_http_pause(f->request, false);
}

/* The worker's messages. */

static void taken(struct putting *g)
{
    bool is_other_mode = g->mode != NO_MODE && g->mode != g->done.meta.mode;
    if (g->file.kind->op == SILT_WORKER_UNTAR || !is_other_mode) {
        answer(g);
        return;
    }
    g->state = DRESSING;
    g->file.ask.ask.mode = g->mode;
    (void)silt_native_again(&g->file, SILT_WORKER_CHMOD);
}

static void refuse_version(struct putting *g)
{
    silt_file_refuse_with(&g->file, SILT_API_PRECONDITION_FAILED, SILT_LIT("{}"),
                          SILT_LIT("The file is not the version that If-Match names"));
}

static const struct silt_file_kind write_kind;

static void looked(struct putting *g, const struct silt_worker_meta *m)
{
    char etag[SILT_ETAG_SIZE];
    silt_native_etag(m, etag);
    if (!silt_http_etag_in(silt_http_field(g->file.request->head, SILT_LIT("if-match")),
                           silt_slice_of(etag), false)) {
        refuse_version(g);
        return;
    }
    g->state = TAKING;
    g->file.kind = &write_kind;
    if (silt_native_again(&g->file, SILT_WORKER_WRITE))
        room(&g->file);
}

static void refuse_early(struct silt_file *f)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_PROTOCOL, "the worker inside the sandbox answered before the end");
    silt_file_refuse(f, &e);
}

static void said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct putting *g = silt_outer(f, struct putting, file);
    struct silt_worker_meta meta;
    if (type == SILT_WORKER_SAY_TAKEN)
        silt_upload_taken(g->upload);
    if (!last)
        return;
    if (g->state == TAKING) {
        if (!silt_file_has(f, body, sizeof(g->done)))
            return;
        memcpy(&g->done, body.data, sizeof(g->done));
        if (g->upload != NULL && silt_upload_is_sent(g->upload))
            taken(g);
        else
            refuse_early(f);
    } else if (g->state == DRESSING) {
        g->state = MEASURING;
        (void)silt_native_again(f, SILT_WORKER_STAT);
    } else if (silt_file_meta(f, body, &meta, &body)) {
        if (g->state == LOOKING) {
            looked(g, &meta);
            return;
        }
        g->done.meta = meta;
        answer(g);
    }
}

static void look_failed(struct silt_file *f, const struct silt_error *e)
{
    if (e->sys == ENOENT)
        refuse_version(silt_outer(f, struct putting, file));
    else
        silt_file_refuse(f, e);
}

static const struct silt_file_kind look_kind = {
    .op = SILT_WORKER_STAT,
    .operation = "file.write",
    .is_native = true,
    .said = said,
    .failed = look_failed,
    .room = room,
    .ended = ended,
};

/* The request. */

enum format { RAW, TAR, TAR_ZSTD };

static bool read_format(struct silt_http_request *r, enum format *ret)
{
    silt_slice type = silt_http_field(r->head, SILT_LIT("content-type")), name;
    silt_slice format = silt_query(r, SILT_LIT("format"));
    static const char *const zstd[] = {"application/zstd", "application/x-tar+zstd",
                                       "application/x-zstd-compressed-tar"};
    *ret = RAW;
    if (format.len > 0) {
        *ret = silt_slice_eq(format, SILT_LIT("tar"))       ? TAR
               : silt_slice_eq(format, SILT_LIT("tar.zst")) ? TAR_ZSTD
                                                            : RAW;
        if (*ret == RAW && !silt_slice_eq(format, SILT_LIT("raw"))) {
            silt_api_refuse_field(r, "format", "must be raw, tar or tar.zst");
            return false;
        }
        return true;
    }
    if (!silt_slice_split(&type, ';', &name))
        return true;
    name = silt_slice_trim(name);
    if (silt_slice_ieq(name, SILT_LIT("application/x-tar")))
        *ret = TAR;
    for (size_t i = 0; i < SILT_COUNT(zstd); i++)
        if (silt_slice_ieq(name, silt_slice_of(zstd[i])))
            *ret = TAR_ZSTD;
    return true;
}

/* If-Match asks for a version; If-None-Match: * means that nothing may exist there. */
static void read_conditions(struct putting *g)
{
    const struct silt_http_head *head = g->file.request->head;
    silt_slice if_none = silt_slice_trim(silt_http_field(head, SILT_LIT("if-none-match")));
    if (silt_slice_eq(if_none, SILT_LIT("*")))
        g->file.ask.ask.flags |= SILT_WORKER_NEW;
    if (silt_http_field(head, SILT_LIT("if-match")).len == 0
        || g->file.kind->op == SILT_WORKER_UNTAR)
        return;
    g->state = LOOKING;
    g->file.kind = &look_kind;
}

static bool read_mode(struct putting *g)
{
    silt_slice text = silt_query(g->file.request, SILT_LIT("mode"));
    g->mode = NO_MODE;
    if (text.data == NULL || silt_native_mode(text, &g->mode))
        return true;
    silt_api_refuse_field(g->file.request, "mode", "must be octal, as 0644");
    return false;
}

static void hold_body(struct putting *g)
{
    g->state = TAKING;
    silt_http_consume(g->file.request, (uint64_t)UPLOAD_GIB << 30, on_piece);
    silt_http_pause(g->file.request, true);
}

static bool parse_put(struct silt_file *f)
{
    struct putting *g = silt_outer(f, struct putting, file);
    enum format format;
    bool owners = false;
    if (!read_format(f->request, &format) || !silt_native_path(f)
        || !silt_query_flag(f->request, "owners", &owners) || !read_mode(g))
        return false;
    f->ask.ask.mode = g->mode != NO_MODE ? g->mode : 0666;
    f->ask.ask.flags = SILT_WORKER_PARENTS | SILT_WORKER_SYNC
                       | (format == TAR_ZSTD ? SILT_WORKER_ZSTD : 0u)
                       | (owners ? SILT_WORKER_OWNERS : 0u);
    hold_body(g);
    read_conditions(g);
    return true;
}

static const struct silt_file_kind write_kind = {
    .op = SILT_WORKER_WRITE,
    .operation = "file.write",
    .is_paced = true,
    .is_native = true,
    .size = sizeof(struct putting),
    .parse = parse_put,
    .said = said,
    .room = room,
    .ended = ended,
    .codes = {{ENXIO, SILT_API_PERMISSION_DENIED}},
};
static const struct silt_file_kind untar_kind = {
    .op = SILT_WORKER_UNTAR,
    .operation = "directory.write",
    .is_paced = true,
    .is_native = true,
    .size = sizeof(struct putting),
    .parse = parse_put,
    .said = said,
    .room = room,
    .ended = ended,
};

SILT_HANDLER(silt_api_native_put)
{
    enum format format;
    if (read_format(r, &format))
        silt_file_begin(r, args, format == RAW ? &write_kind : &untar_kind);
}

/* The body as the file of another request: c->arg is its path, c->arg2 its session. */

static bool parse_feed(struct silt_file *f)
{
    struct putting *g = silt_outer(f, struct putting, file);
    if (!silt_file_place(f, f->call->arg, f->call->arg2))
        return false;
    g->mode = NO_MODE;
    f->ask.ask.mode = 0666;
    f->ask.ask.flags = SILT_WORKER_PARENTS;
    hold_body(g);
    return true;
}

static const struct silt_file_kind feed_kind = {
    .op = SILT_WORKER_WRITE,
    .operation = "file.write",
    .is_paced = true,
    .size = sizeof(struct putting),
    .parse = parse_feed,
    .said = said,
    .room = room,
    .ended = ended,
};

SILT_HANDLER(silt_api_file_feed)
{
    silt_file_begin(r, args, &feed_kind);
}
