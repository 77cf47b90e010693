/* SPDX-License-Identifier: Apache-2.0 */
/* A Dockerfile: whatever it is, stages and steps keep their promises, and every word can be
 * expanded or is refused, and no source leads out of the context. */
#include "fuzz/fuzz.h"
#include "dockerfile/sources.h"

static silt_slice find(void *context, silt_slice name)
{
    (void)context;
    return name.len > 0 && name.data[0] < 'N' ? SILT_LIT("value") : (silt_slice){NULL, 0};
}

static void check_step(const struct silt_docker_step *s, char escape, struct silt_arena *a)
{
    struct silt_docker_scope scope = {.find = find, .escape = escape};
    struct silt_docker_pair *pairs;
    struct silt_error e;
    silt_auto_buf b;
    size_t count;
    silt_buf_init(&b, SILT_DOCKER_VALUE_MAX);
    demand(s->op < SILT_DOCKER_OP_MAX && s->line >= 1);
    demand(s->word_count <= SILT_DOCKER_WORDS_MAX && s->heredoc_count <= SILT_DOCKER_HEREDOCS_MAX);
    for (size_t i = 0; i < s->word_count; i++) {
        silt_buf_clear(&b);
        (void)silt_docker_expand(&b, s->words[i], &scope, &e);
    }
    for (size_t i = 0; i < s->heredoc_count; i++) {
        silt_buf_clear(&b);
        (void)silt_docker_expand_text(&b, s->heredocs[i].body, &scope, &e);
    }
    for (size_t i = 0; i < s->flag_count; i++) {
        struct silt_docker_mount m;
        silt_buf_clear(&b);
        demand(silt_docker_exclude(&b, s->flags[i].value, &e) < 0 || b.len > 3);
        demand(silt_docker_mount_read(s->flags[i].value, &m, &e) < 0
               || m.kind < SILT_DOCKER_MOUNT_MAX);
    }
    if (s->op == SILT_DOCKER_ENV || s->op == SILT_DOCKER_LABEL)
        (void)silt_docker_pairs(a, s, escape, &pairs, &count, &e);
}

static void check_sources(const struct silt_dockerfile *f, struct silt_arena *a)
{
    static struct silt_docker_sources s;
    silt_docker_sources_read(a, f, &s);
    demand(s.count <= SILT_DOCKER_SOURCES_MAX && (!s.all || (s.reason != NULL && s.line >= 1)));
    for (size_t i = 0; i < s.count; i++) {
        silt_slice rest = s.patterns[i], name;
        while (silt_slice_split(&rest, '/', &name))
            demand(name.len > 0 && !silt_slice_eq(name, SILT_LIT("."))
                   && !silt_slice_eq(name, SILT_LIT("..")));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_dockerfile f;
    struct silt_error e;
    silt_auto_arena a = {0};
    silt_arena_init(&a, 256 << 20);
    if (silt_dockerfile_read(&a, (silt_slice){(const char *)data, size}, &f, &e) < 0)
        return 0;
    demand(f.stage_count >= 1 && f.stage_count <= SILT_DOCKER_STAGES_MAX
           && f.step_count <= SILT_DOCKER_STEPS_MAX);
    for (size_t i = 0; i < f.stage_count; i++) {
        demand(f.stages[i].from < f.stages[i].first && f.stages[i].first <= f.stages[i].end
               && f.stages[i].end <= f.step_count);
        demand(f.steps[f.stages[i].from].op == SILT_DOCKER_FROM && f.stages[i].image.len > 0);
    }
    for (size_t i = 0; i < f.step_count; i++)
        check_step(&f.steps[i], f.escape, &a);
    check_sources(&f, &a);
    return 0;
}
