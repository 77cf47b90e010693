/* SPDX-License-Identifier: Apache-2.0 */
/* config: Dockerfile steps that change an image's configuration, and the variables they see. */
#include "base/id.h"
#include "base/reference.h"
#include "sandbox/build/internal.h"
#include "sandbox/core/start_frame.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- variables ---- */

enum {
    /* Per build: well below a second, during which the loop is blocked. */
    LOOKED_MAX = 128 << 20
};

static silt_slice find_in(silt_slice env, silt_slice name)
{
    silt_slice one, key;
    while (env.len > 0 && silt_slice_split(&env, 0, &one))
        if (silt_slice_split(&one, '=', &key) && silt_slice_eq(key, name))
            return one.data != NULL ? one : SILT_LIT("");
    return (silt_slice){NULL, 0};
}

static silt_slice look(struct silt_build *b, silt_slice env, silt_slice name)
{
    b->looked += env.len;
    return b->looked <= LOOKED_MAX ? find_in(env, name) : (silt_slice){NULL, 0};
}

/* An image may leave PATH unset; `ENV PATH=/more:$PATH` then means the default of its commands. */
static silt_slice find_in_stage(void *context, silt_slice name)
{
    struct silt_build *b = context;
    silt_slice found = look(b, b->config.env, name);
    if (found.data == NULL)
        found = look(b, b->args, name);
    return found.data == NULL && silt_slice_eq(name, SILT_LIT("PATH")) ? SILT_LIT(SILT_USUAL_PATH)
                                                                       : found;
}

static silt_slice find_global(void *context, silt_slice name)
{
    struct silt_build *b = context;
    return look(b, b->globals, name);
}

static silt_slice expand(struct silt_build *b, silt_slice word,
                         silt_slice (*find)(void *, silt_slice), bool text)
{
    struct silt_docker_scope scope = {
        .find = find, .context = b, .escape = b->file.escape, .steps = &b->looked};
    struct silt_error e;
    silt_auto_buf out;
    silt_buf_init(&out, SILT_DOCKER_VALUE_MAX);
    int done = text ? silt_docker_expand_text(&out, word, &scope, &e)
                    : silt_docker_expand(&out, word, &scope, &e);
    if (done == 0 && b->looked > LOOKED_MAX)
        done = silt_fail(&e, SILT_LIMIT, "too many variables are used too often");
    if (done < 0) {
        (void)silt_build_fail_step(b, &e);
        return (silt_slice){NULL, 0};
    }
    char *copy = silt_build_dup(b, silt_buf_slice(&out));
    return (silt_slice){copy, copy != NULL ? out.len : 0};
}

silt_slice silt_build_expand(struct silt_build *b, silt_slice word)
{
    return expand(b, word, find_in_stage, false);
}

silt_slice silt_build_expand_global(struct silt_build *b, silt_slice word)
{
    return expand(b, word, find_global, false);
}

silt_slice silt_build_expand_heredoc(struct silt_build *b, const struct silt_docker_heredoc *h)
{
    return h->expand ? expand(b, h->body, find_in_stage, true) : h->body;
}

/* Sets one variable; false: failed. */
static bool set(struct silt_build *b, silt_slice *env, silt_slice name, silt_slice value)
{
    silt_auto_buf all, one;
    silt_buf_init(&all, SILT_IMAGE_CONFIG_MAX);
    silt_buf_init(&one, SILT_IMAGE_CONFIG_MAX);
    silt_buf_add(&one, name);
    silt_buf_add_byte(&one, '=');
    silt_buf_add(&one, value);
    silt_buf_add_byte(&one, 0);
    b->looked += env->len;
    if (b->looked <= LOOKED_MAX) {
        silt_env_merge(&all, *env);
        silt_env_merge(&all, silt_buf_slice(&one));
    }
    if (all.broken || one.broken || b->looked > LOOKED_MAX)
        return silt_build_refuse(b, "too many variables");
    char *copy = silt_build_dup(b, silt_buf_slice(&all));
    *env = (silt_slice){copy, all.len};
    return copy != NULL;
}

/* 1.2.3 of 1.2.3-python; empty: the tag is not a version. */
static silt_slice version_of(silt_slice tag)
{
    size_t len = 0, dots = 0;
    for (;
         len < tag.len && (tag.data[len] == '.' || (tag.data[len] >= '0' && tag.data[len] <= '9'));
         len++)
        dots += tag.data[len] == '.';
    bool whole = len == tag.len || tag.data[len] == '-';
    return (silt_slice){tag.data, dots == 2 && whole ? len : 0};
}

silt_slice silt_build_without_digest(silt_slice name)
{
    silt_slice rest = name, plain;
    return silt_slice_split(&rest, '@', &plain) && silt_slice_starts(rest, SILT_LIT("sha256:"))
               ? plain
               : name;
}

bool silt_build_take_version(struct silt_build *b, silt_slice name)
{
    char spelled[SILT_REFERENCE_SIZE];
    struct silt_error e;
    if (silt_reference_read(silt_build_without_digest(name), spelled, &e) < 0)
        return silt_build_fail_step(b, &e);
    silt_slice all = silt_slice_of(spelled);
    size_t tag = silt_reference_tag(all);
    silt_slice version = version_of((silt_slice){all.data + tag, all.len - tag});
    return version.len == 0 || set(b, &b->config.env, SILT_LIT("SANDBOX_VERSION"), version);
}

static silt_slice given(struct silt_build *b, silt_slice name)
{
    for (size_t i = 0; i < b->options.arg_count; i++)
        if (silt_slice_eq(b->options.args[i].name, name)) {
            b->arg_used[i] = true;
            return b->options.args[i].value;
        }
    return (silt_slice){NULL, 0};
}

/* The caller's value, else the default given here, else the value from before the first stage. */
static bool declare_one(struct silt_build *b, silt_slice word, bool global)
{
    silt_slice name = {NULL, 0}, preset = word;
    (void)silt_slice_split(&preset, '=', &name);
    if (!silt_id_is_env_name(name))
        return silt_build_refuse(b, "ARG needs a name");
    silt_slice value = given(b, name);
    if (value.data == NULL && preset.data != NULL) {
        value = expand(b, preset, global ? find_global : find_in_stage, false);
        if (value.data == NULL)
            return false;
    }
    if (value.data == NULL && !global)
        value = find_in(b->globals, name);
    return value.data == NULL || set(b, global ? &b->globals : &b->args, name, value);
}

bool silt_build_declare(struct silt_build *b, const struct silt_docker_step *s, bool global)
{
    for (size_t i = 0; i < s->word_count; i++)
        if (!declare_one(b, s->words[i], global))
            return false;
    return true;
}

/* ---- paths ---- */

static void add_parts(struct silt_buf *out, silt_slice path)
{
    silt_slice part;
    while (silt_slice_split(&path, '/', &part)) {
        if (part.len == 0 || silt_slice_eq(part, SILT_LIT(".")))
            continue;
        if (silt_slice_eq(part, SILT_LIT(".."))) {
            while (out->len > 0 && out->data[out->len - 1] != '/')
                out->len--;
            out->len -= out->len > 0;
            continue;
        }
        silt_buf_add_byte(out, '/');
        silt_buf_add(out, part);
    }
}

silt_slice silt_build_path(struct silt_build *b, silt_slice path)
{
    silt_auto_buf out;
    silt_buf_init(&out, PATH_MAX);
    if (path.len == 0 || path.data[0] != '/')
        add_parts(&out, b->config.workdir);
    add_parts(&out, path);
    if (out.len == 0)
        silt_buf_add_byte(&out, '/');
    if (out.broken || out.len >= PATH_MAX) {
        (void)silt_build_refuse(b, "a path is too long");
        return (silt_slice){NULL, 0};
    }
    char *copy = silt_build_dup(b, silt_buf_slice(&out));
    return (silt_slice){copy, copy != NULL ? out.len : 0};
}

/* ---- configuration ---- */

static bool add_word(struct silt_build *b, struct silt_image_words *w, silt_slice word)
{
    for (size_t i = 0; i < w->count; i++)
        if (silt_slice_eq(w->items[i], word))
            return true;
    silt_slice *more = silt_arena_alloc(&b->arena, (w->count + 1) * sizeof(*more));
    if (more == NULL || w->count >= SILT_IMAGE_WORDS_MAX)
        return silt_build_refuse(b, "too much to remember");
    if (w->count > 0)
        memcpy(more, w->items, w->count * sizeof(*more));
    more[w->count] = word;
    *w = (struct silt_image_words){more, w->count + 1, true};
    return true;
}

/* CMD and ENTRYPOINT: a list is taken literally, text goes to the shell. */
static bool set_words(struct silt_build *b, const struct silt_docker_step *s,
                      struct silt_image_words *w)
{
    *w = (struct silt_image_words){.items = s->words, .count = s->word_count, .given = true};
    if (s->json || s->rest.len == 0) {
        w->count = s->json ? s->word_count : 0;
        return true;
    }
    static silt_slice shell[] = {{"/bin/sh", 7}, {"-c", 2}};
    bool own = b->config.shell.count > 0;
    const silt_slice *items = own ? b->config.shell.items : shell;
    size_t count = own ? b->config.shell.count : SILT_COUNT(shell);
    *w = (struct silt_image_words){
        .items = silt_arena_alloc(&b->arena, (count + 1) * sizeof(silt_slice)), .given = true};
    if (w->items == NULL)
        return silt_build_refuse(b, "too much to remember");
    memcpy(w->items, items, count * sizeof(silt_slice));
    w->items[count] = s->rest;
    w->count = count + 1;
    return true;
}

static bool set_label(struct silt_build *b, silt_slice name, silt_slice value)
{
    struct silt_image_config *c = &b->config;
    struct silt_label *more = silt_arena_alloc(&b->arena, (c->label_count + 1) * sizeof(*more));
    if (more == NULL || c->label_count >= SILT_IMAGE_WORDS_MAX)
        return silt_build_refuse(b, "too many labels");
    size_t at = 0;
    for (size_t i = 0; i < c->label_count; i++)
        if (!silt_slice_eq(c->labels[i].name, name))
            more[at++] = c->labels[i];
    more[at++] = (struct silt_label){name, value};
    c->labels = more;
    c->label_count = at;
    return true;
}

/* Inherited labels do not count as this Dockerfile's. */
void silt_build_drop_sizes(struct silt_build *b)
{
    struct silt_image_config *c = &b->config;
    size_t kept = 0;
    if (b->stage != b->target)
        return;
    for (size_t i = 0; i < c->label_count; i++) {
        bool type =
            b->options.type.len > 0 && silt_slice_eq(c->labels[i].name, SILT_LIT("silt.type"));
        bool count = b->options.max_instances.len > 0
                     && silt_slice_eq(c->labels[i].name, SILT_LIT("silt.max_instances"));
        if (!type && !count)
            c->labels[kept++] = c->labels[i];
    }
    c->label_count = kept;
}

static bool set_missing_label(struct silt_build *b, silt_slice name, silt_slice value)
{
    return value.len == 0 || silt_image_config_label(&b->config, name).data != NULL
           || set_label(b, name, value);
}

bool silt_build_add_labels(struct silt_build *b)
{
    const struct silt_build_options *o = &b->options;
    struct silt_error e;
    if (b->stage != b->target)
        return true;
    if (b->config.label_count + o->label_count + 2 > SILT_IMAGE_WORDS_MAX) {
        (void)silt_fail(&e, SILT_LIMIT, "too many labels");
        silt_build_fail(b, &e);
        return false;
    }
    for (size_t i = 0; i < o->label_count; i++)
        if (!set_label(b, o->labels[i].name, o->labels[i].value))
            return false;
    return set_missing_label(b, SILT_LIT("silt.type"), o->type)
           && set_missing_label(b, SILT_LIT("silt.max_instances"), o->max_instances);
}

bool silt_build_be_builtin(struct silt_build *b)
{
    return set_label(b, SILT_LIT("silt.control"), SILT_LIT("builtin"));
}

static bool set_pairs(struct silt_build *b, const struct silt_docker_step *s)
{
    struct silt_docker_pair *pairs;
    struct silt_error e;
    silt_slice before = b->config.env, after = before;
    size_t count;
    if (silt_docker_pairs(&b->arena, s, b->file.escape, &pairs, &count, &e) < 0)
        return silt_build_fail_step(b, &e);
    for (size_t i = 0; i < count; i++) {
        silt_slice name = silt_build_expand(b, pairs[i].name);
        silt_slice value = name.data != NULL ? silt_build_expand(b, pairs[i].value) : name;
        if (value.data == NULL)
            return false;
        if (s->op == SILT_DOCKER_LABEL) {
            if (!set_label(b, name, value))
                return false;
            continue;
        }
        if (!silt_id_is_env_name(name))
            return silt_build_refuse(b, "ENV needs names of letters, digits and underscores");
        if (!set(b, &after, name, value)) /* variables of one line see the values before it */
            return false;
    }
    b->config.env = after;
    return true;
}

enum { PORTS_MAX = 256 }; /* per range */

/* 80, 53/udp, 8000-8010 */
static bool read_ports(silt_slice word, uint64_t *ret_first, uint64_t *ret_last,
                       const char **ret_protocol)
{
    silt_slice first = {NULL, 0}, last = {NULL, 0}, protocol = word;
    struct silt_error e;
    (void)silt_slice_split(&protocol, '/', &last);
    bool udp = protocol.data != NULL && silt_slice_ieq(protocol, SILT_LIT("udp"));
    if (protocol.data != NULL && !udp && !silt_slice_ieq(protocol, SILT_LIT("tcp")))
        return false;
    *ret_protocol = udp ? "udp" : "tcp";
    (void)silt_slice_split(&last, '-', &first);
    if (silt_slice_to_u64(first, 1, UINT16_MAX, ret_first, &e) < 0)
        return false;
    *ret_last = *ret_first;
    return last.data == NULL
           || (silt_slice_to_u64(last, *ret_first, UINT16_MAX, ret_last, &e) == 0
               && *ret_last - *ret_first < PORTS_MAX);
}

static bool expose(struct silt_build *b, const struct silt_docker_step *s)
{
    for (size_t i = 0; i < s->word_count; i++) {
        silt_slice word = silt_build_expand(b, s->words[i]);
        const char *protocol;
        uint64_t port, last;
        char text[48];
        if (word.data == NULL)
            return false;
        if (!read_ports(word, &port, &last, &protocol))
            return silt_build_refuse(b, "EXPOSE needs numbers of ports, or ranges of at most 256");
        for (; port <= last; port++) {
            int n = snprintf(text, sizeof(text), "%llu/%s", (unsigned long long)port, protocol);
            char *copy = silt_build_dup(b, (silt_slice){text, (size_t)n});
            if (copy == NULL || !add_word(b, &b->config.ports, silt_slice_of(copy)))
                return false;
        }
    }
    return true;
}

static bool set_text(struct silt_build *b, const struct silt_docker_step *s, silt_slice *ret)
{
    silt_slice value = silt_build_expand(b, s->rest);
    *ret = value;
    return value.data != NULL;
}

bool silt_build_configure(struct silt_build *b, const struct silt_docker_step *s)
{
    switch (s->op) {
    case SILT_DOCKER_ARG:
        return silt_build_declare(b, s, false);
    case SILT_DOCKER_CMD:
        b->cmd_given = true;
        return set_words(b, s, &b->config.cmd);
    case SILT_DOCKER_ENTRYPOINT:
        if (!b->cmd_given) /* the parent's CMD belongs to the parent's ENTRYPOINT */
            b->config.cmd = (struct silt_image_words){0};
        return set_words(b, s, &b->config.entrypoint);
    case SILT_DOCKER_ENV:
    case SILT_DOCKER_LABEL:
        return set_pairs(b, s);
    case SILT_DOCKER_EXPOSE:
        return expose(b, s);
    case SILT_DOCKER_MAINTAINER:
        return set_label(b, SILT_LIT("maintainer"), s->rest);
    case SILT_DOCKER_SHELL:
        b->config.shell =
            (struct silt_image_words){.items = s->words, .count = s->word_count, .given = true};
        return true;
    case SILT_DOCKER_STOPSIGNAL:
        return set_text(b, s, &b->config.stop_signal);
    case SILT_DOCKER_USER:
        return set_text(b, s, &b->config.user);
    case SILT_DOCKER_HEALTHCHECK:
    case SILT_DOCKER_ONBUILD:
    case SILT_DOCKER_VOLUME:
        silt_build_notice(b, "line %u: %s has no effect here", s->line, silt_docker_op_name(s->op));
        return true;
    case SILT_DOCKER_ADD:
    case SILT_DOCKER_COPY:
    case SILT_DOCKER_FROM:
    case SILT_DOCKER_RUN:
    case SILT_DOCKER_WORKDIR:
    case SILT_DOCKER_OP_MAX:
        break;
    }
    abort();
}
