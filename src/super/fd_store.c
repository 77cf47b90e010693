/* SPDX-License-Identifier: Apache-2.0 */
#include "super/fd_store.h"
#include "base/own.h"

#include <assert.h>

void silt_fd_store_init(struct silt_fd_store *k, uint32_t count)
{
    *k = (struct silt_fd_store){.items = calloc(count, sizeof(struct silt_kept)), .count = count};
    if (k->items == NULL)
        abort();
    for (uint32_t i = 0; i < count; i++)
        k->items[i] = (struct silt_kept){.channel = -1, .pidfd = -1};
}

void silt_fd_store_fini(struct silt_fd_store *k)
{
    for (uint32_t i = 0; i < k->count; i++)
        silt_fd_store_drop(k, i);
    while (k->listener_count > 0)
        silt_fd_store_drop_listener(k, k->listeners[0].number);
    silt_fd_store_forget(k);
}

void silt_fd_store_forget(struct silt_fd_store *k)
{
    for (uint32_t i = 0; i < k->count; i++)
        free(k->items[i].contexts);
    free(k->listeners);
    free(k->items);
    *k = (struct silt_fd_store){0};
}

void silt_fd_store_put(struct silt_fd_store *k, uint32_t key, int channel, int pidfd)
{
    assert(key < k->count);
    silt_fd_store_drop(k, key);
    k->items[key] = (struct silt_kept){.channel = channel, .pidfd = pidfd};
}

static void drop_context(struct silt_kept *item, uint32_t which)
{
    for (int i = 0; i < SILT_SUPER_CONTEXT_FDS; i++)
        silt_close_fd(&item->contexts[which].fds[i]);
    item->contexts[which] = item->contexts[--item->context_count];
}

void silt_fd_store_drop(struct silt_fd_store *k, uint32_t key)
{
    assert(key < k->count);
    struct silt_kept *item = &k->items[key];
    silt_close_fd(&item->channel);
    silt_close_fd(&item->pidfd);
    while (item->context_count > 0)
        drop_context(item, 0);
    free(item->contexts);
    item->contexts = NULL;
}

static bool find_context(const struct silt_kept *item, uint64_t number, uint32_t *ret)
{
    for (*ret = 0; *ret < item->context_count; (*ret)++)
        if (item->contexts[*ret].number == number)
            return true;
    return false;
}

bool silt_fd_store_put_context(struct silt_fd_store *k, uint32_t key,
                               const struct silt_kept_context *c)
{
    assert(key < k->count);
    struct silt_kept *item = &k->items[key];
    uint32_t which;
    if (item->channel < 0 || item->context_count == SILT_SUPER_CONTEXTS_MAX
        || find_context(item, c->number, &which))
        return false;
    struct silt_kept_context *more =
        realloc(item->contexts, (item->context_count + 1) * sizeof(*more));
    if (more == NULL)
        abort();
    item->contexts = more;
    item->contexts[item->context_count++] = *c;
    return true;
}

void silt_fd_store_drop_context(struct silt_fd_store *k, uint32_t key, uint64_t number)
{
    assert(key < k->count);
    uint32_t which;
    if (find_context(&k->items[key], number, &which))
        drop_context(&k->items[key], which);
}

static bool find_listener(const struct silt_fd_store *k, uint64_t number, uint32_t *ret)
{
    for (*ret = 0; *ret < k->listener_count; (*ret)++)
        if (k->listeners[*ret].number == number)
            return true;
    return false;
}

bool silt_fd_store_put_listener(struct silt_fd_store *k, uint64_t number, int fd)
{
    uint32_t which;
    if (k->listener_count == SILT_SUPER_LISTENERS_MAX || find_listener(k, number, &which))
        return false;
    struct silt_kept_listener *more =
        realloc(k->listeners, (k->listener_count + 1) * sizeof(*more));
    if (more == NULL)
        abort();
    k->listeners = more;
    k->listeners[k->listener_count++] = (struct silt_kept_listener){.number = number, .fd = fd};
    return true;
}

void silt_fd_store_drop_listener(struct silt_fd_store *k, uint64_t number)
{
    uint32_t which;
    if (!find_listener(k, number, &which))
        return;
    silt_close_fd(&k->listeners[which].fd);
    k->listeners[which] = k->listeners[--k->listener_count];
}
