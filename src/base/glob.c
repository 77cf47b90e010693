/* SPDX-License-Identifier: Apache-2.0 */
/* Follows all positions of the pattern at once, so no part of the path is tried twice: patterns
 * come from strangers. */
#include "base/glob.h"

struct places {
    size_t count;
    uint16_t at[SILT_GLOB_MAX + 1]; /* offsets in the pattern, each once */
};

struct match {
    silt_slice glob;
    unsigned flags;
    uint32_t turn; /* counts the path's characters; what is marked with it is in `then` */
    struct places places[2], *now, *then;
    uint32_t added[SILT_GLOB_MAX + 1], entered[SILT_GLOB_MAX + 1];
};

/* The next character; an invalid byte stands for itself, distinct from every character. */
static uint32_t next(silt_slice *s)
{
    unsigned char lead = (unsigned char)s->data[0];
    size_t len = lead < 0x80   ? 1
                 : lead < 0xc2 ? 0
                 : lead < 0xe0 ? 2
                 : lead < 0xf0 ? 3
                 : lead < 0xf5 ? 4
                               : 0;
    uint32_t c = len == 1 ? lead : lead & (0x7fU >> len);
    bool good = len > 0 && len <= s->len;
    for (size_t i = 1; good && i < len; i++) {
        good = ((unsigned char)s->data[i] & 0xc0) == 0x80;
        c = c << 6 | ((unsigned char)s->data[i] & 0x3f);
    }
    size_t used = good ? len : 1;
    s->data += used;
    s->len -= used;
    return good ? c : 0x80000000U + lead;
}

/* The rest of "[a-z]", which is cut off. */
static bool is_in_set(silt_slice *glob, uint32_t c)
{
    bool negated = glob->len > 0 && silt_is_any(glob->data[0], "^!"), found = false;
    *glob = (silt_slice){glob->data + negated, glob->len - negated};
    for (bool first = true; glob->len > 0 && (first || glob->data[0] != ']'); first = false) {
        uint32_t low = next(glob), high = low;
        if (glob->len > 1 && glob->data[0] == '-' && glob->data[1] != ']') {
            *glob = (silt_slice){glob->data + 1, glob->len - 1};
            high = next(glob);
        }
        found = found || (c >= low && c <= high);
    }
    (void)(glob->len > 0 && next(glob));
    return found != negated && c != '/';
}

/* Cuts one item off the pattern that is not a star: whether it matches the character. */
static bool takes(silt_slice *glob, unsigned flags, uint32_t c)
{
    bool sets = (flags & SILT_GLOB_SETS) != 0;
    uint32_t want = next(glob);
    if (sets && want == '[')
        return is_in_set(glob, c);
    if (sets && want == '\\' && glob->len > 0)
        return next(glob) == c;
    return want == '?' ? c != '/' : want == c;
}

/* 3: a double star and the slash that it may do without. */
static size_t stars_at(const struct match *m, size_t i)
{
    silt_slice rest = {m->glob.data + i, m->glob.len - i};
    if (rest.len == 0 || rest.data[0] != '*')
        return 0;
    if ((m->flags & SILT_GLOB_SKIP) != 0 && silt_slice_starts(rest, SILT_LIT("**/")))
        return 3;
    return silt_slice_starts(rest, SILT_LIT("**")) ? 2 : 1;
}

static void add(struct match *m, size_t i)
{
    if (m->added[i] == m->turn)
        return;
    m->added[i] = m->turn;
    m->then->at[m->then->count++] = (uint16_t)i;
}

/* A star may match nothing: where it begins, the next item may begin too. */
static void enter(struct match *m, size_t i)
{
    while (m->entered[i] != m->turn) {
        m->entered[i] = m->turn;
        add(m, i);
        i += stars_at(m, i);
    }
}

static void step(struct match *m, size_t i, uint32_t c)
{
    size_t stars = stars_at(m, i);
    silt_slice rest = {m->glob.data + i, m->glob.len - i};
    if (stars == 0) {
        if (rest.len > 0 && takes(&rest, m->flags, c))
            enter(m, m->glob.len - rest.len);
    } else if (stars == 3) {
        add(m, i); /* the next item begins at a component only */
        if (c == '/')
            enter(m, i + stars);
    } else if (stars == 2 || c != '/') {
        enter(m, i);
    }
}

static void turn(struct match *m)
{
    struct places *then = m->now;
    m->now = m->then;
    m->then = then;
    then->count = 0;
    m->turn++;
}

static bool matches(struct match *m, silt_slice path)
{
    bool each = (m->flags & SILT_GLOB_EACH) != 0, tree = (m->flags & SILT_GLOB_TREE) != 0;
    for (uint32_t c = '/';;) {
        if (m->turn == 1 || (each && c == '/'))
            enter(m, 0);
        if (m->added[m->glob.len] == m->turn && (path.len == 0 || (tree && path.data[0] == '/')))
            return true;
        if (path.len == 0 || (m->then->count == 0 && !each))
            return false;
        c = next(&path);
        turn(m);
        for (size_t i = 0; i < m->now->count; i++)
            step(m, m->now->at[i], c);
    }
}

/* Ends in a double star and a slash. */
static bool is_tree(silt_slice glob)
{
    return glob.len >= 3 && memcmp(glob.data + glob.len - 3, "**/", 3) == 0
           && (glob.len == 3 || glob.data[glob.len - 4] != '*');
}

bool silt_glob_matches(silt_slice glob, silt_slice path, unsigned flags)
{
    static _Thread_local struct match m; /* large, and only what a pattern needs of it is cleared */
    const char *slash = path.len > 0 ? memrchr(path.data, '/', path.len) : NULL;
    if (glob.len > SILT_GLOB_MAX)
        return false;
    if ((flags & SILT_GLOB_LAST) != 0 && slash != NULL && !silt_slice_has_byte(glob, '/'))
        path = (silt_slice){slash + 1, (size_t)(path.data + path.len - slash) - 1};
    if ((flags & SILT_GLOB_SKIP) != 0 && is_tree(glob))
        glob.len--; /* whatever is in there, not only directories */
    m.glob = glob;
    m.flags = flags;
    m.turn = 1;
    m.now = &m.places[0];
    m.then = &m.places[1];
    m.then->count = 0;
    memset(m.added, 0, (glob.len + 1) * sizeof(*m.added));
    memset(m.entered, 0, (glob.len + 1) * sizeof(*m.entered));
    return matches(&m, path);
}

/* When something does not fit behind a star, the last star takes one byte more: no star before it
 * needs to be asked again. */
static bool host_matches(silt_slice glob, silt_slice name, int64_t *steps)
{
    size_t g = 0, n = 0, star = SIZE_MAX, taken = 0;
    while (n < name.len) {
        ++*steps;
        if (g < glob.len && glob.data[g] == '*') {
            star = g++;
            taken = n;
        } else if (g < glob.len && glob.data[g] == name.data[n]) {
            g++;
            n++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            n = ++taken;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.data[g] == '*')
        g++;
    return g == glob.len;
}

bool silt_glob_hosts_match(silt_slice globs, silt_slice name, int64_t *steps)
{
    silt_slice glob;
    for (; silt_slice_split(&globs, '\n', &glob);
         ++*steps) /* of an empty name nothing else is counted */
        if (glob.len > 0 && host_matches(glob, name, steps))
            return true;
    return false;
}
