/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_message: what a capnweb peer says, checked once. All of it is hostile. */
#pragma once

#include "json/json.h"

enum silt_rpc_kind {
    SILT_RPC_PUSH,
    SILT_RPC_PULL,
    SILT_RPC_RESOLVE,
    SILT_RPC_REJECT,
    SILT_RPC_RELEASE,
    SILT_RPC_STREAM,
    SILT_RPC_PIPE,
    SILT_RPC_ABORT,
};

struct silt_rpc_message {
    enum silt_rpc_kind kind;
    int64_t id;                    /* of pull, resolve, reject, release */
    int64_t count;                 /* of release */
    const struct silt_json *value; /* of push, resolve, reject, stream, abort */
};

/* False: no message; `e` tells why. */
bool silt_rpc_read(struct silt_arena *a, silt_slice text, struct silt_rpc_message *ret, struct silt_error *e);

/* A call of something of ours. */
struct silt_rpc_invocation {
    int64_t target;
    const struct silt_json *path; /* an array of strings and numbers, or NULL */
    const struct silt_json *args; /* an array, or NULL: a property */
};
bool silt_rpc_is_invocation(const struct silt_json *value, struct silt_rpc_invocation *ret);

/* What of the peer's own is mentioned in a value. */
enum { SILT_RPC_REFS_MAX = 64 };
struct silt_rpc_refs {
    size_t count, pipe_count;
    int64_t exports[SILT_RPC_REFS_MAX]; /* one for each time it is mentioned */
    int64_t pipes[SILT_RPC_REFS_MAX];
    bool foreign; /* something that is nowhere taken here: a promise of ours, a request, … */
};
/* False: not a value (an unknown tag), or more than SILT_RPC_REFS_MAX. */
bool silt_rpc_refs(const struct silt_json *value, struct silt_rpc_refs *ret);
/* Each argument is a value. */
bool silt_rpc_args_refs(const struct silt_json *args, struct silt_rpc_refs *ret);

bool silt_rpc_is_undefined(const struct silt_json *value); /* also when there is none */
bool silt_rpc_is_tag(const struct silt_json *value, const char *tag); /* ["tag", …] */
const struct silt_json *silt_rpc_item(const struct silt_json *array, size_t n); /* NULL: there is none */
/* A checked value as JSON: arrays without their frame, members that are undefined left out. */
void silt_rpc_plain(struct silt_buf *b, const struct silt_json *value);
