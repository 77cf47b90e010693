/* SPDX-License-Identifier: Apache-2.0 */
/* file: one request on the files of a sandbox, from its body to the answer of a worker inside. It lives in
 * the request's arena; the first member of what a route keeps is a struct silt_file. */
#pragma once

#include "api/api.h"
#include "api/file_item.h"
#include "sandbox/session.h"
#include "sandbox/work.h"

struct silt_file;

enum { SILT_FILE_TEXT_MAX = 40 << 10 }; /* answers that hold paths and little else */

/* What a route is. */
struct silt_file_kind {
    uint32_t op; /* enum silt_worker_op */
    const char *operation;               /* in errors: "file.read" */
    const char *path_field, *to_field;   /* of the body; NULL: none */
    bool is_native;                      /* no session; finer codes */
    bool is_paced;                       /* lasts as long as the client likes */
    bool is_in_band;                     /* a bad path is told by `failed` too */
    void (*said)(struct silt_file *f, enum silt_worker_say type, silt_slice body, bool last);
    void (*failed)(struct silt_file *f, const struct silt_error *e); /* NULL: silt_file_refuse */
    void (*room)(struct silt_file *f);
    void (*drained)(struct silt_file *f); /* NULL: the work goes on */
    void (*ended)(struct silt_file *f);   /* the request goes: NULL: nothing is to be let go */
    void (*dead)(struct silt_file *f, struct silt_session *s); /* NULL: 410 */
    /* What this route's callers hear of an errno, before the table of all. */
    struct {
        int sys;
        enum silt_api_code code;
    } codes[4];
    void (*context)(const struct silt_file *f, struct silt_buf *b, const struct silt_error *e); /* NULL: path, operation */
};

struct silt_file {
    const struct silt_file_kind *kind;
    struct silt_call *call;
    struct silt_http_request *request;
    silt_slice path, to; /* as in the request */
    silt_slice session_name;
    struct silt_work_request ask;
    struct silt_work_sink sink;
    struct silt_turn turn;
    struct silt_session *session; /* whose turn we have or wait for; NULL: none */
    struct silt_work *work;       /* NULL: not begun, or over */
    bool holds;                   /* the sandbox */
};

/* `parsed` is called with the JSON body. */
void silt_file_read_body(struct silt_http_request *r, silt_slice id, void (*parsed)(struct silt_call *c));
/* Reads paths and session; `size` bytes, cleared. NULL: refused already. */
void *silt_file_new(struct silt_call *c, const struct silt_file_kind *kind, size_t size);
/* The same for a request without a JSON body: an absent session is `default`. False: refused already. */
bool silt_file_place(struct silt_file *f, silt_slice path, silt_slice session);
/* NULL, or what is wrong with a path. */
const char *silt_file_check_path(silt_slice path);
/* Has the sandbox and the session's turn, then sends the ask. */
void silt_file_go(struct silt_file *f);
/* Lets go of everything but the request, which the caller answers right away. */
struct silt_http_request *silt_file_end(struct silt_file *f);
/* The session is free for others from here on. */
void silt_file_leave_turn(struct silt_file *f);
/* A streamed answer: holds the worker back while the client does not read, and the session no longer. */
void silt_file_mind_client(struct silt_file *f);

/* {"success":true,"path":… is begun; the caller may add fields; silt_file_finish ends and sends it. */
void silt_file_answer(struct silt_file *f, struct silt_buf *b);
void silt_file_finish(struct silt_file *f, struct silt_buf *b);

/* What a worker says has the size that it must have; false: answered already. */
bool silt_file_has(struct silt_file *f, silt_slice body, size_t size);

/* file_error.c: answers with the catalogued error; the file is over. */
void silt_file_refuse(struct silt_file *f, const struct silt_error *e);
void silt_file_refuse_code(struct silt_file *f, enum silt_api_code code, const struct silt_error *e);
void silt_file_refuse_with(struct silt_file *f, enum silt_api_code code, silt_slice context, silt_slice message);
enum silt_api_code silt_file_code(const struct silt_file *f, const struct silt_error *e);
void silt_file_message(const struct silt_file *f, enum silt_api_code code, const struct silt_error *e,
                       struct silt_buf *b);
void silt_file_refuse_dead(struct silt_file *f, struct silt_session *s);

/* file_meta.c: how a file is told. What comes from a worker is checked here. */
enum { SILT_FILE_MODE_SIZE = 10, SILT_FILE_TIME_SIZE = 40 };
/* META, as silt_file_meta_of; false: answered already. */
bool silt_file_meta(struct silt_file *f, silt_slice body, struct silt_worker_meta *ret, silt_slice *ret_rest);
bool silt_mime_is_text(silt_slice mime);
const char *silt_file_type(uint32_t type);
void silt_file_mode(uint32_t mode, char out[SILT_FILE_MODE_SIZE]); /* rw-r--r-- */
void silt_file_time(int64_t ns, char out[SILT_FILE_TIME_SIZE]);    /* 2024-05-06T07:08:09.123456789, UTC */
