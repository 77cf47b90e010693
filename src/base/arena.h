/* SPDX-License-Identifier: Apache-2.0 */
/* arena: a request's memory: allocated piece by piece, freed at once when the request ends. The
 * owner of the request owns the arena. An allocation fails only past the ceiling or without memory.
 */
#pragma once

#include "base/slice.h"

struct silt_arena_block;
struct silt_arena {
    struct silt_arena_block *blocks; /* newest first */
    char *at;
    char *end;
    size_t total;
    size_t max; /* ceiling over all blocks; past it silt_arena_alloc returns NULL */
};

void silt_arena_init(struct silt_arena *a, size_t max);
void silt_arena_fini(struct silt_arena *a);
void silt_arena_reset(struct silt_arena *a); /* keeps one ordinary block for the next request */
/* Aligned for any type, not cleared; NULL past the ceiling or without memory. */
void *silt_arena_alloc(struct silt_arena *a, size_t size);
/* A NUL-terminated copy. */
char *silt_arena_dup(struct silt_arena *a, silt_slice s);

#define silt_auto_arena __attribute__((cleanup(silt_arena_fini))) struct silt_arena
