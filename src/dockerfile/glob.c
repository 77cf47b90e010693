/* SPDX-License-Identifier: Apache-2.0 */
/* Translates patterns of COPY --exclude, which are those of .dockerignore, to regular expressions,
 * which the tool that finds files in a sandbox understands. */
#include "dockerfile/dockerfile.h"

#include <stdint.h>
#include <string.h>

static silt_slice behind(silt_slice s, size_t n)
{
    return (silt_slice){s.data + n, s.len - n};
}

static void add_byte(struct silt_buf *b, char c)
{
    if (silt_is_any(c, "^\\.[]$()|*+?{}"))
        silt_buf_add_byte(b, '\\');
    silt_buf_add_byte(b, c);
}

/* Ordered so that no character is special inside the bracket. */
static void add_set(struct silt_buf *b, const bool set[256])
{
    static const char late[] = "][^-";
    size_t count = 0, before = b->len;
    silt_buf_add_byte(b, '[');
    if (set[(unsigned char)']'])
        silt_buf_add_byte(b, ']');
    for (size_t i = 1; i < 256; i++) {
        count += set[i];
        if (set[i] && !silt_is_any((char)i, late))
            silt_buf_add_byte(b, (char)i);
    }
    for (const char *c = late + 1; *c != 0; c++)
        if (set[(unsigned char)*c])
            silt_buf_add_byte(b, *c);
    silt_buf_add_byte(b, ']');
    if (b->broken || (count > 0 && !(count <= 2 && set['^'] && (count == 1 || set['-']))))
        return;
    b->len = before; /* an empty set, or one that a bracket would read differently */
    silt_buf_add(b, count == 0 ? SILT_LIT("//") : count == 1 ? SILT_LIT("\\^") : SILT_LIT("[-^]"));
}

/* "[a-z]", taken off the front; never matches a slash. */
static silt_slice read_set(struct silt_buf *b, silt_slice glob)
{
    bool negated = glob.len > 1 && (glob.data[1] == '^' || glob.data[1] == '!'), set[256] = {false};
    size_t at = negated ? 2 : 1;
    for (bool first = true; at < glob.len && (first || glob.data[at] != ']'); first = false, at++) {
        unsigned char low = (unsigned char)glob.data[at], high = low;
        if (at + 2 < glob.len && glob.data[at + 1] == '-' && glob.data[at + 2] != ']') {
            high = (unsigned char)glob.data[at + 2];
            at += 2;
        }
        for (size_t c = low; c <= high; c++)
            set[c] = true;
    }
    for (size_t c = 1; c < 256 && negated; c++)
        set[c] = !set[c];
    set['/'] = false;
    add_set(b, set);
    return behind(glob, at + (at < glob.len));
}

static silt_slice read_star(struct silt_buf *b, silt_slice glob)
{
    if (silt_slice_starts(glob, SILT_LIT("**/"))) {
        silt_buf_add(b, SILT_LIT("(.*/)?"));
        return behind(glob, 3);
    }
    bool two = silt_slice_starts(glob, SILT_LIT("**"));
    silt_buf_add(b, two ? SILT_LIT(".*") : SILT_LIT("[^/]*"));
    return behind(glob, two ? 2 : 1);
}

static silt_slice without_ends(silt_slice s)
{
    while (silt_slice_starts(s, SILT_LIT("./")) || silt_slice_starts(s, SILT_LIT("/")))
        s = behind(s, s.data[0] == '/' ? 1 : 2);
    while (s.len > 0 && s.data[s.len - 1] == '/')
        s.len--;
    return s;
}

int silt_docker_exclude(struct silt_buf *b, silt_slice glob, struct silt_error *e)
{
    bool back = silt_slice_starts(glob, SILT_LIT("!"));
    glob = without_ends(behind(glob, back ? 1 : 0));
    if (glob.len == 0 || glob.len > SILT_DOCKER_GLOB_MAX)
        return silt_fail(e, SILT_INVALID, "--exclude needs a pattern of at most %d bytes",
                         SILT_DOCKER_GLOB_MAX);
    silt_buf_add(b, back ? SILT_LIT("-\\./") : SILT_LIT("+\\./"));
    while (glob.len > 0) {
        size_t escape = glob.data[0] == '\\' && glob.len > 1 ? 1 : 0;
        if (glob.data[0] == '*') {
            glob = read_star(b, glob);
        } else if (glob.data[0] == '[') {
            glob = read_set(b, glob);
        } else if (glob.data[0] == '?') {
            silt_buf_add(b, SILT_LIT("[^/]"));
            glob = behind(glob, 1);
        } else {
            add_byte(b, glob.data[escape]);
            glob = behind(glob, 1 + escape);
        }
    }
    silt_buf_add(b, SILT_LIT("(/.*)?"));
    return b->broken ? silt_fail(e, SILT_LIMIT, "a pattern of --exclude is too long") : 0;
}
