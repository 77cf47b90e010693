/* SPDX-License-Identifier: Apache-2.0 */
/* reply: responses shared by all routes: the error envelope with its codes, and small JSON bodies.
 * Runs in siltd's loop; nothing here fails. */
#pragma once

#include "base/buf.h"
#include "http/server.h"
#include "json/json.h"

enum silt_api_code {
    SILT_API_VALIDATION_FAILED,
    SILT_API_UNAUTHORIZED,
    SILT_API_UNKNOWN_ROUTE,
    SILT_API_ROUTE_NOT_FOUND,
    SILT_API_METHOD_NOT_ALLOWED,
    SILT_API_BODY_TOO_LARGE,
    SILT_API_KEY_REUSED,
    SILT_API_KEY_USED,
    SILT_API_SANDBOX_NOT_FOUND,
    SILT_API_SANDBOX_EXISTS,
    SILT_API_SNAPSHOT_NOT_FOUND,
    SILT_API_SANDBOX_STOPPED,
    SILT_API_NOT_PAUSED,
    SILT_API_IMAGE_NOT_FOUND,
    SILT_API_IMAGE_IN_USE,
    SILT_API_LIMIT_REACHED,
    SILT_API_NO_SPACE,  /* on compatible routes, whose clients know this code */
    SILT_API_DISK_FULL, /* the same on /v1 routes */
    SILT_API_DISK_READ_ONLY,
    SILT_API_INTERRUPTED,
    SILT_API_TIMEOUT,
    SILT_API_INTERNAL,
    SILT_API_INVALID_COMMAND,
    SILT_API_COMMAND_FAILED,
    SILT_API_STREAM_START,
    SILT_API_SESSION_EXISTS,
    SILT_API_SESSION_DESTROYED,
    SILT_API_SESSION_NOT_FOUND,
    SILT_API_SESSION_TERMINATED,
    SILT_API_SANDBOX_ENDED,
    SILT_API_BAD_REQUEST,
    SILT_API_FILE_NOT_FOUND,
    SILT_API_PERMISSION_DENIED,
    SILT_API_WATCH_START,
    SILT_API_FILE_EXISTS,
    SILT_API_FILE_TOO_LARGE,
    SILT_API_IS_DIRECTORY,
    SILT_API_NOT_DIRECTORY,
    SILT_API_NOT_A_LINK,
    SILT_API_NOT_AVAILABLE,
    SILT_API_READ_ONLY,
    SILT_API_CAPTIVE,
    SILT_API_RESOURCE_BUSY,
    SILT_API_NAME_TOO_LONG,
    SILT_API_TOO_MANY_FILES,
    SILT_API_TOO_MANY_LINKS,
    SILT_API_FILESYSTEM_ERROR,
    SILT_API_FILE_TIMEOUT,
    SILT_API_PRECONDITION_FAILED,
    SILT_API_RANGE_NOT_SATISFIABLE,
    SILT_API_PROCESS_NOT_FOUND,
    SILT_API_PROCESS_FINISHED,
    SILT_API_PROCESS_BUSY,
    SILT_API_PROCESS_FAILED,
    SILT_API_STDIN_CLOSED,
    SILT_API_INVALID_GIT_URL,
    SILT_API_GIT_REPOSITORY_NOT_FOUND,
    SILT_API_GIT_BRANCH_NOT_FOUND,
    SILT_API_GIT_AUTH_FAILED,
    SILT_API_GIT_NETWORK_ERROR,
    SILT_API_GIT_CLONE_FAILED,
    SILT_API_GIT_CHECKOUT_FAILED,
    SILT_API_GIT_OPERATION_FAILED,
    SILT_API_INVALID_BACKUP_CONFIG,
    SILT_API_BACKUP_CREATE_FAILED,
    SILT_API_BACKUP_RESTORE_FAILED,
    SILT_API_NETWORK_UNAVAILABLE,
    SILT_API_CONTEXT_NOT_FOUND,
    SILT_API_RUN_NOT_FOUND,
    SILT_API_CODE_EXECUTION,
    SILT_API_PYTHON_NOT_AVAILABLE,
    SILT_API_NO_PYTHON, /* the same with the official server's status */
    SILT_API_JAVASCRIPT_NOT_AVAILABLE,
    SILT_API_NO_QUESTION,
    SILT_API_UPGRADE_REQUIRED,
    SILT_API_INVALID_PORT,
    SILT_API_INVALID_PORT_NUMBER,
    SILT_API_PORT_IN_USE,
    SILT_API_PORT_NOT_EXPOSED,
    SILT_API_PORT_OPERATION,
    SILT_API_INVALID_TOKEN,
    SILT_API_STALE_PREVIEW,
    SILT_API_CONTAINER_FAILED,
    SILT_API_CODE_MAX
};

int silt_api_status(enum silt_api_code code);
/* Writes the envelope up to and including `"context":`; the caller adds an object and calls
 * silt_api_envelope_end. */
void silt_api_envelope(struct silt_buf *b, enum silt_api_code code, silt_slice message);
void silt_api_envelope_end(struct silt_buf *b, enum silt_api_code code);

/* `context` is a JSON object, or empty for {}. */
void silt_api_refuse(struct silt_http_request *r, enum silt_api_code code, silt_slice context,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Maps a silt_error of a lower layer to an API error code; the only place that does. */
void silt_api_refuse_error(struct silt_http_request *r, const struct silt_error *e);
enum silt_api_code silt_api_code_of(const struct silt_error *e);
const char *silt_api_code_name(enum silt_api_code code);
/* True for requests below /v1. All other routes, and RPC calls, are compatible with the official
 * server. */
bool silt_api_is_native(const struct silt_http_request *r);
/* 400 with validationErrors. */
void silt_api_refuse_field(struct silt_http_request *r, const char *field, const char *why);
/* With separate codes for the envelope and for the field: INVALID_PATH, … */
void silt_api_refuse_value_as(struct silt_http_request *r, enum silt_api_code as, const char *field,
                              const char *why, const char *code);
/* The same with a code from the catalogue: INVALID_PATH, INVALID_BASE64… */
void silt_api_refuse_value(struct silt_http_request *r, const char *field, const char *why,
                           const char *code);
/* The same, where `why` is a full sentence that already names the field. */
void silt_api_refuse_value_saying(struct silt_http_request *r, const char *field, const char *why,
                                  const char *code);

void silt_api_answer(struct silt_http_request *r, int status, const struct silt_buf *b);
void silt_api_timestamp(struct silt_buf *b); /* "timestamp":"…" */
void silt_api_time(struct silt_buf *b, int64_t wall_ms);
