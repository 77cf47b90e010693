/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/reply.h"
#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    REFUSAL_MAX = 16 << 10
}; /* everything but the context: a message of 1 KiB is at most 6 KiB */

#define FULL_SUGGESTION                                                                            \
    "Delete files in the sandbox or create one with a larger disk; where none can be made, "       \
    "remove "                                                                                      \
    "sandboxes and images that nobody needs, or free room on the machine's disk."

static const struct {
    const char *name;
    int status;
    const char *suggestion; /* NULL: omitted */
} codes[SILT_API_CODE_MAX] = {
    [SILT_API_VALIDATION_FAILED] = {"VALIDATION_FAILED", 400,
                                    "Correct the request; the message says what is wrong."},
    [SILT_API_BAD_REQUEST] = {"VALIDATION_FAILED", 400, "Send well-formed HTTP/1.1."},
    [SILT_API_UNAUTHORIZED] =
        {"UNAUTHORIZED", 401,
         "Send `Authorization: Bearer <token>`; `silt token` prints the token."},
    [SILT_API_UNKNOWN_ROUTE] = {"UNKNOWN_ERROR", 404, NULL},
    [SILT_API_ROUTE_NOT_FOUND] = {"ROUTE_NOT_FOUND", 404, "`GET /v1/openapi.json` has all routes."},
    [SILT_API_METHOD_NOT_ALLOWED] = {"METHOD_NOT_ALLOWED", 405, NULL},
    [SILT_API_BODY_TOO_LARGE] = {"BODY_TOO_LARGE", 413, "Send less than 128 MiB in one request."},
    [SILT_API_KEY_REUSED] = {"IDEMPOTENCY_KEY_REUSED", 422,
                             "Use a new key for each request; repeat one only as it was."},
    [SILT_API_KEY_USED] = {"IDEMPOTENCY_KEY_USED", 409, "Look what the first request has done."},
    [SILT_API_SANDBOX_NOT_FOUND] = {"SANDBOX_NOT_FOUND", 404,
                                    "The first command on an id makes a sandbox of it."},
    [SILT_API_SANDBOX_EXISTS] = {"SANDBOX_ALREADY_EXISTS", 409,
                                 "Use it as it is, choose another id, or destroy it first."},
    [SILT_API_SNAPSHOT_NOT_FOUND] = {"SNAPSHOT_NOT_FOUND", 404,
                                     "`silt snapshot ls` lists the snapshots."},
    [SILT_API_SANDBOX_STOPPED] = {"SANDBOX_STOPPED", 409, "Start it first: `silt start ID`."},
    [SILT_API_NOT_PAUSED] = {"RESOURCE_BUSY", 409,
                             "It runs on. Try again later, or stop it: its files are kept."},
    [SILT_API_IMAGE_NOT_FOUND] = {"IMAGE_NOT_FOUND", 404, "`silt image ls` lists the images."},
    [SILT_API_IMAGE_IN_USE] = {"RESOURCE_BUSY", 409, "Destroy the sandboxes of the image first."},
    [SILT_API_LIMIT_REACHED] = {"LIMIT_REACHED", 429,
                                "Destroy what is not needed, or raise the limit."},
    [SILT_API_NO_SPACE] = {"NO_SPACE", 507, FULL_SUGGESTION},
    [SILT_API_DISK_FULL] = {"DISK_FULL", 507, FULL_SUGGESTION},
    [SILT_API_DISK_READ_ONLY] =
        {"DISK_READ_ONLY", 507,
         "The disk pool cannot be written; `silt doctor` says why and what to do."},
    [SILT_API_INTERRUPTED] = {"OPERATION_INTERRUPTED", 409,
                              "The daemon was restarted meanwhile: look, then try again."},
    [SILT_API_TIMEOUT] = {"INTERNAL_ERROR", 500, "Try again; `silt doctor` checks the machine."},
    [SILT_API_INTERNAL] = {"INTERNAL_ERROR", 500, NULL},
    [SILT_API_INVALID_COMMAND] = {"INVALID_COMMAND", 400, NULL},
    [SILT_API_COMMAND_FAILED] = {"COMMAND_EXECUTION_ERROR", 500, NULL},
    [SILT_API_STREAM_START] = {"STREAM_START_ERROR", 500, NULL},
    [SILT_API_SESSION_EXISTS] = {"SESSION_ALREADY_EXISTS", 409,
                                 "Use the session as it is, or choose another id."},
    [SILT_API_SESSION_NOT_FOUND] = {"SESSION_NOT_FOUND", 404,
                                    "Create the session, or run a command in it."},
    [SILT_API_SESSION_DESTROYED] = {"SESSION_DESTROYED", 410, "Create a new session."},
    [SILT_API_SESSION_TERMINATED] = {"SESSION_TERMINATED", 410,
                                     "The next command on this session id gets a fresh shell."},
    [SILT_API_SANDBOX_ENDED] = {"SESSION_TERMINATED", 410,
                                "The next use starts the sandbox again; its files are kept."},
    [SILT_API_FILE_NOT_FOUND] = {"FILE_NOT_FOUND", 404,
                                 "Check the path; relative ones begin at the session's directory."},
    [SILT_API_PERMISSION_DENIED] = {"PERMISSION_DENIED", 403, "Choose a path below /workspace."},
    [SILT_API_WATCH_START] = {"WATCH_START_ERROR", 500, NULL},
    [SILT_API_FILE_EXISTS] = {"FILE_EXISTS", 409, "Choose another path, or delete what is there."},
    [SILT_API_FILE_TOO_LARGE] = {"FILE_TOO_LARGE", 413, NULL},
    [SILT_API_IS_DIRECTORY] =
        {"IS_DIRECTORY", 400,
         "Name a file; directories are removed with a command, or recursively."},
    [SILT_API_NOT_DIRECTORY] = {"NOT_DIRECTORY", 400, "Name a directory."},
    [SILT_API_NOT_AVAILABLE] = {"NOT_AVAILABLE", 501,
                                "Install the program in the sandbox, or do without it."},
    [SILT_API_NOT_A_LINK] = {"NOT_A_LINK", 400, NULL},
    [SILT_API_READ_ONLY] = {"READ_ONLY", 403,
                            "Choose a path that can be written, as below /workspace."},
    [SILT_API_CAPTIVE] = {"RESOURCE_BUSY", 409,
                          "Change what its sidecar was told, or use another sandbox."},
    [SILT_API_RESOURCE_BUSY] = {"RESOURCE_BUSY", 409,
                                "Something uses it now; try again when that has ended."},
    [SILT_API_NAME_TOO_LONG] = {"NAME_TOO_LONG", 400, NULL},
    [SILT_API_TOO_MANY_FILES] = {"TOO_MANY_FILES", 500, NULL},
    [SILT_API_TOO_MANY_LINKS] = {"TOO_MANY_LINKS", 500, NULL},
    [SILT_API_FILESYSTEM_ERROR] = {"FILESYSTEM_ERROR", 500, NULL},
    [SILT_API_FILE_TIMEOUT] = {"OPERATION_TIMEOUT", 504,
                               "A file system inside the sandbox, or its processes, hang."},
    [SILT_API_PRECONDITION_FAILED] = {"PRECONDITION_FAILED", 412,
                                      "The file is another one now: look at it again."},
    [SILT_API_RANGE_NOT_SATISFIABLE] = {"RANGE_NOT_SATISFIABLE", 416, NULL},
    [SILT_API_PROCESS_NOT_FOUND] = {"PROCESS_NOT_FOUND", 404,
                                    "The list of processes has their ids."},
    [SILT_API_PROCESS_FINISHED] = {"COMMAND_NOT_FOUND", 404,
                                   "The process has ended already; its record has its exit code."},
    [SILT_API_PROCESS_BUSY] = {"RESOURCE_BUSY", 409,
                               "Kill the process first, or choose another id."},
    [SILT_API_PROCESS_FAILED] = {"PROCESS_ERROR", 500, NULL},
    [SILT_API_INVALID_BACKUP_CONFIG] = {"INVALID_BACKUP_CONFIG", 400,
                                        "Correct the request; the message says what is wrong."},
    [SILT_API_BACKUP_CREATE_FAILED] =
        {"BACKUP_CREATE_FAILED", 500,
         "Check that the directory exists, that the disk has room, and what context.stderr says."},
    [SILT_API_BACKUP_RESTORE_FAILED] =
        {"BACKUP_RESTORE_FAILED", 500,
         "Check the archive, that the disk has room, and what context.stderr says."},
    [SILT_API_NETWORK_UNAVAILABLE] = {"NETWORK_UNAVAILABLE", 503,
                                      "It takes nftables on the machine, and the setting network "
                                      "not off; `silt doctor` says which is missing."},
    [SILT_API_CONTEXT_NOT_FOUND] = {"CONTEXT_NOT_FOUND", 404,
                                    "Contexts end with the sandbox's processes; create a new one."},
    [SILT_API_RUN_NOT_FOUND] = {"RUN_NOT_FOUND", 404,
                                "Events of a run are kept for ten minutes after its end, while "
                                "siltd runs; run the code again."},
    [SILT_API_CODE_EXECUTION] = {"CODE_EXECUTION_ERROR", 500, NULL},
    [SILT_API_PYTHON_NOT_AVAILABLE] = {"PYTHON_NOT_AVAILABLE", 501,
                                       "Use an image with python3 and IPython, or install them."},
    [SILT_API_NO_PYTHON] = {"PYTHON_NOT_AVAILABLE", 500,
                            "Use an image with python3 and IPython, or install them."},
    [SILT_API_JAVASCRIPT_NOT_AVAILABLE] = {"JAVASCRIPT_NOT_AVAILABLE", 501,
                                           "Use an image with node, or install it."},
    [SILT_API_NO_QUESTION] = {"RESOURCE_BUSY", 409,
                              "Run the code with stdin: true, and answer its input events."},
    [SILT_API_UPGRADE_REQUIRED] = {"UPGRADE_REQUIRED", 426, "Open it with a WebSocket client."},
    [SILT_API_INVALID_PORT] = {"INVALID_PORT", 400, "Let the service listen on another port."},
    [SILT_API_INVALID_PORT_NUMBER] = {"INVALID_PORT_NUMBER", 400,
                                      "Use a port between 1024 and 65535."},
    [SILT_API_PORT_IN_USE] = {"PORT_IN_USE", 409, "Choose another token, or let one be made."},
    [SILT_API_PORT_NOT_EXPOSED] = {"PORT_NOT_EXPOSED", 404,
                                   "The list of ports has those that are exposed."},
    [SILT_API_INVALID_TOKEN] = {"INVALID_TOKEN", 404,
                                "Expose the port, and use the token of its URL."},
    [SILT_API_STALE_PREVIEW] = {"STALE_PREVIEW_URL", 410, "Expose the port again."},
    [SILT_API_PORT_OPERATION] = {"PORT_OPERATION_ERROR", 500, NULL},
    [SILT_API_STDIN_CLOSED] = {"STDIN_CLOSED", 409,
                               "Start the process with stdin: true, and write while it reads."},
    [SILT_API_INVALID_GIT_URL] = {"INVALID_GIT_URL", 400,
                                  "Use http(s)://, ssh://, git:// or user@host:path."},
    [SILT_API_GIT_REPOSITORY_NOT_FOUND] =
        {"GIT_REPOSITORY_NOT_FOUND", 404,
         "Check the address of the repository; a private one needs credentials."},
    [SILT_API_GIT_BRANCH_NOT_FOUND] = {"GIT_BRANCH_NOT_FOUND", 404,
                                       "Check the name of the branch or tag."},
    [SILT_API_GIT_AUTH_FAILED] = {"GIT_AUTH_FAILED", 401,
                                  "Check the credentials, and that they may read this repository."},
    [SILT_API_GIT_NETWORK_ERROR] = {"GIT_NETWORK_ERROR", 502,
                                    "Check the address and the network, or allow more time."},
    [SILT_API_GIT_CLONE_FAILED] = {"GIT_CLONE_FAILED", 500, "context.stderr has what git said."},
    [SILT_API_GIT_CHECKOUT_FAILED] = {"GIT_CHECKOUT_FAILED", 500,
                                      "context.stderr has what git said."},
    /* A status unknown to the npm client, which retries 500 and 502 to 504 for two minutes. The
     * code is the one it shows over RPC. */
    [SILT_API_CONTAINER_FAILED] = {"CONTAINER_UNAVAILABLE", 599,
                                   "Correct the program that the image runs (CMD, ENTRYPOINT); the "
                                   "next call starts it again."},
    [SILT_API_GIT_OPERATION_FAILED] = {"GIT_OPERATION_FAILED", 500,
                                       "context.stderr has what git said."},
};

static const enum silt_api_code code_of[SILT_CODE_MAX] = {
    [SILT_OK] = SILT_API_INTERNAL,
    [SILT_INVALID] = SILT_API_VALIDATION_FAILED,
    [SILT_NOT_FOUND] = SILT_API_IMAGE_NOT_FOUND,
    [SILT_CONFLICT] = SILT_API_SANDBOX_EXISTS,
    [SILT_LIMIT] = SILT_API_LIMIT_REACHED,
    [SILT_NO_SPACE] = SILT_API_NO_SPACE,
    [SILT_DENIED] = SILT_API_INTERNAL,
    [SILT_TIMEOUT] = SILT_API_TIMEOUT,
    [SILT_GONE] = SILT_API_SANDBOX_ENDED,
    [SILT_UNAVAILABLE] = SILT_API_INTERNAL,
    [SILT_INTERRUPTED] = SILT_API_INTERRUPTED,
    [SILT_PROTOCOL] = SILT_API_INTERNAL,
    [SILT_INTERNAL] = SILT_API_INTERNAL,
};

int silt_api_status(enum silt_api_code code)
{
    return codes[code].status;
}

enum silt_api_code silt_api_code_of(const struct silt_error *e)
{
    if ((e->code == SILT_DENIED || e->code == SILT_INTERNAL) && e->sys == EROFS)
        return SILT_API_DISK_READ_ONLY;
    return (unsigned)e->code < SILT_CODE_MAX ? code_of[e->code] : SILT_API_INTERNAL;
}

const char *silt_api_code_name(enum silt_api_code code)
{
    return codes[code].name;
}

void silt_api_time(struct silt_buf *b, int64_t wall_ms)
{
    char text[SILT_ISO_SIZE];
    silt_clock_iso(wall_ms, text);
    silt_json_string(b, silt_slice_of(text));
}

void silt_api_timestamp(struct silt_buf *b)
{
    silt_json_key(b, SILT_LIT("timestamp"));
    silt_api_time(b, silt_clock_wall_ms());
}

void silt_api_envelope(struct silt_buf *b, enum silt_api_code code, silt_slice message)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("code"));
    silt_json_string(b, silt_slice_of(codes[code].name));
    silt_json_key(b, SILT_LIT("message"));
    silt_json_string(b, message);
    silt_json_key(b, SILT_LIT("context"));
}

void silt_api_envelope_end(struct silt_buf *b, enum silt_api_code code)
{
    silt_json_key(b, SILT_LIT("httpStatus"));
    silt_json_i64(b, codes[code].status);
    silt_api_timestamp(b);
    if (codes[code].suggestion != NULL) {
        silt_json_key(b, SILT_LIT("suggestion"));
        silt_json_string(b, silt_slice_of(codes[code].suggestion));
    }
    silt_json_close(b, '}');
}

void silt_api_answer(struct silt_http_request *r, int status, const struct silt_buf *b)
{
    if (b->broken) {
        silt_api_refuse(r, SILT_API_INTERNAL, (silt_slice){NULL, 0},
                        "The answer is larger than %zu bytes", b->max);
        return;
    }
    silt_http_reply(r, status, SILT_LIT("application/json"), (silt_slice){NULL, 0},
                    silt_buf_slice(b));
}

bool silt_api_is_native(const struct silt_http_request *r)
{
    return silt_slice_starts(r->head->path, SILT_LIT("/v1/"));
}

void silt_api_refuse(struct silt_http_request *r, enum silt_api_code code, silt_slice context,
                     const char *format, ...)
{
    char message[1024];
    code = code == SILT_API_NO_SPACE && silt_api_is_native(r) ? SILT_API_DISK_FULL : code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    silt_auto_buf b;
    silt_buf_init(&b, context.len + REFUSAL_MAX);
    silt_api_envelope(&b, code, silt_slice_of(message));
    silt_json_raw(&b, context.len > 0 ? context : SILT_LIT("{}"));
    silt_api_envelope_end(&b, code);
    silt_slice fields = code == SILT_API_UNAUTHORIZED ? SILT_LIT("WWW-Authenticate: Bearer\r\n")
                                                      : (silt_slice){NULL, 0};
    silt_http_reply(r, codes[code].status, SILT_LIT("application/json"), fields,
                    silt_buf_slice(&b));
}

void silt_api_refuse_error(struct silt_http_request *r, const struct silt_error *e)
{
    silt_api_refuse(r, silt_api_code_of(e), (silt_slice){NULL, 0}, "%s", e->text);
}

void silt_api_refuse_field(struct silt_http_request *r, const char *field, const char *why)
{
    silt_api_refuse_value(r, field, why, "INVALID_VALUE");
}

static void add_wrong(struct silt_buf *b, const char *field, const char *why, const char *code)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("validationErrors"));
    silt_json_open(b, '[');
    silt_json_open(b, '{');
    silt_json_add_text(b, "field", field);
    silt_json_add_text(b, "message", why);
    silt_json_add_text(b, "code", code);
    silt_json_close(b, '}');
    silt_json_close(b, ']');
    silt_json_close(b, '}');
}

void silt_api_refuse_value_as(struct silt_http_request *r, enum silt_api_code as, const char *field,
                              const char *why, const char *code)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    add_wrong(&b, field, why, code);
    silt_api_refuse(r, as, silt_buf_slice(&b), "%s: %s", field, why);
}

void silt_api_refuse_value_saying(struct silt_http_request *r, const char *field, const char *why,
                                  const char *code)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    add_wrong(&b, field, why, code);
    silt_api_refuse(r, SILT_API_VALIDATION_FAILED, silt_buf_slice(&b), "%s", why);
}

void silt_api_refuse_value(struct silt_http_request *r, const char *field, const char *why,
                           const char *code)
{
    silt_api_refuse_value_as(r, SILT_API_VALIDATION_FAILED, field, why, code);
}
