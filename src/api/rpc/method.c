/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rpc/method.h"

#define PROCESS "id pid command status startTime exitCode"
#define CONTEXT "language cwd createdAt@ lastUsed@"
#define EXECUTION "command sessionId *timeoutMs,env,cwd,origin"

static const struct silt_rpc_method methods[] = {
    {"commands", "execute", "POST", "/api/execute", NULL, EXECUTION, SILT_RPC_PICK,
     "success exitCode stdout stderr command timestamp"},
    {"commands", "executeStream", "POST", "/api/execute/stream", NULL, EXECUTION,
     SILT_RPC_FLOW_EXEC, NULL},

    {"files", "readFile", "POST", "/api/read", NULL, "path sessionId *encoding", SILT_RPC_PICK,
     "success content path encoding isBinary size mimeType timestamp"},
    {"files", "readFileStream", "POST", "/api/read/stream", NULL, "path sessionId", SILT_RPC_FLOW,
     NULL},
    {"files", "writeFile", "POST", "/api/write", NULL, "path content sessionId *encoding",
     SILT_RPC_PICK, "success path bytesWritten! timestamp"},
    {"files", "writeFileStream", "PUT", "/api/write", silt_api_file_feed, "/ < /", SILT_RPC_PICK,
     "success! path bytesWritten=size timestamp!"},
    {"files", "deleteFile", "POST", "/api/delete", NULL, "path sessionId", SILT_RPC_PICK,
     "success path timestamp"},
    {"files", "renameFile", "POST", "/api/rename", NULL, "oldPath newPath sessionId", SILT_RPC_PICK,
     "success path oldPath=path newPath timestamp"},
    {"files", "moveFile", "POST", "/api/move", NULL, "sourcePath destinationPath sessionId",
     SILT_RPC_PICK, "success path newPath timestamp"},
    {"files", "mkdir", "POST", "/api/mkdir", NULL, "path sessionId *recursive", SILT_RPC_PICK,
     "success path recursive timestamp"},
    {"files", "listFiles", "POST", "/api/list-files", NULL, "path sessionId options", SILT_RPC_PICK,
     "success files count path timestamp"},
    {"files", "exists", "POST", "/api/exists", NULL, "path sessionId", SILT_RPC_PICK,
     "success exists path timestamp"},

    {"processes", "startProcess", "POST", "/api/process/start", NULL,
     "command sessionId *processId,timeoutMs,env,cwd,origin,encoding,autoCleanup", SILT_RPC_PICK,
     "success processId pid command timestamp"},
    {"processes", "listProcesses", "GET", "/api/process/list", NULL, "", SILT_RPC_PICK,
     "success processes(" PROCESS ") timestamp"},
    {"processes", "getProcess", "GET", "/api/process", silt_api_process_get, "/", SILT_RPC_PICK,
     "success process(" PROCESS ") timestamp"},
    {"processes", "killProcess", "DELETE", "/api/process", silt_api_process_kill, "/",
     SILT_RPC_PICK, "success processId timestamp"},
    {"processes", "killAllProcesses", "DELETE", "/api/process/kill-all", NULL, "", SILT_RPC_PICK,
     "success cleanedCount timestamp"},
    {"processes", "getProcessLogs", "GET", "/api/process/logs", silt_api_process_logs, "/",
     SILT_RPC_PICK, "success processId stdout stderr timestamp"},
    {"processes", "streamProcessLogs", "GET", "/api/process/stream", silt_api_process_stream, "/",
     SILT_RPC_FLOW_LOGS, NULL},

    {"ports", "watchPort", "POST", "/api/port-watch", NULL, "*", SILT_RPC_FLOW, NULL},
    {"git", "checkout", "POST", "/api/git/checkout", NULL,
     "repoUrl sessionId *branch,targetDir,depth,timeoutMs", SILT_RPC_PICK,
     "success repoUrl branch targetDir timestamp"},

    {"interpreter", "createCodeContext", "POST", "/api/contexts", NULL,
     "*language,cwd,envVars,timeout", SILT_RPC_PICK, "id=contextId " CONTEXT},
    {"interpreter", "listCodeContexts", "GET", "/api/contexts", NULL, "", SILT_RPC_ONE,
     "contexts(id " CONTEXT ")"},
    {"interpreter", "deleteCodeContext", "DELETE", "/api/contexts", silt_api_context_delete, "/",
     SILT_RPC_VOID, NULL},
    {"interpreter", "streamCode", "POST", "/api/execute/code", NULL, "context_id code language",
     SILT_RPC_FLOW, NULL},
    {"interpreter", "runCodeStream", "POST", "/api/execute/code", NULL,
     "context_id code language ! timeout_ms", SILT_RPC_CODE, NULL},

    {"utils", "ping", "GET", "/api/ping", NULL, "", SILT_RPC_ONE, "status"},
    {"utils", "getVersion", "GET", "/api/version", NULL, "", SILT_RPC_ONE, "version"},
    {"utils", "getCommands", "GET", "/api/commands", NULL, "", SILT_RPC_ONE, "availableCommands"},
    {"utils", "createSession", "POST", "/api/session/create", NULL, "*", SILT_RPC_PICK,
     "success id message timestamp containerPlacementId"},
    {"utils", "deleteSession", "POST", "/api/session/delete", NULL, "sessionId", SILT_RPC_PICK,
     "success sessionId timestamp"},
    {"utils", "listSessions", "GET", "/api/session/list", NULL, "", SILT_RPC_PICK, "sessions=data"},

    {"backup", "createArchive", "POST", "/api/backup/create", NULL,
     "dir archivePath sessionId *excludes,gitignore,compression", SILT_RPC_PICK,
     "success sizeBytes archivePath"},
    {"backup", "restoreArchive", "POST", "/api/backup/restore", NULL, "dir archivePath sessionId",
     SILT_RPC_PICK, "success dir"},
    {"backup", "uploadParts", "POST", "/api/backup/upload-parts", NULL, "*", SILT_RPC_PICK,
     "success parts(partNumber etag)"},

    {"watch", "watch", "POST", "/api/watch", silt_api_watch_anywhere, "*", SILT_RPC_FLOW_READY,
     NULL},
    {"watch", "checkChanges", "POST", "/api/watch/check", silt_api_watch_check_anywhere, "*",
     SILT_RPC_PICK, "success status reason version timestamp"},

    {"tunnels", "runQuickTunnel", NULL, NULL, NULL, "tunnelId port", SILT_RPC_NO_TUNNEL,
     "CLOUDFLARED_NOT_FOUND"},
    {"tunnels", "runNamedTunnel", NULL, NULL, NULL, "tunnelId - port", SILT_RPC_NO_TUNNEL,
     "CLOUDFLARED_NOT_FOUND"},
    {"tunnels", "ensureTunnelRun", NULL, NULL, NULL, "*tunnelId,port", SILT_RPC_NO_TUNNEL,
     "CLOUDFLARED_NOT_FOUND"},
    {"tunnels", "destroyTunnel", NULL, NULL, NULL, "tunnelId", SILT_RPC_NO_TUNNEL,
     "TUNNEL_NOT_FOUND"},
    {"tunnels", "listTunnels", NULL, NULL, NULL, "", SILT_RPC_FIXED, "[]"},
    {"tunnels", "stopTunnelRun", NULL, NULL, NULL, "", SILT_RPC_FIXED, "{\"stopped\":false}"},
};

/* files.readFile with the encoding `none`. */
static const struct silt_rpc_method raw = {"files",           "readFile", "GET",        "/api/read",
                                           silt_api_file_raw, "/ /",      SILT_RPC_RAW, NULL};

static bool wants_raw(const struct silt_json *args)
{
    const struct silt_json *v = silt_json_get(silt_rpc_item(args, 2), SILT_LIT("encoding"));
    return v != NULL && v->type == SILT_JSON_STRING && silt_slice_eq(v->string, SILT_LIT("none"));
}

const struct silt_rpc_method *silt_rpc_method_find(const struct silt_json *path,
                                                   const struct silt_json *args)
{
    const struct silt_json *domain = silt_rpc_item(path, 0), *name = silt_rpc_item(path, 1);
    if (name == NULL || path->items.count != 2 || domain->type != SILT_JSON_STRING
        || name->type != SILT_JSON_STRING)
        return NULL;
    if (silt_slice_eq(domain->string, SILT_LIT("files"))
        && silt_slice_eq(name->string, SILT_LIT("readFile")) && wants_raw(args))
        return &raw;
    for (size_t i = 0; i < SILT_COUNT(methods); i++)
        if (silt_slice_eq(domain->string, silt_slice_of(methods[i].domain))
            && silt_slice_eq(name->string, silt_slice_of(methods[i].name)))
            return &methods[i];
    return NULL;
}

/* ---- arguments ---- */

void silt_rpc_request_init(struct silt_rpc_request *q, size_t body_max)
{
    *q = (struct silt_rpc_request){0};
    silt_buf_init(&q->head, SILT_HTTP_HEAD_MAX);
    silt_buf_init(&q->body, body_max);
}

void silt_rpc_request_fini(struct silt_rpc_request *q)
{
    silt_buf_fini(&q->head);
    silt_buf_fini(&q->body);
}

static void add_member(struct silt_rpc_request *q, silt_slice name, const struct silt_json *v)
{
    if (silt_rpc_is_undefined(v))
        return;
    silt_json_key(&q->body, name);
    silt_rpc_plain(&q->body, v);
    if (v->type == SILT_JSON_STRING && silt_slice_eq(name, SILT_LIT("content")))
        q->number = (int64_t)v->string.len;
}

/* `only` empty: all members. */
static const char *add_members(struct silt_rpc_request *q, const struct silt_json *v,
                               silt_slice only)
{
    silt_slice name;
    if (silt_rpc_is_undefined(v) || v->type == SILT_JSON_NULL)
        return NULL;
    if (v->type != SILT_JSON_OBJECT)
        return "options must be an object";
    if (only.len == 0)
        for (const struct silt_json *i = v->items.first; i != NULL; i = i->next)
            add_member(q, i->key, i);
    while (silt_slice_split(&only, ',', &name))
        add_member(q, name, silt_json_get(v, name));
    return NULL;
}

static const char *add_callbacks(struct silt_rpc_request *q, const struct silt_json *v)
{
    static const char *const names[SILT_RPC_CALLBACKS] = {"onStdout", "onStderr", "onResult",
                                                          "onError"};
    if (v == NULL || v->type != SILT_JSON_OBJECT)
        return "callbacks must be an object";
    for (size_t i = 0; i < SILT_RPC_CALLBACKS; i++) {
        const struct silt_json *f = silt_json_get(v, silt_slice_of(names[i]));
        if (silt_rpc_is_undefined(f) || f->type == SILT_JSON_NULL)
            continue;
        if (!silt_rpc_is_tag(f, "export"))
            return "a callback must be a function";
        q->callbacks[i] = silt_rpc_item(f, 1)->integer;
    }
    return NULL;
}

static const char *add_handlers(struct silt_rpc_request *q, const struct silt_json *v,
                                size_t *count)
{
    if (!silt_rpc_is_undefined(v) && v->type != SILT_JSON_STRING)
        return "an argument must be a string";
    q->args[(*count)++] = silt_rpc_is_undefined(v) ? (silt_slice){NULL, 0} : v->string;
    return NULL;
}

static const char *add_argument(struct silt_rpc_request *q, silt_slice what,
                                const struct silt_json *v, size_t *count)
{
    switch (what.data[0]) {
    case '-':
        return NULL;
    case '*':
        return add_members(q, v, (silt_slice){what.data + 1, what.len - 1});
    case '!':
        return add_callbacks(q, v);
    case '/':
        return add_handlers(q, v, count);
    case '<':
        if (!silt_rpc_is_tag(v, "readable"))
            return "the content must be a stream";
        q->pipe = silt_rpc_item(v, 1)->integer;
        return NULL;
    default:
        add_member(q, what, v);
        return NULL;
    }
}

static void put_head(const struct silt_rpc_method *m, const char *sandbox,
                     struct silt_rpc_request *q)
{
    silt_buf_addf(&q->head, "%s /sandboxes/%s%s HTTP/1.1\r\nHost: localhost\r\n", m->verb, sandbox,
                  m->path);
    if (q->pipe != 0)
        silt_buf_add(&q->head, SILT_LIT("Transfer-Encoding: chunked\r\n\r\n"));
    else
        silt_buf_addf(&q->head, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                      q->body.len);
}

const char *silt_rpc_request_lay(const struct silt_rpc_method *m, const struct silt_json *args,
                                 const char *sandbox, struct silt_rpc_request *ret)
{
    const struct silt_json *v = args->items.first;
    silt_slice names = silt_slice_of(m->args), what;
    size_t count = 0;
    silt_json_open(&ret->body, '{');
    for (; silt_slice_split(&names, ' ', &what); v = v != NULL ? v->next : NULL) {
        const char *wrong = add_argument(ret, what, v, &count);
        if (wrong != NULL)
            return wrong;
    }
    silt_json_close(&ret->body, '}');
    if (ret->body.broken)
        return "the arguments are too large";
    if (m->verb == NULL)
        return NULL;
    if (m->verb[0] != 'P' || ret->pipe != 0)
        silt_buf_fini(&ret->body);
    put_head(m, sandbox, ret);
    return ret->head.broken ? "the arguments are too large" : NULL;
}
