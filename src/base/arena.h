/* SPDX-License-Identifier: Apache-2.0 */
/* arena: memory that lives as long as one request and goes with it. */
#pragma once

#include "base/slice.h"

struct silt_arena_block;
struct silt_arena {
    struct silt_arena_block *blocks; /* newest first */
    char *at;
    char *end;
    size_t total;
    size_t max; /* ceiling over all blocks; past it silt_arena_alloc answers NULL */
};

void silt_arena_init(struct silt_arena *a, size_t max);
void silt_arena_fini(struct silt_arena *a);
void silt_arena_reset(struct silt_arena *a); /* keeps one ordinary block for the next request */
/* Aligned for any type, not cleared; NULL past the ceiling or without memory. */
void *silt_arena_alloc(struct silt_arena *a, size_t size);
/* A terminated copy. */
char *silt_arena_dup(struct silt_arena *a, silt_slice s);

#define silt_auto_arena __attribute__((cleanup(silt_arena_fini))) struct silt_arena
