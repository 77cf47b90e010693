/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/watch/tree.h"

#include <stdlib.h>
#include <string.h>

static struct silt_directory **bucket(struct silt_tree *t, int wd)
{
    return &t->buckets[(unsigned)wd % SILT_TREE_BUCKETS];
}

static void put_below(struct silt_directory *f, struct silt_directory *parent)
{
    f->parent = parent;
    f->prev = NULL;
    f->next = parent != NULL ? parent->first : NULL;
    if (f->next != NULL)
        f->next->prev = f;
    if (parent != NULL)
        parent->first = f;
}

static void take_out(struct silt_directory *f)
{
    if (f->prev != NULL)
        f->prev->next = f->next;
    else if (f->parent != NULL)
        f->parent->first = f->next;
    if (f->next != NULL)
        f->next->prev = f->prev;
    f->parent = f->next = f->prev = NULL;
}

struct silt_directory *silt_tree_add(struct silt_tree *t, struct silt_directory *parent,
                                     const char *name, int wd)
{
    size_t len = strlen(name);
    struct silt_directory *f = t->count < SILT_TREE_MAX ? calloc(1, sizeof(*f) + len + 1) : NULL;
    if (f == NULL)
        return NULL;
    memcpy(f->name, name, len);
    f->wd = wd;
    f->chain = *bucket(t, wd);
    *bucket(t, wd) = f;
    put_below(f, parent);
    if (parent == NULL)
        t->root = f;
    t->count++;
    return f;
}

struct silt_directory *silt_tree_find(const struct silt_tree *t, int wd)
{
    struct silt_directory *f = t->buckets[(unsigned)wd % SILT_TREE_BUCKETS];
    while (f != NULL && f->wd != wd)
        f = f->chain;
    return f;
}

struct silt_directory *silt_tree_child(const struct silt_directory *f, const char *name)
{
    struct silt_directory *c = f->first;
    while (c != NULL && strcmp(c->name, name) != 0)
        c = c->next;
    return c;
}

static void unchain(struct silt_tree *t, struct silt_directory *f)
{
    struct silt_directory **at = bucket(t, f->wd);
    while (*at != f)
        at = &(*at)->chain;
    *at = f->chain;
}

static void not_unread(struct silt_tree *t, struct silt_directory *f)
{
    struct silt_directory *before = NULL, *it = t->unread_first;
    if (!f->waits)
        return;
    for (; it != f; it = it->unread)
        before = it;
    if (before != NULL)
        before->unread = f->unread;
    else
        t->unread_first = f->unread;
    if (t->unread_last == f)
        t->unread_last = before;
}

/* Leaves first, without recursion: a tree can be two thousand directories deep. */
void silt_tree_remove(struct silt_tree *t, struct silt_directory *f,
                      void (*gone)(void *context, int wd), void *context)
{
    struct silt_directory *at = f, *up;
    for (bool last = false; !last; at = up) {
        while (at->first != NULL)
            at = at->first;
        up = at->parent;
        last = at == f;
        take_out(at);
        unchain(t, at);
        not_unread(t, at);
        if (t->root == at)
            t->root = NULL;
        t->count--;
        gone(context, at->wd);
        free(at);
    }
}

struct silt_directory *silt_tree_move(struct silt_tree *t, struct silt_directory *f,
                                      struct silt_directory *parent, const char *name)
{
    for (const struct silt_directory *up = parent; up != NULL; up = up->parent)
        if (up == f)
            return NULL; /* a directory inside itself: only a lost event can look like that */
    t->count--;
    struct silt_directory *n = silt_tree_add(t, parent, name, f->wd);
    t->count += n == NULL;
    if (n == NULL)
        return NULL;
    n->first = f->first;
    for (struct silt_directory *c = n->first; c != NULL; c = c->next)
        c->parent = n;
    n->is_new = f->is_new;
    n->dirty = f->dirty;
    if (f->waits)
        silt_tree_defer(t, n);
    not_unread(t, f);
    take_out(f);
    unchain(t, f);
    free(f);
    return n;
}

void silt_tree_defer(struct silt_tree *t, struct silt_directory *f)
{
    f->unread = NULL;
    f->waits = true;
    if (t->unread_last != NULL)
        t->unread_last->unread = f;
    else
        t->unread_first = f;
    t->unread_last = f;
}

struct silt_directory *silt_tree_next_unread(struct silt_tree *t)
{
    struct silt_directory *f = t->unread_first;
    if (f == NULL)
        return NULL;
    t->unread_first = f->unread;
    if (t->unread_first == NULL)
        t->unread_last = NULL;
    f->waits = false;
    return f;
}

/* Built from the end, then moved to the front. */
bool silt_tree_path(const struct silt_directory *f, const char *name,
                    char out[SILT_WORKER_PATH_MAX + 1])
{
    size_t at = SILT_WORKER_PATH_MAX;
    out[at] = 0;
    for (const char *part = name != NULL ? name : f->name;; part = f->name) {
        size_t len = strlen(part), slash = out[at] != 0;
        if (len + slash > at)
            return false;
        if (slash && len > 0)
            out[--at] = '/';
        at -= len;
        memcpy(out + at, part, len);
        if (part != name)
            f = f->parent;
        if (f == NULL)
            break;
    }
    memmove(out, out + at, SILT_WORKER_PATH_MAX + 1 - at);
    return true;
}
