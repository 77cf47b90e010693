/* SPDX-License-Identifier: Apache-2.0 */
/* dockerfile: the text of a Dockerfile as stages and steps. Nothing is looked up or expanded here: a step keeps its words as
 * they stand, and silt_docker_expand makes of one what it means where it is used. Pure: bytes in, bounded structures out. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SILT_DOCKERFILE_MAX = 1 << 20,
    SILT_DOCKER_STEPS_MAX = 1024,
    SILT_DOCKER_STAGES_MAX = 128,
    SILT_DOCKER_WORDS_MAX = 1024, /* of one step */
    SILT_DOCKER_HEREDOCS_MAX = 16,
    SILT_DOCKER_FLAGS_MAX = 16,
    SILT_DOCKER_GLOB_MAX = 1024, /* of one --exclude */
    SILT_DOCKER_VALUE_MAX = 1 << 20, /* of one expanded word */
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
    bool expand; /* its name was not quoted */
};

struct silt_docker_step {
    enum silt_docker_op op;
    uint32_t line; /* from 1 */
    silt_slice text; /* the instruction with its arguments, for people */
    silt_slice rest; /* the arguments without flags; continued lines are one */
    bool json;       /* they are a JSON list of texts: `words` */
    silt_slice *words; /* else what blanks separate; of ARG: those outside of quotes */
    size_t word_count;
    struct silt_docker_flag *flags;
    size_t flag_count;
    struct silt_docker_heredoc *heredocs;
    size_t heredoc_count;
};

struct silt_docker_stage {
    size_t from;          /* its FROM */
    size_t first, end;    /* its steps behind that */
    silt_slice image;     /* as it stands there */
    silt_slice name;      /* behind AS, small letters; empty: none */
};

struct silt_dockerfile {
    struct silt_docker_step *steps; /* those before the first stage are ARG */
    size_t step_count;
    struct silt_docker_stage *stages;
    size_t stage_count;
    char escape;
};

/* SILT_INVALID with the line. All of it lies in the arena; `text` must outlive it. */
int silt_dockerfile_read(struct silt_arena *a, silt_slice text, struct silt_dockerfile *ret, struct silt_error *e);
const char *silt_docker_op_name(enum silt_docker_op op);
/* Its value, or a slice whose data is NULL. */
silt_slice silt_docker_flag(const struct silt_docker_step *s, silt_slice name);

/* Where variables are looked up; a miss is {NULL, 0}. */
struct silt_docker_scope {
    silt_slice (*find)(void *context, silt_slice name);
    void *context;
    char escape;
    uint64_t *steps; /* that patterns take are added; NULL: nobody counts */
};
/* A word as a shell sees it: quotes go, $name, ${name}, ${name:-word}, ${name#pattern} and the like are
 * replaced. */
int silt_docker_expand(struct silt_buf *b, silt_slice word, const struct silt_docker_scope *s, struct silt_error *e);
/* The same for a heredoc: quotes stay. */
int silt_docker_expand_text(struct silt_buf *b, silt_slice text, const struct silt_docker_scope *s, struct silt_error *e);

/* A word that ends at a blank outside of quotes. */
silt_slice silt_docker_cut(silt_slice *rest, char escape);

struct silt_docker_pair {
    silt_slice name, value; /* not expanded */
};
/* name=value …, or `name value` (ENV and LABEL); an array in the arena. */
int silt_docker_pairs(struct silt_arena *a, const struct silt_docker_step *s, char escape, struct silt_docker_pair **ret,
                      size_t *ret_count, struct silt_error *e);

enum silt_docker_mount_kind {
    SILT_DOCKER_BIND,
    SILT_DOCKER_CACHE,
    SILT_DOCKER_SECRET,
    SILT_DOCKER_SSH,
    SILT_DOCKER_TMPFS,
    SILT_DOCKER_MOUNT_MAX
};
struct silt_docker_mount { /* nothing is expanded; what is not given is empty */
    enum silt_docker_mount_kind kind;
    silt_slice source, target, from;
    bool required;
};
/* The value of RUN --mount. */
int silt_docker_mount_read(silt_slice text, struct silt_docker_mount *ret, struct silt_error *e);
/* A pattern of COPY --exclude as a regular expression (POSIX, extended, of bytes) for ./path, behind a `+`, or a `-` when it takes
 * back what one before it has left out. */
int silt_docker_exclude(struct silt_buf *b, silt_slice glob, struct silt_error *e);
