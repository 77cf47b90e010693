/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_method: what may be called, and which request of the wire API it is. There is one set of handlers: this is a table. */
#pragma once

#include "api/api.h"
#include "api/rpc_message.h"

enum silt_rpc_shape { /* what the answer becomes */
    SILT_RPC_PICK,       /* some of its members */
    SILT_RPC_ONE,        /* one of them */
    SILT_RPC_VOID,
    SILT_RPC_FLOW,       /* its body, as a stream */
    SILT_RPC_FLOW_READY, /* the same, when the first event is there, which may be a refusal */
    SILT_RPC_FLOW_LOGS,  /* the same without what only HTTP tells */
    SILT_RPC_FLOW_EXEC,  /* a refusal is an event, too */
    SILT_RPC_RAW,        /* the bytes of a file are a member of the answer */
    SILT_RPC_CODE,       /* each event calls a function of the caller's */
    SILT_RPC_FIXED,      /* nobody is asked: `fields` is the answer */
    SILT_RPC_NO_TUNNEL,  /* the same, a refusal: `fields` is its code */
};

struct silt_rpc_method {
    const char *domain, *name;
    const char *verb, *path; /* below the sandbox */
    /* Instead of a route, when arguments are no part of a URL. */
    void (*handler)(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX]);
    /* What each argument is, between spaces: a member of the body of this name; * an object whose members are the body's, or *a,b
     * only these of them; / an argument of the handler; < the stream that is the body; ! functions to be called. */
    const char *args;
    enum silt_rpc_shape shape;
    const char *fields; /* as for silt_rpc_pick */
};

/* NULL: there is none. */
const struct silt_rpc_method *silt_rpc_method_find(const struct silt_json *path, const struct silt_json *args);

enum { SILT_RPC_CALLBACKS = 4 }; /* onStdout, onStderr, onResult, onError */

/* A call as a request. */
struct silt_rpc_request {
    struct silt_buf head, body;
    silt_slice args[SILT_ROUTE_ARGS_MAX - 1]; /* for the handler; of the message */
    int64_t pipe;                             /* its body; 0: none */
    int64_t callbacks[SILT_RPC_CALLBACKS];    /* ids of exports; 0: none */
    int64_t number;                           /* bytes of `content` */
};

void silt_rpc_request_init(struct silt_rpc_request *q, size_t body_max);
void silt_rpc_request_fini(struct silt_rpc_request *q);
/* Of checked arguments. NULL, or what is wrong with them. */
const char *silt_rpc_request_lay(const struct silt_rpc_method *m, const struct silt_json *args, const char *sandbox,
                                 struct silt_rpc_request *ret);
