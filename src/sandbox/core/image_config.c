/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/image_config.h"
#include "base/id.h"
#include "base/map.h"
#include "json/json.h"
#include "sandbox/core/start_frame.h"

#include <limits.h>
#include <stdlib.h>

static int no_room(struct silt_error *e)
{
    return silt_fail(e, SILT_LIMIT, "image configuration of more than %d bytes",
                     SILT_IMAGE_CONFIG_MAX);
}

static int read_text(const struct silt_json *object, const char *key, size_t max, silt_slice *ret,
                     struct silt_error *e)
{
    const struct silt_json *v = silt_json_get(object, silt_slice_of(key));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return 0;
    if (v->type != SILT_JSON_STRING || silt_slice_has_byte(v->string, 0) || v->string.len > max)
        return silt_fail(e, SILT_INVALID,
                         "%s of the image configuration is no text of at most %zu bytes", key, max);
    *ret = v->string;
    return 0;
}

/* An array of strings, or the keys of an object. */
static int read_words(struct silt_arena *a, const struct silt_json *object, const char *key,
                      struct silt_image_words *ret, struct silt_error *e)
{
    const struct silt_json *v = silt_json_get(object, silt_slice_of(key));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return 0;
    bool names = v->type == SILT_JSON_OBJECT;
    if ((!names && v->type != SILT_JSON_ARRAY) || v->items.count > SILT_IMAGE_WORDS_MAX)
        return silt_fail(e, SILT_INVALID,
                         "%s of the image configuration is no list of at most %d texts", key,
                         SILT_IMAGE_WORDS_MAX);
    ret->items = silt_arena_alloc(a, (v->items.count + 1) * sizeof(silt_slice));
    if (ret->items == NULL)
        return no_room(e);
    ret->given = true;
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next) {
        silt_slice text = names                         ? i->key
                          : i->type == SILT_JSON_STRING ? i->string
                                                        : (silt_slice){NULL, 0};
        if (text.data == NULL || silt_slice_has_byte(text, 0))
            return silt_fail(e, SILT_INVALID,
                             "%s of the image configuration holds something that is no text", key);
        ret->items[ret->count++] = text;
    }
    return 0;
}

static int read_variable(silt_slice word, silt_slice *ret_name, struct silt_error *e)
{
    silt_slice rest = word;
    if (!silt_slice_split(&rest, '=', ret_name) || rest.data == NULL)
        return silt_fail(e, SILT_INVALID,
                         "Env of the image configuration holds '%.*s', which is no NAME=value",
                         word.len > 80 ? 80 : (int)word.len, word.data);
    return 0;
}

/* The last entry of a name wins, so scan backwards and empty the others. Also drops names that
 * Docker allows and we do not; no shell could use those either. */
static int drop_variables(struct silt_image_words *words, struct silt_map *names,
                          struct silt_error *e)
{
    for (size_t i = words->count; i-- > 0;) {
        silt_slice *word = &words->items[i], name = {NULL, 0};
        if (read_variable(*word, &name, e) < 0)
            return -1;
        if (!silt_id_is_env_name(name) || silt_map_find(names, name) != NULL)
            word->len = 0;
        else
            silt_map_put(names, name, word);
    }
    return 0;
}

static int read_env(struct silt_arena *a, const struct silt_json *object, silt_slice *ret,
                    struct silt_error *e)
{
    struct silt_image_words words = {0};
    struct silt_map names;
    silt_auto_buf env;
    silt_buf_init(&env, SILT_IMAGE_CONFIG_MAX);
    if (read_words(a, object, "Env", &words, e) < 0)
        return -1;
    silt_map_init(&names);
    int got = drop_variables(&words, &names, e);
    silt_map_fini(&names);
    if (got < 0)
        return -1;
    for (size_t i = 0; i < words.count; i++)
        if (words.items[i].len > 0) {
            silt_buf_add(&env, words.items[i]);
            silt_buf_add_byte(&env, 0);
        }
    char *copy = silt_arena_dup(a, silt_buf_slice(&env));
    if (copy == NULL || env.broken)
        return no_room(e);
    *ret = (silt_slice){copy, env.len};
    return 0;
}

static int compare_labels(const void *a, const void *b)
{
    const struct silt_label *x = a, *y = b;
    size_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
    int order = n > 0 ? memcmp(x->name.data, y->name.data, n) : 0;
    return order != 0 ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

static int read_labels(struct silt_arena *a, const struct silt_json *object,
                       struct silt_image_config *c, struct silt_error *e)
{
    const struct silt_json *v = silt_json_get(object, SILT_LIT("Labels"));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return 0;
    if (v->type != SILT_JSON_OBJECT || v->items.count > SILT_IMAGE_WORDS_MAX)
        return silt_fail(e, SILT_INVALID, "Labels of the image configuration is no object");
    c->labels = silt_arena_alloc(a, (v->items.count + 1) * sizeof(struct silt_label));
    if (c->labels == NULL)
        return no_room(e);
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next) {
        if (i->type != SILT_JSON_STRING)
            return silt_fail(e, SILT_INVALID,
                             "Labels of the image configuration holds something that is no text");
        c->labels[c->label_count++] = (struct silt_label){i->key, i->string};
    }
    qsort(c->labels, c->label_count, sizeof(struct silt_label), compare_labels);
    return 0;
}

int silt_image_config_read(struct silt_arena *a, silt_slice json, struct silt_image_config *ret,
                           struct silt_error *e)
{
    const struct silt_json *object;
    struct silt_image_config c = {0};
    if (json.len > SILT_IMAGE_CONFIG_MAX)
        return no_room(e);
    char *copy = silt_arena_dup(a, json); /* strings point into it */
    if (copy == NULL)
        return no_room(e);
    if (silt_json_read(a, (silt_slice){copy, json.len}, &object, e) < 0)
        return silt_because(e, "image configuration");
    if (object->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_INVALID, "the image configuration is no JSON object");
    if (read_env(a, object, &c.env, e) < 0
        || read_words(a, object, "Entrypoint", &c.entrypoint, e) < 0
        || read_words(a, object, "Cmd", &c.cmd, e) < 0
        || read_words(a, object, "Shell", &c.shell, e) < 0
        || read_words(a, object, "ExposedPorts", &c.ports, e) < 0
        || read_labels(a, object, &c, e) < 0
        || read_text(object, "WorkingDir", PATH_MAX - 1, &c.workdir, e) < 0
        || read_text(object, "User", 128, &c.user, e) < 0
        || read_text(object, "StopSignal", 32, &c.stop_signal, e) < 0)
        return -1;
    if (c.workdir.len > 0 && c.workdir.data[0] != '/')
        return silt_fail(e, SILT_INVALID,
                         "WorkingDir of the image configuration is no absolute path");
    *ret = c;
    return 0;
}

static void add_words(struct silt_buf *b, const char *key, const struct silt_image_words *w)
{
    if (!w->given)
        return;
    silt_json_key(b, silt_slice_of(key));
    silt_json_open(b, '[');
    for (size_t i = 0; i < w->count; i++)
        silt_json_string(b, w->items[i]);
    silt_json_close(b, ']');
}

static void add_env(struct silt_buf *b, silt_slice env)
{
    silt_slice one;
    if (env.len == 0)
        return;
    silt_json_key(b, SILT_LIT("Env"));
    silt_json_open(b, '[');
    while (env.len > 0 && silt_slice_split(&env, 0, &one))
        silt_json_string(b, one);
    silt_json_close(b, ']');
}

static void add_ports(struct silt_buf *b, const struct silt_image_words *ports)
{
    if (ports->count == 0)
        return;
    silt_json_key(b, SILT_LIT("ExposedPorts"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < ports->count; i++) {
        silt_json_key(b, ports->items[i]);
        silt_json_open(b, '{');
        silt_json_close(b, '}');
    }
    silt_json_close(b, '}');
}

static void add_labels(struct silt_buf *b, const struct silt_image_config *c)
{
    if (c->label_count == 0)
        return;
    silt_json_key(b, SILT_LIT("Labels"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < c->label_count; i++) {
        silt_json_key(b, c->labels[i].name);
        silt_json_string(b, c->labels[i].value);
    }
    silt_json_close(b, '}');
}

static void add_text(struct silt_buf *b, const char *key, silt_slice text)
{
    if (text.len == 0)
        return;
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, text);
}

void silt_image_config_write(struct silt_buf *b, const struct silt_image_config *c)
{
    silt_json_open(b, '{');
    add_words(b, "Cmd", &c->cmd);
    add_words(b, "Entrypoint", &c->entrypoint);
    add_env(b, c->env);
    add_ports(b, &c->ports);
    add_labels(b, c);
    add_words(b, "Shell", &c->shell);
    add_text(b, "StopSignal", c->stop_signal);
    add_text(b, "User", c->user);
    add_text(b, "WorkingDir", c->workdir);
    silt_json_close(b, '}');
}

silt_slice silt_image_config_label(const struct silt_image_config *c, silt_slice name)
{
    for (size_t i = 0; i < c->label_count; i++)
        if (silt_slice_eq(c->labels[i].name, name))
            return c->labels[i].value;
    return (silt_slice){NULL, 0};
}

bool silt_image_config_is_builtin(const struct silt_image_config *c)
{
    return silt_slice_eq(silt_image_config_label(c, SILT_LIT("silt.control")), SILT_LIT("builtin"));
}
