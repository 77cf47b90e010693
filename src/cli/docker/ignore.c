/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/ignore.h"

#include <limits.h>
#include <string.h>

static silt_slice trim(silt_slice s)
{
    while (s.len > 0 && memchr(" \t\r", s.data[0], 3) != NULL)
        s = (silt_slice){s.data + 1, s.len - 1};
    while (s.len > 0 && memchr(" \t\r", s.data[s.len - 1], 3) != NULL)
        s.len--;
    return s;
}

static silt_slice without_ends(silt_slice s)
{
    while (silt_slice_starts(s, SILT_LIT("./")) || (s.len > 0 && s.data[0] == '/'))
        s = s.data[0] == '/' ? (silt_slice){s.data + 1, s.len - 1}
                             : (silt_slice){s.data + 2, s.len - 2};
    while (s.len > 0 && s.data[s.len - 1] == '/')
        s.len--;
    return s;
}

void silt_ignore_read(struct silt_ignore *g, silt_slice text)
{
    silt_slice line;
    g->count = 0;
    g->takes_back = false;
    while (g->count < SILT_IGNORE_MAX && silt_slice_split(&text, '\n', &line)) {
        line = trim(line);
        if (line.len == 0 || line.data[0] == '#')
            continue;
        bool back = line.data[0] == '!';
        line = without_ends(back ? trim((silt_slice){line.data + 1, line.len - 1}) : line);
        if (line.len == 0)
            continue;
        g->rules[g->count].glob = line;
        g->rules[g->count++].back = back;
        g->takes_back = g->takes_back || back;
    }
}

/* "[a-z]" at the beginning of *glob, which is cut off. */
static bool in_set(silt_slice *glob, char c)
{
    bool negated = glob->len > 1 && (glob->data[1] == '^' || glob->data[1] == '!'), found = false;
    size_t at = negated ? 2 : 1;
    for (bool first = true; at < glob->len && (first || glob->data[at] != ']');
         first = false, at++) {
        char low = glob->data[at], high = low;
        if (at + 2 < glob->len && glob->data[at + 1] == '-' && glob->data[at + 2] != ']') {
            high = glob->data[at + 2];
            at += 2;
        }
        found = found || (c >= low && c <= high);
    }
    at += at < glob->len;
    *glob = (silt_slice){glob->data + at, glob->len - at};
    return found != negated && c != '/';
}

/* What a byte of the path may be, at the beginning of a rule; as many bytes of it say so. */
static bool takes(silt_slice glob, char c, size_t *ret_len)
{
    silt_slice rest = glob;
    if (glob.data[0] == '[') {
        bool in = in_set(&rest, c);
        *ret_len = glob.len - rest.len;
        return in;
    }
    bool escaped = glob.data[0] == '\\' && glob.len > 1;
    char want = glob.data[escaped];
    *ret_len = 1 + escaped;
    return want == '?' && !escaped ? c != '/' : c == want;
}

/* Where in the path that may end which was read of a rule: all places at once, since stars that try
 * one after the other would take for ever with a rule that a stranger wrote. */
struct places {
    size_t low, high; /* the first and the last; none: low > high */
    bool at[PATH_MAX + 1];
};

/* Behind a star: up to the end of the path, or of its directory. */
static void spread(struct places *p, silt_slice path, bool over_slashes)
{
    bool on = false;
    size_t end = p->high;
    for (size_t i = p->low; i <= path.len && (on || i <= p->high); i++) {
        on = on || p->at[i];
        p->at[i] = on;
        end = on && i > end ? i : end;
        on = on && (over_slashes || i == path.len || path.data[i] != '/');
    }
    p->high = end;
}

static void advance(struct places *p, silt_slice *glob, silt_slice path)
{
    size_t len, low = SIZE_MAX, high = 0;
    (void)takes(*glob, 0, &len);
    for (size_t i = p->high + 1; i-- > p->low;) {
        bool next = p->at[i] && i < path.len && takes(*glob, path.data[i], &len);
        p->at[i] = false;
        if (!next)
            continue;
        p->at[i + 1] = true;
        low = i + 1;
        high = high > 0 ? high : i + 1;
    }
    p->low = low;
    p->high = high;
    *glob = (silt_slice){glob->data + len, glob->len - len};
}

/* Any number of directories, also none. */
static void skip_directories(struct places *p, silt_slice path)
{
    static bool before[PATH_MAX + 1];
    silt_slice slash = SILT_LIT("/");
    size_t low = p->low, high = p->high;
    memcpy(before + low, p->at + low, high - low + 1);
    spread(p, path, true);
    advance(p, &slash, path);
    for (size_t i = low; i <= high; i++)
        p->at[i] = p->at[i] || before[i];
    p->low = low;
    p->high = p->high > high ? p->high : high;
}

static bool fits(silt_slice glob, silt_slice path)
{
    static struct places p;
    memset(p.at, 0, path.len + 1);
    p.low = p.high = 0;
    p.at[0] = true;
    while (glob.len > 0 && p.low <= p.high) {
        if (silt_slice_starts(glob, SILT_LIT("**/"))) {
            skip_directories(&p, path);
            glob = (silt_slice){glob.data + 3, glob.len - 3};
        } else if (glob.data[0] == '*') {
            size_t stars = silt_slice_starts(glob, SILT_LIT("**")) ? 2 : 1;
            spread(&p, path, stars == 2);
            glob = (silt_slice){glob.data + stars, glob.len - stars};
        } else {
            advance(&p, &glob, path);
        }
    }
    return p.low <= p.high && p.high == path.len;
}

/* It, or a directory that it is in. */
static bool fits_part(silt_slice glob, silt_slice path)
{
    for (size_t i = 1; i <= path.len; i++)
        if ((i == path.len || path.data[i] == '/') && fits(glob, (silt_slice){path.data, i}))
            return true;
    return false;
}

bool silt_ignore_fits(const struct silt_ignore *g, silt_slice path)
{
    bool ignored = false;
    for (size_t i = 0; i < g->count && path.len <= PATH_MAX; i++)
        if (ignored == g->rules[i].back && fits_part(g->rules[i].glob, path))
            ignored = !g->rules[i].back;
    return ignored;
}
