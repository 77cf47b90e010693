/* SPDX-License-Identifier: Apache-2.0 */
/* pull: an image from a registry. skopeo, the machine's own, talks to it in a sandbox that is made for this one pull: an empty root with the
 * machine's /usr, nobody's rights, the public network, limits of memory, processes and disk. What it leaves there, an OCI layout, is packed by a command in
 * that sandbox and imported like any archive of a stranger. Whatever happens, the sandbox goes in the end.
 *
 *   PREPARING --its image is there--> STARTING --it runs--> FETCHING --skopeo is done--> IMPORTING --published--> OVER
 *   any --failure, nobody waits any more--> OVER                                                                      */
#pragma once

#include "sandbox/image.h"

enum { SILT_PULLS_MAX = 4, SILT_PULL_USER_MAX = 256, SILT_PULL_PASSWORD_MAX = 16 << 10 };

/* What a text like `registry.example.com/team/app:1` or `alpine@sha256:…` means. */
struct silt_pull_source {
    char address[SILT_REFERENCE_SIZE + 72]; /* for skopeo, without its docker:// */
    char registry[SILT_REFERENCE_SIZE];     /* host and port; docker.io when there is none */
    char name[SILT_IMAGE_NAME_SIZE];        /* that the image gets unless another one is asked for; without the digest */
};
int silt_pull_read(silt_slice text, struct silt_pull_source *ret, struct silt_error *e);
/* Whether the registry is named in the text itself. */
bool silt_pull_names_registry(const struct silt_pull_source *s);

struct silt_pull;
struct silt_pull_sink { /* borrowed: must outlive the pull, or abort it */
    void (*output)(struct silt_pull_sink *sink, silt_slice bytes); /* of skopeo: hostile */
    bool (*full)(struct silt_pull_sink *sink); /* no more output before silt_pull_resume */
    void (*fetched)(struct silt_pull_sink *sink); /* all bytes are here; they are unpacked now */
    /* Exactly one of these two, once, last. */
    void (*done)(struct silt_pull_sink *sink, const struct silt_image *image, const char *name);
    void (*failed)(struct silt_pull_sink *sink, const struct silt_error *e);
};
struct silt_pull_options { /* nothing is borrowed afterwards */
    const struct silt_pull_source *source;
    const char *name; /* in its one spelling */
    silt_slice user, password; /* user empty: none */
};
/* SILT_UNAVAILABLE: this machine gives sandboxes no network. */
int silt_pull_start(struct silt_registry *r, const struct silt_pull_options *o, struct silt_pull_sink *sink,
                    struct silt_pull **ret, struct silt_error *e);
void silt_pull_resume(struct silt_pull *p); /* output is read again */
void silt_pull_abort(struct silt_pull *p);  /* the sink goes */

/* For this room. */
void silt_pulls_sweep(struct silt_registry *r); /* sandboxes of pulls that a former siltd did not finish */
/* A tar of what a pull's sandbox is made of beside /usr; the same bytes every time. */
void silt_pull_cage(struct silt_buf *b);
/* The file that skopeo reads credentials from: one line. */
void silt_pull_credentials(struct silt_buf *b, const char *registry, silt_slice user, silt_slice password);
