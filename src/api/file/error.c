/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the errno reported by a worker to the API error: one table for all routes. */
#include "api/file/file.h"
#include "sandbox/core/disk_full.h"
#include "sandbox/core/sandbox.h"

#include <errno.h>
#include <stdio.h>

static const struct {
    int sys;
    enum silt_api_code code;
    bool is_everywhere; /* also on official routes, after the route's own table */
} table[] = {
    {ENOENT, SILT_API_FILE_NOT_FOUND, false},
    {ENOTDIR, SILT_API_NOT_DIRECTORY, false},
    {EISDIR, SILT_API_IS_DIRECTORY, false},
    {EEXIST, SILT_API_FILE_EXISTS, false},
    {ENOTEMPTY, SILT_API_FILE_EXISTS, false},
    {EACCES, SILT_API_PERMISSION_DENIED, false},
    {EPERM, SILT_API_PERMISSION_DENIED, false},
    {EROFS, SILT_API_READ_ONLY, false},
    {EBUSY, SILT_API_RESOURCE_BUSY, false},
    {ETXTBSY, SILT_API_RESOURCE_BUSY, false},
    {ENOSPC, SILT_API_NO_SPACE, true},
    {EDQUOT, SILT_API_NO_SPACE, true},
    {ENAMETOOLONG, SILT_API_NAME_TOO_LONG, true},
    {ELOOP, SILT_API_TOO_MANY_LINKS, true},
    {EMLINK, SILT_API_TOO_MANY_LINKS, true},
    {EMFILE, SILT_API_TOO_MANY_FILES, true},
    {ENFILE, SILT_API_TOO_MANY_FILES, true},
    {EFBIG, SILT_API_FILE_TOO_LARGE, true},
};

static enum silt_api_code code_of_errno(const struct silt_file *f, int sys)
{
    for (size_t i = 0; i < SILT_COUNT(f->kind->codes) && f->kind->codes[i].sys != 0; i++)
        if (f->kind->codes[i].sys == sys)
            return f->kind->codes[i].code;
    for (size_t i = 0; i < SILT_COUNT(table); i++)
        if (table[i].sys == sys && (f->kind->is_native || table[i].is_everywhere))
            return table[i].code == SILT_API_NO_SPACE && f->kind->is_native ? SILT_API_DISK_FULL
                                                                            : table[i].code;
    return SILT_API_FILESYSTEM_ERROR;
}

static bool is_destroyed(const struct silt_error *e)
{
    return strstr(e->text, "destroyed") != NULL;
}

enum silt_api_code silt_file_code(const struct silt_file *f, const struct silt_error *e)
{
    switch (e->code) {
    case SILT_TIMEOUT:
        return SILT_API_FILE_TIMEOUT;
    case SILT_GONE:
        return is_destroyed(e) ? SILT_API_SESSION_DESTROYED : SILT_API_SANDBOX_ENDED;
    case SILT_NO_SPACE:
        return f->kind->is_native ? SILT_API_DISK_FULL : SILT_API_NO_SPACE;
    case SILT_LIMIT:
        if (e->sys == 0)
            return SILT_API_LIMIT_REACHED;
        break;
    case SILT_INTERRUPTED:
        return SILT_API_INTERRUPTED;
    case SILT_UNAVAILABLE:
        if (e->sys == 0)
            return SILT_API_NOT_AVAILABLE;
        break;
    case SILT_OK:
    case SILT_INVALID:
    case SILT_NOT_FOUND:
    case SILT_CONFLICT:
    case SILT_DENIED:
    case SILT_PROTOCOL:
    case SILT_INTERNAL:
    case SILT_CODE_MAX:
        break;
    }
    return code_of_errno(f, e->sys);
}

/* Says what is full: the machine's disk or only this sandbox. */
static void add_full(const struct silt_file *f, struct silt_buf *b)
{
    const struct silt_sandbox *s = f->call->sandbox;
    struct silt_pool_status pool;
    silt_disk_pool_look(&f->call->api->registry->pool, &pool);
    if (pool.state == SILT_POOL_FULL)
        silt_buf_add(b, SILT_LIT("No space left in the disk pool of all sandboxes: "));
    else if (s != NULL)
        silt_buf_addf(b, "No space left in the sandbox, whose disk limit is %llu MiB: ",
                      (unsigned long long)(s->row.limits.disk_bytes >> 20));
    else
        silt_buf_add(b, SILT_LIT("No space left in the sandbox: "));
}

void silt_file_message(const struct silt_file *f, enum silt_api_code code,
                       const struct silt_error *e, struct silt_buf *b)
{
    if (code == SILT_API_IS_DIRECTORY && f->kind->op == SILT_WORKER_DELETE && !f->kind->is_native) {
        silt_buf_add(b, SILT_LIT("Cannot delete directory with deleteFile() at '"));
        silt_buf_add(b, f->path);
        silt_buf_add(b, SILT_LIT("'. Use exec('rm -rf <path>') instead."));
        return;
    }
    if (code == SILT_API_FILE_NOT_FOUND)
        silt_buf_add(b, SILT_LIT("File not found: "));
    else if (code == SILT_API_IS_DIRECTORY)
        silt_buf_add(b, SILT_LIT("Is a directory: "));
    else if (code == SILT_API_NOT_DIRECTORY)
        silt_buf_add(b, SILT_LIT("Not a directory: "));
    else if (code == SILT_API_NO_SPACE || code == SILT_API_DISK_FULL)
        add_full(f, b);
    else {
        silt_buf_addf(b, "%s failed: ", f->kind->operation);
        silt_buf_add(b, silt_slice_of(e->text));
        return;
    }
    silt_buf_add(b, f->path);
}

static void add_context(const struct silt_file *f, struct silt_buf *b, enum silt_api_code code,
                        const struct silt_error *e)
{
    silt_json_open(b, '{');
    if (f->kind->context != NULL && code == SILT_API_FILESYSTEM_ERROR) {
        f->kind->context(f, b, e);
    } else {
        silt_json_add_slice(b, "path", f->path);
        if (f->to.len > 0 && f->kind->is_native)
            silt_json_add_slice(b, "to", f->to);
        silt_json_add_slice(b, "operation", silt_slice_of(f->kind->operation));
        if (code == SILT_API_FILESYSTEM_ERROR)
            silt_json_add_slice(b, "stderr", silt_slice_of(e->text));
    }
    if (code == SILT_API_NO_SPACE || code == SILT_API_DISK_FULL)
        silt_json_add_slice(b, "cause", SILT_LIT("disk"));
    if (code == SILT_API_FILE_TIMEOUT)
        silt_json_add_slice(b, "cause", SILT_LIT("timeout"));
    if (code == SILT_API_SANDBOX_ENDED || code == SILT_API_SESSION_DESTROYED)
        silt_json_add_slice(b, "cause",
                            is_destroyed(e) ? SILT_LIT("destroyed") : SILT_LIT("crash"));
    silt_json_close(b, '}');
}

void silt_file_refuse_with(struct silt_file *f, enum silt_api_code code, silt_slice context,
                           silt_slice message)
{
    silt_auto_buf b;
    silt_buf_init(&b, context.len + 7 * SILT_FILE_TEXT_MAX);
    silt_api_envelope(&b, code, message);
    silt_json_raw(&b, context);
    silt_json_add_slice(&b, "operation", silt_slice_of(f->kind->operation));
    silt_api_envelope_end(&b, code);
    silt_api_answer(silt_file_end(f), silt_api_status(code), &b);
}

void silt_file_refuse_code(struct silt_file *f, enum silt_api_code code, const struct silt_error *e)
{
    silt_auto_buf context, message;
    silt_buf_init(&context, 7 * SILT_FILE_TEXT_MAX);
    silt_buf_init(&message, SILT_FILE_TEXT_MAX);
    silt_file_message(f, code, e, &message);
    add_context(f, &context, code, e);
    if (code == SILT_API_NO_SPACE || code == SILT_API_DISK_FULL)
        silt_disk_full_note(f->call->api->registry, f->call->sandbox);
    silt_file_refuse_with(f, code, silt_buf_slice(&context), silt_buf_slice(&message));
}

void silt_file_refuse(struct silt_file *f, const struct silt_error *e)
{
    silt_file_refuse_code(f, silt_file_code(f, e), e);
}

void silt_file_refuse_dead(struct silt_file *f, struct silt_session *s)
{
    silt_auto_buf b;
    char message[SILT_SESSION_NAME_MAX + 64];
    (void)snprintf(message, sizeof(message), "Session '%s' shell exited (exit code: %d)", s->name,
                   s->exit_code);
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_add_slice(&b, "sessionId", silt_slice_of(s->name));
    silt_json_key(&b, SILT_LIT("exitCode"));
    if (s->exit_code >= 0)
        silt_json_i64(&b, s->exit_code);
    else
        silt_json_null(&b);
    silt_json_add_slice(&b, "cause", SILT_LIT("exit"));
    silt_json_close(&b, '}');
    silt_api_refuse(silt_file_end(f), SILT_API_SESSION_TERMINATED, silt_buf_slice(&b), "%s",
                    message);
}
