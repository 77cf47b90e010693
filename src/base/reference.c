/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reference.h"

static bool is_small(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_joint(char c)
{
    return c == '.' || c == '_' || c == '-';
}

static bool is_word(char c)
{
    return is_small(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_part(silt_slice s)
{
    if (s.len == 0 || !is_small(s.data[0]))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!is_small(s.data[i]) && !is_joint(s.data[i]))
            return false;
    return true;
}

static bool is_tag(silt_slice s)
{
    if (s.len == 0 || s.len > SILT_TAG_MAX || !is_word(s.data[0]))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!is_word(s.data[i]) && s.data[i] != '.' && s.data[i] != '-')
            return false;
    return true;
}

static bool is_port(silt_slice s)
{
    struct silt_error e;
    uint64_t port;
    return silt_slice_to_u64(s, 1, UINT16_MAX, &port, &e) == 0;
}

size_t silt_reference_tag(silt_slice reference)
{
    for (size_t i = reference.len; i > 0 && reference.data[i - 1] != '/'; i--)
        if (reference.data[i - 1] == ':')
            return i;
    return reference.len;
}

static silt_slice cut_tag(silt_slice *path)
{
    size_t at = silt_reference_tag(*path);
    silt_slice tag = {path->data + at, path->len - at};
    if (tag.len == 0 && (path->len == 0 || path->data[path->len - 1] != ':'))
        return SILT_LIT("latest");
    path->len = at - 1;
    return tag;
}

static bool is_path(silt_slice path)
{
    silt_slice part, host;
    for (bool first = true; path.len > 0; first = false) {
        silt_slice before = path;
        (void)silt_slice_split(&path, '/', &part);
        bool last = part.len == before.len;
        if (!last && path.len == 0)
            return false; /* it ends in a slash */
        if (first && !last && silt_slice_has_byte(part, ':')) {
            silt_slice port = part;
            if (!silt_slice_split(&port, ':', &host) || !is_port(port))
                return false;
            part = host;
        }
        if (!is_part(part))
            return false;
    }
    return true;
}

static silt_slice without(silt_slice path, silt_slice prefix)
{
    if (path.len > prefix.len && silt_slice_starts(path, prefix))
        return (silt_slice){path.data + prefix.len, path.len - prefix.len};
    return path;
}

/* The first part of the path is a registry if it has a dot or a port, or is localhost. */
static bool has_host(silt_slice path)
{
    silt_slice first;
    return silt_slice_has_byte(path, '/') && silt_slice_split(&path, '/', &first)
           && (silt_slice_has_byte(first, '.') || silt_slice_has_byte(first, ':')
               || silt_slice_eq(first, SILT_LIT("localhost")));
}

/* False: a registry follows docker.io, so dropping docker.io would change what the name means. */
static bool shorten(silt_slice *path)
{
    silt_slice rest = without(*path, SILT_LIT("docker.io/"));
    if (rest.len == path->len)
        rest = without(*path, SILT_LIT("index.docker.io/"));
    if (rest.len < path->len && has_host(rest))
        return false;
    silt_slice last = without(rest, SILT_LIT("library/"));
    *path = silt_slice_has_byte(last, '/') ? rest : last;
    return true;
}

int silt_reference_read(silt_slice text, char ret[SILT_REFERENCE_SIZE], struct silt_error *e)
{
    if (text.len == 0 || text.len >= SILT_REFERENCE_SIZE)
        return silt_fail(e, SILT_INVALID, "image name of %zu bytes, 1 to %d", text.len,
                         SILT_REFERENCE_SIZE - 1);
    silt_slice path = text, tag = cut_tag(&path);
    if (path.len == 0 || !is_path(path) || !is_tag(tag))
        return silt_fail(e, SILT_INVALID,
                         "image name may hold a-z, 0-9, '.', '_', '-' in parts that begin with a "
                         "letter or digit, "
                         "separated by '/', and a tag behind ':'");
    if (!shorten(&path))
        return silt_fail(e, SILT_INVALID, "image name with two registries");
    memcpy(ret, path.data, path.len);
    ret[path.len] = 0;
    if (silt_slice_eq(tag, SILT_LIT("latest")))
        return 0;
    ret[path.len] = ':';
    memcpy(ret + path.len + 1, tag.data, tag.len);
    ret[path.len + 1 + tag.len] = 0;
    return 0;
}
