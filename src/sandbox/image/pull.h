/* SPDX-License-Identifier: Apache-2.0 */
/* pull: fetches an image from a registry. The machine's own skopeo runs in a sandbox made for this
 * pull: an empty root with the machine's /usr, an unprivileged user, the public network, and limits
 * on memory, processes and disk. The OCI layout it writes is packed there and imported like any
 * untrusted archive. The sandbox is always removed.
 *
 *   PREPARING --image ready--> STARTING --running--> FETCHING --skopeo done--> IMPORTING --> OVER
 *   any --failure, abort--> OVER */
#pragma once

#include "sandbox/core/image.h"

enum { SILT_PULLS_MAX = 4, SILT_PULL_USER_MAX = 256, SILT_PULL_PASSWORD_MAX = 16 << 10 };

/* A parsed reference such as `registry.example.com/team/app:1` or `alpine@sha256:…`. */
struct silt_pull_source {
    char address[SILT_REFERENCE_SIZE + 72]; /* for skopeo, without docker:// */
    char registry[SILT_REFERENCE_SIZE];     /* host and port; docker.io by default */
    /* Default name of the image, without the digest. */
    char name[SILT_IMAGE_NAME_SIZE];
};
int silt_pull_read(silt_slice text, struct silt_pull_source *ret, struct silt_error *e);
/* True if the reference names its registry. */
bool silt_pull_names_registry(const struct silt_pull_source *s);

struct silt_pull;
struct silt_pull_sink { /* borrowed: must outlive the pull, or abort it */
    void (*output)(struct silt_pull_sink *sink, silt_slice bytes); /* of skopeo: untrusted */
    bool (*full)(struct silt_pull_sink *sink);    /* true: no more output until silt_pull_resume */
    void (*fetched)(struct silt_pull_sink *sink); /* everything is downloaded; unpacking starts */
    /* Exactly one of these two is called, once, as the last callback. */
    void (*done)(struct silt_pull_sink *sink, const struct silt_image *image, const char *name);
    void (*failed)(struct silt_pull_sink *sink, const struct silt_error *e);
};
struct silt_pull_options { /* copied by silt_pull_start */
    const struct silt_pull_source *source;
    const char *name;          /* canonical */
    silt_slice user, password; /* user empty: anonymous */
};
/* SILT_UNAVAILABLE: sandboxes have no network on this machine. */
int silt_pull_start(struct silt_registry *r, const struct silt_pull_options *o,
                    struct silt_pull_sink *sink, struct silt_pull **ret, struct silt_error *e);
void silt_pull_resume(struct silt_pull *p); /* continues the output */
void silt_pull_abort(struct silt_pull *p);  /* detaches the sink */

/* For this room. */
/* A tar of the root of a pull's sandbox, without /usr; always the same bytes. */
void silt_pull_cage(struct silt_buf *b);
/* Skopeo's credentials file: one line. */
void silt_pull_credentials(struct silt_buf *b, const char *registry, silt_slice user,
                           silt_slice password);

/* Removes sandboxes that a previous siltd left. */
extern const struct silt_facet silt_pull_facet;
