/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/list-files: a directory's entries. The first ones are buffered, so that a failure gets
 * a proper error response; a long list is sent in pieces, and a later failure cuts it off. */
#include "api/file/file.h"

#include <errno.h>

enum {
    WAIT_BYTES = 1 << 20,
    /* plus one entry: each byte of a path becomes six, and it has four paths */
    PIECE_MAX = WAIT_BYTES + 8 * 6 * SILT_WORKER_PATH_MAX,
};

struct listing {
    struct silt_file file;
    struct silt_buf text;
    bool is_begun;
    uint64_t count;
};

static void ended(struct silt_file *f)
{
    silt_buf_fini(&silt_outer(f, struct listing, file)->text);
}

static void begin_text(struct listing *g)
{
    silt_buf_init(&g->text, PIECE_MAX);
    silt_file_answer(&g->file, &g->text);
    silt_json_key(&g->text, SILT_LIT("files"));
    silt_json_open(&g->text, '[');
}

/* Exactly as find prints it: the requested path, a slash unless it ends in one, the name. */
static void add_joined(struct silt_buf *b, silt_slice directory, silt_slice name)
{
    struct silt_json_escape x = {0};
    silt_json_key(b, SILT_LIT("absolutePath"));
    silt_buf_add_byte(b, '"');
    silt_json_escape(&x, b, directory);
    silt_json_escape_end(&x, b);
    if (directory.data[directory.len - 1] != '/')
        silt_buf_add_byte(b, '/');
    silt_json_escape(&x, b, name);
    silt_json_escape_end(&x, b);
    silt_buf_add_byte(b, '"');
}

static silt_slice last_part(silt_slice path)
{
    const char *slash = memrchr(path.data, '/', path.len);
    if (slash == NULL)
        return path;
    return (silt_slice){slash + 1, path.len - (size_t)(slash + 1 - path.data)};
}

static void add_entry(struct listing *g, const struct silt_worker_entry *n, silt_slice name)
{
    struct silt_buf *b = &g->text;
    char mode[SILT_FILE_MODE_SIZE], when[SILT_FILE_TIME_SIZE + 1];
    silt_file_mode(n->mode, mode);
    silt_file_time(n->mtime_ns, when);
    size_t len = strlen(when);
    when[len] = '0';
    silt_json_open(b, '{');
    silt_json_add_slice(b, "name", last_part(name));
    add_joined(b, g->file.path, name);
    silt_json_add_slice(b, "relativePath", name);
    silt_json_add_slice(b, "type", silt_slice_of(silt_file_type(n->type)));
    silt_json_key(b, SILT_LIT("size"));
    silt_json_u64(b, n->size);
    silt_json_add_slice(b, "modifiedAt", (silt_slice){when, len + 1});
    silt_json_add_slice(b, "mode", silt_slice_of(mode));
    silt_json_key(b, SILT_LIT("permissions"));
    silt_json_open(b, '{');
    silt_json_add_bool(b, "readable", (n->mode & 0400) != 0);
    silt_json_add_bool(b, "writable", (n->mode & 0200) != 0);
    silt_json_add_bool(b, "executable", (n->mode & 0100) != 0);
    silt_json_close(b, '}');
    silt_json_close(b, '}');
    g->count++;
}

static void write_out(struct listing *g)
{
    if (!g->is_begun)
        silt_http_begin(g->file.request, 200, SILT_LIT("application/json"), (silt_slice){NULL, 0});
    g->is_begun = true;
    silt_http_write(g->file.request, silt_buf_slice(&g->text));
    silt_buf_clear(&g->text);
}

static void add_end(struct listing *g)
{
    silt_json_close(&g->text, ']');
    silt_json_key(&g->text, SILT_LIT("count"));
    silt_json_u64(&g->text, g->count);
    silt_api_timestamp(&g->text);
    silt_json_close(&g->text, '}');
}

/* Adds the comma at the start of a piece: the writer has no previous byte to look at. */
static bool add_entries(struct listing *g, silt_slice body)
{
    struct silt_worker_entry n;
    silt_slice name;
    while (body.len > 0) {
        if (!silt_file_entry(&body, &n, &name))
            return false;
        if (silt_slice_has_byte(name, '\t') || silt_slice_has_byte(name, '\n'))
            continue;
        if (g->text.len == 0 && g->count > 0)
            silt_buf_add_byte(&g->text, ',');
        add_entry(g, &n, name);
        if (g->text.len >= WAIT_BYTES)
            write_out(g);
    }
    return true;
}

static void answer_whole(struct listing *g)
{
    struct silt_buf all = g->text;
    silt_buf_init(&g->text, 0);
    silt_api_answer(silt_file_end(&g->file), 200, &all);
    silt_buf_fini(&all);
}

static void said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct listing *g = silt_outer(f, struct listing, file);
    struct silt_error e;
    if (g->count == 0 && g->text.len == 0)
        begin_text(g);
    if (type == SILT_WORKER_SAY_ENTRIES && !add_entries(g, body)) {
        (void)silt_fail(&e, SILT_PROTOCOL, "a worker inside the sandbox broke the protocol");
        f->kind->failed(f, &e);
        return;
    }
    if (last)
        add_end(g);
    if (last && !g->is_begun) {
        answer_whole(g);
        return;
    }
    if (g->is_begun && g->text.len > 0)
        write_out(g);
    if (last)
        silt_http_end(silt_file_end(f));
    else
        silt_file_mind_client(f);
}

static void failed(struct silt_file *f, const struct silt_error *e)
{
    if (silt_outer(f, struct listing, file)->is_begun)
        silt_http_cut(silt_file_end(f));
    else
        silt_file_refuse(f, e);
}

static bool option(const struct silt_json *options, const char *name)
{
    const struct silt_json *v = silt_json_get(options, silt_slice_of(name));
    return v != NULL && v->type == SILT_JSON_BOOL && v->boolean;
}

static bool parse(struct silt_file *f)
{
    const struct silt_json *options = silt_json_get(f->call->body, SILT_LIT("options"));
    f->ask.ask.flags = (option(options, "recursive") ? SILT_WORKER_RECURSIVE : 0u)
                       | (option(options, "includeHidden") ? SILT_WORKER_HIDDEN : 0u);
    return true;
}

static const struct silt_file_kind kind = {
    .op = SILT_WORKER_LIST,
    .operation = "directory.list",
    .path_field = "path",
    .size = sizeof(struct listing),
    .parse = parse,
    .said = said,
    .failed = failed,
    .ended = ended,
    .codes = {{ENOENT, SILT_API_FILE_NOT_FOUND}, {ENOTDIR, SILT_API_NOT_DIRECTORY}},
};

SILT_HANDLER(silt_api_file_list)
{
    silt_file_begin(r, args, &kind);
}
