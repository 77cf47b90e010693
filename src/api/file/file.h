/* SPDX-License-Identifier: Apache-2.0 */
/* file: one file request on a sandbox, from its body to the response of a worker process inside the
 * sandbox. Runs in siltd and lives in the request's arena; a route's own state has a struct
 * silt_file as its first member. Worker errors are answered from the catalogue (error.c). */
#pragma once

#include "api/core/api.h"
#include "api/file/item.h"
#include "sandbox/core/session.h"
#include "sandbox/file/worker_pool.h"

struct silt_file;

enum { SILT_FILE_TEXT_MAX = 40 << 10 }; /* responses that hold little more than paths */

/* A route's properties and callbacks. */
struct silt_file_kind {
    uint32_t op;                        /* enum silt_worker_op */
    const char *operation;              /* in errors: "file.read" */
    const char *path_field, *to_field;  /* names of body members; NULL: none */
    bool is_native;                     /* below /v1: no session; finer error codes */
    bool is_paced;                      /* no timeout: the client sets the pace */
    bool is_in_band;                    /* an invalid path is also reported through `failed` */
    size_t size;                        /* of the route's own state; 0: only a struct silt_file */
    bool (*parse)(struct silt_file *f); /* false: already answered with an error; NULL: no more */
    void (*said)(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last);
    void (*failed)(struct silt_file *f, const struct silt_error *e); /* NULL: silt_file_refuse */
    void (*room)(struct silt_file *f);
    void (*drained)(struct silt_file *f); /* NULL: keep going */
    void (*ended)(struct silt_file *f);   /* the request is ending; NULL: nothing to release */
    void (*dead)(struct silt_file *f,
                 struct silt_session *s); /* the session's shell has died; NULL: answers 410 */
    /* Errno codes reported differently by this route; checked before the common table. */
    struct {
        int sys;
        enum silt_api_code code;
    } codes[4];
    void (*context)(const struct silt_file *f, struct silt_buf *b,
                    const struct silt_error *e); /* NULL: the default context, path and operation */
};

struct silt_file {
    const struct silt_file_kind *kind;
    struct silt_call *call;
    struct silt_http_request *request;
    silt_slice path, to; /* as given in the request */
    silt_slice session_name;
    struct silt_work_request ask;
    struct silt_work_sink sink;
    struct silt_turn turn;
    struct silt_session *session; /* whose turn we hold or wait for; NULL: none */
    struct silt_work *work;       /* NULL: not started, or finished */
    bool holds;                   /* holds a reference to the sandbox */
};

/* In a handler: takes the request to the worker's answer. If the kind has a path_field, the paths
 * and the session are members of the JSON body; otherwise its parse reads the path. */
void silt_file_begin(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX],
                     const struct silt_file_kind *kind);
/* Sets path and session of a request without a JSON body; an absent session means `default`. False:
 * already answered with an error. */
bool silt_file_place(struct silt_file *f, silt_slice path, silt_slice session);
/* NULL, or why the path is invalid. */
const char *silt_file_check_path(silt_slice path);
/* Releases everything but the HTTP request, which the caller must answer at once. */
struct silt_http_request *silt_file_end(struct silt_file *f);
/* Gives up the session's turn; other requests may run. */
void silt_file_leave_turn(struct silt_file *f);
/* For a streamed response: pauses the worker while the client does not read, and gives up the
 * session's turn. */
void silt_file_mind_client(struct silt_file *f);

/* Begins {"success":true,"path":…; the caller may add members; silt_file_finish closes and sends
 * it. */
void silt_file_answer(struct silt_file *f, struct silt_buf *b);
void silt_file_finish(struct silt_file *f, struct silt_buf *b);

/* Checks that the worker's message has the expected size; false: already answered with an error. */
bool silt_file_has(struct silt_file *f, silt_slice body, size_t size);

/* error.c: answers with the catalogued error and ends the file request. */
void silt_file_refuse(struct silt_file *f, const struct silt_error *e);
void silt_file_refuse_code(struct silt_file *f, enum silt_api_code code,
                           const struct silt_error *e);
void silt_file_refuse_with(struct silt_file *f, enum silt_api_code code, silt_slice context,
                           silt_slice message);
enum silt_api_code silt_file_code(const struct silt_file *f, const struct silt_error *e);
void silt_file_message(const struct silt_file *f, enum silt_api_code code,
                       const struct silt_error *e, struct silt_buf *b);
void silt_file_refuse_dead(struct silt_file *f, struct silt_session *s);

/* meta.c: formats file metadata. The worker's bytes are validated here. */
enum { SILT_FILE_MODE_SIZE = 10, SILT_FILE_TIME_SIZE = 40 };
/* Reads META as silt_file_meta_of does; false: already answered with an error. */
bool silt_file_meta(struct silt_file *f, silt_slice body, struct silt_worker_meta *ret,
                    silt_slice *ret_rest);
bool silt_mime_is_text(silt_slice mime);
const char *silt_file_type(uint32_t type);
void silt_file_mode(uint32_t mode, char out[SILT_FILE_MODE_SIZE]); /* rw-r--r-- */
void silt_file_time(int64_t ns,
                    char out[SILT_FILE_TIME_SIZE]); /* 2024-05-06T07:08:09.123456789, UTC */
