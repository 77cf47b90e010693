/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/manifest.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/own.h"
#include "json/json.h"

#include <stdio.h>

enum { ARENA_MAX = 64 << 20, IMAGES_MAX = 1024 };

static const struct silt_json *get(const struct silt_json *object, const char *key)
{
    return silt_json_get(object, silt_slice_of(key));
}

/* Empty if it is not a string. */
static silt_slice text_of(const struct silt_json *object, const char *key)
{
    const struct silt_json *v = get(object, key);
    bool text = v && v->type == SILT_JSON_STRING && !silt_slice_has_byte(v->string, 0);
    return text ? v->string : (silt_slice){"", 0};
}

static const struct silt_json *list_of(const struct silt_json *object, const char *key)
{
    const struct silt_json *v = get(object, key);
    return v && v->type == SILT_JSON_ARRAY ? v : NULL;
}

static int read_object(struct silt_arena *a, silt_slice json, const char *what,
                       const struct silt_json **ret, struct silt_error *e)
{
    silt_arena_init(a, ARENA_MAX);
    if (silt_json_read(a, json, ret, e) < 0)
        return silt_because(e, "%s", what);
    if ((*ret)->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_INVALID, "%s is no JSON object", what);
    return 0;
}

/* sha256:<hex> */
static bool parse_digest(silt_slice text, uint8_t ret[SILT_DIGEST_SIZE])
{
    const silt_slice kind = SILT_LIT("sha256:");
    return silt_slice_starts(text, kind)
           && silt_digest_parse((silt_slice){text.data + kind.len, text.len - kind.len}, ret);
}

static int read_blob(const struct silt_json *v, const char *what, struct silt_blob *ret,
                     struct silt_error *e)
{
    uint8_t digest[SILT_DIGEST_SIZE];
    silt_slice text = text_of(v, "digest");
    const struct silt_json *size = get(v, "size");
    if (!parse_digest(text, digest))
        return silt_fail(e, SILT_INVALID, "%s: no sha256 digest", what);
    if (!size || size->type != SILT_JSON_INT || size->integer < 0)
        return silt_fail(e, SILT_INVALID, "%s: no size", what);
    (void)snprintf(ret->path, sizeof(ret->path), "blobs/sha256/%.*s", 2 * SILT_DIGEST_SIZE,
                   text.data + 7);
    ret->size = (uint64_t)size->integer;
    return 0;
}

/* ---- names ---- */

/* A digest: it identifies content and is not a name. */
static bool is_pin(silt_slice name)
{
    return silt_slice_starts(name, SILT_LIT("sha256:"));
}

static void add_name(struct silt_manifest *m, silt_slice name)
{
    struct silt_error e;
    if (!is_pin(name) && m->name_count < SILT_MANIFEST_NAMES_MAX
        && silt_reference_read(name, m->names[m->name_count], &e) == 0)
        m->name_count++;
}

static bool is_called(silt_slice name, const char *image)
{
    char a[SILT_REFERENCE_SIZE], b[SILT_REFERENCE_SIZE];
    struct silt_error e;
    if (is_pin(silt_slice_of(image)))
        return false;
    if (silt_slice_eq(name, silt_slice_of(image)))
        return true;
    return silt_reference_read(name, a, &e) == 0
           && silt_reference_read(silt_slice_of(image), b, &e) == 0 && strcmp(a, b) == 0;
}

static const char full_name[] = "io.containerd.image.name";
static const char ref_name[] = "org.opencontainers.image.ref.name";

/* A reference that is only a tag is not a name here. */
static void add_annotated(struct silt_manifest *m, const struct silt_json *annotations)
{
    silt_slice full = text_of(annotations, full_name), ref = text_of(annotations, ref_name);
    if (full.len > 0)
        add_name(m, full);
    else if (silt_slice_has_byte(ref, ':') || silt_slice_has_byte(ref, '/'))
        add_name(m, ref);
}

/* ---- index ---- */

static bool is_ours(const struct silt_json *platform)
{
    if (!platform || platform->type != SILT_JSON_OBJECT)
        return true; /* its configuration will tell */
    return silt_slice_eq(text_of(platform, "os"), SILT_LIT("linux"))
           && silt_slice_eq(text_of(platform, "architecture"), SILT_LIT("amd64"));
}

static bool is_chosen(const struct silt_json *v, const char *image)
{
    const struct silt_json *annotations = get(v, "annotations");
    if (!is_ours(get(v, "platform")))
        return false;
    return !image[0] || silt_slice_eq(text_of(v, "digest"), silt_slice_of(image))
           || is_called(text_of(annotations, full_name), image)
           || is_called(text_of(annotations, ref_name), image);
}

int silt_manifest_read_index(silt_slice json, const char *image, struct silt_manifest *m,
                             struct silt_blob *ret, struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *index;
    if (read_object(&a, json, "index", &index, e) < 0)
        return -1;
    const struct silt_json *list = list_of(index, "manifests");
    if (!list || list->items.count == 0)
        return silt_fail(e, SILT_INVALID, "index: it has no manifests");
    if (list->items.count > IMAGES_MAX)
        return silt_fail(e, SILT_LIMIT, "index: more than %d manifests", IMAGES_MAX);
    for (const struct silt_json *v = list->items.first; v; v = v->next) {
        if (!is_chosen(v, image))
            continue;
        add_annotated(m, get(v, "annotations"));
        return read_blob(v, "index", ret, e);
    }
    return silt_fail(e, SILT_NOT_FOUND, "no image %s%sfor linux/amd64 in the archive", image,
                     image[0] ? " " : "");
}

/* ---- manifests ---- */

static int too_many_layers(struct silt_error *e)
{
    return silt_fail(e, SILT_LIMIT, "manifest: more than %d layers", SILT_MANIFEST_LAYERS_MAX);
}

int silt_manifest_read_oci(silt_slice json, struct silt_manifest *m, bool *ret_index,
                           struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *v;
    if (read_object(&a, json, "manifest", &v, e) < 0)
        return -1;
    const struct silt_json *layers = list_of(v, "layers"), *config = get(v, "config");
    *ret_index = !layers && list_of(v, "manifests");
    if (*ret_index)
        return 0;
    if (!layers || !config)
        return silt_fail(e, SILT_INVALID,
                         "manifest: it has no config or no layers (of version 1 none is read)");
    if (layers->items.count > SILT_MANIFEST_LAYERS_MAX)
        return too_many_layers(e);
    if (read_blob(config, "manifest: config", &m->config, e) < 0)
        return -1;
    for (const struct silt_json *l = layers->items.first; l; l = l->next)
        if (read_blob(l, "manifest: layer", &m->layers[m->layer_count++], e) < 0)
            return -1;
    return 0;
}

static int read_path(const struct silt_json *v, struct silt_blob *ret, struct silt_error *e)
{
    if (!v || v->type != SILT_JSON_STRING || v->string.len == 0
        || silt_slice_to_cstr(v->string, ret->path, sizeof(ret->path), e) < 0)
        return silt_fail(e, SILT_INVALID, "manifest.json: a name of a file is none");
    ret->size = UINT64_MAX;
    return 0;
}

static bool is_tagged(const struct silt_json *v, const char *image)
{
    const struct silt_json *tags = list_of(v, "RepoTags");
    if (!image[0])
        return true;
    for (const struct silt_json *t = tags ? tags->items.first : NULL; t; t = t->next)
        if (t->type == SILT_JSON_STRING && is_called(t->string, image))
            return true;
    return false;
}

static int read_entry(const struct silt_json *v, struct silt_manifest *m, struct silt_error *e)
{
    const struct silt_json *layers = list_of(v, "Layers"), *tags = list_of(v, "RepoTags");
    if (!layers)
        return silt_fail(e, SILT_INVALID, "manifest.json: it has no layers");
    if (layers->items.count > SILT_MANIFEST_LAYERS_MAX)
        return too_many_layers(e);
    if (read_path(get(v, "Config"), &m->config, e) < 0)
        return -1;
    for (const struct silt_json *l = layers->items.first; l; l = l->next)
        if (read_path(l, &m->layers[m->layer_count++], e) < 0)
            return -1;
    for (const struct silt_json *t = tags ? tags->items.first : NULL; t; t = t->next)
        if (t->type == SILT_JSON_STRING)
            add_name(m, t->string);
    return 0;
}

int silt_manifest_read_docker(silt_slice json, const char *image, struct silt_manifest *m,
                              struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *list;
    silt_arena_init(&a, ARENA_MAX);
    if (silt_json_read(&a, json, &list, e) < 0)
        return silt_because(e, "manifest.json");
    if (list->type != SILT_JSON_ARRAY || list->items.count == 0)
        return silt_fail(e, SILT_INVALID, "manifest.json: it is no list of images");
    if (list->items.count > IMAGES_MAX)
        return silt_fail(e, SILT_LIMIT, "manifest.json: more than %d images", IMAGES_MAX);
    for (const struct silt_json *v = list->items.first; v; v = v->next)
        if (is_tagged(v, image))
            return read_entry(v, m, e);
    return silt_fail(e, SILT_NOT_FOUND, "no image %s in the archive", image);
}

/* ---- configuration ---- */

static int check_platform(const struct silt_json *v, struct silt_error *e)
{
    char os_text[SILT_LOG_QUOTE_SIZE], machine[SILT_LOG_QUOTE_SIZE];
    silt_slice os = text_of(v, "os"), cpu = text_of(v, "architecture");
    if ((os.len > 0 && !silt_slice_eq(os, SILT_LIT("linux")))
        || (cpu.len > 0 && !silt_slice_eq(cpu, SILT_LIT("amd64"))))
        return silt_fail(e, SILT_INVALID, "the image is for %s/%s, not for linux/amd64",
                         silt_log_quote(os, os_text), silt_log_quote(cpu, machine));
    return 0;
}

static int read_diffs(const struct silt_json *v, struct silt_manifest_config *ret,
                      struct silt_error *e)
{
    const struct silt_json *diffs = list_of(get(v, "rootfs"), "diff_ids");
    if (!diffs)
        return silt_fail(e, SILT_INVALID, "configuration: it has no rootfs.diff_ids");
    if (diffs->items.count > SILT_MANIFEST_LAYERS_MAX)
        return silt_fail(e, SILT_LIMIT, "configuration: more than %d layers",
                         SILT_MANIFEST_LAYERS_MAX);
    for (const struct silt_json *d = diffs->items.first; d; d = d->next)
        if (d->type != SILT_JSON_STRING || !parse_digest(d->string, ret->diffs[ret->count++]))
            return silt_fail(e, SILT_INVALID, "configuration: a layer without a sha256 digest");
    return 0;
}

int silt_manifest_read_config(silt_slice json, struct silt_manifest_config *ret,
                              struct silt_buf *said, struct silt_error *e)
{
    static const char *const known[] = {"Cmd",   "Entrypoint", "Env",  "ExposedPorts", "Labels",
                                        "Shell", "StopSignal", "User", "WorkingDir"};
    silt_auto_arena a = {0};
    const struct silt_json *v;
    if (read_object(&a, json, "configuration", &v, e) < 0)
        return -1;
    ret->count = 0;
    if (check_platform(v, e) < 0 || read_diffs(v, ret, e) < 0)
        return -1;
    const struct silt_json *config = get(v, "config");
    silt_json_open(said, '{');
    for (size_t i = 0; i < SILT_COUNT(known); i++) {
        const struct silt_json *member = get(config, known[i]);
        if (!member || member->type == SILT_JSON_NULL)
            continue;
        silt_json_key(said, silt_slice_of(known[i]));
        silt_json_value(said, member);
    }
    silt_json_close(said, '}');
    if (said->broken || said->len > SILT_MANIFEST_SAID_MAX)
        return silt_fail(e, SILT_LIMIT, "configuration: it says more than %d bytes",
                         SILT_MANIFEST_SAID_MAX);
    return 0;
}
