/* SPDX-License-Identifier: Apache-2.0 */
/* Images: inspect, list, tag, untag; commit of a container. */
#include "api/engine/engine.h"
#include "base/reference.h"
#include "json/json.h"
#include "sandbox/core/image.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/start_frame.h"
#include "sandbox/image/seal.h"

#include <assert.h>
#include <stdio.h>

enum { ANSWER_MAX = 8 << 20, DIGEST_TEXT = 8 + 2 * SILT_DIGEST_SIZE };

static void digest_text(const uint8_t digest[SILT_DIGEST_SIZE], char out[DIGEST_TEXT])
{
    memcpy(out, "sha256:", 8);
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++)
        (void)snprintf(out + 7 + i * 2, 3, "%02x", digest[i]);
}

static void add(struct silt_buf *b, const char *key, silt_slice value)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, value);
}

static void add_words(struct silt_buf *b, const char *key, const struct silt_image_words *w)
{
    silt_json_key(b, silt_slice_of(key));
    if (!w->given) {
        silt_json_null(b);
        return;
    }
    silt_json_open(b, '[');
    for (size_t i = 0; i < w->count; i++)
        silt_json_string(b, w->items[i]);
    silt_json_close(b, ']');
}

/* Names include their tag here, as in Docker. */
static void add_tags(struct silt_buf *b, const struct silt_image *image)
{
    silt_json_key(b, SILT_LIT("RepoTags"));
    silt_json_open(b, '[');
    silt_list_each(it, &image->names)
    {
        silt_slice name = silt_slice_of(silt_outer(it, struct silt_image_name, link)->text);
        char text[SILT_REFERENCE_SIZE + 8];
        (void)snprintf(text, sizeof(text), "%s%s", name.data,
                       silt_reference_tag(name) == name.len ? ":latest" : "");
        silt_json_string(b, silt_slice_of(text));
    }
    silt_json_close(b, ']');
}

/* Old versions of wrangler require an exposed port; the control port is one. */
static void add_ports(struct silt_buf *b, const struct silt_image_config *c)
{
    silt_json_key(b, SILT_LIT("ExposedPorts"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < c->ports.count; i++) {
        silt_json_key(b, c->ports.items[i]);
        silt_json_raw(b, SILT_LIT("{}"));
    }
    if (c->ports.count == 0 && silt_image_config_is_builtin(c)) {
        silt_json_key(b, SILT_LIT("3000/tcp"));
        silt_json_raw(b, SILT_LIT("{}"));
    }
    silt_json_close(b, '}');
}

static void add_labels(struct silt_buf *b, const struct silt_image_config *c)
{
    silt_json_key(b, SILT_LIT("Labels"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < c->label_count; i++) {
        silt_json_key(b, c->labels[i].name);
        silt_json_string(b, c->labels[i].value);
    }
    silt_json_close(b, '}');
}

static void add_config(struct silt_buf *b, const struct silt_image_config *c)
{
    silt_slice env = c->env, one;
    silt_json_key(b, SILT_LIT("Config"));
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("Env"));
    silt_json_open(b, '[');
    while (env.len > 0 && silt_slice_split(&env, 0, &one))
        if (one.len > 0)
            silt_json_string(b, one);
    silt_json_close(b, ']');
    add_words(b, "Cmd", &c->cmd);
    add_words(b, "Entrypoint", &c->entrypoint);
    add(b, "WorkingDir", c->workdir);
    add(b, "User", c->user);
    add_ports(b, c);
    add_labels(b, c);
    silt_json_close(b, '}');
}

static void write_image(struct silt_buf *b, const struct silt_image *image)
{
    char id[DIGEST_TEXT], parent[DIGEST_TEXT] = "";
    digest_text(image->row.digest, id);
    if (image->parent != NULL)
        digest_text(image->parent->row.digest, parent);
    silt_json_open(b, '{');
    add(b, "Id", silt_slice_of(id));
    add_tags(b, image);
    silt_json_key(b, SILT_LIT("RepoDigests"));
    silt_json_raw(b, SILT_LIT("[]"));
    add(b, "Parent", silt_slice_of(parent));
    silt_json_key(b, SILT_LIT("Created"));
    silt_api_time(b, image->row.created_ms);
    silt_json_key(b, SILT_LIT("Size"));
    silt_json_u64(b, silt_image_bytes(image));
    add(b, "Architecture", SILT_LIT("amd64"));
    add(b, "Os", SILT_LIT("linux"));
    add_config(b, &image->config);
    silt_json_key(b, SILT_LIT("RootFS"));
    silt_json_raw(b, SILT_LIT("{\"Type\":\"layers\",\"Layers\":[]}"));
    silt_json_close(b, '}');
}

/* In lists, where times are numbers. */
static void write_image_item(struct silt_buf *b, const struct silt_image *image)
{
    char id[DIGEST_TEXT], parent[DIGEST_TEXT] = "";
    digest_text(image->row.digest, id);
    if (image->parent != NULL)
        digest_text(image->parent->row.digest, parent);
    silt_json_open(b, '{');
    add(b, "Id", silt_slice_of(id));
    add(b, "ParentId", silt_slice_of(parent));
    add_tags(b, image);
    silt_json_key(b, SILT_LIT("RepoDigests"));
    silt_json_raw(b, SILT_LIT("[]"));
    silt_json_key(b, SILT_LIT("Created"));
    silt_json_i64(b, image->row.created_ms / 1000);
    silt_json_key(b, SILT_LIT("Size"));
    silt_json_u64(b, silt_image_bytes(image));
    silt_json_key(b, SILT_LIT("VirtualSize"));
    silt_json_u64(b, silt_image_bytes(image));
    silt_json_key(b, SILT_LIT("SharedSize"));
    silt_json_i64(b, image->parent != NULL ? (int64_t)silt_image_bytes(image->parent) : 0);
    silt_json_key(b, SILT_LIT("Containers"));
    silt_json_i64(b, -1);
    add_labels(b, &image->config);
    silt_json_close(b, '}');
}

void silt_engine_add_images(struct silt_buf *b, const struct silt_registry *registry, bool all)
{
    silt_json_open(b, '[');
    silt_list_each(it, &registry->images)
    {
        const struct silt_image *image = silt_outer(it, struct silt_image, link);
        if (all || !silt_list_empty(&image->names))
            write_image_item(b, image);
    }
    silt_json_close(b, ']');
}

/* "name/with/slashes/json": the decoded name, without its last part. */
static bool name_before(struct silt_http_request *r, silt_slice rest, const char *last,
                        silt_slice *ret)
{
    size_t len = strlen(last);
    if (rest.len <= len || memcmp(rest.data + rest.len - len, last, len) != 0) {
        silt_engine_refuse_page(r);
        return false;
    }
    *ret = silt_percent_decode(r->arena, (silt_slice){rest.data, rest.len - len});
    return true;
}

static struct silt_image *known(struct silt_http_request *r, silt_slice name)
{
    silt_slice plain = name, rest = name;
    if (!silt_slice_starts(name, SILT_LIT("sha256:")))
        (void)silt_slice_split(&rest, '@', &plain);
    struct silt_image *image = silt_image_find(silt_engine_of(r)->all->registry, plain, NULL);
    if (image == NULL)
        silt_engine_refuse(r, 404, "No such image: %.*s", (int)(name.len < 300 ? name.len : 300),
                           name.data);
    return image;
}

static bool ends_with(silt_slice s, silt_slice end)
{
    return s.len > end.len && memcmp(s.data + s.len - end.len, end.data, end.len) == 0;
}

/* What `docker save` writes, through the export route, which takes the name as one path
 * component. */
static void export(struct silt_http_request *r, silt_slice name)
{
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    silt_buf_add(&b, SILT_LIT("/v1/images/"));
    for (size_t i = 0; i < name.len; i++)
        silt_buf_addf(&b, "%%%02X", (unsigned char)name.data[i]);
    silt_buf_add(&b, SILT_LIT("/export"));
    char *path = silt_arena_dup(r->arena, silt_buf_slice(&b));
    assert(path != NULL);
    silt_http_redirect(r, (silt_slice){path, b.len});
    silt_http_redirect_query(r, SILT_LIT("format=docker"));
    silt_api_route(silt_engine_of(r)->api, r);
}

SILT_HANDLER(silt_engine_image_get)
{
    silt_slice name;
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    bool whole = ends_with(args[0], SILT_LIT("/get")),
         ours = ends_with(args[0], SILT_LIT("/export"));
    if (silt_slice_eq(args[0], SILT_LIT("get"))) { /* the form used by `docker save` */
        export(r, silt_engine_query(r, "names"));
        return;
    }
    if (!name_before(r, args[0], whole ? "/get" : ours ? "/export" : "/json", &name))
        return;
    if (whole || ours) {
        export(r, name);
        return;
    }
    const struct silt_image *image = known(r, name);
    if (image == NULL)
        return;
    write_image(&b, image);
    silt_engine_answer(r, 200, &b);
}

SILT_HANDLER(silt_engine_image_list)
{
    struct silt_registry *registry = silt_engine_of(r)->all->registry;
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, ANSWER_MAX);
    silt_engine_add_images(&b, registry, true);
    silt_engine_answer(r, 200, &b);
}

/* Names */

/* The normalized "repo:tag". */
static int read_name(silt_slice repo, silt_slice tag, char ret[SILT_REFERENCE_SIZE],
                     struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_buf_add(&b, repo);
    if (tag.len > 0)
        silt_buf_add_byte(&b, ':');
    silt_buf_add(&b, tag);
    return b.broken ? silt_fail(e, SILT_INVALID, "the name is too long")
                    : silt_reference_read(silt_buf_slice(&b), ret, e);
}

SILT_HANDLER(silt_engine_image_tag)
{
    silt_slice name;
    char text[SILT_REFERENCE_SIZE];
    struct silt_error e;
    if (!name_before(r, args[0], "/tag", &name))
        return;
    struct silt_image *image = known(r, name);
    if (image == NULL)
        return;
    if (read_name(silt_engine_query(r, "repo"), silt_engine_query(r, "tag"), text, &e) < 0
        || silt_image_tag(image->registry, image, text, &e) < 0)
        silt_engine_refuse_error(r, &e);
    else
        silt_engine_empty(r, 201);
}

static bool is_of(const struct silt_sandbox *s, const struct silt_image *image)
{
    return s != NULL && memcmp(s->row.digest, image->row.digest, SILT_DIGEST_SIZE) == 0;
}

/* Names the container that uses it, as `docker ps -a` does. */
static void refuse_used(struct silt_http_request *r, const struct silt_image *image,
                        const char *name, const struct silt_error *e)
{
    struct silt_containers *all = silt_engine_of(r)->all;
    struct silt_kept k;
    uint32_t slot = 0;
    silt_list_each(it, &all->list)
    {
        const struct silt_container *c = silt_outer(it, struct silt_container, link);
        if (c->spec.kind == SILT_CONTAINER_APP
            && is_of(silt_registry_find(all->registry, silt_slice_of(c->sandbox)), image)) {
            silt_engine_refuse(r, 409,
                               "image %s is used by container %s (%.12s): remove that first", name,
                               c->row.name, c->row.id);
            return;
        }
    }
    while (silt_kept_next(all, r->arena, &slot, &k))
        if (is_of(k.sandbox, image)) {
            silt_engine_refuse(
                r, 409,
                "image %s is used by the kept files of container %.*s (%.12s): remove that first",
                name, (int)k.name.len, k.name.data, k.id);
            return;
        }
    silt_engine_refuse(r, 409, "%s (`silt ls` shows it)", e->text);
}

SILT_HANDLER(silt_engine_image_remove)
{
    silt_slice name = silt_percent_decode(r->arena, args[0]);
    char text[SILT_REFERENCE_SIZE];
    struct silt_error e;
    bool existed = false;
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    const struct silt_image *image = known(r, name);
    if (image == NULL)
        return;
    if (silt_slice_starts(name, SILT_LIT("sha256:")) || silt_reference_read(name, text, &e) < 0)
        silt_image_title(image, text);
    if (silt_image_untag(image->registry, text, &existed, &e) < 0) {
        if (e.code == SILT_CONFLICT)
            refuse_used(r, image, text, &e);
        else
            silt_engine_refuse_error(r, &e);
        return;
    }
    if (!existed) {
        silt_engine_refuse(r, 404, "No such image: %.*s", (int)(name.len < 300 ? name.len : 300),
                           name.data);
        return;
    }
    silt_json_open(&b, '[');
    silt_json_open(&b, '{');
    add(&b, "Untagged", silt_slice_of(text));
    silt_json_close(&b, '}');
    silt_json_close(&b, ']');
    silt_engine_answer(r, 200, &b);
}

/* The API's build route, for clients that may open this socket and have no token. */
SILT_HANDLER(silt_engine_build)
{
    struct silt_engine *g = silt_engine_of(r);
    (void)args;
    silt_http_redirect(r, SILT_LIT("/v1/images/build"));
    silt_api_route(g->api, r);
}

/* Any supported archive; names come from the archive. */
SILT_HANDLER(silt_engine_image_load)
{
    (void)args;
    silt_http_redirect(r, SILT_LIT("/v1/images/import"));
    silt_http_redirect_query(r, SILT_LIT(""));
    silt_api_route(silt_engine_of(r)->api, r);
}

/* Commits */

struct committing {
    struct silt_http_request *request;
    struct silt_seal *seal;
};

static void on_gone(struct silt_http_request *r)
{
    struct committing *c = r->owner;
    silt_seal_leave(c->seal);
}

static void on_sealed(void *context, struct silt_image *image, const struct silt_error *e)
{
    struct committing *c = context;
    struct silt_http_request *r = c->request;
    char id[DIGEST_TEXT];
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    r->on_gone = NULL;
    if (image == NULL) {
        silt_engine_refuse_error(r, e);
        return;
    }
    digest_text(image->row.digest, id);
    silt_json_open(&b, '{');
    add(&b, "Id", silt_slice_of(id));
    silt_json_close(&b, '}');
    silt_engine_answer(r, 201, &b);
}

static struct silt_image_words words_of(const struct silt_words *w)
{
    return (struct silt_image_words){.items = w->items, .count = w->count, .given = w->given};
}

/* The image's configuration is the one the container was created with. */
static void write_config(const struct silt_container *c, const struct silt_image *image,
                         struct silt_buf *b)
{
    struct silt_image_config config = image->config;
    silt_auto_buf env;
    silt_buf_init(&env, SILT_IMAGE_CONFIG_MAX);
    silt_env_merge(&env, config.env);
    silt_env_merge(&env, c->spec.env);
    config.env = silt_buf_slice(&env);
    if (c->spec.cmd.given && c->spec.cmd.count > 0)
        config.cmd = words_of(&c->spec.cmd);
    if (c->spec.entrypoint.given && c->spec.entrypoint.count > 0)
        config.entrypoint = words_of(&c->spec.entrypoint);
    silt_image_config_write(b, &config);
    silt_buf_add_byte(b, 0);
    b->broken = b->broken || env.broken;
}

/* Volumes are copies in the container's own tree; a container started by an earlier version has
 * them at the paths it was given. */
static void write_left_out(const struct silt_container *c, struct silt_buf *b)
{
    silt_buf_add(b, (silt_slice){c->row.copies, c->row.copies_len});
    if (c->row.copies_len > 0)
        return;
    for (size_t i = 0; i < c->spec.mount_count; i++) {
        silt_buf_add(b, c->spec.mounts[i].target);
        silt_buf_add_byte(b, 0);
    }
}

SILT_HANDLER(silt_engine_commit)
{
    struct silt_engine *g = silt_engine_of(r);
    silt_slice repo = silt_engine_query(r, "repo"), named = silt_engine_query(r, "container");
    struct silt_container *c = silt_container_find(g->all, silt_percent_decode(r->arena, named));
    char text[SILT_REFERENCE_SIZE];
    const char *names[] = {text};
    struct silt_error e;
    silt_auto_buf config, left_out;
    (void)args;
    silt_buf_init(&config, SILT_IMAGE_CONFIG_MAX * 2);
    silt_buf_init(&left_out, SILT_SEAL_LEFT_OUT_MAX);
    struct silt_sandbox *s = c != NULL && c->spec.kind == SILT_CONTAINER_APP
                                 ? silt_registry_find(g->all->registry, silt_slice_of(c->sandbox))
                                 : NULL;
    const struct silt_image *image = s != NULL ? silt_image_of(s) : NULL;
    if (image == NULL) {
        silt_engine_refuse(r, 404, "No such container: %.*s",
                           (int)(named.len < 300 ? named.len : 300),
                           named.data != NULL ? named.data : "");
        return;
    }
    struct committing *k = silt_arena_alloc(r->arena, sizeof(*k));
    assert(k != NULL);
    *k = (struct committing){.request = r};
    write_config(c, image, &config);
    write_left_out(c, &left_out);
    struct silt_seal_options o = {.config = config.broken ? NULL : config.data,
                                  .names = names,
                                  .name_count = repo.len > 0,
                                  .left_out = silt_buf_slice(&left_out)};
    if ((repo.len > 0 && read_name(repo, silt_engine_query(r, "tag"), text, &e) < 0)
        || silt_image_seal(s, &o, on_sealed, k, &k->seal, &e) < 0) {
        silt_engine_refuse_error(r, &e);
        return;
    }
    r->owner = k;
    r->on_gone = on_gone;
}
