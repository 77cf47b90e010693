/* SPDX-License-Identifier: Apache-2.0 */
/* client: one HTTP/1.1 request at a time to the daemon, blocking; a connection for each. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "cli/progress.h"
#include "http/parse.h"
#include "json/json.h"

enum { SILT_CLIENT_TOKEN_SIZE = 513, SILT_CLIENT_ADDRESS_SIZE = 256 };

struct silt_client {
    char address[SILT_CLIENT_ADDRESS_SIZE]; /* host:port, or the path of a unix socket */
    char token[SILT_CLIENT_TOKEN_SIZE];     /* "": none was found */
    int timeout_ms;                         /* of silence; -1: none */
    int fd;                                 /* -1: no answer is being read */
    struct silt_buf in;                     /* what came and is not read yet */
    size_t used;                            /* of `in` */
    struct silt_http_head head;             /* of the answer; points into head_bytes */
    char head_bytes[SILT_HTTP_HEAD_MAX];
    struct silt_http_chunks chunks;
    uint64_t left; /* of a body with a length */
    char code[64]; /* of the last answer that was an error, as FILE_NOT_FOUND */
};

/* Where a body comes from when it is not in memory. */
struct silt_client_source {
    /* 1: *ret, valid until the next call; 0: that was all; -1: error, and the request is broken
     * off. */
    int (*next)(struct silt_client_source *s, silt_slice *ret, struct silt_error *e);
    int64_t length; /* -1: not known: sent in chunks */
};

struct silt_client_request {
    const char *method;
    const char *path;         /* with the query */
    const char *accept;       /* NULL: anything */
    const char *connection;   /* fields instead of `Connection: close`; NULL: that */
    const char *content_type; /* NULL: no body */
    silt_slice body;
    int file;                          /* -1, or the body is this file from where it stands */
    struct silt_client_source *source; /* NULL, or the body is this */
    struct silt_progress *progress;    /* of a file or source; may be NULL */
};

static inline struct silt_client_request silt_client_post(const char *path, silt_slice json)
{
    return (struct silt_client_request){
        .method = "POST", .path = path, .content_type = "application/json", .body = json, .file = -1};
}

/* NULL: found as a stranger would expect: environment, settings, the running instance's files. */
int silt_client_init(struct silt_client *c, const char *server, const char *token_file,
                     struct silt_error *e);
void silt_client_fini(struct silt_client *c);

/* Sends the request and reads the head of the answer into c->head. */
int silt_client_ask(struct silt_client *c, const struct silt_client_request *q,
                    struct silt_error *e);
/* The next piece of the body: 1: *ret, valid until the next call; 0: the end; -1: error. */
int silt_client_read(struct silt_client *c, silt_slice *ret, struct silt_error *e);
/* Reads the rest of the answer: JSON, in the arena. */
int silt_client_json(struct silt_client *c, struct silt_arena *a, const struct silt_json **ret,
                     struct silt_error *e);
/* ask and json; an answer that is not 2xx is an error with the daemon's sentence and suggestion. */
int silt_client_call(struct silt_client *c, const struct silt_client_request *q,
                     struct silt_arena *a, const struct silt_json **ret, struct silt_error *e);
/* The answer whose head is there is an error: reads it and tells it. Returns -1. */
int silt_client_fail(struct silt_client *c, struct silt_error *e);
