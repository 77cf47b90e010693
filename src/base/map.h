/* SPDX-License-Identifier: Apache-2.0 */
/* map: a hash table from bytes to pointers (open addressing, doubling). Keys are borrowed from the
 * values, which the caller owns. The hash is seeded, so a peer cannot force collisions. */
#pragma once

#include "base/slice.h"

struct silt_map_entry {
    uint64_t hash;
    silt_slice key; /* borrowed */
    void *value;    /* borrowed; NULL: the entry is free */
    bool dead;      /* removed; a lookup goes on behind it */
};

struct silt_map {
    struct silt_map_entry *entries;
    size_t cap;
    size_t used; /* entries in use */
    size_t full; /* in use or dead */
    uint64_t seed;
};

void silt_map_init(struct silt_map *m);
void silt_map_fini(struct silt_map *m);
void *silt_map_find(const struct silt_map *m, silt_slice key);
/* The key must not be in the map; aborts without memory. */
void silt_map_put(struct silt_map *m, silt_slice key, void *value);
void *silt_map_remove(struct silt_map *m, silt_slice key); /* returns the value, or NULL */
/* Iterates: start with *at = 0; NULL at the end. The map must not change during the iteration. */
void *silt_map_next(const struct silt_map *m, size_t *at);
