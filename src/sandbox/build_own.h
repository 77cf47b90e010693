/* SPDX-License-Identifier: Apache-2.0 */
/* build_own: what the files about builds share with each other and nobody else. Every part ends by calling b->next, later and
 * once, or by silt_build_fail. */
#pragma once

#include "sandbox/build.h"
#include "sandbox/exec.h"
#include "sandbox/network.h"
#include "sandbox/sweep.h"

#include <openssl/evp.h>

enum {
    SILT_BUILD_SOURCES_MAX = 16, /* sandboxes that files are copied from, beside the context */
    SILT_BUILD_ID_SIZE = 40,
    SILT_BUILD_WORDS_MAX = 64,
    SILT_BUILD_MOUNT_PARTS_MAX = SILT_DOCKER_FLAGS_MAX * 3,
};

typedef void silt_build_next(struct silt_build *b);

/* A sandbox of a build. */
struct silt_build_box {
    char id[SILT_BUILD_ID_SIZE]; /* empty: there is none */
    uint8_t digest[SILT_DIGEST_SIZE];
};

/* A command in one of them. */
struct silt_build_run {
    struct silt_build *build; /* borrowed */
    struct silt_exec_sink sink;
    struct silt_exec *exec; /* NULL: it does not run */
    bool to_pipe;           /* standard output goes to the other one's standard input */
    bool to_text;           /* … or to b->said; else to the client */
    bool input;             /* it has standard input */
    int code;               /* of its end */
};

/* Files of the context or of an image, and where they go in the stage. */
struct silt_build_files {
    bool of_image;                    /* else of the context */
    uint8_t digest[SILT_DIGEST_SIZE]; /* of the image, which may go meanwhile */
    silt_slice sources[SILT_BUILD_WORDS_MAX / 2];
    size_t count;
    silt_slice left[SILT_DOCKER_FLAGS_MAX]; /* what is left out: silt_docker_exclude */
    size_t left_count;
    silt_slice user, group; /* numbers; empty: their own */
    silt_slice mode;        /* empty: their own */
    const char *how;        /* copy; add: archives are unpacked; mount: names are no patterns; parents: folders stay */
    silt_slice dest;
    bool slash; /* dest is a folder */
    silt_slice kind, hash; /* what they are: F: one file; D: what goes into a folder */
    silt_build_next *then;
};

enum { SILT_BUILD_WAITING_MAX = 2 << 20 }; /* held back from a quarter of it on */

struct silt_build {
    struct silt_link link; /* in registry->builds until it is over */
    struct silt_registry *registry; /* borrowed */
    struct silt_build_sink *sink;   /* borrowed; NULL: aborted */
    bool over;
    struct silt_arena arena; /* what lives as long as the build */
    struct silt_build_options options; /* copied to the arena */
    bool arg_used[SILT_BUILD_ARGS_MAX];

    /* the context */
    struct silt_buf waiting; /* what the command that reads it has not taken */
    uint64_t received;
    bool ended;    /* no more comes */
    bool unpacked; /* what comes all the same is not looked at */

    /* sandboxes and what runs in them */
    char name[SILT_BUILD_ID_SIZE - 8]; /* of this build */
    uint32_t boxes;                    /* so far */
    struct silt_build_box context, work, sources[SILT_BUILD_SOURCES_MAX];
    struct silt_waiter waiter;
    struct silt_network_change turning; /* of a RUN --network */
    struct silt_build_run run, other; /* the second feeds the first */
    struct silt_sweep sweep;          /* of what a RUN has left */
    size_t uncredited;                /* output that a slow client has not read */
    size_t sending;                   /* of `waiting`, on their way to standard input */
    struct silt_buf said;             /* what a command has printed for us */
    struct silt_buf errors;           /* the end of what it has complained about */
    struct silt_seal *seal;
    silt_build_next *next;

    /* the Dockerfile and where we are in it */
    struct silt_dockerfile file;
    struct silt_image *images[SILT_DOCKER_STAGES_MAX]; /* of stages that are done: held */
    bool needed[SILT_DOCKER_STAGES_MAX];
    size_t target, stage, step; /* step: of the file */
    size_t number, total;       /* for people */
    struct silt_image *image;   /* what the stage has come to: held; its files are those of the last seal */
    struct silt_image_config config;
    bool cmd_given; /* by this stage */
    uint8_t key[SILT_DIGEST_SIZE];      /* of all that was done so far */
    uint8_t step_key[SILT_DIGEST_SIZE]; /* of the step under way */
    uint64_t looked;                    /* bytes of variables that were searched or copied */
    silt_slice args, globals;           /* NAME=value\0… that ARG has made known: in this stage, before the first */
    struct silt_build_files *files;     /* on their way */
    struct silt_build_mounts *mounts;   /* of a RUN under way; in the arena */
    struct silt_build_copy *copy;       /* of a COPY or ADD under way; in the arena */
    struct silt_timer turn; /* to the next step */
    struct silt_grave grave;
};

/* build.c */
void silt_build_fail(struct silt_build *b, const struct silt_error *e);
void silt_build_notice(struct silt_build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void silt_build_next_step(struct silt_build *b); /* the one under way is done */
char *silt_build_dup(struct silt_build *b, silt_slice s); /* NULL: it has failed */
/* Of a stage or by name; NULL: it has failed. *ret_mapped (may be NULL): it stands in for one that is not here. */
struct silt_image *silt_build_find_image(struct silt_build *b, silt_slice name, bool *ret_mapped);
const struct silt_docker_step *silt_build_step_of(const struct silt_build *b);
/* As silt_build_fail, with the line of the step. Always false. */
bool silt_build_fail_step(struct silt_build *b, struct silt_error *e);
bool silt_build_refuse(struct silt_build *b, const char *why);
/* The config in its one spelling, in the arena; NULL: it has failed. */
const char *silt_build_config_text(struct silt_build *b);

/* build_config.c: steps that change no files; true: done, false: failed. */
bool silt_build_configure(struct silt_build *b, const struct silt_docker_step *s);
/* A word with the variables of this place; in the arena. data NULL: failed. */
silt_slice silt_build_expand(struct silt_build *b, silt_slice word);
silt_slice silt_build_expand_heredoc(struct silt_build *b, const struct silt_docker_heredoc *h);
silt_slice silt_build_expand_global(struct silt_build *b, silt_slice word); /* for FROM */
bool silt_build_declare(struct silt_build *b, const struct silt_docker_step *s, bool global); /* ARG */
/* SANDBOX_VERSION, as the official image of this name has it: clients look at it. */
bool silt_build_take_version(struct silt_build *b, silt_slice name);
/* Labels that the caller wants: before the steps of the last stage, and after them. */
void silt_build_drop_sizes(struct silt_build *b);
bool silt_build_add_labels(struct silt_build *b);
bool silt_build_be_builtin(struct silt_build *b); /* port 3000 of its containers is served by us */
silt_slice silt_build_without_digest(silt_slice name); /* "name:tag@sha256:…": that is a registry's */
/* A path of the image, absolute, without . and ..; in the arena. */
silt_slice silt_build_path(struct silt_build *b, silt_slice path);

/* build_run.c: sandboxes, commands, seals. */
void silt_build_hash(struct silt_build *b, const char *what, const silt_slice *parts, size_t count); /* step_key from key */
bool silt_build_hit(struct silt_build *b); /* the step was done before: go on with its image */
void silt_build_need(struct silt_build *b, struct silt_build_box *box, const struct silt_image *image,
                     enum silt_net_mode network, silt_build_next *next);
enum silt_net_mode silt_build_network(const struct silt_build *b); /* of commands */
struct silt_build_command {
    struct silt_build_box *box;
    const silt_slice *argv;
    size_t argc;
    silt_slice env, cwd, user; /* user empty: root */
    bool input, to_pipe, to_text;
};
bool silt_build_execute(struct silt_build *b, struct silt_build_run *run, const struct silt_build_command *c);
void silt_build_feed_on(struct silt_build *b); /* the context or the other command has bytes, or room */
void silt_build_seal(struct silt_build *b);    /* then the next step */
void silt_build_leave_runs(struct silt_build *b);
void silt_build_drop(struct silt_build *b, struct silt_build_box *box);
void silt_build_run_step(struct silt_build *b, const struct silt_docker_step *s);
void silt_build_workdir(struct silt_build *b, const struct silt_docker_step *s);
void silt_build_say_failed(struct silt_build *b, const char *what, int code);

/* build_files.c; the files must outlive the step. Hashing fills in kind and hash. */
void silt_build_take_from(struct silt_build_files *f, const struct silt_image *image);
void silt_build_hash_files(struct silt_build *b, struct silt_build_files *f, silt_build_next *then);
void silt_build_move_files(struct silt_build *b, struct silt_build_files *f, silt_build_next *then);
size_t silt_build_script(silt_slice *argv, const char *text); /* for bash: how many words there are then */

/* build_mount.c: of a RUN. */
bool silt_build_read_mounts(struct silt_build *b, const struct silt_docker_step *s); /* false: failed */
void silt_build_hash_mounts(struct silt_build *b, silt_build_next *then);
size_t silt_build_mount_parts(const struct silt_build *b, silt_slice parts[SILT_BUILD_MOUNT_PARTS_MAX]); /* what they hold */
void silt_build_mount(struct silt_build *b, silt_build_next *then); /* in the sandbox of the stage */
void silt_build_unmount(struct silt_build *b, silt_build_next *then);

/* build_copy.c */
void silt_build_copy(struct silt_build *b, const struct silt_docker_step *s);
