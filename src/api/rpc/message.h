/* SPDX-License-Identifier: Apache-2.0 */
/* message: parses and validates capnweb messages. Pure; the bytes are hostile. */
#pragma once

#include "json/json.h"

enum silt_rpc_kind {
    SILT_RPC_PUSH,
    SILT_RPC_PULL,
    SILT_RPC_RESOLVE,
    SILT_RPC_REJECT,
    SILT_RPC_RELEASE,
    SILT_RPC_STREAM,
    SILT_RPC_DOWNLOAD,
    SILT_RPC_ABORT,
};

struct silt_rpc_message {
    enum silt_rpc_kind kind;
    int64_t id;                    /* of pull, resolve, reject, release */
    int64_t count;                 /* of release */
    const struct silt_json *value; /* of push, resolve, reject, stream, abort */
};

/* False if it is not a message; `e` says why. */
bool silt_rpc_read(struct silt_arena *a, silt_slice text, struct silt_rpc_message *ret,
                   struct silt_error *e);

/* A call to one of our exports. */
struct silt_rpc_invocation {
    int64_t target;
    const struct silt_json *path; /* an array of strings and numbers, or NULL */
    const struct silt_json *args; /* an array; NULL: a property read */
};
bool silt_rpc_is_invocation(const struct silt_json *value, struct silt_rpc_invocation *ret);

/* The client's own exports mentioned in a value. */
enum { SILT_RPC_REFS_MAX = 64 };
struct silt_rpc_refs {
    size_t count, pipe_count;
    int64_t exports[SILT_RPC_REFS_MAX]; /* one entry per mention */
    int64_t pipes[SILT_RPC_REFS_MAX];
    bool foreign; /* contains something we never accept: a promise of ours, a request, … */
};
/* False if it is not a value (an unknown tag) or has more than SILT_RPC_REFS_MAX mentions. */
bool silt_rpc_refs(const struct silt_json *value, struct silt_rpc_refs *ret);
/* The same for every argument. */
bool silt_rpc_args_refs(const struct silt_json *args, struct silt_rpc_refs *ret);

bool silt_rpc_is_undefined(const struct silt_json *value);            /* also if `value` is NULL */
bool silt_rpc_is_tag(const struct silt_json *value, const char *tag); /* ["tag", …] */
const struct silt_json *silt_rpc_item(const struct silt_json *array,
                                      size_t n); /* NULL: there is none */
/* Writes a validated value as plain JSON: arrays lose their capnweb wrapping, undefined members are
 * left out. */
void silt_rpc_plain(struct silt_buf *b, const struct silt_json *value);
