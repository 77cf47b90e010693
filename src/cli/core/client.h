/* SPDX-License-Identifier: Apache-2.0 */
/* client: a blocking HTTP/1.1 client of the daemon, one request at a time and one connection per
 * request. Any call can fail with a timeout or, where Ctrl-C is caught, with SILT_INTERRUPTED. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "cli/core/progress.h"
#include "http/parse.h"
#include "json/json.h"

#include <limits.h>
#include <sys/types.h>

enum { SILT_CLIENT_TOKEN_SIZE = 513, SILT_CLIENT_ADDRESS_SIZE = 256 };

struct silt_client {
    char address[SILT_CLIENT_ADDRESS_SIZE]; /* host:port, or the path of a unix socket */
    bool https;
    char authorities[PATH_MAX];         /* of https, a PEM file; "": those of the machine */
    pid_t relay;                        /* of the connection's TLS; 0: none */
    char token[SILT_CLIENT_TOKEN_SIZE]; /* "": none */
    int timeout_ms;                     /* without any data; -1: none */
    int fd;                             /* -1: no response is being read */
    struct silt_buf in;                 /* received bytes that are not read yet */
    size_t used;                        /* bytes of `in` that are read */
    struct silt_http_head head;         /* of the response; points into head_bytes */
    char head_bytes[SILT_HTTP_HEAD_MAX];
    struct silt_http_chunks chunks;
    uint64_t left; /* of a body with a length: bytes to come */
    char code[64]; /* of the last error response, e.g. FILE_NOT_FOUND */
};

/* A request body that is not in memory. */
struct silt_client_source {
    /* 1: *ret, valid until the next call; 0: the end; -1: error, and the request is aborted. */
    int (*next)(struct silt_client_source *s, silt_slice *ret, struct silt_error *e);
    int64_t length; /* -1: unknown, sent chunked */
};

struct silt_client_request {
    const char *method;
    const char *path;         /* including the query */
    const char *accept;       /* NULL: anything */
    const char *connection;   /* header fields to send instead of `Connection: close`, or NULL */
    const char *content_type; /* NULL: no body */
    silt_slice body;
    int file;                          /* -1, or a file to send from its current offset */
    struct silt_client_source *source; /* NULL, or the source of the body */
    struct silt_progress *progress;    /* of a file or source; may be NULL */
};

static inline struct silt_client_request silt_client_post(const char *path, silt_slice json)
{
    return (struct silt_client_request){.method = "POST",
                                        .path = path,
                                        .content_type = "application/json",
                                        .body = json,
                                        .file = -1};
}

/* NULL: taken from the environment, the settings or the files of the running instance. */
int silt_client_init(struct silt_client *c, const char *server, const char *token_file,
                     struct silt_error *e);
struct silt_context;
int silt_client_init_at(struct silt_client *c, const struct silt_context *at, struct silt_error *e);
void silt_client_fini(struct silt_client *c);

/* Sends the request and reads the head of the response into c->head. */
int silt_client_ask(struct silt_client *c, const struct silt_client_request *q,
                    struct silt_error *e);
/* The next piece of the body: 1: *ret, valid until the next call; 0: the end; -1: error. */
int silt_client_read(struct silt_client *c, silt_slice *ret, struct silt_error *e);
/* Reads the body of the response as JSON into the arena. */
int silt_client_json(struct silt_client *c, struct silt_arena *a, const struct silt_json **ret,
                     struct silt_error *e);
/* silt_client_ask and silt_client_json. A response other than 2xx is an error with the daemon's
 * message and suggestion. */
int silt_client_call(struct silt_client *c, const struct silt_client_request *q,
                     struct silt_arena *a, const struct silt_json **ret, struct silt_error *e);
/* Turns an error response, whose head was read, into `e`. Returns -1. */
int silt_client_fail(struct silt_client *c, struct silt_error *e);
