/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ignore.h"

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
        s = s.data[0] == '/' ? (silt_slice){s.data + 1, s.len - 1} : (silt_slice){s.data + 2, s.len - 2};
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
    for (bool first = true; at < glob->len && (first || glob->data[at] != ']'); first = false, at++) {
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

/* Each star tries what is left once; a rule is a line of a file of the user's own. */
static bool fits(silt_slice glob, silt_slice path)
{
    while (glob.len > 0) {
        if (silt_slice_starts(glob, SILT_LIT("**"))) {
            silt_slice rest = {glob.data + 2, glob.len - 2};
            if (rest.len > 0 && rest.data[0] == '/' && fits((silt_slice){rest.data + 1, rest.len - 1}, path))
                return true; /* no folder at all */
            for (size_t i = 0; i <= path.len; i++)
                if (fits(rest, (silt_slice){path.data + i, path.len - i}))
                    return true;
            return false;
        }
        if (glob.data[0] == '*') {
            silt_slice rest = {glob.data + 1, glob.len - 1};
            for (size_t i = 0;; i++) {
                if (fits(rest, (silt_slice){path.data + i, path.len - i}))
                    return true;
                if (i == path.len || path.data[i] == '/')
                    return false;
            }
        }
        if (path.len == 0)
            return false;
        if (glob.data[0] == '[') {
            if (!in_set(&glob, path.data[0]))
                return false;
        } else {
            bool escaped = glob.data[0] == '\\' && glob.len > 1;
            char want = glob.data[escaped];
            if (!(want == '?' && !escaped ? path.data[0] != '/' : path.data[0] == want))
                return false;
            glob = (silt_slice){glob.data + 1 + escaped, glob.len - 1 - escaped};
        }
        path = (silt_slice){path.data + 1, path.len - 1};
    }
    return path.len == 0;
}

/* It, or a folder that it is in. */
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
    for (size_t i = 0; i < g->count; i++)
        if (ignored == g->rules[i].back && fits_part(g->rules[i].glob, path))
            ignored = !g->rules[i].back;
    return ignored;
}
