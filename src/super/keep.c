/* SPDX-License-Identifier: Apache-2.0 */
#include "super/keep.h"
#include "base/own.h"

#include <assert.h>

void silt_keep_init(struct silt_keep *k, uint32_t count)
{
    *k = (struct silt_keep){.items = calloc(count, sizeof(struct silt_kept)), .count = count};
    if (k->items == NULL)
        abort();
    for (uint32_t i = 0; i < count; i++)
        k->items[i] = (struct silt_kept){-1, -1};
}

void silt_keep_fini(struct silt_keep *k)
{
    for (uint32_t i = 0; i < k->count; i++)
        silt_keep_drop(k, i);
    free(k->items);
    *k = (struct silt_keep){0};
}

void silt_keep_put(struct silt_keep *k, uint32_t key, int channel, int pidfd)
{
    assert(key < k->count);
    silt_keep_drop(k, key);
    k->items[key] = (struct silt_kept){channel, pidfd};
}

void silt_keep_drop(struct silt_keep *k, uint32_t key)
{
    assert(key < k->count);
    silt_close_fd(&k->items[key].channel);
    silt_close_fd(&k->items[key].pidfd);
}
