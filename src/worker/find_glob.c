/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/find_glob.h"

#include <string.h>

/* Where to backtrack: the pattern after a star, and the first byte that the star does not cover
 * yet. */
struct retry {
    const char *pattern, *path;
};

struct match {
    const char *pattern, *path;
    struct retry one, many; /* the last star of its kind; pattern NULL: none */
};

/* A star covers nothing at first; each retry adds one byte. */
static void begin_star(struct match *m)
{
    bool many = m->pattern[1] == '*';
    m->pattern += many ? 2 : 1;
    if (many && *m->pattern == '/') {
        /* It also matches no directory at all, so the slash belongs to the stars. */
        m->pattern++;
    }
    if (many) {
        m->many = (struct retry){m->pattern, m->path};
        m->one.pattern = NULL; /* the new star covers whatever the old one could */
    } else {
        m->one = (struct retry){m->pattern, m->path};
    }
}

/* After a double star and its slash, matching continues only where a name begins. */
static bool at_name(const struct match *m, const char *begin)
{
    bool after_slash = m->many.pattern[-1] == '/';
    return !after_slash || m->many.path == begin || m->many.path[-1] == '/';
}

static bool try_again(struct match *m, const char *begin)
{
    if (m->one.pattern != NULL && *m->one.path != 0 && *m->one.path != '/') {
        m->pattern = m->one.pattern;
        m->path = ++m->one.path;
        return true;
    }
    if (m->many.pattern == NULL || *m->many.path == 0)
        return false;
    do
        m->many.path++;
    while (*m->many.path != 0 && !at_name(m, begin));
    m->one.pattern = NULL;
    m->pattern = m->many.pattern;
    m->path = m->many.path;
    return true;
}

static bool matches(const char *pattern, const char *path)
{
    struct match m = {.pattern = pattern, .path = path};
    for (;;) {
        if (*m.pattern == '*') {
            begin_star(&m);
        } else if (*m.path == 0 && *m.pattern == 0) {
            return true;
        } else if (*m.path != 0
                   && (*m.pattern == *m.path || (*m.pattern == '?' && *m.path != '/'))) {
            m.pattern++;
            m.path++;
        } else if (!try_again(&m, path)) {
            return false;
        }
    }
}

bool silt_find_glob_matches(const char *pattern, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (strchr(pattern, '/') == NULL && slash != NULL)
        path = slash + 1;
    return matches(pattern, path);
}
