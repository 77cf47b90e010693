/* SPDX-License-Identifier: Apache-2.0 */
/* build: makes an image from a Dockerfile. The context, an untrusted tar, is unpacked in a sandbox
 * of its own. Each stage runs its steps as commands in one sandbox; after a step that may change
 * files, the sandbox is sealed as an image and cached by everything the step depended on. Files
 * move between sandboxes as a tar that siltd forwards unparsed. The sandboxes are always removed.
 *
 *   RECEIVING --end of context--> READING --Dockerfile--> BUILDING --last step--> OVER
 *   any --failure, abort--> OVER */
#pragma once

#include "dockerfile/dockerfile.h"
#include "sandbox/core/image.h"

enum {
    SILT_BUILDS_MAX = 8,
    SILT_BUILD_NAMES_MAX = 16,
    SILT_BUILD_ARGS_MAX = 256,
    SILT_BUILD_LABELS_MAX = 64
};

struct silt_build;

struct silt_build_step {  /* when it starts */
    size_t number, total; /* from 1; FROM counts */
    silt_slice stage;     /* may be empty */
    silt_slice text;
    bool cached;
};

struct silt_build_sink {                        /* borrowed: must outlive the build, or abort it */
    void (*room)(struct silt_build_sink *sink); /* silt_build_feed may continue */
    void (*step)(struct silt_build_sink *sink, const struct silt_build_step *step);
    void (*output)(struct silt_build_sink *sink, silt_slice bytes);
    bool (*full)(struct silt_build_sink *sink); /* true: no more output until silt_build_resume */
    void (*notice)(struct silt_build_sink *sink, const char *text);
    /* Exactly one of these two is called, once, as the last callback. `step` is 0 before the
     * first. */
    void (*done)(struct silt_build_sink *sink, const struct silt_image *image);
    void (*failed)(struct silt_build_sink *sink, const struct silt_error *e, size_t step);
};

struct silt_build_options {                  /* copied by silt_build_start */
    silt_slice dockerfile;                   /* path in the context; empty: Dockerfile */
    silt_slice target;                       /* stage; empty: the last */
    const char *names[SILT_BUILD_NAMES_MAX]; /* canonical */
    size_t name_count;
    struct silt_docker_pair args[SILT_BUILD_ARGS_MAX];
    size_t arg_count;
    struct silt_docker_pair labels[SILT_BUILD_LABELS_MAX]; /* override those of the Dockerfile */
    size_t label_count;
    /* Labels silt.…, unless the Dockerfile sets them; empty: not set. */
    silt_slice type, max_instances;
    /* For commands; SILT_NET_DEFAULT: public if this machine has a network. */
    enum silt_net_mode network;
    bool no_cache;
};

int silt_build_start(struct silt_registry *r, const struct silt_build_options *o,
                     struct silt_build_sink *sink, struct silt_build **ret, struct silt_error *e);
/* Context data, accepted in any case. False: full, wait for room. */
bool silt_build_feed(struct silt_build *b, silt_slice bytes);
void silt_build_end(struct silt_build *b);    /* end of the context */
void silt_build_resume(struct silt_build *b); /* continues the output */
void silt_build_abort(struct silt_build *b);  /* detaches the sink */

/* For this room. */

/* Removes sandboxes of builds that a previous siltd did not finish. */
extern const struct silt_facet silt_build_facet;
