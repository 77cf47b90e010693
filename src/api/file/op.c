/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE …/files and POST …/files/{stat,mkdir,move,chmod,chown,symlink,readlink,truncate}: one
 * worker operation, one short response. */
#include "api/file/native.h"

#include <errno.h>

static void open_answer(struct silt_file *f, struct silt_buf *b)
{
    silt_buf_init(b, 3 * SILT_FILE_TEXT_MAX);
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("path"));
    silt_json_string(b, f->path);
}

static void send_answer(struct silt_file *f, struct silt_buf *b)
{
    silt_json_close(b, '}');
    silt_api_answer(silt_file_end(f), 200, b);
}

static void done_said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct silt_worker_done done = {0};
    (void)type;
    if (!last || !silt_file_has(f, body, sizeof(done)))
        return;
    memcpy(&done, body.data, sizeof(done));
    silt_auto_buf b;
    open_answer(f, &b);
    if (f->to.len > 0) {
        silt_json_key(&b, silt_slice_of(f->kind->to_field));
        silt_json_string(&b, f->to);
    }
    silt_json_key(&b, SILT_LIT("entries"));
    silt_json_u64(&b, done.entries);
    send_answer(f, &b);
}

static bool body_flag(struct silt_file *f, const char *name, uint32_t flag, bool means)
{
    bool given = !means;
    if (!silt_body_bool(f->call, name, &given))
        return false;
    if (given == means)
        f->ask.ask.flags |= flag;
    return true;
}

/* An octal string, or a JSON number. */
static bool body_mode(struct silt_file *f, bool required, uint32_t *ret)
{
    const struct silt_json *v = silt_json_get(f->call->body, SILT_LIT("mode"));
    bool good = v == NULL && !required;
    if (v != NULL && v->type == SILT_JSON_STRING)
        good = silt_native_mode(v->string, ret);
    else if (v != NULL && v->type == SILT_JSON_INT && v->integer >= 0 && v->integer <= 07777) {
        *ret = (uint32_t)v->integer;
        good = true;
    }
    if (!good)
        silt_api_refuse_field(f->request, "mode",
                              "must be an octal text as \"0644\", or a number up to 4095");
    return good;
}

static bool body_number(struct silt_file *f, const char *name, uint64_t max, uint64_t *ret)
{
    const struct silt_json *v = silt_json_get(f->call->body, silt_slice_of(name));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (v->type != SILT_JSON_INT || v->integer < 0 || (uint64_t)v->integer > max) {
        silt_api_refuse_field(f->request, name, "must be a whole number within its limits");
        return false;
    }
    *ret = (uint64_t)v->integer;
    return true;
}

/* DELETE */

static bool parse_delete(struct silt_file *f)
{
    bool recursive = false;
    if (!silt_native_path(f) || !silt_query_flag(f->request, "recursive", &recursive))
        return false;
    f->ask.ask.flags = recursive ? SILT_WORKER_RECURSIVE : 0;
    return true;
}

static const struct silt_file_kind delete_kind = {.op = SILT_WORKER_DELETE,
                                                  .operation = "file.delete",
                                                  .is_native = true,
                                                  .parse = parse_delete,
                                                  .said = done_said};

SILT_HANDLER(silt_api_native_delete)
{
    silt_file_begin(r, args, &delete_kind);
}

/* stat */

static void stat_said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    struct silt_worker_meta meta;
    (void)type;
    if (!last || !silt_file_meta(f, body, &meta, &body))
        return;
    silt_auto_buf b;
    open_answer(f, &b);
    silt_native_meta(&b, &meta);
    if (meta.type == SILT_TYPE_FILE) {
        silt_json_key(&b, SILT_LIT("mimeType"));
        silt_json_string(&b, silt_slice_of(meta.mime));
    }
    send_answer(f, &b);
}

static bool parse_stat(struct silt_file *f)
{
    if (!body_flag(f, "followLinks", SILT_WORKER_NOFOLLOW, false))
        return false;
    f->ask.ask.flags |= SILT_WORKER_MIME;
    return true;
}

static const struct silt_file_kind stat_kind = {.op = SILT_WORKER_STAT,
                                                .operation = "file.stat",
                                                .path_field = "path",
                                                .is_native = true,
                                                .parse = parse_stat,
                                                .said = stat_said};

SILT_HANDLER(silt_api_native_stat)
{
    silt_file_begin(r, args, &stat_kind);
}

/* mkdir */

static bool parse_mkdir(struct silt_file *f)
{
    uint32_t mode = 0777;
    if (!body_flag(f, "recursive", SILT_WORKER_RECURSIVE, true) || !body_mode(f, false, &mode))
        return false;
    f->ask.ask.mode = mode;
    return true;
}

static const struct silt_file_kind mkdir_kind = {.op = SILT_WORKER_MKDIR,
                                                 .operation = "directory.create",
                                                 .path_field = "path",
                                                 .is_native = true,
                                                 .parse = parse_mkdir,
                                                 .said = done_said};

SILT_HANDLER(silt_api_native_mkdir)
{
    silt_file_begin(r, args, &mkdir_kind);
}

/* move */

static const struct silt_file_kind move_kind = {.op = SILT_WORKER_MOVE,
                                                .operation = "file.move",
                                                .path_field = "path",
                                                .to_field = "to",
                                                .is_native = true,
                                                .said = done_said};

SILT_HANDLER(silt_api_native_move)
{
    silt_file_begin(r, args, &move_kind);
}

/* chmod */

static bool parse_chmod(struct silt_file *f)
{
    return body_flag(f, "recursive", SILT_WORKER_RECURSIVE, true)
           && body_mode(f, true, &f->ask.ask.mode);
}

static const struct silt_file_kind chmod_kind = {.op = SILT_WORKER_CHMOD,
                                                 .operation = "file.chmod",
                                                 .path_field = "path",
                                                 .is_native = true,
                                                 .parse = parse_chmod,
                                                 .said = done_said};

SILT_HANDLER(silt_api_native_chmod)
{
    silt_file_begin(r, args, &chmod_kind);
}

/* chown */

static bool parse_chown(struct silt_file *f)
{
    enum { ID_MAX = 65535 }; /* ids 0 to 65535 exist in a sandbox */
    uint64_t uid = UINT32_MAX, gid = UINT32_MAX;
    if (!body_flag(f, "recursive", SILT_WORKER_RECURSIVE, true)
        || !body_flag(f, "followLinks", SILT_WORKER_NOFOLLOW, false)
        || !body_number(f, "uid", ID_MAX, &uid) || !body_number(f, "gid", ID_MAX, &gid))
        return false;
    f->ask.ask.uid = (uint32_t)uid;
    f->ask.ask.gid = (uint32_t)gid;
    return true;
}

static const struct silt_file_kind chown_kind = {.op = SILT_WORKER_CHOWN,
                                                 .operation = "file.chown",
                                                 .path_field = "path",
                                                 .is_native = true,
                                                 .parse = parse_chown,
                                                 .said = done_said};

SILT_HANDLER(silt_api_native_chown)
{
    silt_file_begin(r, args, &chown_kind);
}

/* symlink: `to` in the worker's request is the link. */

static void symlink_said(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last)
{
    silt_slice target = f->path;
    (void)type;
    (void)body;
    if (!last)
        return;
    f->path = f->to;
    silt_auto_buf b;
    open_answer(f, &b);
    silt_json_key(&b, SILT_LIT("target"));
    silt_json_string(&b, target);
    send_answer(f, &b);
}

static void symlink_failed(struct silt_file *f, const struct silt_error *e)
{
    f->path = f->to;
    f->to = (silt_slice){NULL, 0};
    silt_file_refuse(f, e);
}

static const struct silt_file_kind symlink_kind = {
    .op = SILT_WORKER_SYMLINK,
    .operation = "file.symlink",
    .path_field = "target",
    .to_field = "path",
    .is_native = true,
    .said = symlink_said,
    .failed = symlink_failed,
};

SILT_HANDLER(silt_api_native_symlink)
{
    silt_file_begin(r, args, &symlink_kind);
}

/* readlink */

static void readlink_said(struct silt_file *f, enum silt_worker_say type, silt_slice body,
                          bool last)
{
    if (!last)
        return;
    silt_auto_buf b;
    open_answer(f, &b);
    silt_json_key(&b, SILT_LIT("target"));
    silt_json_string(&b, type == SILT_WORKER_SAY_DATA ? body : (silt_slice){NULL, 0});
    send_answer(f, &b);
}

static const struct silt_file_kind readlink_kind = {
    .op = SILT_WORKER_READLINK,
    .operation = "file.readlink",
    .path_field = "path",
    .is_native = true,
    .said = readlink_said,
    .codes = {{EINVAL, SILT_API_NOT_A_LINK}},
};

SILT_HANDLER(silt_api_native_readlink)
{
    silt_file_begin(r, args, &readlink_kind);
}

/* truncate */

static bool parse_truncate(struct silt_file *f)
{
    return body_number(f, "size", INT64_MAX, &f->ask.ask.length);
}

static const struct silt_file_kind truncate_kind = {
    .op = SILT_WORKER_TRUNCATE,
    .operation = "file.truncate",
    .path_field = "path",
    .is_native = true,
    .parse = parse_truncate,
    .said = done_said,
    .codes = {{ENXIO, SILT_API_PERMISSION_DENIED}},
};

SILT_HANDLER(silt_api_native_truncate)
{
    silt_file_begin(r, args, &truncate_kind);
}
