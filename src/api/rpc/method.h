/* SPDX-License-Identifier: Apache-2.0 */
/* method: the table of callable RPC methods and the wire API request that each one maps to, so RPC
 * and HTTP share one set of handlers. Runs in siltd. */
#pragma once

#include "api/core/api.h"
#include "api/rpc/message.h"

enum silt_rpc_shape {                /* how the HTTP response becomes the RPC result */
                      SILT_RPC_PICK, /* some of its members */
                      SILT_RPC_ONE,  /* one of its members */
                      SILT_RPC_VOID,
                      SILT_RPC_FLOW,       /* its body, as a stream */
                      SILT_RPC_FLOW_READY, /* the same, resolved at the first event, which may be an
                                              error */
                      SILT_RPC_FLOW_LOGS,  /* the same, without fields that only HTTP clients get */
                      SILT_RPC_FLOW_EXEC,  /* the same; an error is an event, too */
                      SILT_RPC_RAW,        /* the file's bytes become a member of the result */
                      SILT_RPC_CODE,       /* each event calls one of the client's functions */
                      SILT_RPC_FIXED,      /* no request is made: `fields` is the result */
                      SILT_RPC_NO_TUNNEL,  /* no request is made: an error whose code is `fields` */
};

struct silt_rpc_method {
    const char *domain, *name;
    const char *verb, *path; /* relative to the sandbox */
    /* Replaces the route where arguments do not fit in a URL. */
    void (*handler)(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX]);
    /* The meaning of each argument, separated by spaces: a name: the body member of that name; * :
     * an object whose members become the body's, or *a,b only those; / : an argument of the
     * handler; < : the stream that is the body; ! : functions to call. */
    const char *args;
    enum silt_rpc_shape shape;
    const char *fields; /* syntax as for silt_rpc_pick */
};

/* NULL: no such method. */
const struct silt_rpc_method *silt_rpc_method_find(const struct silt_json *path,
                                                   const struct silt_json *args);

enum { SILT_RPC_CALLBACKS = 4 }; /* onStdout, onStderr, onResult, onError */

/* A call translated to an HTTP request. */
struct silt_rpc_request {
    struct silt_buf head, body;
    silt_slice args[SILT_ROUTE_ARGS_MAX - 1]; /* for the handler; slices of the message */
    int64_t pipe;                             /* id of the stream that is its body; 0: none */
    int64_t callbacks[SILT_RPC_CALLBACKS];    /* export ids; 0: none */
    int64_t number;                           /* size of `content` in bytes */
};

void silt_rpc_request_init(struct silt_rpc_request *q, size_t body_max);
void silt_rpc_request_fini(struct silt_rpc_request *q);
/* The arguments are validated. NULL, or why they do not fit the method. */
const char *silt_rpc_request_lay(const struct silt_rpc_method *m, const struct silt_json *args,
                                 const char *sandbox, struct silt_rpc_request *ret);
