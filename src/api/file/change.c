/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/exists, delete, rename, move, mkdir: one worker operation, one short response. */
#include "api/file/file.h"

#include <errno.h>

/* The official server's form of reporting a failed tool. */
static void add_tool(struct silt_buf *b, const struct silt_error *e)
{
    silt_json_key(b, SILT_LIT("exitCode"));
    silt_json_i64(b, 1);
    silt_json_add_slice(b, "stderr", silt_slice_of(e->text));
}

/* exists */

static void answer_exists(struct silt_file *f, bool exists)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_FILE_TEXT_MAX);
    silt_file_answer(f, &b);
    silt_json_key(&b, SILT_LIT("exists"));
    silt_json_bool(&b, exists);
    silt_file_finish(f, &b);
}

static void exists_said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    (void)type;
    (void)body;
    if (last)
        answer_exists(f, true);
}

/* A path that cannot be resolved does not exist. A sandbox that ended or a failing disk is still
 * reported as an error. */
static void exists_failed(struct silt_file *f, const struct silt_error *e)
{
    if (e->sys == ENOENT || e->sys == ENOTDIR || e->sys == ELOOP || e->sys == ENAMETOOLONG
        || e->sys == EACCES)
        answer_exists(f, false);
    else
        silt_file_refuse(f, e);
}

static void exists_dead(struct silt_file *f, struct silt_session *s)
{
    (void)s;
    answer_exists(f, false);
}

static const struct silt_file_kind exists_kind = {
    .op = SILT_WORKER_STAT,
    .operation = "file.stat",
    .path_field = "path",
    .said = exists_said,
    .failed = exists_failed,
    .dead = exists_dead,
};

SILT_HANDLER(silt_api_file_exists)
{
    silt_file_begin(r, args, &exists_kind);
}

/* delete, rename, move */

static void done_said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    (void)type;
    (void)body;
    if (!last)
        return;
    silt_auto_buf b;
    silt_buf_init(&b, 2 * SILT_FILE_TEXT_MAX);
    silt_file_answer(f, &b);
    if (f->kind->to_field != NULL)
        silt_json_add_slice(&b, "newPath", f->to);
    silt_file_finish(f, &b);
}

static void delete_context(const struct silt_file *f, struct silt_buf *b,
                           const struct silt_error *e)
{
    silt_json_add_slice(b, "path", f->path);
    silt_json_add_slice(b, "operation", silt_slice_of(f->kind->operation));
    add_tool(b, e);
}

static void move_context(const struct silt_file *f, struct silt_buf *b, const struct silt_error *e)
{
    silt_json_add_slice(b, f->kind->path_field, f->path);
    silt_json_add_slice(b, f->kind->to_field, f->to);
    add_tool(b, e);
}

static const struct silt_file_kind delete_kind = {
    .op = SILT_WORKER_DELETE,
    .operation = "file.delete",
    .path_field = "path",
    .said = done_said,
    .codes = {{ENOENT, SILT_API_FILE_NOT_FOUND},
              {ENOTDIR, SILT_API_FILE_NOT_FOUND},
              {EISDIR, SILT_API_IS_DIRECTORY}},
    .context = delete_context,
};
static const struct silt_file_kind rename_kind = {
    .op = SILT_WORKER_MOVE,
    .operation = "file.rename",
    .path_field = "oldPath",
    .to_field = "newPath",
    .said = done_said,
    .codes = {{ENOENT, SILT_API_FILE_NOT_FOUND}},
    .context = move_context,
};
static const struct silt_file_kind move_kind = {
    .op = SILT_WORKER_MOVE,
    .operation = "file.move",
    .path_field = "sourcePath",
    .to_field = "destinationPath",
    .said = done_said,
    .codes = {{ENOENT, SILT_API_FILE_NOT_FOUND}},
    .context = move_context,
};

SILT_HANDLER(silt_api_file_delete)
{
    silt_file_begin(r, args, &delete_kind);
}

SILT_HANDLER(silt_api_file_rename)
{
    silt_file_begin(r, args, &rename_kind);
}

SILT_HANDLER(silt_api_file_move)
{
    silt_file_begin(r, args, &move_kind);
}

/* mkdir */

static bool is_recursive(const struct silt_file *f)
{
    return (f->ask.ask.flags & SILT_WORKER_RECURSIVE) != 0;
}

static void mkdir_said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    (void)type;
    (void)body;
    if (!last)
        return;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_FILE_TEXT_MAX);
    silt_file_answer(f, &b);
    silt_json_key(&b, SILT_LIT("recursive"));
    silt_json_bool(&b, is_recursive(f));
    silt_file_finish(f, &b);
}

static void mkdir_context(const struct silt_file *f, struct silt_buf *b, const struct silt_error *e)
{
    const struct silt_json *asked = silt_json_get(f->call->body, SILT_LIT("recursive"));
    silt_json_add_slice(b, "path", f->path);
    silt_json_key(b, SILT_LIT("options"));
    silt_json_open(b, '{');
    if (asked != NULL && asked->type == SILT_JSON_BOOL) {
        silt_json_key(b, SILT_LIT("recursive"));
        silt_json_bool(b, asked->boolean);
    }
    silt_json_close(b, '}');
    add_tool(b, e);
}

static bool parse_mkdir(struct silt_file *f)
{
    bool recursive = false;
    if (!silt_body_bool(f->call, "recursive", &recursive))
        return false;
    f->ask.ask.flags = recursive ? SILT_WORKER_RECURSIVE : 0;
    f->ask.ask.mode = 0777;
    return true;
}

static const struct silt_file_kind mkdir_kind = {
    .op = SILT_WORKER_MKDIR,
    .operation = "directory.create",
    .path_field = "path",
    .parse = parse_mkdir,
    .said = mkdir_said,
    .context = mkdir_context,
};

SILT_HANDLER(silt_api_file_mkdir)
{
    silt_file_begin(r, args, &mkdir_kind);
}
