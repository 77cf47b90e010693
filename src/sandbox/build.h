/* SPDX-License-Identifier: Apache-2.0 */
/* build: an image from a Dockerfile. The context, a tar from a stranger, is unpacked in a sandbox of its own; each stage has
 * one sandbox in which its steps run as ordinary commands, and after every step that may have changed files what it has written is
 * sealed as an image and remembered by all that the step depended on. Files go from sandbox to sandbox as a tar through us, who
 * do not look into it. Whatever happens, the sandboxes go in the end.
 *
 *   RECEIVING --end of the context--> READING --Dockerfile--> BUILDING --last step--> OVER
 *   any --failure, nobody waits any more--> OVER                                              */
#pragma once

#include "dockerfile/dockerfile.h"
#include "sandbox/image.h"

enum { SILT_BUILDS_MAX = 8, SILT_BUILD_NAMES_MAX = 16, SILT_BUILD_ARGS_MAX = 256, SILT_BUILD_LABELS_MAX = 64 };

struct silt_build;

struct silt_build_step { /* as it begins */
    size_t number, total; /* from 1; FROM counts */
    silt_slice stage;     /* may be empty */
    silt_slice text;
    bool cached;
};

struct silt_build_sink { /* borrowed: must outlive the build, or abort it */
    void (*room)(struct silt_build_sink *sink); /* silt_build_feed may go on */
    void (*step)(struct silt_build_sink *sink, const struct silt_build_step *step);
    void (*output)(struct silt_build_sink *sink, silt_slice bytes);
    bool (*full)(struct silt_build_sink *sink); /* no more output before silt_build_resume */
    void (*notice)(struct silt_build_sink *sink, const char *text);
    /* Exactly one of these two, once, last. `step` is 0 before the first. */
    void (*done)(struct silt_build_sink *sink, const struct silt_image *image);
    void (*failed)(struct silt_build_sink *sink, const struct silt_error *e, size_t step);
};

struct silt_build_options { /* nothing is borrowed afterwards */
    silt_slice dockerfile; /* path in the context; empty: Dockerfile */
    silt_slice target;     /* stage; empty: the last */
    const char *names[SILT_BUILD_NAMES_MAX]; /* in their one spelling */
    size_t name_count;
    struct silt_docker_pair args[SILT_BUILD_ARGS_MAX];
    size_t arg_count;
    struct silt_docker_pair labels[SILT_BUILD_LABELS_MAX]; /* whatever the Dockerfile says */
    size_t label_count;
    silt_slice type, max_instances; /* labels silt.…, unless the Dockerfile has them; empty: not said */
    enum silt_net_mode network; /* of commands; SILT_NET_DEFAULT: public, where there is a network */
    bool no_cache;
};

int silt_build_start(struct silt_registry *r, const struct silt_build_options *o, struct silt_build_sink *sink,
                     struct silt_build **ret, struct silt_error *e);
/* Bytes of the context, taken in any case. False: full, wait for room. */
bool silt_build_feed(struct silt_build *b, silt_slice bytes);
void silt_build_end(struct silt_build *b);    /* no more of them */
void silt_build_resume(struct silt_build *b); /* output is read again */
void silt_build_abort(struct silt_build *b);  /* the sink goes */

/* For this room: sandboxes of builds that a former siltd did not finish. */
void silt_builds_sweep(struct silt_registry *r);
