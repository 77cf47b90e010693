/* SPDX-License-Identifier: Apache-2.0 */
/* watch_rescan: handles directories that are created, moved and removed faster than their events
 * are read: a name in an event may lead to another directory by now, or nowhere. In a quiet moment
 * the directories that had such events are rescanned, top down; the kernel's watch descriptors
 * identify directories. */
#include "worker/watch/watch_tree.h"

#include <stdlib.h>

enum { ROUNDS_MAX = 16, FEW = 2 }; /* FEW: events of one rename */

void silt_watch_tree_mark(struct silt_watch_tree *l, struct silt_directory *f)
{
    if (l->mending)
        return;
    if (f->dirty || l->dirty_count == SILT_WATCH_TREE_DIRTY_MAX) {
        l->stale = l->stale || !f->dirty;
        return;
    }
    f->dirty = true;
    l->dirty[l->dirty_count++] = f->wd;
}

struct place {
    int wd;
    unsigned depth;
};

static int by_depth(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static unsigned depth_of(const struct silt_directory *f)
{
    unsigned depth = 0;
    for (; f->parent != NULL; f = f->parent)
        depth++;
    return depth;
}

/* Those that are still marked, top down. */
static size_t collect(struct silt_watch_tree *l, struct place *out)
{
    size_t n = 0;
    for (size_t i = 0; i < l->dirty_count; i++) {
        const struct silt_directory *f = silt_tree_find(&l->tree, l->dirty[i]);
        if (f != NULL && f->dirty)
            out[n++] = (struct place){f->wd, depth_of(f)};
    }
    qsort(out, n, sizeof(*out), by_depth);
    return n;
}

/* What is not found in it again is lost, unless it turns up elsewhere. */
static void look_at(struct silt_watch_tree *l, int wd)
{
    struct silt_directory *f = silt_tree_find(&l->tree, wd);
    int fd = f != NULL ? silt_watch_tree_open(l, f) : -1;
    if (fd < 0)
        return;
    for (struct silt_directory *c = f->first; c != NULL; c = c->next)
        c->lost = true;
    l->stale = false;
    silt_watch_tree_read(l, f, fd, true);
    f->is_new = false;
    /* it contains one of its own parents in the tree: wait until more is known */
    f->dirty = l->stale;
}

static bool is_reachable(struct silt_watch_tree *l, struct silt_directory *f)
{
    silt_auto_fd fd = silt_watch_tree_open(l, f);
    return fd >= 0;
}

/* It may only have moved with a parent whose events come later and do not mention it: its former
 * directory is rescanned once more. */
static void give_up(struct silt_watch_tree *l, struct silt_directory *f, int *slot)
{
    f->parent->again = true;
    *slot = f->parent->wd;
    l->repaired = true;
    silt_watch_tree_unfollow(l, f);
}

static void drop_lost(struct silt_watch_tree *l, int *slot)
{
    struct silt_directory *f = silt_tree_find(&l->tree, *slot), *next;
    if (f != NULL && f->dirty && f->parent != NULL && !is_reachable(l, f)) {
        give_up(l, f, slot);
        return;
    }
    for (struct silt_directory *c = f != NULL ? f->first : NULL; c != NULL; c = next) {
        next = c->next;
        if (c->lost)
            silt_watch_tree_unfollow(l, c);
    }
}

static void look_at_all(struct silt_watch_tree *l, struct place *places)
{
    size_t before = SIZE_MAX, n;
    for (int round = 0; round < ROUNDS_MAX && (n = collect(l, places)) > 0 && n < before; round++) {
        before = n;
        for (size_t i = 0; i < n && !l->task->gone; i++)
            look_at(l, places[i].wd);
    }
    for (size_t i = 0; i < l->dirty_count; i++)
        drop_lost(l, &l->dirty[i]);
}

/* Only those that need another rescan stay marked. */
static void unmark(struct silt_watch_tree *l)
{
    size_t kept = 0;
    struct silt_directory *f;
    for (size_t i = 0; i < l->dirty_count; i++)
        if ((f = silt_tree_find(&l->tree, l->dirty[i])) != NULL)
            f->dirty = false;
    for (size_t i = 0; i < l->dirty_count; i++) {
        f = silt_tree_find(&l->tree, l->dirty[i]);
        if (f == NULL || !f->again)
            continue;
        f->again = false;
        f->dirty = true;
        l->dirty[kept++] = f->wd;
    }
    l->dirty_count = kept;
    l->stale = kept > 0;
    l->events = 0;
}

bool silt_watch_tree_mend(struct silt_watch_tree *l)
{
    bool is_needed = l->stale || l->repaired || l->events > FEW;
    struct place *places = is_needed ? malloc(l->dirty_count * sizeof(*places)) : NULL;
    if (l->dirty_count == SILT_WATCH_TREE_DIRTY_MAX || (is_needed && places == NULL)) {
        free(places);
        return false;
    }
    l->mending = true;
    if (places != NULL)
        look_at_all(l, places);
    l->mending = false;
    free(places);
    unmark(l);
    /* events in between were reported with another path */
    if (l->repaired && l->dirty_count == 0) {
        silt_watch_filter_say(&l->teller, SILT_WATCH_OVERFLOW, true, l->task->path);
        l->repaired = false;
    }
    return true;
}
