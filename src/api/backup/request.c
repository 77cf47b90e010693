/* SPDX-License-Identifier: Apache-2.0 */
#include "api/backup/request.h"

#include <stdlib.h>

#define DIRECTORY "/var/backups/"

enum {
    THREADS = 8,
    THREADS_MAX = 32, /* more only cost memory */
    EXCLUDES_MAX = 1024,
    PATTERN_MAX = 4096,
    URL_MAX = 8192,
    NUMBER_MAX = 10000,
    CONTEXT_MAX = 64 << 10,
};
#define BYTES_MAX ((uint64_t)1 << 50) /* of an archive */

void silt_backup_refuse(struct silt_http_request *r, enum silt_backup_kind kind,
                        enum silt_api_code code, silt_slice context, silt_slice message)
{
    silt_auto_buf b;
    silt_buf_init(&b, context.len + 8 * message.len + (16 << 10));
    silt_api_envelope(&b, code, message);
    silt_json_raw(&b, context.len > 0 ? context : SILT_LIT("{}"));
    silt_json_add_slice(&b, "operation",
                        kind == SILT_BACKUP_RESTORE ? SILT_LIT("backup.restore")
                                                    : SILT_LIT("backup.create"));
    silt_api_envelope_end(&b, code);
    silt_api_answer(r, silt_api_status(code), &b);
}

static bool refuse(struct silt_call *c, const struct silt_backup_request *q, const char *why)
{
    silt_backup_refuse(c->request, q->kind, SILT_API_INVALID_BACKUP_CONFIG, (silt_slice){NULL, 0},
                       silt_slice_of(why));
    return false;
}

static bool has_dots(silt_slice path)
{
    for (size_t i = 1; i < path.len; i++)
        if (path.data[i - 1] == '.' && path.data[i] == '.')
            return true;
    return false;
}

/* NULL if absent or not a string. */
static const struct silt_json *string_of(const struct silt_json *o, const char *name)
{
    const struct silt_json *v = silt_json_get(o, silt_slice_of(name));
    return v != NULL && v->type == SILT_JSON_STRING ? v : NULL;
}

static bool read_dir(struct silt_call *c, struct silt_backup_request *q)
{
    const struct silt_json *v = string_of(c->body, "dir");
    if (v == NULL || v->string.len == 0)
        return refuse(c, q, "dir: must be a string that is not empty");
    q->dir = v->string;
    if (q->dir.len > PATH_MAX)
        return refuse(c, q, "dir: is longer than 4096 bytes");
    if (q->dir.data[0] != '/')
        return refuse(c, q, "dir: must be an absolute path");
    if (has_dots(q->dir))
        return refuse(c, q, "dir: must not contain '..'");
    if (silt_slice_has_byte(q->dir, 0))
        return refuse(c, q, "dir: must not hold a NUL character");
    return true;
}

static bool read_archive(struct silt_call *c, struct silt_backup_request *q)
{
    const struct silt_json *v = string_of(c->body, "archivePath");
    if (v == NULL || v->string.len == 0)
        return refuse(c, q, "archivePath: must be a string that is not empty");
    q->archive = v->string;
    if (q->archive.len > PATH_MAX)
        return refuse(c, q, "archivePath: is longer than 4096 bytes");
    if (has_dots(q->archive) || silt_slice_has_byte(q->archive, 0))
        return refuse(c, q, "archivePath: must not contain '..' or a NUL character");
    if (!silt_slice_starts(q->archive, SILT_LIT(DIRECTORY))
        || q->archive.data[q->archive.len - 1] == '/')
        return refuse(c, q, "archivePath: must be a file below " DIRECTORY);
    return true;
}

/* ---- packing options ---- */

static bool read_gitignore(struct silt_call *c, struct silt_backup_request *q)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("gitignore"));
    if (v != NULL && v->type != SILT_JSON_BOOL)
        return refuse(c, q, "gitignore: must be true or false");
    q->gitignore = v != NULL && v->boolean;
    return true;
}

/* A pattern becomes one line of a file. */
static bool is_pattern(const struct silt_json *v)
{
    if (v->type != SILT_JSON_STRING || v->string.len > PATTERN_MAX)
        return false;
    for (size_t i = 0; i < v->string.len; i++)
        if ((unsigned char)v->string.data[i] < ' ')
            return false;
    return true;
}

static bool read_excludes(struct silt_call *c, struct silt_backup_request *q)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("excludes"));
    if (v == NULL)
        return true;
    if (v->type != SILT_JSON_ARRAY || v->items.count > EXCLUDES_MAX)
        return refuse(c, q, "excludes: must be a list of at most 1024 strings");
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next)
        if (!is_pattern(i))
            return refuse(
                c, q, "excludes: must be strings of at most 4096 bytes without control characters");
    q->excludes = v;
    return true;
}

/* False unless it is an integer from `min` to `max`. */
static bool read_whole(const struct silt_json *o, const char *name, uint64_t min, uint64_t max,
                       uint64_t *ret)
{
    const struct silt_json *v = silt_json_get(o, silt_slice_of(name));
    double n = v == NULL                     ? -1
               : v->type == SILT_JSON_INT    ? (double)v->integer
               : v->type == SILT_JSON_DOUBLE ? v->number
                                             : -1;
    if (!(n >= (double)min) || n > (double)max || n != (double)(uint64_t)n)
        return false;
    *ret = (uint64_t)n;
    return true;
}

static bool read_compression(struct silt_call *c, struct silt_backup_request *q)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("compression")), *format, *threads;
    uint64_t n = THREADS;
    q->format = SILT_LIT("lz4");
    q->threads = THREADS;
    if (v == NULL)
        return true;
    if (v->type != SILT_JSON_OBJECT)
        return refuse(c, q, "compression: must be an object");
    format = silt_json_get(v, SILT_LIT("format"));
    threads = silt_json_get(v, SILT_LIT("threads"));
    if (format != NULL) {
        if (format->type != SILT_JSON_STRING
            || (!silt_slice_eq(format->string, SILT_LIT("lz4"))
                && !silt_slice_eq(format->string, SILT_LIT("gzip"))
                && !silt_slice_eq(format->string, SILT_LIT("zstd"))))
            return refuse(c, q, "compression.format: must be gzip, lz4 or zstd");
        q->format = format->string;
    }
    if (threads != NULL && !read_whole(v, "threads", 1, INT32_MAX, &n))
        return refuse(c, q, "compression.threads: must be a positive whole number");
    q->threads = n < THREADS_MAX ? (uint32_t)n : THREADS_MAX;
    return true;
}

/* ---- parts ---- */

/* curl receives it as one argument and reports any other fault. */
static bool is_url(silt_slice url)
{
    static const silt_slice scheme = {"https://", 8};
    if (!silt_slice_starts(url, scheme) || url.len == scheme.len || url.len > URL_MAX)
        return false;
    for (size_t i = 0; i < url.len; i++)
        if (url.data[i] <= ' ' || url.data[i] > '~' || silt_is_any(url.data[i], "\"<>\\^`{|}"))
            return false;
    return url.data[scheme.len] != '/';
}

static const char *part_fault(const struct silt_json *v, struct silt_backup_part *ret)
{
    uint64_t number;
    const struct silt_json *url = v->type == SILT_JSON_OBJECT ? string_of(v, "url") : NULL;
    if (v->type != SILT_JSON_OBJECT)
        return "parts: each must be an object";
    if (!read_whole(v, "partNumber", 1, NUMBER_MAX, &number))
        return "parts: partNumber must be a whole number from 1 to 10000";
    if (url == NULL || !is_url(url->string))
        return "parts: url must be an https:// URL of at most 8192 characters";
    if (!read_whole(v, "offset", 0, BYTES_MAX, &ret->offset))
        return "parts: offset must be a whole number, not negative";
    if (!read_whole(v, "size", 1, BYTES_MAX, &ret->size))
        return "parts: size must be a positive whole number";
    ret->number = (uint32_t)number;
    ret->url = url->string;
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const struct silt_backup_part *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static bool read_parts(struct silt_call *c, struct silt_backup_request *q)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("parts"));
    if (v == NULL || v->type != SILT_JSON_ARRAY || v->items.count == 0
        || v->items.count > SILT_BACKUP_PARTS_MAX)
        return refuse(c, q, "parts: must be a list of 1 to 1000 parts");
    q->parts = silt_arena_alloc(c->request->arena, v->items.count * sizeof(*q->parts));
    if (q->parts == NULL)
        abort();
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next) {
        const char *fault = part_fault(i, &q->parts[q->count++]);
        if (fault != NULL)
            return refuse(c, q, fault);
    }
    qsort(q->parts, q->count, sizeof(*q->parts), by_number);
    return true;
}

/* ---- the whole request ---- */

static bool is_in_a_root(struct silt_call *c, const struct silt_backup_request *q)
{
    static const char *const roots[] = {"/workspace", "/home", "/tmp", "/var/tmp", "/app"};
    for (size_t i = 0; i < SILT_COUNT(roots); i++) {
        silt_slice root = silt_slice_of(roots[i]);
        if (silt_slice_starts(q->dir, root)
            && (q->dir.len == root.len || q->dir.data[root.len] == '/'))
            return true;
    }
    silt_auto_buf b;
    silt_buf_init(&b, CONTEXT_MAX);
    silt_json_open(&b, '{');
    silt_json_add_slice(&b, "dir", q->dir);
    silt_json_add_slice(&b, "archivePath", q->archive);
    silt_json_close(&b, '}');
    silt_backup_refuse(
        c->request, q->kind, SILT_API_INVALID_BACKUP_CONFIG, silt_buf_slice(&b),
        SILT_LIT("dir: must be one of /workspace, /home, /tmp, /var/tmp and /app, or below it"));
    return false;
}

bool silt_backup_request_read(struct silt_call *c, struct silt_backup_request *q)
{
    struct silt_session_choice session; /* only validated: the script needs no shell state */
    *q = (struct silt_backup_request){.kind = q->kind};
    if (q->kind != SILT_BACKUP_UPLOAD && !read_dir(c, q))
        return false;
    if (!read_archive(c, q))
        return false;
    if (q->kind == SILT_BACKUP_CREATE
        && !(read_gitignore(c, q) && read_excludes(c, q) && read_compression(c, q)))
        return false;
    if (q->kind == SILT_BACKUP_UPLOAD ? !read_parts(c, q) : !is_in_a_root(c, q))
        return false;
    return silt_session_choice_read(c, &session);
}
