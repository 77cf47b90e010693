/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/sandboxes/{id}/files?path=…: a body of any size becomes a file, all or nothing, or, when it is a
 * tar, the content of a folder. The body is not read before a worker waits for it, and no faster than the
 * worker takes it: what it did not take yet is one piece. */
#include "api/file_native.h"
#include "http/field.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

enum { UPLOAD_GIB = 64, NO_MODE = UINT32_MAX, SHA256_SIZE = 32 };

/*   LOOKING (If-Match) --fine--> TAKING --DONE--> DRESSING (another mode is wanted) --DONE--> MEASURING --> answered   */
enum state { LOOKING, TAKING, DRESSING, MEASURING };

struct putting {
    struct silt_file file;
    enum state state;
    bool is_over;          /* all of the body is here */
    bool is_sent;          /* and the worker has it */
    uint32_t mode;         /* NO_MODE: not asked for */
    struct silt_buf stash; /* of a piece that the worker did not take */
    EVP_MD_CTX *sha256;    /* NULL before a worker waits */
    struct silt_worker_done done;
};

static void ended(struct silt_file *f)
{
    struct putting *g = silt_container_of(f, struct putting, file);
    silt_buf_fini(&g->stash);
    EVP_MD_CTX_free(g->sha256);
    g->sha256 = NULL;
}

/* The answer. */

static void add_sha256(struct putting *g, struct silt_buf *b)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    char text[2 * SHA256_SIZE + 1];
    if (EVP_DigestFinal_ex(g->sha256, digest, &size) != 1 || size != SHA256_SIZE)
        abort();
    for (unsigned i = 0; i < size; i++)
        (void)snprintf(text + (size_t)2 * i, 3, "%02x", digest[i]);
    silt_json_key(b, SILT_LIT("sha256"));
    silt_json_string(b, silt_slice_of(text));
}

static void add_number(struct silt_buf *b, const char *key, uint64_t v)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_u64(b, v);
}

static void answer(struct putting *g)
{
    struct silt_file *f = &g->file;
    silt_auto_buf b;
    char etag[SILT_ETAG_SIZE];
    silt_buf_init(&b, SILT_FILE_TEXT_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("path"));
    silt_json_string(&b, f->path);
    if (f->kind->op == SILT_WORKER_UNTAR) {
        add_number(&b, "entries", g->done.entries);
        add_number(&b, "bytes", g->done.bytes);
        add_sha256(g, &b);
    } else {
        silt_native_etag(&g->done.meta, etag);
        add_number(&b, "size", g->done.bytes);
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

/* As far as the worker takes it; true: all of it, and the end if it is there. */
static bool send_from(struct putting *g, silt_slice *bytes)
{
    while (bytes->len > 0 || (g->is_over && !g->is_sent)) {
        size_t n = bytes->len < SILT_FRAME_BODY_MAX ? bytes->len : SILT_FRAME_BODY_MAX;
        bool last = g->is_over && n == bytes->len;
        if (!silt_work_feed(g->file.work, (silt_slice){bytes->data, n}, last))
            return false;
        bytes->data += n;
        bytes->len -= n;
        g->is_sent = last;
    }
    return true;
}

static void on_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    struct putting *g = r->owner;
    if (piece.len > 0 && EVP_DigestUpdate(g->sha256, piece.data, piece.len) != 1)
        abort();
    g->is_over = end;
    if (send_from(g, &piece))
        return;
    silt_buf_add(&g->stash, piece);
    silt_http_pause(r, true);
}

static void begin_sha256(struct putting *g)
{
    g->sha256 = EVP_MD_CTX_new();
    if (g->sha256 == NULL || EVP_DigestInit_ex(g->sha256, EVP_sha256(), NULL) != 1)
        abort();
}

/* The worker takes more: first what is kept, then the client may go on. */
static void room(struct silt_file *f)
{
    struct putting *g = silt_container_of(f, struct putting, file);
    silt_slice rest = silt_buf_slice(&g->stash);
    if (g->state != TAKING)
        return;
    if (g->sha256 == NULL)
        begin_sha256(g);
    bool is_all = send_from(g, &rest);
    silt_buf_drop(&g->stash, g->stash.len - rest.len);
    if (is_all && !g->is_over)
        silt_http_pause(f->request, false);
}

/* What the worker says. */

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
    if (!silt_http_etag_in(silt_http_field(g->file.request->head, SILT_LIT("if-match")), silt_slice_of(etag), false)) {
        refuse_version(g);
        return;
    }
    g->state = TAKING;
    g->file.kind = &write_kind;
    if (silt_native_again(&g->file, SILT_WORKER_WRITE))
        room(&g->file);
}

static void said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct putting *g = silt_container_of(f, struct putting, file);
    struct silt_worker_meta meta;
    (void)type;
    if (!last)
        return;
    if (g->state == TAKING) {
        if (!silt_file_has(f, body, sizeof(g->done)))
            return;
        memcpy(&g->done, body.data, sizeof(g->done));
        taken(g);
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
        refuse_version(silt_container_of(f, struct putting, file));
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
static const struct silt_file_kind write_kind = {
    .op = SILT_WORKER_WRITE,
    .operation = "file.write",
    .is_paced = true,
    .is_native = true,
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
    .said = said,
    .room = room,
    .ended = ended,
};

/* The request. */

enum format { RAW, TAR, TAR_ZSTD };

static bool read_format(struct silt_http_request *r, enum format *ret)
{
    silt_slice type = silt_http_field(r->head, SILT_LIT("content-type")), name;
    silt_slice format = silt_query(r, SILT_LIT("format"));
    static const char *const zstd[] = {"application/zstd", "application/x-tar+zstd", "application/x-zstd-compressed-tar"};
    *ret = RAW;
    if (format.len > 0) {
        *ret = silt_slice_eq(format, SILT_LIT("tar")) ? TAR : silt_slice_eq(format, SILT_LIT("tar.zst")) ? TAR_ZSTD : RAW;
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

/* Whether a version is asked for; and `*`: nothing may be there. */
static void read_conditions(struct putting *g)
{
    const struct silt_http_head *head = g->file.request->head;
    silt_slice if_none = silt_slice_trim(silt_http_field(head, SILT_LIT("if-none-match")));
    if (silt_slice_eq(if_none, SILT_LIT("*")))
        g->file.ask.ask.flags |= SILT_WORKER_NEW;
    if (silt_http_field(head, SILT_LIT("if-match")).len == 0 || g->file.kind == &untar_kind)
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

SILT_HANDLER(silt_api_native_put)
{
    enum format format;
    if (!read_format(r, &format))
        return;
    struct putting *g = silt_native_new(r, args[0], format == RAW ? &write_kind : &untar_kind, sizeof(*g));
    if (g == NULL || !read_mode(g))
        return;
    g->state = TAKING;
    g->file.ask.ask.mode = g->mode != NO_MODE ? g->mode : 0666;
    g->file.ask.ask.flags = SILT_WORKER_PARENTS | SILT_WORKER_SYNC | (format == TAR_ZSTD ? SILT_WORKER_ZSTD : 0u);
    read_conditions(g);
    silt_buf_init(&g->stash, 4 * SILT_FRAME_MAX);
    silt_http_consume(r, (uint64_t)UPLOAD_GIB << 30, on_piece);
    silt_http_pause(r, true);
    silt_file_go(&g->file);
}
