/* SPDX-License-Identifier: Apache-2.0 */
#include "dockerfile/sources.h"
#include "base/own.h"

#include <string.h>

struct finder {
    struct silt_arena *arena;
    char escape;
    uint32_t line;
    bool variable; /* a variable was looked up */
    struct silt_docker_sources *found;
};

static void take_all(struct finder *x, const char *reason)
{
    if (!x->found->all)
        *x->found = (struct silt_docker_sources){.all = true, .line = x->line, .reason = reason};
}

/* Values depend on arguments, on the base image and on other instructions, which only the build
 * knows. */
static silt_slice on_variable(void *context, silt_slice name)
{
    struct finder *x = context;
    (void)name;
    x->variable = true;
    return (silt_slice){NULL, 0};
}

/* A wildcard other than `*`, or an escape, becomes a star in place of the rest of the name. */
static void add_name(struct silt_buf *b, silt_slice name)
{
    if (b->len > 0)
        silt_buf_add_byte(b, '/');
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '?' || name.data[i] == '[' || name.data[i] == '\\') {
            silt_buf_add_byte(b, '*');
            return;
        }
        silt_buf_add_byte(b, name.data[i]);
    }
}

/* False if it leads out of the context, or back into it. */
static bool add_names(struct silt_buf *b, silt_slice path)
{
    silt_slice name;
    while (silt_slice_split(&path, '/', &name)) {
        if (silt_slice_eq(name, SILT_LIT("..")))
            return false;
        if (silt_slice_eq(name, SILT_LIT("**")))
            return true; /* everything below */
        if (name.len > 0 && !silt_slice_eq(name, SILT_LIT(".")))
            add_name(b, name);
    }
    return true;
}

static void add_path(struct finder *x, silt_slice path)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_DOCKER_VALUE_MAX);
    bool clear = add_names(&b, path);
    char *copy = b.broken ? NULL : silt_arena_dup(x->arena, silt_buf_slice(&b));
    if (!clear || copy == NULL || x->found->count == SILT_DOCKER_SOURCES_MAX)
        take_all(x, clear ? "names too many sources" : "names a source with ..");
    else if (b.len == 0)
        take_all(x, "uses the whole directory");
    else
        x->found->patterns[x->found->count++] = (silt_slice){copy, b.len};
}

static void add_word(struct finder *x, silt_slice word)
{
    struct silt_docker_scope scope = {.find = on_variable, .context = x, .escape = x->escape};
    struct silt_error ignored;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_DOCKER_VALUE_MAX);
    x->variable = false;
    int done = silt_docker_expand(&b, word, &scope, &ignored);
    if (x->variable)
        take_all(x, "names a source by a variable");
    else if (done < 0)
        take_all(x, "cannot be read");
    else if (!x->found->all)
        add_path(x, b.len > 0 ? silt_buf_slice(&b) : SILT_LIT("."));
}

static void add_copy(struct finder *x, const struct silt_docker_step *s)
{
    if (silt_docker_flag(s, SILT_LIT("from")).data != NULL)
        return;
    for (size_t i = 0; i + 1 < s->word_count; i++)
        if (s->heredoc_count == 0 || !silt_slice_starts(s->words[i], SILT_LIT("<<")))
            add_word(x, s->words[i]);
}

static void add_mounts(struct finder *x, const struct silt_docker_step *s)
{
    struct silt_docker_mount m;
    struct silt_error ignored;
    for (size_t i = 0; i < s->flag_count; i++) {
        if (!silt_slice_eq(s->flags[i].name, SILT_LIT("mount")))
            continue;
        if (silt_docker_mount_read(s->flags[i].value, &m, &ignored) < 0)
            take_all(x, "cannot be read");
        else if (m.kind == SILT_DOCKER_BIND && m.from.len == 0)
            add_word(x, m.source.len > 0 ? m.source : SILT_LIT("."));
    }
}

void silt_docker_sources_read(struct silt_arena *a, const struct silt_dockerfile *f,
                              struct silt_docker_sources *ret)
{
    struct finder x = {.arena = a, .escape = f->escape, .found = ret};
    ret->all = false;
    ret->count = 0;
    for (size_t i = 0; i < f->step_count && !ret->all; i++) {
        x.line = f->steps[i].line;
        if (f->steps[i].op == SILT_DOCKER_COPY || f->steps[i].op == SILT_DOCKER_ADD)
            add_copy(&x, &f->steps[i]);
        else if (f->steps[i].op == SILT_DOCKER_RUN)
            add_mounts(&x, &f->steps[i]);
        else if (f->steps[i].op == SILT_DOCKER_ONBUILD)
            take_all(&x, "is ONBUILD");
    }
}
