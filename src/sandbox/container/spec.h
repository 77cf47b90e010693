/* SPDX-License-Identifier: Apache-2.0 */
/* spec: the body of `POST /containers/create`, parsed once into bounded values. Anything that would
 * expose the host (host paths, host namespaces, privileges, devices) is refused here. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>

struct silt_json;

enum {
    SILT_CONTAINER_BODY_MAX = 1 << 20,
    SILT_CONTAINER_WORDS_MAX = 4096,
    SILT_CONTAINER_MOUNTS_MAX = 64,
    SILT_VOLUME_NAME_MAX = 255,
};

struct silt_words {
    silt_slice *items;
    size_t count;
    bool given; /* an empty list differs from a missing one */
};

struct silt_container_mount {
    silt_slice volume;
    silt_slice target; /* absolute, without `.`, `..`, empty components or a trailing slash */
    bool read_only;
};

enum silt_container_kind {
    SILT_CONTAINER_APP,     /* a sandbox */
    SILT_CONTAINER_SIDECAR, /* the way in and out of one: no process of its own */
    SILT_CONTAINER_COPY,    /* copies one volume to another */
};

struct silt_container_spec {
    enum silt_container_kind kind;
    silt_slice image; /* as given */
    struct silt_words cmd, entrypoint;
    silt_slice env;                 /* NAME=value\0…; the last of a name wins */
    const struct silt_json *labels; /* an object of strings, or NULL */
    silt_slice workdir, user;
    silt_slice sidecar;                  /* whose network it joins; empty: none */
    uint16_t egress_port;                /* SIDECAR: initial egress port; 0: not given */
    struct silt_container_mount *mounts; /* parents before children */
    size_t mount_count;
    silt_slice copy_from, copy_to; /* COPY: volumes */
    uint32_t stop_timeout_s;
    bool auto_remove; /* as soon as it has ended */
};

/* Slices point into the arena or `body`, which must outlive them. The text of SILT_INVALID says
 * what is wrong, that of SILT_DENIED what is refused. */
int silt_container_spec_read(struct silt_arena *a, silt_slice body, struct silt_container_spec *ret,
                             struct silt_error *e);
/* The members an exec has as well: Cmd, Env, WorkingDir, User. */
int silt_container_spec_read_command(struct silt_arena *a, const struct silt_json *o,
                                     struct silt_container_spec *ret, struct silt_error *e);
/* [a-zA-Z0-9][a-zA-Z0-9_.-]* */
bool silt_volume_name_is_good(silt_slice name);
/* Undoes %XX, in the arena; returns the text itself if it is malformed. */
silt_slice silt_percent_decode(struct silt_arena *a, silt_slice text);
