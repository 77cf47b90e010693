/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/wanted.h"
#include "base/own.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A star takes as little as it can, and more when the rest does not fit then. */
static bool fits(silt_slice pattern, silt_slice name)
{
    size_t at = 0, i = 0, star = SIZE_MAX, from = 0;
    while (i < name.len) {
        if (at < pattern.len && pattern.data[at] == '*') {
            star = at++;
            from = i;
        } else if (at < pattern.len && pattern.data[at] == name.data[i]) {
            at++;
            i++;
        } else if (star != SIZE_MAX) {
            at = star + 1;
            i = ++from;
        } else {
            return false;
        }
    }
    while (at < pattern.len && pattern.data[at] == '*')
        at++;
    return at == pattern.len;
}

void silt_wanted_begin(struct silt_wanted *w, const struct silt_docker_sources *sources,
                       const char *also)
{
    w->all = sources->all;
    w->count = sources->count;
    memcpy(w->rest, sources->patterns, sources->count * sizeof(silt_slice));
    if (also[0] != 0)
        w->rest[w->count++] = silt_slice_of(also);
}

bool silt_wanted_enter(const struct silt_wanted *w, const char *name, struct silt_wanted *ret)
{
    ret->all = w->all;
    ret->count = 0;
    for (size_t i = 0; i < w->count && !ret->all; i++) {
        silt_slice rest = w->rest[i], first;
        if (!silt_slice_split(&rest, '/', &first) || !fits(first, silt_slice_of(name)))
            continue;
        if (rest.data == NULL)
            ret->all = true;
        else
            ret->rest[ret->count++] = rest;
    }
    return ret->all || ret->count > 0;
}

static bool leads_to_link(const struct silt_wanted *w, int directory, const char *name)
{
    struct silt_wanted below;
    struct stat st;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || !silt_wanted_enter(w, name, &below)
        || fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISLNK(st.st_mode))
        return true;
    if (!S_ISDIR(st.st_mode) || below.all)
        return false;
    silt_auto_fd fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 || silt_wanted_has_links(&below, fd);
}

bool silt_wanted_has_links(const struct silt_wanted *w, int directory)
{
    struct dirent *x;
    bool found = false;
    int fd = openat(directory, ".",
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* a new description has its own offset */
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (d == NULL) {
        silt_close_fd(&fd);
        return true;
    }
    while (!found && (x = readdir(d)) != NULL)
        found = leads_to_link(w, directory, x->d_name);
    (void)closedir(d);
    return found;
}
