/* SPDX-License-Identifier: Apache-2.0 */
/* pull_source: the registry and names of a pull, and the root of its sandbox. */
#include "base/base64.h"
#include "base/reference.h"
#include "json/json.h"
#include "sandbox/image/pull.h"

#include <stdio.h>

enum { DIGEST_TEXT = 7 + 2 * SILT_DIGEST_SIZE };

/* ---- names ---- */

static bool is_digest(silt_slice s)
{
    if (s.len != DIGEST_TEXT || !silt_slice_starts(s, SILT_LIT("sha256:")))
        return false;
    for (size_t i = 7; i < s.len; i++)
        if (!silt_is_any(s.data[i], "0123456789abcdef"))
            return false;
    return true;
}

/* The first component of a path is a registry if it has a dot or a port, or is localhost. */
static silt_slice registry_of(silt_slice path)
{
    silt_slice first;
    (void)silt_slice_split(&path, '/', &first);
    bool is_one = path.len > 0
                  && (silt_slice_has_byte(first, '.') || silt_slice_has_byte(first, ':')
                      || silt_slice_eq(first, SILT_LIT("localhost")));
    return is_one ? first : SILT_LIT("docker.io");
}

static bool is_loopback(silt_slice registry)
{
    silt_slice host;
    (void)silt_slice_split(&registry, ':', &host);
    return silt_slice_eq(host, SILT_LIT("localhost")) || silt_slice_starts(host, SILT_LIT("127."))
           || silt_slice_eq(host, SILT_LIT("0.0.0.0"));
}

bool silt_pull_names_registry(const struct silt_pull_source *s)
{
    return strcmp(s->registry, "docker.io") != 0;
}

int silt_pull_read(silt_slice text, struct silt_pull_source *ret, struct silt_error *e)
{
    silt_slice digest = text, path = text;
    bool pinned = text.len > 0 && memchr(text.data, '@', text.len) != NULL;
    if (text.len == 0)
        return silt_fail(e, SILT_INVALID, "image name of 0 bytes");
    if (pinned)
        (void)silt_slice_split(&digest, '@', &path);
    if (pinned && !is_digest(digest))
        return silt_fail(e, SILT_INVALID, "behind '@' comes sha256: and 64 digits");
    if (silt_reference_read(path, ret->name, e) < 0)
        return -1;
    silt_slice spelled = silt_slice_of(ret->name), registry = registry_of(spelled);
    (void)snprintf(ret->registry, sizeof(ret->registry), "%.*s", (int)registry.len, registry.data);
    if (is_loopback(registry))
        return silt_fail(e, SILT_INVALID,
                         "%s is this machine itself, which pulls cannot reach; copy it with "
                         "`skopeo copy docker://%.100s oci-archive:image.tar` "
                         "and `silt image import` it",
                         ret->registry, ret->name);
    size_t tag = silt_reference_tag(spelled); /* skopeo takes a tag or a digest */
    int len = pinned && tag < spelled.len ? (int)tag - 1 : (int)spelled.len;
    (void)snprintf(ret->address, sizeof(ret->address), "%.*s%s%.*s", len, spelled.data,
                   pinned ? "@" : "", pinned ? (int)digest.len : 0, digest.data);
    return 0;
}

/* ---- credentials ---- */

void silt_pull_credentials(struct silt_buf *b, const char *registry, silt_slice user,
                           silt_slice password)
{
    struct silt_base64 x = {.len = 0};
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("auths"));
    silt_json_open(b, '{');
    if (user.len > 0) {
        silt_json_key(b, silt_slice_of(registry));
        silt_json_open(b, '{');
        silt_json_key(b, SILT_LIT("auth"));
        silt_buf_add_byte(b, '"');
        silt_base64_encode(&x, b, user);
        silt_base64_encode(&x, b, SILT_LIT(":"));
        silt_base64_encode(&x, b, password);
        silt_base64_encode_end(&x, b);
        silt_buf_add_byte(b, '"');
        silt_json_close(b, '}');
    }
    silt_json_close(b, '}');
    silt_json_close(b, '}');
    silt_buf_add_byte(b, '\n');
    explicit_bzero(&x, sizeof(x));
}

/* ---- the root of its sandbox ---- */

/* A tar header (ustar), 512 bytes. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
        magic[8], rest[247];
};
_Static_assert(sizeof(struct header) == 512, "a block of a tar");

static void add_entry(struct silt_buf *b, char type, const char *name, unsigned mode,
                      const char *content)
{
    struct header h = {
        .type = type, .uid = "0000000", .gid = "0000000", .mtime = "00000000000", .magic = "ustar"};
    const unsigned char *bytes = (const unsigned char *)&h;
    static const char padding[512];
    size_t size = type == '0' ? strlen(content) : 0;
    unsigned sum = 0;
    (void)snprintf(h.name, sizeof(h.name), "%s", name);
    (void)snprintf(h.mode, sizeof(h.mode), "%07o", mode);
    (void)snprintf(h.size, sizeof(h.size), "%011o", (unsigned)size);
    if (type == '2')
        (void)snprintf(h.link, sizeof(h.link), "%s", content);
    memcpy(h.magic,
           "ustar\0"
           "00",
           8);
    memset(h.checksum, ' ', sizeof(h.checksum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += bytes[i];
    (void)snprintf(h.checksum, sizeof(h.checksum), "%06o", sum);
    silt_buf_add(b, (silt_slice){(const char *)&h, sizeof(h)});
    silt_buf_add(b, (silt_slice){content, size});
    silt_buf_add(b, (silt_slice){padding, (512 - size % 512) % 512});
}

static const struct {
    char type;
    const char *name;
    unsigned mode;
    const char *content;
} entries[] = {
    {'5', "dev/", 0755, ""},
    {'5', "proc/", 0755, ""},
    {'5', "sys/", 0755, ""},
    {'5', "usr/", 0755, ""},
    {'5', "run/", 0755, ""},
    {'5', "root/", 0700, ""},
    {'5', "tmp/", 01777, ""},
    {'5', "etc/", 0755, ""},
    {'0', "etc/resolv.conf", 0644, ""}, /* the network's own is mounted over it */
    {'0', "etc/hosts", 0644, "127.0.0.1 localhost\n::1 localhost\n"},
    {'0', "etc/passwd", 0644,
     "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n"},
    {'0', "etc/group", 0644, "root:x:0:\nnogroup:x:65534:\n"},
    {'2', "bin", 0777, "usr/bin"},
    {'2', "sbin", 0777, "usr/sbin"},
    {'2', "lib", 0777, "usr/lib"},
    {'2', "lib64", 0777, "usr/lib64"},
};

void silt_pull_cage(struct silt_buf *b)
{
    static const char end[1024];
    for (size_t i = 0; i < SILT_COUNT(entries); i++)
        add_entry(b, entries[i].type, entries[i].name, entries[i].mode, entries[i].content);
    silt_buf_add(b, (silt_slice){end, sizeof(end)});
}
