/* SPDX-License-Identifier: Apache-2.0 */
/* dockerfile: parses a Dockerfile into stages and steps. Nothing is looked up or expanded here: a
 * step keeps its words as written, and silt_docker_expand evaluates a word where it is used. Pure:
 * bytes in, bounded structures out. Fails with SILT_INVALID and the line number. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SILT_DOCKERFILE_MAX = 1 << 20,
    SILT_DOCKER_STEPS_MAX = 1024,
    SILT_DOCKER_STAGES_MAX = 128,
    SILT_DOCKER_WORDS_MAX = 1024, /* per step */
    SILT_DOCKER_HEREDOCS_MAX = 16,
    SILT_DOCKER_FLAGS_MAX = 16,
    SILT_DOCKER_GLOB_MAX = 1024,     /* per --exclude */
    SILT_DOCKER_VALUE_MAX = 1 << 20, /* per expanded word */
};

enum silt_docker_op {
    SILT_DOCKER_ADD,
    SILT_DOCKER_ARG,
    SILT_DOCKER_CMD,
    SILT_DOCKER_COPY,
    SILT_DOCKER_ENTRYPOINT,
    SILT_DOCKER_ENV,
    SILT_DOCKER_EXPOSE,
    SILT_DOCKER_FROM,
    SILT_DOCKER_HEALTHCHECK,
    SILT_DOCKER_LABEL,
    SILT_DOCKER_MAINTAINER,
    SILT_DOCKER_ONBUILD,
    SILT_DOCKER_RUN,
    SILT_DOCKER_SHELL,
    SILT_DOCKER_STOPSIGNAL,
    SILT_DOCKER_USER,
    SILT_DOCKER_VOLUME,
    SILT_DOCKER_WORKDIR,
    SILT_DOCKER_OP_MAX
};

struct silt_docker_flag { /* --name=value */
    silt_slice name, value;
};

struct silt_docker_heredoc {
    silt_slice name, body;
    bool expand; /* the delimiter was not quoted */
};

struct silt_docker_step {
    enum silt_docker_op op;
    uint32_t line;     /* counted from 1 */
    silt_slice text;   /* the instruction with its arguments, for messages */
    silt_slice rest;   /* the arguments without flags; continuation lines are joined */
    bool json;         /* the arguments are a JSON array of strings, in `words` */
    silt_slice *words; /* otherwise split at blanks; for ARG, at blanks outside quotes */
    size_t word_count;
    struct silt_docker_flag *flags;
    size_t flag_count;
    struct silt_docker_heredoc *heredocs;
    size_t heredoc_count;
};

struct silt_docker_stage {
    size_t from;       /* index of its FROM step */
    size_t first, end; /* its other steps */
    silt_slice image;  /* as written */
    silt_slice name;   /* after AS, in lower case; empty: none */
};

struct silt_dockerfile {
    struct silt_docker_step *steps; /* steps before the first stage are ARG */
    size_t step_count;
    struct silt_docker_stage *stages;
    size_t stage_count;
    char escape;
};

/* SILT_INVALID names the line. The result lies in the arena; `text` must outlive it. */
int silt_dockerfile_read(struct silt_arena *a, silt_slice text, struct silt_dockerfile *ret,
                         struct silt_error *e);
const char *silt_docker_op_name(enum silt_docker_op op);
/* A flag's value; data is NULL if the flag is absent. */
silt_slice silt_docker_flag(const struct silt_docker_step *s, silt_slice name);

/* Looks up variables; {NULL, 0} if not set. */
struct silt_docker_scope {
    silt_slice (*find)(void *context, silt_slice name);
    void *context;
    char escape;
    uint64_t *steps; /* counts the steps of pattern matching; NULL: not counted */
};
/* Expands a word like a shell: removes quotes and replaces $name, ${name}, ${name:-word},
 * ${name#pattern} and the like. */
int silt_docker_expand(struct silt_buf *b, silt_slice word, const struct silt_docker_scope *s,
                       struct silt_error *e);
/* The same for a heredoc: quotes are kept. */
int silt_docker_expand_text(struct silt_buf *b, silt_slice text, const struct silt_docker_scope *s,
                            struct silt_error *e);

/* Takes a word off the front; it ends at a blank outside quotes. */
silt_slice silt_docker_cut(silt_slice *rest, char escape);

struct silt_docker_pair {
    silt_slice name, value; /* not expanded */
};
/* Reads name=value …, or `name value` (ENV and LABEL), into an array in the arena. */
int silt_docker_pairs(struct silt_arena *a, const struct silt_docker_step *s, char escape,
                      struct silt_docker_pair **ret, size_t *ret_count, struct silt_error *e);

enum silt_docker_mount_kind {
    SILT_DOCKER_BIND,
    SILT_DOCKER_CACHE,
    SILT_DOCKER_SECRET,
    SILT_DOCKER_SSH,
    SILT_DOCKER_TMPFS,
    SILT_DOCKER_MOUNT_MAX
};
struct silt_docker_mount { /* not expanded; absent options are empty */
    enum silt_docker_mount_kind kind;
    silt_slice source, target, from;
    bool required;
};
/* Reads the value of RUN --mount. */
int silt_docker_mount_read(silt_slice text, struct silt_docker_mount *ret, struct silt_error *e);
/* Translates a COPY --exclude pattern to a regular expression (POSIX extended, on bytes) that
 * matches ./path. A leading `+` excludes; a leading `-` includes again what an earlier pattern
 * excluded. */
int silt_docker_exclude(struct silt_buf *b, silt_slice glob, struct silt_error *e);
