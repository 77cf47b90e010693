/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stddef.h>
#include <stdlib.h>

enum { BLOCK = 8192 };

struct silt_arena_block {
    struct silt_arena_block *next;
    size_t size; /* of `bytes` */
    max_align_t bytes[];
};

void silt_arena_init(struct silt_arena *a, size_t max)
{
    *a = (struct silt_arena){.max = max};
}

void silt_arena_fini(struct silt_arena *a)
{
    while (a->blocks != NULL) {
        struct silt_arena_block *b = a->blocks;
        a->blocks = b->next;
        free(b);
    }
    silt_arena_init(a, a->max);
}

static void use(struct silt_arena *a, struct silt_arena_block *b)
{
    a->at = (char *)b->bytes;
    a->end = a->at + b->size;
}

void silt_arena_reset(struct silt_arena *a)
{
    struct silt_arena_block *keep = NULL;
    while (a->blocks != NULL) {
        struct silt_arena_block *b = a->blocks;
        a->blocks = b->next;
        if (keep == NULL && b->size == BLOCK)
            keep = b;
        else
            free(b);
    }
    silt_arena_init(a, a->max);
    if (keep == NULL)
        return;
    keep->next = NULL;
    a->blocks = keep;
    a->total = keep->size;
    use(a, keep);
}

void *silt_arena_alloc(struct silt_arena *a, size_t size)
{
    size_t align = _Alignof(max_align_t);
    if (size > a->max)
        return NULL;
    size = (size + align - 1) / align * align;
    if ((size_t)(a->end - a->at) < size) {
        size_t want = size > BLOCK ? size : BLOCK;
        if (a->total + want > a->max)
            return NULL;
        struct silt_arena_block *b = malloc(sizeof(*b) + want);
        if (b == NULL)
            return NULL;
        b->size = want;
        b->next = a->blocks;
        a->blocks = b;
        a->total += want;
        use(a, b);
    }
    void *p = a->at;
    a->at += size;
    return p;
}

char *silt_arena_dup(struct silt_arena *a, silt_slice s)
{
    char *p = silt_arena_alloc(a, s.len + 1);
    if (p == NULL)
        return NULL;
    if (s.len > 0)
        memcpy(p, s.data, s.len);
    p[s.len] = 0;
    return p;
}
