/* SPDX-License-Identifier: Apache-2.0 */
/* container_spec: what a container of the engine socket is created with: the body of `POST /containers/create`, read once
 * into bounded values. What would give it something of the machine (host paths, host namespaces, rights, devices) is refused here. */
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
    bool given; /* an empty list is not the same as none */
};

struct silt_container_mount {
    silt_slice volume;
    silt_slice target; /* absolute, without `.`, `..`, empty parts and a slash at the end */
    bool read_only;
};

enum silt_container_kind {
    SILT_CONTAINER_APP,     /* a sandbox */
    SILT_CONTAINER_SIDECAR, /* the way in and out of one: no process at all */
    SILT_CONTAINER_COPY,    /* a copy of one volume to another one */
};

struct silt_container_spec {
    enum silt_container_kind kind;
    silt_slice image; /* as it was said */
    struct silt_words cmd, entrypoint;
    silt_slice env; /* NAME=value\0…, the last of a name wins */
    const struct silt_json *labels; /* an object of strings, or NULL */
    silt_slice workdir, user;
    silt_slice sidecar;   /* whose network it is in; empty: none */
    uint16_t egress_port; /* SIDECAR: where it begins; 0: not said */
    struct silt_container_mount *mounts; /* parents before what is below them */
    size_t mount_count;
    silt_slice copy_from, copy_to; /* COPY: volumes */
    uint32_t stop_timeout_s;
    bool auto_remove; /* as soon as it has ended */
};

/* Slices are of the arena or of `body`, which must outlive them. SILT_INVALID says what is wrong, SILT_DENIED what is refused. */
int silt_container_spec_read(struct silt_arena *a, silt_slice body, struct silt_container_spec *ret,
                             struct silt_error *e);
/* The members that an exec has, too: Cmd, Env, WorkingDir, User. */
int silt_container_spec_read_command(struct silt_arena *a, const struct silt_json *o, struct silt_container_spec *ret,
                                     struct silt_error *e);
/* [a-zA-Z0-9][a-zA-Z0-9_.-]* */
bool silt_volume_name_is_good(silt_slice name);
/* %XX undone, in the arena; the text itself where that makes no sense. */
silt_slice silt_percent_decode(struct silt_arena *a, silt_slice text);
