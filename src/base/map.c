/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdlib.h>
#include <sys/random.h>

enum { FIRST = 16 };

void silt_map_init(struct silt_map *m)
{
    *m = (struct silt_map){0};
    if (getrandom(&m->seed, sizeof(m->seed), 0) != (ssize_t)sizeof(m->seed))
        abort();
}

void silt_map_fini(struct silt_map *m)
{
    free(m->entries);
    *m = (struct silt_map){.seed = m->seed};
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ (h >> 33);
}

static uint64_t hash_of(const struct silt_map *m, silt_slice key)
{
    uint64_t h = m->seed ^ key.len;
    size_t i = 0;
    for (; i + 8 <= key.len; i += 8) {
        uint64_t word;
        memcpy(&word, key.data + i, 8);
        h = mix(h ^ word) + m->seed;
    }
    uint64_t tail = 0;
    if (i < key.len)
        memcpy(&tail, key.data + i, key.len - i);
    return mix(h ^ tail);
}

static struct silt_map_entry *lookup(const struct silt_map *m, silt_slice key, uint64_t hash)
{
    if (m->cap == 0)
        return NULL;
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct silt_map_entry *at = &m->entries[i];
        if (at->value == NULL && !at->dead)
            return NULL;
        if (at->value != NULL && at->hash == hash && silt_slice_eq(at->key, key))
            return at;
    }
}

void *silt_map_find(const struct silt_map *m, silt_slice key)
{
    struct silt_map_entry *at = lookup(m, key, hash_of(m, key));
    return at != NULL ? at->value : NULL;
}

static void insert(struct silt_map *m, struct silt_map_entry entry)
{
    size_t i = entry.hash & (m->cap - 1);
    while (m->entries[i].value != NULL || m->entries[i].dead)
        i = (i + 1) & (m->cap - 1);
    m->entries[i] = entry;
    m->used++;
    m->full++;
}

static void rebuild(struct silt_map *m)
{
    struct silt_map old = *m;
    size_t cap = FIRST;
    while (cap < old.used * 4)
        cap *= 2;
    m->entries = calloc(cap, sizeof(*m->entries));
    if (m->entries == NULL)
        abort();
    m->cap = cap;
    m->used = 0;
    m->full = 0;
    for (size_t i = 0; i < old.cap; i++)
        if (old.entries[i].value != NULL)
            insert(m, old.entries[i]);
    free(old.entries);
}

void silt_map_put(struct silt_map *m, silt_slice key, void *value)
{
    if ((m->full + 1) * 2 > m->cap)
        rebuild(m);
    insert(m, (struct silt_map_entry){.hash = hash_of(m, key), .key = key, .value = value});
}

void *silt_map_remove(struct silt_map *m, silt_slice key)
{
    struct silt_map_entry *at = lookup(m, key, hash_of(m, key));
    if (at == NULL)
        return NULL;
    void *value = at->value;
    *at = (struct silt_map_entry){.dead = true};
    m->used--;
    return value;
}

void *silt_map_next(const struct silt_map *m, size_t *at)
{
    while (*at < m->cap) {
        void *value = m->entries[(*at)++].value;
        if (value != NULL)
            return value;
    }
    return NULL;
}
