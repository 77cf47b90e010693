/* SPDX-License-Identifier: Apache-2.0 */
/* GET and HEAD /v1/sandboxes/{id}/files?path=…: a file's raw bytes, or a range of them. Metadata is
 * requested first only where it is needed before opening: for conditions, and for the size when the
 * last bytes are requested. */
#include "api/file/native.h"
#include "http/field.h"

#include <errno.h>
#include <stdio.h>

/*   LOOKING (conditions, HEAD) --fine--> READING --META--> SENDING   */
enum state { LOOKING, READING, SENDING };

struct getting {
    struct silt_file file;
    enum state state;
    bool is_head;
    enum silt_http_part part;
    struct silt_http_range range;
    uint64_t left; /* bytes of content still to send */
};

static silt_slice field(const struct silt_file *f, const char *name)
{
    return silt_http_field(f->request->head, silt_slice_of(name));
}

static void add_version(struct silt_buf *b, const struct silt_worker_meta *m)
{
    char etag[SILT_ETAG_SIZE], date[SILT_HTTP_DATE_SIZE];
    silt_native_etag(m, etag);
    silt_http_date(m->mtime_ns / 1000000000, date);
    silt_buf_addf(
        b, "ETag: %s\r\nLast-Modified: %s\r\nAccept-Ranges: bytes\r\nCache-Control: no-cache\r\n",
        etag, date);
}

static void refuse_type(struct getting *g, const struct silt_worker_meta *m)
{
    struct silt_error e;
    silt_slice path = g->file.path;
    errno = m->type == SILT_TYPE_DIR ? EISDIR : ENXIO;
    (void)silt_fail_errno(&e, "read %.*s", (int)(path.len < 200 ? path.len : 200), path.data);
    silt_file_refuse(&g->file, &e);
}

static void refuse_range(struct getting *g, const struct silt_worker_meta *m)
{
    silt_auto_buf b;
    char fields[64], message[96];
    (void)snprintf(fields, sizeof(fields), "Content-Range: bytes */%llu\r\n",
                   (unsigned long long)m->size);
    (void)snprintf(message, sizeof(message), "The file has %llu bytes",
                   (unsigned long long)m->size);
    silt_buf_init(&b, 4096);
    silt_api_envelope(&b, SILT_API_RANGE_NOT_SATISFIABLE, silt_slice_of(message));
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("size"));
    silt_json_u64(&b, m->size);
    silt_json_close(&b, '}');
    silt_api_envelope_end(&b, SILT_API_RANGE_NOT_SATISFIABLE);
    silt_http_reply(silt_file_end(&g->file), 416, SILT_LIT("application/json"),
                    silt_slice_of(fields), silt_buf_slice(&b));
}

/* The guest chose the bytes and their type: they must not run with this server's origin. */
static void begin(struct getting *g, const struct silt_worker_meta *m)
{
    silt_auto_buf fields;
    bool is_part = g->part == SILT_HTTP_PART;
    silt_buf_init(&fields, 4096);
    add_version(&fields, m);
    silt_buf_add(
        &fields,
        SILT_LIT("X-Content-Type-Options: nosniff\r\nContent-Security-Policy: sandbox\r\n"));
    if (is_part)
        silt_buf_addf(
            &fields, "Content-Range: bytes %llu-%llu/%llu\r\n", (unsigned long long)g->range.from,
            (unsigned long long)(g->range.from + g->range.length - 1), (unsigned long long)m->size);
    g->left = g->range.length;
    g->state = SENDING;
    silt_http_begin_sized(g->file.request, is_part ? 206 : 200, silt_slice_of(m->mime),
                          silt_buf_slice(&fields), g->range.length);
}

static void answer_not_modified(struct getting *g, const struct silt_worker_meta *m)
{
    silt_auto_buf fields;
    silt_buf_init(&fields, 4096);
    add_version(&fields, m);
    silt_http_reply(silt_file_end(&g->file), 304, (silt_slice){NULL, 0}, silt_buf_slice(&fields),
                    (silt_slice){NULL, 0});
}

/* Checks the conditions against the current version; false: already answered. */
static bool meets_conditions(struct getting *g, const struct silt_worker_meta *m)
{
    char etag[SILT_ETAG_SIZE];
    silt_slice if_match = field(&g->file, "if-match"), if_none = field(&g->file, "if-none-match");
    silt_native_etag(m, etag);
    if (if_match.len > 0 && !silt_http_etag_in(if_match, silt_slice_of(etag), false)) {
        silt_file_refuse_with(&g->file, SILT_API_PRECONDITION_FAILED, SILT_LIT("{}"),
                              SILT_LIT("The file is not the version that If-Match names"));
        return false;
    }
    if (if_none.len > 0 && silt_http_etag_in(if_none, silt_slice_of(etag), true)) {
        answer_not_modified(g, m);
        return false;
    }
    silt_slice if_range = field(&g->file, "if-range");
    if (if_range.len > 0 && !silt_http_etag_in(if_range, silt_slice_of(etag), false))
        g->part = SILT_HTTP_WHOLE;
    return true;
}

static void read_it(struct getting *g)
{
    bool is_part = g->part == SILT_HTTP_PART;
    g->state = READING;
    g->file.ask.ask.offset = is_part ? g->range.from : 0;
    g->file.ask.ask.length = is_part ? g->range.length : 0;
    (void)silt_native_again(&g->file, SILT_WORKER_READ);
}

static void looked(struct getting *g, const struct silt_worker_meta *m)
{
    if (m->type != SILT_TYPE_FILE) {
        refuse_type(g, m);
        return;
    }
    if (!meets_conditions(g, m))
        return;
    g->part = silt_http_range_fit(g->part, m->size, &g->range);
    if (g->part == SILT_HTTP_NO_PART) {
        refuse_range(g, m);
        return;
    }
    if (!g->is_head) {
        read_it(g);
        return;
    }
    begin(g, m);
    silt_http_end(silt_file_end(&g->file));
}

static void send(struct getting *g, silt_slice bytes, bool last)
{
    struct silt_file *f = &g->file;
    silt_http_write(f->request, bytes);
    g->left -= bytes.len < g->left ? bytes.len : g->left;
    if (last || g->left == 0)
        silt_http_end(silt_file_end(f)); /* cuts the connection if the file turned out shorter */
    else
        silt_file_mind_client(f);
}

/* The file may have changed since it was checked: its metadata at opening counts. */
static void opened(struct getting *g, const struct silt_worker_meta *m, silt_slice bytes, bool last)
{
    g->part = silt_http_range_fit(g->part, m->size, &g->range);
    if (g->part == SILT_HTTP_NO_PART) {
        refuse_range(g, m);
        return;
    }
    begin(g, m);
    silt_file_leave_turn(
        &g->file); /* the file is open: the session need not wait for the reading */
    send(g, bytes, last);
}

static void said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct getting *g = silt_outer(f, struct getting, file);
    struct silt_worker_meta meta;
    if (g->state == SENDING) {
        send(g, type == SILT_WORKER_SAY_DATA ? body : (silt_slice){NULL, 0}, last);
        return;
    }
    if (!silt_file_meta(f, body, &meta, &body))
        return;
    if (g->state == READING)
        opened(g, &meta, body, last);
    else if (last)
        looked(g, &meta);
}

static void failed(struct silt_file *f, const struct silt_error *e)
{
    struct getting *g = silt_outer(f, struct getting, file);
    if (g->state == SENDING)
        silt_http_cut(silt_file_end(f));
    else
        silt_file_refuse(f, e);
}

static const struct silt_file_kind look_kind = {
    .op = SILT_WORKER_STAT,
    .operation = "file.read",
    .is_native = true,
    .said = said,
    .failed = failed,
    .codes = {{ENXIO, SILT_API_PERMISSION_DENIED}},
};

/* For a range without conditions the worker can send at once. */
static bool must_look(const struct getting *g)
{
    const struct silt_file *f = &g->file;
    return g->is_head || g->part == SILT_HTTP_LAST_PART || g->part == SILT_HTTP_NO_PART
           || field(f, "if-match").len > 0 || field(f, "if-none-match").len > 0
           || field(f, "if-range").len > 0;
}

static bool parse_get(struct silt_file *f)
{
    struct getting *g = silt_outer(f, struct getting, file);
    if (!silt_native_path(f))
        return false;
    g->is_head = silt_api_is_head(f->request);
    g->part = g->is_head ? SILT_HTTP_WHOLE : silt_http_range_read(field(f, "range"), &g->range);
    f->ask.ask.flags = SILT_WORKER_MIME;
    g->state = READING;
    if (must_look(g)) {
        f->kind = &look_kind;
        g->state = LOOKING;
    } else if (g->part == SILT_HTTP_PART) {
        f->ask.ask.offset = g->range.from;
        f->ask.ask.length = g->range.length;
    }
    return true;
}

static const struct silt_file_kind read_kind = {
    .op = SILT_WORKER_READ,
    .operation = "file.read",
    .is_paced = true,
    .is_native = true,
    .size = sizeof(struct getting),
    .parse = parse_get,
    .said = said,
    .failed = failed,
    .codes = {{ENXIO, SILT_API_PERMISSION_DENIED}},
};

/* The bytes as they are: c->arg is the path, c->arg2 the session, whose directory matters for
 * relative paths only. */
static bool parse_raw(struct silt_file *f)
{
    struct getting *g = silt_outer(f, struct getting, file);
    if (!silt_file_place(f, f->call->arg, f->call->arg2))
        return false;
    if (f->path.data[0] == '/')
        f->session_name = SILT_LIT("");
    g->part = SILT_HTTP_WHOLE;
    f->ask.ask.flags = SILT_WORKER_MIME;
    g->state = READING;
    return true;
}

static const struct silt_file_kind raw_kind = {
    .op = SILT_WORKER_READ,
    .operation = "file.read",
    .is_paced = true,
    .size = sizeof(struct getting),
    .parse = parse_raw,
    .said = said,
    .failed = failed,
    .codes = {{ENOENT, SILT_API_FILE_NOT_FOUND},
              {ENOTDIR, SILT_API_FILE_NOT_FOUND},
              {EISDIR, SILT_API_FILE_NOT_FOUND},
              {ENXIO, SILT_API_FILE_NOT_FOUND}},
};

SILT_HANDLER(silt_api_file_raw)
{
    silt_file_begin(r, args, &raw_kind);
}

/* A directory or any other object, as a tar. */

struct packing {
    struct silt_file file;
    bool is_begun;
};

static bool is_zstd(const struct silt_file *f)
{
    return (f->ask.ask.flags & SILT_WORKER_ZSTD) != 0;
}

static void tar_said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct packing *g = silt_outer(f, struct packing, file);
    if (!g->is_begun)
        silt_http_begin(f->request, 200,
                        is_zstd(f) ? SILT_LIT("application/zstd") : SILT_LIT("application/x-tar"),
                        SILT_LIT("X-Content-Type-Options: nosniff\r\n"));
    g->is_begun = true;
    if (type == SILT_WORKER_SAY_DATA)
        silt_http_write(f->request, body);
    if (last || silt_api_is_head(f->request))
        silt_http_end(silt_file_end(f));
    else
        silt_file_mind_client(f);
}

static void tar_failed(struct silt_file *f, const struct silt_error *e)
{
    if (silt_outer(f, struct packing, file)->is_begun)
        silt_http_cut(silt_file_end(f));
    else
        silt_file_refuse(f, e);
}

/* From ?format=, else from Accept: a tar, compressed or not, or neither. */
static bool wants(const struct silt_http_request *r, const char *format, const char *type)
{
    silt_slice given = silt_query(r, SILT_LIT("format"));
    silt_slice accept = silt_http_field(r->head, SILT_LIT("accept"));
    return silt_slice_eq(given, silt_slice_of(format))
           || (given.len == 0 && silt_http_accepts(accept, silt_slice_of(type)));
}

static bool wants_zstd(const struct silt_http_request *r)
{
    return wants(r, "tar.zst", "application/zstd");
}

static bool parse_tar(struct silt_file *f)
{
    bool wrap = false;
    if (!silt_native_path(f) || !silt_query_flag(f->request, "wrap", &wrap))
        return false;
    f->ask.ask.flags =
        (wants_zstd(f->request) ? SILT_WORKER_ZSTD : 0U) | (wrap ? SILT_WORKER_WRAP : 0U);
    return true;
}

static const struct silt_file_kind tar_kind = {
    .op = SILT_WORKER_TAR,
    .operation = "directory.read",
    .is_paced = true,
    .is_native = true,
    .size = sizeof(struct packing),
    .parse = parse_tar,
    .said = tar_said,
    .failed = tar_failed,
};

SILT_HANDLER(silt_api_native_get)
{
    silt_slice format = silt_query(r, SILT_LIT("format"));
    if (wants_zstd(r) || wants(r, "tar", "application/x-tar"))
        silt_file_begin(r, args, &tar_kind);
    else if (format.len == 0 || silt_slice_eq(format, SILT_LIT("raw")))
        silt_file_begin(r, args, &read_kind);
    else
        silt_api_refuse_field(r, "format", "must be raw, tar or tar.zst");
}
