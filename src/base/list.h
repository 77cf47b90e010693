/* SPDX-License-Identifier: Apache-2.0 */
/* list: a doubly linked ring of links embedded in their items. An unlinked item points at itself.
 */
#pragma once

#include "base/own.h"

#include <stdbool.h>
#include <stddef.h>

struct silt_link {
    struct silt_link *next;
    struct silt_link *prev;
};

static inline void silt_list_init(struct silt_link *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool silt_list_empty(const struct silt_link *l)
{
    return l->next == l;
}

static inline void silt_list_append(struct silt_link *list, struct silt_link *item)
{
    item->prev = list->prev;
    item->next = list;
    list->prev->next = item;
    list->prev = item;
}

/* Also allowed for an initialized item that is in no list. */
static inline void silt_list_remove(struct silt_link *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    silt_list_init(item);
}

/* Moves the first item to the end and returns it, for round-robin. The list must not be empty. */
static inline struct silt_link *silt_list_rotate(struct silt_link *list)
{
    struct silt_link *first = list->next;
    silt_list_remove(first);
    silt_list_append(list, first);
    return first;
}

#define silt_list_first(list, type, member)                                                        \
    (silt_list_empty(list) ? NULL : silt_outer((list)->next, type, member))

/* The body may remove the current item. */
#define silt_list_each(it, list)                                                                   \
    for (struct silt_link *it = (list)->next, *silt_next_##it = it->next; it != (list);            \
         it = silt_next_##it, silt_next_##it = it->next)
