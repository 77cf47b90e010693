/* SPDX-License-Identifier: Apache-2.0 */
/* internal: state and functions shared by the files of sandbox/build only. Every asynchronous part
 * finishes by calling b->next, later and once, or silt_build_fail. */
#pragma once

#include "sandbox/build/build.h"
#include "sandbox/core/exec.h"
#include "sandbox/network/network.h"
#include "sandbox/process/sweep.h"
#include "sandbox/image/seal.h"

#include <openssl/evp.h>

enum {
    SILT_BUILD_SOURCES_MAX = 16, /* sandboxes that files are copied from, besides the context */
    SILT_BUILD_ID_SIZE = 40,
    SILT_BUILD_WORDS_MAX = 64,
    SILT_BUILD_MOUNT_PARTS_MAX = SILT_DOCKER_FLAGS_MAX * 3,
};

typedef void silt_build_next(struct silt_build *b);

/* A sandbox of a build. */
struct silt_build_box {
    char id[SILT_BUILD_ID_SIZE]; /* empty: none */
    uint8_t digest[SILT_DIGEST_SIZE];
};

/* A command in one of them. */
struct silt_build_run {
    struct silt_build *build; /* borrowed */
    struct silt_exec_sink sink;
    struct silt_exec *exec; /* NULL: not running */
    bool to_pipe;           /* stdout goes to the stdin of the other command */
    bool to_text;           /* … or to b->said; otherwise to the client */
    bool input;             /* has stdin */
    int code;               /* exit code */
};

/* Files of the context or of an image, and their destination in the stage. */
struct silt_build_files {
    bool of_image;                    /* otherwise of the context */
    uint8_t digest[SILT_DIGEST_SIZE]; /* of the image, which may be removed meanwhile */
    silt_slice sources[SILT_BUILD_WORDS_MAX / 2];
    size_t count;
    silt_slice left[SILT_DOCKER_FLAGS_MAX]; /* exclusions: silt_docker_exclude */
    size_t left_count;
    silt_slice user, group; /* numeric; empty: unchanged */
    silt_slice mode;        /* empty: unchanged */
    /* copy; add: unpacks archives; mount: names are not patterns; parents: keeps directories. */
    const char *how;
    silt_slice dest;
    bool slash;            /* dest is a directory */
    silt_slice kind, hash; /* F: one file; D: the contents of a directory */
    silt_build_next *then;
};

enum { SILT_BUILD_WAITING_MAX = 2 << 20 }; /* the client is throttled from a quarter of it on */

struct silt_build {
    struct silt_link link;          /* in registry->builds until finished */
    struct silt_registry *registry; /* borrowed */
    struct silt_build_sink *sink;   /* borrowed; NULL: aborted */
    bool over;
    struct silt_arena arena;           /* lives as long as the build */
    struct silt_build_options options; /* copied to the arena */
    bool arg_used[SILT_BUILD_ARGS_MAX];

    /* the context */
    struct silt_buf waiting; /* not yet read by the command that unpacks it */
    uint64_t received;
    bool ended;    /* complete */
    bool unpacked; /* further data is ignored */

    /* sandboxes and their commands */
    char name[SILT_BUILD_ID_SIZE - 8]; /* of this build */
    uint32_t boxes;                    /* created so far */
    struct silt_build_box context, work, sources[SILT_BUILD_SOURCES_MAX];
    struct silt_waiter waiter;
    struct silt_network_change turning; /* for RUN --network */
    struct silt_build_run run, other;   /* the second feeds the first */
    struct silt_sweep sweep;            /* of processes a RUN left behind */
    size_t uncredited;                  /* output a slow client has not read */
    size_t sending;                     /* bytes of `waiting` in flight to stdin */
    struct silt_buf said;               /* stdout of a command for siltd itself */
    struct silt_buf errors;             /* tail of its stderr */
    struct silt_seal *seal;
    silt_build_next *next;

    /* the Dockerfile and the position in it */
    struct silt_dockerfile file;
    struct silt_image *images[SILT_DOCKER_STAGES_MAX]; /* of finished stages: held */
    bool needed[SILT_DOCKER_STAGES_MAX];
    size_t target, stage, step; /* step: index in the file */
    size_t number, total;       /* as shown to the client */
    /* Present image of the stage: held. Its files are those of the last seal. */
    struct silt_image *image;
    struct silt_image_config config;
    bool cmd_given;                     /* by this stage */
    uint8_t key[SILT_DIGEST_SIZE];      /* of everything done so far */
    uint8_t step_key[SILT_DIGEST_SIZE]; /* of the current step */
    uint64_t looked; /* bytes of variables searched or copied, which are limited */
    /* NAME=value\0… set by ARG: in this stage, before the first stage. */
    silt_slice args, globals;
    struct silt_build_files *files;   /* being copied */
    struct silt_build_mounts *mounts; /* of the current RUN; in the arena */
    struct silt_build_copy *copy;     /* of the current COPY or ADD; in the arena */
    struct silt_timer turn;           /* starts the next step */
    struct silt_grave grave;
};

/* build.c */
void silt_build_fail(struct silt_build *b, const struct silt_error *e);
void silt_build_notice(struct silt_build *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void silt_build_next_step(struct silt_build *b);          /* the current step is done */
char *silt_build_dup(struct silt_build *b, silt_slice s); /* NULL: the build has failed */
/* By stage or name; NULL: the build has failed. *ret_mapped (may be NULL): it substitutes an image
 * that is not here. */
struct silt_image *silt_build_find_image(struct silt_build *b, silt_slice name, bool *ret_mapped);
const struct silt_docker_step *silt_build_step_of(const struct silt_build *b);
/* As silt_build_fail, with the step's line. Always returns false. */
bool silt_build_fail_step(struct silt_build *b, struct silt_error *e);
bool silt_build_refuse(struct silt_build *b, const char *why);
/* The canonical config, in the arena; NULL: the build has failed. */
const char *silt_build_config_text(struct silt_build *b);

/* config.c: steps that change no files. True: done, false: failed. */
bool silt_build_configure(struct silt_build *b, const struct silt_docker_step *s);
/* Expands the variables in a word; in the arena. data NULL: failed. */
silt_slice silt_build_expand(struct silt_build *b, silt_slice word);
silt_slice silt_build_expand_heredoc(struct silt_build *b, const struct silt_docker_heredoc *h);
silt_slice silt_build_expand_global(struct silt_build *b, silt_slice word); /* for FROM */
bool silt_build_declare(struct silt_build *b, const struct silt_docker_step *s,
                        bool global); /* ARG */
/* Sets SANDBOX_VERSION as the official image of this name does, because clients read it. */
bool silt_build_take_version(struct silt_build *b, silt_slice name);
/* The caller's labels: before the steps of the last stage, and after them. */
void silt_build_drop_sizes(struct silt_build *b);
bool silt_build_add_labels(struct silt_build *b);
/* siltd itself serves port 3000 of its containers. */
bool silt_build_be_builtin(struct silt_build *b);
/* "name:tag@sha256:…" without the digest, which is the registry's. */
silt_slice silt_build_without_digest(silt_slice name);
/* An absolute path in the image without . and ..; in the arena. */
silt_slice silt_build_path(struct silt_build *b, silt_slice path);

/* run.c: sandboxes, commands, seals. */
/* Computes step_key from key. */
void silt_build_hash(struct silt_build *b, const char *what, const silt_slice *parts, size_t count);
bool silt_build_hit(struct silt_build *b); /* cache hit: continue with its image */
void silt_build_need(struct silt_build *b, struct silt_build_box *box,
                     const struct silt_image *image, enum silt_net_mode network,
                     silt_build_next *next);
enum silt_net_mode silt_build_network(const struct silt_build *b); /* for commands */
struct silt_build_command {
    struct silt_build_box *box;
    const silt_slice *argv;
    size_t argc;
    silt_slice env, cwd, user; /* user empty: root */
    bool input, to_pipe, to_text;
};
bool silt_build_execute(struct silt_build *b, struct silt_build_run *run,
                        const struct silt_build_command *c);
/* The context or the other command has data, or room. */
void silt_build_feed_on(struct silt_build *b);
void silt_build_seal(struct silt_build *b); /* then starts the next step */
void silt_build_leave_runs(struct silt_build *b);
void silt_build_drop(struct silt_build *b, struct silt_build_box *box);
void silt_build_run_step(struct silt_build *b, const struct silt_docker_step *s);
void silt_build_workdir(struct silt_build *b, const struct silt_docker_step *s);
void silt_build_say_failed(struct silt_build *b, const char *what, int code);

/* files.c; the files must outlive the step. Hashing sets kind and hash. */
void silt_build_take_from(struct silt_build_files *f, const struct silt_image *image);
void silt_build_hash_files(struct silt_build *b, struct silt_build_files *f, silt_build_next *then);
void silt_build_move_files(struct silt_build *b, struct silt_build_files *f, silt_build_next *then);
/* Fills argv to run the text with bash; returns the number of words. */
size_t silt_build_script(silt_slice *argv, const char *text);

/* mount.c: mounts of a RUN. */
/* False: failed. */
bool silt_build_read_mounts(struct silt_build *b, const struct silt_docker_step *s);
void silt_build_hash_mounts(struct silt_build *b, silt_build_next *then);
/* Their contents, for the step's key. */
size_t silt_build_mount_parts(const struct silt_build *b,
                              silt_slice parts[SILT_BUILD_MOUNT_PARTS_MAX]);
/* In the stage's sandbox. */
void silt_build_mount(struct silt_build *b, silt_build_next *then);
void silt_build_unmount(struct silt_build *b, silt_build_next *then);

/* copy.c */
void silt_build_copy(struct silt_build *b, const struct silt_docker_step *s);
