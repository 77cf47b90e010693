/* SPDX-License-Identifier: Apache-2.0 */
/* facet: the callbacks of one part of a sandbox, such as its processes or its network. The core
 * calls every facet at each step in the life of a sandbox and of siltd, without knowing any by
 * name: sandbox/facets.c lists them in call order. Any member may be NULL. */
#pragma once

#include "sandbox/core/sandbox.h"

struct silt_exec;

#define SILT_FRAME_OF(type) (1U << (type))
_Static_assert(SILT_AGENT_SAY_MAX <= 32, "they fit the bits");

struct silt_facet {
    /* The daemon. */
    void (*open)(struct silt_registry *r); /* before anything is loaded */
    /* The rows of sandboxes and images are loaded. */
    int (*load)(struct silt_registry *r, struct silt_error *e);
    /* Everything a previous siltd left running has been adopted. */
    void (*recovered)(struct silt_registry *r);
    void (*make_room)(struct silt_registry *r); /* the disk is full */
    void (*upkeep)(struct silt_registry *r);    /* every few seconds */
    /* True if the facet still uses the files of this image. */
    bool (*needs_files)(const struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
    void (*on_files_gone)(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
    void (*close)(struct silt_registry *r); /* siltd is exiting; the sandboxes still exist */
    void (*free)(struct silt_registry *r);  /* and now they do not */

    /* A sandbox. */
    void (*init)(struct silt_sandbox *s);
    void (*on_created)(struct silt_sandbox *s, uint32_t link); /* silt-priv has created it */
    void (*on_claimed)(struct silt_sandbox *s);                /* a ready sandbox got its name */
    void (*on_running)(struct silt_sandbox *s);
    /* The agent and silt-super have reported all they had kept. */
    void (*settle)(struct silt_sandbox *s);
    /* Before a stop on request. True: it calls silt_sandbox_on_settled when it is ready. */
    bool (*on_halt)(struct silt_sandbox *s);
    /* Before its processes end. A non-zero `drops` delays the destruction. */
    void (*on_destroy)(struct silt_sandbox *s);
    void (*on_ended)(struct silt_sandbox *s,
                     const struct silt_error *why); /* its processes have ended */
    void (*on_removed)(struct silt_sandbox *s);     /* nothing of it is left on disk */
    void (*save)(struct silt_sandbox *s);   /* write the rows again: a full disk refused some */
    void (*forget)(struct silt_sandbox *s); /* siltd is exiting: free memory, no callbacks */
    void (*fini)(struct silt_sandbox *s);   /* last callback */

    /* Inside the sandbox. */
    /* Offers an exec of a previous siltd. True if it belongs to this facet. */
    bool (*adopt_exec)(struct silt_sandbox *s, uint64_t number,
                       const struct silt_agent_exec_info *info);
    /* A frame from the agent, its size checked, of a type listed in `frames` (bits: SILT_FRAME_OF).
     * An error frame goes to every facet that knows its number. */
    uint32_t frames;
    void (*on_frame)(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len);
    /* A command of a caller is about to start, unless it is delayed (sandbox/core/exec.h). */
    void (*before_command)(struct silt_sandbox *s, struct silt_exec *x, uint64_t number,
                           const char *command);
    void (*after_command)(struct silt_sandbox *s, uint64_t number, int exit_code);
    void (*on_session_ended)(struct silt_sandbox *s, uint64_t session);
    void (*on_out_of_memory)(struct silt_sandbox *s);
    void (*on_kill_all)(struct silt_sandbox *s); /* every process is about to get a signal */
};

/* Ordered from user to used: sandboxes end in this order and are loaded in reverse. */
struct silt_facets {
    const struct silt_facet *const *of;
    size_t count;
};

/* Calls `member` of every facet that has one. */
#define silt_facets_call(r, member, ...)                                                           \
    for (size_t facet_ = 0; facet_ < (r)->facets->count; facet_++)                                 \
        if ((r)->facets->of[facet_]->member != NULL)                                               \
    (r)->facets->of[facet_]->member(__VA_ARGS__)
/* The same in reverse order. */
#define silt_facets_call_back(r, member, ...)                                                      \
    for (size_t facet_ = (r)->facets->count; facet_-- > 0;)                                        \
        if ((r)->facets->of[facet_]->member != NULL)                                               \
    (r)->facets->of[facet_]->member(__VA_ARGS__)
