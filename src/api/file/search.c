/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/files/list and …/files/search: results that may be long, sent in pieces as they are
 * found. */
#include "api/file/native.h"

enum {
    PIECE_MAX = 32 * SILT_FRAME_BODY_MAX,
    TEXT_MAX = 1024, /* of the search text */
    MATCHES = 1000,  /* the default limit */
    MATCHES_MAX = 100000,
};

struct finding {
    struct silt_file file;
    const char *list; /* name of the array in the response */
    /* Takes one item off the body; false if malformed. */
    bool (*add)(struct silt_buf *b, silt_slice *body);
    struct silt_buf text;
    bool is_begun;
    uint64_t count;
};

static void ended(struct silt_file *f)
{
    silt_buf_fini(&silt_outer(f, struct finding, file)->text);
}

static bool add_entry(struct silt_buf *b, silt_slice *body)
{
    struct silt_worker_entry n;
    silt_slice name;
    if (!silt_file_entry(body, &n, &name))
        return false;
    silt_json_open(b, '{');
    silt_json_add_slice(b, "path", name);
    silt_json_add_slice(b, "type", silt_slice_of(silt_file_type(n.type)));
    silt_json_add_u64(b, "size", n.size);
    silt_native_octal(b, n.mode);
    silt_json_add_u64(b, "uid", n.uid);
    silt_json_add_u64(b, "gid", n.gid);
    silt_native_time(b, "modifiedAt", n.mtime_ns);
    silt_json_close(b, '}');
    return true;
}

static bool add_match(struct silt_buf *b, silt_slice *body)
{
    struct silt_worker_match m;
    silt_slice path, text;
    if (!silt_file_match(body, &m, &path, &text))
        return false;
    silt_json_open(b, '{');
    silt_json_add_slice(b, "path", path);
    silt_json_add_u64(b, "line", m.line);
    silt_json_add_u64(b, "column", m.column);
    silt_json_add_slice(b, "text", text);
    silt_json_close(b, '}');
    return true;
}

static void begin_text(struct finding *g)
{
    silt_buf_init(&g->text, PIECE_MAX);
    silt_json_open(&g->text, '{');
    silt_json_add_slice(&g->text, "path", g->file.path);
    silt_json_key(&g->text, silt_slice_of(g->list));
    silt_json_open(&g->text, '[');
}

static void add_end(struct finding *g, silt_slice body)
{
    struct silt_worker_done done = {0};
    if (body.len >= sizeof(done))
        memcpy(&done, body.data, sizeof(done));
    silt_json_close(&g->text, ']');
    silt_json_add_u64(&g->text, "count", g->count);
    silt_json_key(&g->text, SILT_LIT("truncated"));
    silt_json_bool(&g->text, done.truncated != 0);
    silt_json_close(&g->text, '}');
}

static bool add_items(struct finding *g, silt_slice body)
{
    while (body.len > 0 && !g->text.broken) {
        if (g->text.len == 0 && g->count > 0)
            silt_buf_add_byte(&g->text, ',');
        if (!g->add(&g->text, &body))
            return false;
        g->count++;
    }
    return !g->text.broken;
}

static void failed(struct silt_file *f, const struct silt_error *e)
{
    if (silt_outer(f, struct finding, file)->is_begun)
        silt_http_cut(silt_file_end(f));
    else
        silt_file_refuse(f, e);
}

static void send_piece(struct finding *g, bool last)
{
    struct silt_file *f = &g->file;
    if (!g->is_begun)
        silt_http_begin(f->request, 200, SILT_LIT("application/json"), (silt_slice){NULL, 0});
    g->is_begun = true;
    silt_http_write(f->request, silt_buf_slice(&g->text));
    silt_buf_clear(&g->text);
    if (last)
        silt_http_end(silt_file_end(f));
    else
        silt_file_mind_client(f);
}

static void said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct finding *g = silt_outer(f, struct finding, file);
    struct silt_error e;
    bool is_items = type == SILT_WORKER_SAY_ENTRIES || type == SILT_WORKER_SAY_MATCH;
    if (!g->is_begun)
        begin_text(g);
    if (is_items && !add_items(g, body)) {
        (void)silt_fail(&e, SILT_PROTOCOL, "a worker inside the sandbox broke the protocol");
        failed(f, &e);
        return;
    }
    if (last)
        add_end(g, is_items ? (silt_slice){NULL, 0} : body);
    send_piece(g, last);
}

static bool parse_list(struct silt_file *f)
{
    bool recursive = false, hidden = true;
    struct finding *g = silt_outer(f, struct finding, file);
    if (!silt_body_bool(f->call, "recursive", &recursive)
        || !silt_body_bool(f->call, "includeHidden", &hidden))
        return false;
    g->list = "entries";
    g->add = add_entry;
    g->file.ask.ask.flags =
        (recursive ? SILT_WORKER_RECURSIVE : 0u) | (hidden ? SILT_WORKER_HIDDEN : 0u);
    return true;
}

static const struct silt_file_kind list_kind = {
    .op = SILT_WORKER_LIST,
    .operation = "directory.list",
    .path_field = "path",
    .is_native = true,
    .size = sizeof(struct finding),
    .parse = parse_list,
    .said = said,
    .failed = failed,
    .ended = ended,
};

SILT_HANDLER(silt_api_native_list)
{
    silt_file_begin(r, args, &list_kind);
}

static bool read_limit(struct silt_call *c, uint32_t *ret)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("limit"));
    *ret = MATCHES;
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (v->type != SILT_JSON_INT || v->integer < 1 || v->integer > MATCHES_MAX) {
        silt_api_refuse_field(c->request, "limit", "must be a number from 1 to 100000");
        return false;
    }
    *ret = (uint32_t)v->integer;
    return true;
}

static bool parse_search(struct silt_file *f)
{
    struct silt_call *c = f->call;
    bool fold = false;
    struct finding *g = silt_outer(f, struct finding, file);
    if (!silt_body_string(c, "text", &g->file.ask.text) || !silt_body_string(c, "glob", &g->file.to)
        || !silt_body_bool(c, "ignoreCase", &fold) || !read_limit(c, &g->file.ask.ask.limit))
        return false;
    if (g->file.ask.text.len == 0 || g->file.ask.text.len > TEXT_MAX) {
        silt_api_refuse_field(c->request, "text", "must have 1 to 1024 bytes");
        return false;
    }
    if (g->file.to.len > SILT_WORKER_PATH_MAX) {
        silt_api_refuse_field(c->request, "glob", "is longer than 4096 bytes");
        return false;
    }
    g->list = "matches";
    g->add = add_match;
    g->file.ask.ask.flags = SILT_WORKER_RECURSIVE | (fold ? SILT_WORKER_FOLDED : 0u);
    return true;
}

static const struct silt_file_kind search_kind = {
    .op = SILT_WORKER_SEARCH,
    .operation = "file.search",
    .path_field = "path",
    .is_native = true,
    .size = sizeof(struct finding),
    .parse = parse_search,
    .said = said,
    .failed = failed,
    .ended = ended,
};

SILT_HANDLER(silt_api_native_search)
{
    silt_file_begin(r, args, &search_kind);
}
