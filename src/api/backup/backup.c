/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/backup/create packs a directory into an archive, restore replaces a directory by an
 * archive's content, upload-parts sends an archive to storage URLs. A command inside the sandbox
 * does it with the image's programs, so uploads use the sandbox's own network. A client that
 * disconnects does not stop it. */
#include "api/backup/request.h"
#include "api/process/command.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SCRIPT_MAX = 24 << 20,
    STDERR_MAX = 8 << 10,
    ETAG_MAX = 1024,
    TIMEOUT_MS = 2 * 3600 * 1000,
    TIMED_OUT = 124,
};

struct backup {
    struct silt_exec_sink sink;
    struct silt_exec *exec;
    struct silt_backup_request *ask;   /* lives as long as the HTTP request */
    struct silt_http_request *request; /* NULL: the client has disconnected */
    struct silt_sandbox *sandbox;      /* borrowed, held */
    struct silt_buf said, complaints;  /* stdout, and the end of stderr */
};

static void free_backup(struct backup *k)
{
    silt_buf_fini(&k->said);
    silt_buf_fini(&k->complaints);
    silt_sandbox_release(k->sandbox);
    free(k);
}

/* The caller must answer the request at once. */
static struct silt_http_request *let_go(struct backup *k)
{
    k->request->on_gone = NULL;
    return k->request;
}

static void on_gone(struct silt_http_request *r)
{
    struct backup *k = r->owner;
    k->request = NULL;
    k->ask = NULL;
}

static void on_output(struct silt_exec_sink *sink, int stream, silt_slice bytes)
{
    struct backup *k = silt_outer(sink, struct backup, sink);
    silt_slice tail = bytes.len > STDERR_MAX
                          ? (silt_slice){bytes.data + bytes.len - STDERR_MAX, STDERR_MAX}
                          : bytes;
    if (stream != 2)
        silt_buf_add(&k->said, bytes);
    else
        silt_buf_add(&k->complaints, tail);
    if (k->complaints.len > STDERR_MAX)
        silt_buf_drop(&k->complaints, k->complaints.len - STDERR_MAX);
    silt_exec_credit(k->exec, bytes.len);
}

/* ---- failure ---- */

static const char *tool_of(const struct backup *k)
{
    static const char *const names[] = {"mksquashfs", "unsquashfs", "curl"};
    return names[k->ask->kind];
}

static void add_place(const struct backup *k, struct silt_buf *b, int code)
{
    bool absent = k->ask->kind == SILT_BACKUP_CREATE
                  && code == SILT_BACKUP_ABSENT; /* the archive is not involved */
    if (k->ask->kind != SILT_BACKUP_UPLOAD)
        silt_json_add_slice(b, "dir", k->ask->dir);
    if (!absent)
        silt_json_add_slice(b, "archivePath", k->ask->archive);
}

static void refuse(struct backup *k, enum silt_api_code code, const struct silt_buf *context,
                   silt_slice message)
{
    enum silt_backup_kind kind = k->ask->kind;
    silt_backup_refuse(let_go(k), kind, code,
                       context->broken ? (silt_slice){NULL, 0} : silt_buf_slice(context), message);
}

static enum silt_api_code failure_of(const struct backup *k)
{
    return k->ask->kind == SILT_BACKUP_RESTORE ? SILT_API_BACKUP_RESTORE_FAILED
                                               : SILT_API_BACKUP_CREATE_FAILED;
}

static void add_message(struct backup *k, struct silt_buf *b, int code)
{
    bool squash = k->ask->kind != SILT_BACKUP_UPLOAD;
    silt_slice said = silt_trim_blank(silt_buf_slice(&k->complaints));
    silt_slice path = k->ask->kind == SILT_BACKUP_CREATE ? k->ask->dir : k->ask->archive;
    if (code == SILT_BACKUP_ABSENT)
        silt_buf_addf(b, "%s does not exist: %.*s",
                      k->ask->kind == SILT_BACKUP_CREATE ? "The directory" : "The archive",
                      (int)path.len, path.data);
    else if (code == SILT_BACKUP_NO_TOOL)
        silt_buf_addf(b, "%s is not in this sandbox's image: add the package %s to it", tool_of(k),
                      squash ? "squashfs-tools" : "curl");
    else if (code == SILT_BACKUP_SHORT)
        silt_buf_addf(b, "The archive ends before the last part does: %.*s", (int)path.len,
                      path.data);
    else if (code == TIMED_OUT)
        silt_buf_addf(b, "%s was not done within two hours", tool_of(k));
    else
        silt_buf_addf(b, "%s failed: %.*s", tool_of(k), said.len < 900 ? (int)said.len : 900,
                      said.len > 0 ? said.data : "");
}

static void tell_ended(struct backup *k, const struct silt_agent_end *end)
{
    int code = (end->flags & SILT_END_TIMEOUT) != 0 ? TIMED_OUT : end->code;
    silt_auto_buf message, context;
    silt_buf_init(&message, 16 << 10);
    silt_buf_init(&context, 128 << 10);
    add_message(k, &message, code);
    silt_json_open(&context, '{');
    add_place(k, &context, code);
    if (code == SILT_BACKUP_NO_TOOL) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/usr/bin/%s", tool_of(k));
        silt_json_add_slice(&context, "binaryPath", silt_slice_of(path));
    } else if (code != SILT_BACKUP_ABSENT && code != SILT_BACKUP_SHORT) {
        silt_json_key(&context, SILT_LIT("exitCode"));
        silt_json_i64(&context, code);
        silt_json_add_slice(&context, "stderr", silt_buf_slice(&k->complaints));
        silt_command_cause(&context, k->sandbox, end);
    }
    silt_json_close(&context, '}');
    refuse(k, failure_of(k), &context, silt_buf_slice(&message));
}

/* ---- success; the output comes from inside the sandbox and may be anything ---- */

static bool read_size(silt_slice said, uint64_t *ret)
{
    silt_slice line = {NULL, 0};
    *ret = 0;
    (void)silt_slice_split(&said, '\n', &line);
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] < '0' || line.data[i] > '9')
            return false;
        *ret = *ret * 10 + (uint64_t)(line.data[i] - '0');
    }
    return line.len > 0 && line.len < 16;
}

static bool add_size(struct backup *k, struct silt_buf *b)
{
    uint64_t size;
    if (!read_size(silt_buf_slice(&k->said), &size))
        return false;
    silt_json_key(b, SILT_LIT("sizeBytes"));
    silt_json_i64(b, (int64_t)size);
    silt_json_add_slice(b, "archivePath", k->ask->archive);
    return true;
}

static bool add_parts(struct backup *k, struct silt_buf *b)
{
    silt_slice rest = silt_buf_slice(&k->said), line;
    silt_json_key(b, SILT_LIT("parts"));
    silt_json_open(b, '[');
    for (size_t i = 0; i < k->ask->count; i++) {
        if (!silt_slice_split(&rest, '\n', &line) || line.len == 0 || line.len > ETAG_MAX)
            return false;
        silt_json_open(b, '{');
        silt_json_key(b, SILT_LIT("partNumber"));
        silt_json_i64(b, k->ask->parts[i].number);
        silt_json_add_slice(b, "etag", line);
        silt_json_close(b, '}');
    }
    silt_json_close(b, ']');
    return true;
}

static bool add_result(struct backup *k, struct silt_buf *b)
{
    if (k->said.broken)
        return false;
    if (k->ask->kind == SILT_BACKUP_CREATE)
        return add_size(k, b);
    if (k->ask->kind == SILT_BACKUP_UPLOAD)
        return add_parts(k, b);
    silt_json_add_slice(b, "dir", k->ask->dir);
    return true;
}

static void tell_done(struct backup *k)
{
    silt_auto_buf b, context;
    silt_buf_init(&b, 8 * k->said.len + 8 * (2 * PATH_MAX) + (size_t)SILT_BACKUP_PARTS_MAX * 64);
    silt_buf_init(&context, 128 << 10);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    if (add_result(k, &b)) {
        silt_json_close(&b, '}');
        silt_api_answer(let_go(k), 200, &b);
        return;
    }
    silt_json_open(&context, '{');
    add_place(k, &context, 0);
    silt_json_close(&context, '}');
    refuse(k, failure_of(k), &context,
           SILT_LIT("The programs in the sandbox did not say what they have made"));
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct backup *k = silt_outer(sink, struct backup, sink);
    if (k->request == NULL) /* the client has disconnected */
        ;
    else if (end->code == 0 && (end->flags & SILT_END_TIMEOUT) == 0)
        tell_done(k);
    else
        tell_ended(k, end);
    free_backup(k);
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct backup *k = silt_outer(sink, struct backup, sink);
    enum silt_api_code code = silt_api_code_of(e);
    if (k->request != NULL) {
        silt_auto_buf context;
        silt_buf_init(&context, 128 << 10);
        silt_json_open(&context, '{');
        add_place(k, &context, 0);
        silt_json_close(&context, '}');
        refuse(k, code == SILT_API_INTERNAL || code == SILT_API_TIMEOUT ? failure_of(k) : code,
               &context, silt_slice_of(e->text));
    }
    free_backup(k);
}

/* ---- starting ---- */

static int start(struct backup *k, struct silt_error *e)
{
    silt_auto_buf script;
    silt_buf_init(&script, SCRIPT_MAX);
    silt_backup_script(k->ask, &script);
    if (script.broken)
        return silt_fail(e, SILT_LIMIT, "the command is too long");
    struct silt_exec_request x = {
        .mode = SILT_EXEC_PLAIN,
        .command = silt_buf_slice(&script),
        .cwd = SILT_LIT("/"),
        .env = SILT_LIT("LC_ALL=C\0"),
        .timeout_ms = TIMEOUT_MS,
    };
    return silt_exec_start(k->sandbox, NULL, &x, &k->sink, &k->exec, e);
}

static void run(struct silt_call *c)
{
    struct silt_error e;
    struct backup *k = calloc(1, sizeof(*k));
    if (k == NULL)
        abort();
    *k = (struct backup){
        .sink = {.output = on_output, .ended = on_ended, .failed = on_failed},
        .ask = c->own,
        .request = c->request,
        .sandbox = c->sandbox,
    };
    silt_buf_init(&k->said, (k->ask->count + 1) * (ETAG_MAX + 1));
    silt_buf_init(&k->complaints, 2 * STDERR_MAX);
    silt_sandbox_hold(k->sandbox);
    c->request->owner = k;
    c->request->on_gone = on_gone;
    if (start(k, &e) < 0)
        on_failed(&k->sink, &e); /* otherwise it may have ended already */
}

static bool parse(struct silt_call *c)
{
    struct silt_backup_request *ask = silt_arena_alloc(c->request->arena, sizeof(*ask));
    if (ask == NULL)
        abort();
    ask->kind = (enum silt_backup_kind)c->kind->variant;
    c->own = ask;
    return silt_backup_request_read(c, ask);
}

static const struct silt_call_kind calls[] = {
    [SILT_BACKUP_CREATE] = {.body = SILT_BODY_REQUIRED,
                            .variant = SILT_BACKUP_CREATE,
                            .parse = parse,
                            .run = run},
    [SILT_BACKUP_RESTORE] = {.body = SILT_BODY_REQUIRED,
                             .variant = SILT_BACKUP_RESTORE,
                             .parse = parse,
                             .run = run},
    [SILT_BACKUP_UPLOAD] = {.body = SILT_BODY_REQUIRED,
                            .variant = SILT_BACKUP_UPLOAD,
                            .parse = parse,
                            .run = run},
};

SILT_HANDLER(silt_api_backup_create)
{
    silt_call_begin(r, args, &calls[SILT_BACKUP_CREATE]);
}

SILT_HANDLER(silt_api_backup_restore)
{
    silt_call_begin(r, args, &calls[SILT_BACKUP_RESTORE]);
}

SILT_HANDLER(silt_api_backup_upload)
{
    silt_call_begin(r, args, &calls[SILT_BACKUP_UPLOAD]);
}
