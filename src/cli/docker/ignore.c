/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/ignore.h"
#include "base/glob.h"

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

bool silt_ignore_fits(const struct silt_ignore *g, silt_slice path)
{
    bool ignored = false;
    for (size_t i = 0; i < g->count; i++)
        if (ignored == g->rules[i].back
            && silt_glob_matches(g->rules[i].glob, path, SILT_GLOB_OF_DOCKERIGNORE))
            ignored = !g->rules[i].back;
    return ignored;
}
