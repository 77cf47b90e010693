/* SPDX-License-Identifier: Apache-2.0 */
/* context: daemons that this user has logged in to, in ~/.config/silt/contexts.json, which only its
 * owner may read. One of them is current: commands go there unless told otherwise. */
#pragma once

#include "cli/core/client.h"

#include <limits.h>

enum { SILT_CONTEXTS_MAX = 64, SILT_CONTEXT_NAME_MAX = 64 };

struct silt_context {
    char name[SILT_CONTEXT_NAME_MAX + 1];
    char url[SILT_CLIENT_ADDRESS_SIZE];
    char token[SILT_CLIENT_TOKEN_SIZE];
    char authorities[PATH_MAX]; /* a PEM file; "": those of the machine */
};

struct silt_contexts {
    struct silt_context items[SILT_CONTEXTS_MAX];
    size_t count;
    char current[SILT_CONTEXT_NAME_MAX + 1]; /* "": none */
};

/* A missing file holds no contexts. */
int silt_contexts_load(struct silt_contexts *ret, struct silt_error *e);
int silt_contexts_save(const struct silt_contexts *c, struct silt_error *e);
struct silt_context *silt_contexts_find(struct silt_contexts *c, const char *name);
/* A new one, or the one of that name, emptied. */
int silt_contexts_put(struct silt_contexts *c, const char *name, struct silt_context **ret,
                      struct silt_error *e);
void silt_contexts_drop(struct silt_contexts *c, struct silt_context *one);

/* --context of the command line; before the first use. */
void silt_context_choose(const char *name);
/* The context that commands use: --context, SILT_CONTEXT, the current one. *ret NULL: none. */
int silt_context_current(const struct silt_context **ret, struct silt_error *e);
/* Whether --context was given: it goes before SILT_SERVER. */
bool silt_context_is_chosen(void);
