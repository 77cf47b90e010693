/* SPDX-License-Identifier: Apache-2.0 */
/* map: from bytes to a pointer; open addressing, grows by doubling. Keys are borrowed: they live in
 * the value, which the caller owns. The hash is seeded, so a peer cannot choose collisions. */
#pragma once

#include "base/slice.h"

struct silt_map_entry {
    uint64_t hash;
    silt_slice key; /* borrowed */
    void *value;    /* borrowed; NULL: free, never used */
    bool dead;      /* was used */
};

struct silt_map {
    struct silt_map_entry *entries;
    size_t cap;
    size_t used; /* live */
    size_t full; /* live and dead */
    uint64_t seed;
};

void silt_map_init(struct silt_map *m);
void silt_map_fini(struct silt_map *m);
void *silt_map_find(const struct silt_map *m, silt_slice key);
/* The key must not be in the map; aborts without memory. */
void silt_map_put(struct silt_map *m, silt_slice key, void *value);
void *silt_map_remove(struct silt_map *m, silt_slice key); /* what was there, or NULL */
/* Walk: start with *at = 0; NULL at the end. The map must not change meanwhile. */
void *silt_map_next(const struct silt_map *m, size_t *at);
