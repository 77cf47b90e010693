/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/spec.h"
#include "base/buf.h"
#include "json/json.h"
#include "sandbox/core/start_frame.h"

#include <stdlib.h>

enum { ENV_MAX = 128 << 10, TARGET_MAX = 4096 };

static const struct silt_json *member(const struct silt_json *o, const char *name)
{
    const struct silt_json *v = silt_json_get(o, silt_slice_of(name));
    return v != NULL && v->type != SILT_JSON_NULL ? v : NULL;
}

static int wrong(struct silt_error *e, const char *name, const char *why)
{
    return silt_fail(e, SILT_INVALID, "%s %s", name, why);
}

static int read_string(const struct silt_json *o, const char *name, silt_slice *ret,
                       struct silt_error *e)
{
    const struct silt_json *v = member(o, name);
    if (v == NULL)
        return 0;
    if (v->type != SILT_JSON_STRING || silt_slice_has_byte(v->string, 0))
        return wrong(e, name, "must be a string");
    *ret = v->string;
    return 0;
}

static int read_bool(const struct silt_json *o, const char *name, bool *ret, struct silt_error *e)
{
    const struct silt_json *v = member(o, name);
    *ret = false;
    if (v == NULL)
        return 0;
    if (v->type != SILT_JSON_BOOL)
        return wrong(e, name, "must be true or false");
    *ret = v->boolean;
    return 0;
}

/* A list of strings; as in Docker, one string counts as a list of one. */
static int read_words(struct silt_arena *a, const struct silt_json *o, const char *name,
                      struct silt_words *ret, struct silt_error *e)
{
    const struct silt_json *v = member(o, name);
    if (v == NULL)
        return 0;
    bool one = v->type == SILT_JSON_STRING;
    if (!one && v->type != SILT_JSON_ARRAY)
        return wrong(e, name, "must be a list of strings");
    size_t count = one ? 1 : v->items.count;
    if (count > SILT_CONTAINER_WORDS_MAX)
        return wrong(e, name, "has too many items");
    ret->items = silt_arena_alloc(a, (count + 1) * sizeof(*ret->items));
    if (ret->items == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for %s", name);
    ret->given = true;
    for (const struct silt_json *i = one ? v : v->items.first; i != NULL;
         i = one ? NULL : i->next) {
        if (i->type != SILT_JSON_STRING || silt_slice_has_byte(i->string, 0))
            return wrong(e, name, "must be a list of strings");
        ret->items[ret->count++] = i->string;
    }
    return 0;
}

static int read_env(struct silt_arena *a, const struct silt_json *o, silt_slice *ret,
                    struct silt_error *e)
{
    struct silt_words words = {0};
    silt_auto_buf all, one;
    silt_buf_init(&all, ENV_MAX);
    silt_buf_init(&one, ENV_MAX);
    if (read_words(a, o, "Env", &words, e) < 0)
        return -1;
    for (size_t i = 0; i < words.count; i++) {
        silt_slice rest = words.items[i], name;
        if (!silt_slice_split(&rest, '=', &name) || name.len == 0 || name.len == words.items[i].len)
            return wrong(e, "Env", "must be a list of NAME=value");
        silt_buf_clear(&one);
        silt_buf_add(&one, words.items[i]);
        silt_buf_add_byte(&one, 0);
        silt_env_merge(&all, silt_buf_slice(&one));
    }
    char *copy = all.broken || one.broken ? NULL : silt_arena_dup(a, silt_buf_slice(&all));
    if (copy == NULL)
        return silt_fail(e, SILT_LIMIT, "Env of more than %d bytes", ENV_MAX);
    *ret = (silt_slice){copy, all.len};
    return 0;
}

static int read_labels(const struct silt_json *o, const struct silt_json **ret,
                       struct silt_error *e)
{
    const struct silt_json *v = member(o, "Labels");
    if (v == NULL)
        return 0;
    if (v->type != SILT_JSON_OBJECT)
        return wrong(e, "Labels", "must be an object of strings");
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next)
        if (i->type != SILT_JSON_STRING)
            return wrong(e, "Labels", "must be an object of strings");
    *ret = v;
    return 0;
}

/* Refusals */

static int refuse(struct silt_error *e, const char *what)
{
    return silt_fail(e, SILT_DENIED, "%s is not available: containers get nothing of the machine",
                     what);
}

static bool is_empty(const struct silt_json *v)
{
    return v == NULL || (v->type == SILT_JSON_ARRAY && v->items.count == 0)
           || (v->type == SILT_JSON_STRING && v->string.len == 0)
           || (v->type == SILT_JSON_OBJECT && v->items.count == 0)
           || (v->type == SILT_JSON_BOOL && !v->boolean)
           || (v->type == SILT_JSON_INT && v->integer == 0);
}

static bool has_word(const struct silt_json *list, const char *word)
{
    if (list == NULL || list->type != SILT_JSON_ARRAY)
        return false;
    for (const struct silt_json *i = list->items.first; i != NULL; i = i->next)
        if (i->type == SILT_JSON_STRING && silt_slice_eq(i->string, silt_slice_of(word)))
            return true;
    return false;
}

/* workerd sets PidMode `host` for reasons of its own: the container gets its own namespace all the
 * same. */
static int check_host(const struct silt_json *host, bool sidecar, struct silt_error *e)
{
    static const char *const never[] = {"Privileged",   "Devices",           "DeviceRequests",
                                        "SecurityOpt",  "VolumesFrom",       "Links",
                                        "CgroupParent", "DeviceCgroupRules", "Runtime",
                                        "Tmpfs",        "GroupAdd"};
    static const char *const modes[] = {"IpcMode", "UTSMode", "UsernsMode", "CgroupnsMode",
                                        "Cgroup"};
    for (size_t i = 0; i < SILT_COUNT(never); i++)
        if (!is_empty(member(host, never[i])))
            return refuse(e, never[i]);
    for (size_t i = 0; i < SILT_COUNT(modes); i++) {
        silt_slice mode = {NULL, 0};
        if (read_string(host, modes[i], &mode, e) < 0)
            return -1;
        if (mode.len > 0 && !silt_slice_eq(mode, SILT_LIT("private"))
            && !silt_slice_eq(mode, SILT_LIT("shareable")))
            return refuse(e, modes[i]);
    }
    if (!sidecar && !is_empty(member(host, "PortBindings")))
        return silt_fail(e, SILT_DENIED,
                         "ports of containers are not published: a sandbox of `silt` has previews, "
                         "one of workerd its own way in");
    const struct silt_json *caps = member(host, "CapAdd");
    if (!is_empty(caps)
        && !(sidecar && caps->type == SILT_JSON_ARRAY && caps->items.count == 1
             && has_word(caps, "NET_ADMIN")))
        return refuse(e, "CapAdd");
    silt_slice pid = {NULL, 0};
    if (read_string(host, "PidMode", &pid, e) < 0)
        return -1;
    if (pid.len > 0 && !silt_slice_eq(pid, SILT_LIT("host"))
        && !silt_slice_eq(pid, SILT_LIT("private")))
        return refuse(e, "PidMode");
    return 0;
}

/* A container's program outlives its viewers and siltd: it has a log, not a client's terminal. */
static int check_streams(const struct silt_json *o, struct silt_error *e)
{
    if (is_empty(member(o, "Tty")) && is_empty(member(o, "OpenStdin")))
        return 0;
    return silt_fail(e, SILT_DENIED,
                     "the program of a container has no terminal and no standard input: leave out "
                     "-i and -t, or start it with -d and use exec -it");
}

/* Volumes */

bool silt_volume_name_is_good(silt_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '_' && c != '.' && c != '-')))
            return false;
    }
    return name.len > 0 && name.len <= SILT_VOLUME_NAME_MAX;
}

static int clean_target(struct silt_arena *a, silt_slice raw, silt_slice *ret, struct silt_error *e)
{
    silt_auto_buf b;
    silt_slice part;
    silt_buf_init(&b, TARGET_MAX);
    if (raw.len == 0 || raw.data[0] != '/')
        return wrong(e, "mount target", "must be an absolute path");
    while (silt_slice_split(&raw, '/', &part)) {
        if (part.len == 0 || silt_slice_eq(part, SILT_LIT(".")))
            continue;
        if (silt_slice_eq(part, SILT_LIT("..")))
            return wrong(e, "mount target", "must not have '..'");
        silt_buf_add_byte(&b, '/');
        silt_buf_add(&b, part);
    }
    char *copy = b.len == 0 || b.broken ? NULL : silt_arena_dup(a, silt_buf_slice(&b));
    if (copy == NULL)
        return wrong(e, "mount target", "is the root, or too long");
    *ret = (silt_slice){copy, b.len};
    return 0;
}

static int add_mount(struct silt_arena *a, struct silt_container_spec *spec,
                     const struct silt_container_mount *m, struct silt_error *e)
{
    struct silt_container_mount clean = *m;
    if (spec->mount_count == SILT_CONTAINER_MOUNTS_MAX)
        return wrong(e, "Mounts", "are too many");
    if (m->volume.len > 0 && (m->volume.data[0] == '/' || m->volume.data[0] == '.'))
        return refuse(e, "a path of the machine");
    if (!silt_volume_name_is_good(m->volume))
        return wrong(e, "volume name", "must match [a-zA-Z0-9][a-zA-Z0-9_.-]*");
    if (clean_target(a, m->target, &clean.target, e) < 0)
        return -1;
    for (size_t i = 0; i < spec->mount_count; i++)
        if (silt_slice_eq(spec->mounts[i].target, clean.target))
            return silt_fail(e, SILT_INVALID, "Duplicate mount point: %.*s", (int)clean.target.len,
                             clean.target.data);
    spec->mounts[spec->mount_count++] = clean;
    return 0;
}

/* "volume:/target[:ro]" */
static int read_bind(struct silt_arena *a, struct silt_container_spec *spec, silt_slice text,
                     struct silt_error *e)
{
    struct silt_container_mount m = {0};
    silt_slice rest = text, option;
    if (!silt_slice_split(&rest, ':', &m.volume) || !silt_slice_split(&rest, ':', &m.target))
        return wrong(e, "Binds", "must be volume:/path");
    while (rest.data != NULL && rest.len > 0 && silt_slice_split(&rest, ',', &option))
        if (silt_slice_eq(option, SILT_LIT("ro")))
            m.read_only = true;
        else if (!silt_slice_eq(option, SILT_LIT("rw"))
                 && !silt_slice_eq(option, SILT_LIT("nocopy")))
            return wrong(e, "Binds", "has an option that is not known");
    return add_mount(a, spec, &m, e);
}

static int read_mount(struct silt_arena *a, struct silt_container_spec *spec,
                      const struct silt_json *v, struct silt_error *e)
{
    struct silt_container_mount m = {0};
    silt_slice type = {NULL, 0};
    if (v->type != SILT_JSON_OBJECT)
        return wrong(e, "Mounts", "must be a list of objects");
    if (read_string(v, "Type", &type, e) < 0 || read_string(v, "Source", &m.volume, e) < 0
        || read_string(v, "Target", &m.target, e) < 0
        || read_bool(v, "ReadOnly", &m.read_only, e) < 0)
        return -1;
    if (!silt_slice_eq(type, SILT_LIT("volume")))
        return refuse(e, "a mount that is no volume");
    return add_mount(a, spec, &m, e);
}

static int by_depth(const void *a, const void *b)
{
    const struct silt_container_mount *left = a, *right = b;
    size_t depth[2] = {0, 0};
    for (size_t i = 0; i < left->target.len; i++)
        depth[0] += left->target.data[i] == '/';
    for (size_t i = 0; i < right->target.len; i++)
        depth[1] += right->target.data[i] == '/';
    return depth[0] < depth[1] ? -1 : depth[0] > depth[1];
}

static int read_mounts(struct silt_arena *a, const struct silt_json *host,
                       struct silt_container_spec *spec, struct silt_error *e)
{
    struct silt_words binds = {0};
    const struct silt_json *list = member(host, "Mounts");
    spec->mounts = silt_arena_alloc(a, SILT_CONTAINER_MOUNTS_MAX * sizeof(*spec->mounts));
    if (spec->mounts == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for mounts");
    if (read_words(a, host, "Binds", &binds, e) < 0)
        return -1;
    for (size_t i = 0; i < binds.count; i++)
        if (read_bind(a, spec, binds.items[i], e) < 0)
            return -1;
    if (list != NULL && list->type != SILT_JSON_ARRAY)
        return wrong(e, "Mounts", "must be a list of objects");
    for (const struct silt_json *v = list != NULL ? list->items.first : NULL; v != NULL;
         v = v->next)
        if (read_mount(a, spec, v, e) < 0)
            return -1;
    if (spec->mount_count > 1)
        qsort(spec->mounts, spec->mount_count, sizeof(*spec->mounts), by_depth);
    return 0;
}

/* Networks */

silt_slice silt_percent_decode(struct silt_arena *a, silt_slice text)
{
    char *out = silt_arena_alloc(a, text.len + 1);
    size_t n = 0;
    if (out == NULL)
        return text;
    while (text.len > 0) {
        int c = silt_slice_unescape(&text);
        out[n++] = c < 0 ? '%' : (char)c;
        if (c < 0)
            text = (silt_slice){text.data + 1, text.len - 1};
    }
    out[n] = 0;
    return (silt_slice){out, n};
}

static int read_network(struct silt_arena *a, const struct silt_json *host,
                        struct silt_container_spec *spec, struct silt_error *e)
{
    silt_slice mode = {NULL, 0}, prefix = SILT_LIT("container:");
    if (read_string(host, "NetworkMode", &mode, e) < 0)
        return -1;
    if (silt_slice_starts(mode, prefix)) {
        mode = (silt_slice){mode.data + prefix.len, mode.len - prefix.len};
        spec->sidecar = silt_percent_decode(a, mode);
        return spec->sidecar.len > 0 ? 0 : wrong(e, "NetworkMode", "names no container");
    }
    if (mode.len == 0 || silt_slice_eq(mode, SILT_LIT("bridge"))
        || silt_slice_eq(mode, SILT_LIT("default")) || silt_slice_eq(mode, SILT_LIT("none")))
        return 0;
    return refuse(e, "NetworkMode");
}

/* Kinds */

static silt_slice word_after(const struct silt_words *w, const char *flag)
{
    for (size_t i = 0; i + 1 < w->count; i++)
        if (silt_slice_eq(w->items[i], silt_slice_of(flag)))
            return w->items[i + 1];
    return (silt_slice){NULL, 0};
}

static const struct silt_container_mount *mount_at(const struct silt_container_spec *spec,
                                                   const char *target)
{
    for (size_t i = 0; i < spec->mount_count; i++)
        if (silt_slice_eq(spec->mounts[i].target, silt_slice_of(target)))
            return &spec->mounts[i];
    return NULL;
}

static void find_kind(struct silt_container_spec *spec)
{
    struct silt_error ignored;
    uint64_t port;
    if (word_after(&spec->cmd, "--http-ingress-address").data != NULL) {
        spec->kind = SILT_CONTAINER_SIDECAR;
        if (silt_slice_to_u64(word_after(&spec->cmd, "--http-egress-port"), 1, UINT16_MAX, &port,
                              &ignored)
            == 0)
            spec->egress_port = (uint16_t)port;
        return;
    }
    const struct silt_container_mount *from = mount_at(spec, "/src"), *to = mount_at(spec, "/dst");
    if (spec->entrypoint.count == 1 && silt_slice_eq(spec->entrypoint.items[0], SILT_LIT("/bin/cp"))
        && from != NULL && to != NULL) {
        spec->kind = SILT_CONTAINER_COPY;
        spec->copy_from = from->volume;
        spec->copy_to = to->volume;
    }
}

int silt_container_spec_read_command(struct silt_arena *a, const struct silt_json *o,
                                     struct silt_container_spec *ret, struct silt_error *e)
{
    *ret = (struct silt_container_spec){.stop_timeout_s = 10};
    if (read_words(a, o, "Cmd", &ret->cmd, e) < 0 || read_env(a, o, &ret->env, e) < 0
        || read_string(o, "WorkingDir", &ret->workdir, e) < 0
        || read_string(o, "User", &ret->user, e) < 0)
        return -1;
    return 0;
}

int silt_container_spec_read(struct silt_arena *a, silt_slice body, struct silt_container_spec *ret,
                             struct silt_error *e)
{
    const struct silt_json *o, *host, *timeout;
    if (body.len > SILT_CONTAINER_BODY_MAX)
        return silt_fail(e, SILT_LIMIT, "the request has more than %d bytes",
                         SILT_CONTAINER_BODY_MAX);
    if (silt_json_read(a, body, &o, e) < 0)
        return -1;
    host = member(o, "HostConfig");
    if (o->type != SILT_JSON_OBJECT || (host != NULL && host->type != SILT_JSON_OBJECT))
        return silt_fail(e, SILT_INVALID, "the request must be a JSON object, and HostConfig too");
    if (silt_container_spec_read_command(a, o, ret, e) < 0
        || read_string(o, "Image", &ret->image, e) < 0
        || read_words(a, o, "Entrypoint", &ret->entrypoint, e) < 0
        || read_labels(o, &ret->labels, e) < 0 || read_mounts(a, host, ret, e) < 0
        || read_network(a, host, ret, e) < 0
        || read_bool(host, "AutoRemove", &ret->auto_remove, e) < 0 || check_streams(o, e) < 0)
        return -1;
    if (ret->image.len == 0)
        return wrong(e, "Image", "is missing");
    timeout = member(o, "StopTimeout");
    if (timeout != NULL && timeout->type == SILT_JSON_INT && timeout->integer > 0
        && timeout->integer <= 3600)
        ret->stop_timeout_s = (uint32_t)timeout->integer;
    find_kind(ret);
    return check_host(host, ret->kind == SILT_CONTAINER_SIDECAR, e);
}
