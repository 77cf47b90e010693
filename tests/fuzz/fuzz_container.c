/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of the engine socket: what is taken for a container has nothing of the machine, and for an
 * exec has words and variables. */
#include "fuzz/fuzz.h"
#include "json/json.h"
#include "sandbox/container/spec.h"

static void check_env(silt_slice env)
{
    silt_slice one;
    demand(env.len == 0 || env.data[env.len - 1] == 0);
    while (env.len > 0 && silt_slice_split(&env, 0, &one))
        demand(one.len == 0 || (one.data[0] != '=' && memchr(one.data, '=', one.len) != NULL));
}

static void check_mount(const struct silt_container_spec *s, size_t which)
{
    const struct silt_container_mount *m = &s->mounts[which];
    demand(silt_volume_name_is_good(m->volume));
    demand(m->target.len > 1 && m->target.data[0] == '/'
           && m->target.data[m->target.len - 1] != '/');
    demand(memmem(m->target.data, m->target.len, "//", 2) == NULL
           && memmem(m->target.data, m->target.len, "/../", 4) == NULL);
    for (size_t i = 0; i < which; i++)
        demand(!silt_slice_eq(s->mounts[i].target, m->target));
}

static void check_words(const struct silt_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        demand(!silt_slice_has_byte(w->items[i], 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_auto_arena arena;
    struct silt_container_spec spec;
    struct silt_error e;
    const struct silt_json *o;
    silt_slice body = {(const char *)data, size};
    silt_arena_init(&arena, 32 << 20);
    if (silt_container_spec_read(&arena, body, &spec, &e) == 0) {
        demand(spec.image.len > 0);
        check_env(spec.env);
        check_words(&spec.cmd);
        check_words(&spec.entrypoint);
        for (size_t i = 0; i < spec.mount_count; i++)
            check_mount(&spec, i);
        demand(spec.kind != SILT_CONTAINER_COPY
               || (spec.copy_from.len > 0 && spec.copy_to.len > 0));
    }
    if (silt_json_read(&arena, body, &o, &e) == 0
        && silt_container_spec_read_command(&arena, o, &spec, &e) == 0) {
        check_env(spec.env);
        check_words(&spec.cmd);
    }
    demand(silt_percent_decode(&arena, body).len <= size);
    return 0;
}
