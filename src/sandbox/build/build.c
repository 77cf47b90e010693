/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/build/internal.h"
#include "base/log.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/image/step_cache.h"
#include "sandbox/core/facet.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARENA_MAX = 64 << 20, SAID_MAX = SILT_DOCKERFILE_MAX + 1, ERRORS_ROOM = 4096 };

/* ---- end ---- */

static void free_build(struct silt_grave *g)
{
    struct silt_build *b = silt_outer(g, struct silt_build, grave);
    silt_buf_fini(&b->waiting);
    silt_buf_fini(&b->said);
    silt_buf_fini(&b->errors);
    silt_arena_fini(&b->arena);
    free(b);
}

static void drop_boxes(struct silt_build *b)
{
    silt_build_drop(b, &b->context);
    silt_build_drop(b, &b->work);
    for (size_t i = 0; i < SILT_BUILD_SOURCES_MAX; i++)
        silt_build_drop(b, &b->sources[i]);
}

static void release_images(struct silt_build *b)
{
    for (size_t i = 0; i < SILT_DOCKER_STAGES_MAX; i++)
        if (b->images[i] != NULL)
            silt_image_release(b->images[i]);
    if (b->image != NULL)
        silt_image_release(b->image);
}

/* No callback follows. */
static void end(struct silt_build *b)
{
    b->over = true;
    b->sink = NULL;
    silt_waiter_leave(&b->waiter);
    silt_network_leave(&b->turning);
    silt_loop_cancel(b->registry->loop, &b->turn);
    silt_build_leave_runs(b);
    silt_sweep_leave(&b->sweep);
    if (b->seal != NULL)
        silt_seal_leave(b->seal);
    b->seal = NULL;
    drop_boxes(b);
    release_images(b);
    silt_list_remove(&b->link);
    b->registry->build_count--;
    silt_loop_bury(b->registry->loop, &b->grave);
}

void silt_build_fail(struct silt_build *b, const struct silt_error *e)
{
    struct silt_build_sink *sink = b->sink;
    size_t number = b->number;
    if (b->over)
        return;
    struct silt_error copy = *e;
    end(b);
    sink->failed(sink, &copy, number);
}

void silt_build_abort(struct silt_build *b)
{
    if (!b->over)
        end(b);
}

char *silt_build_dup(struct silt_build *b, silt_slice s)
{
    char *copy = silt_arena_dup(&b->arena, s);
    struct silt_error e;
    if (copy == NULL) {
        (void)silt_fail(&e, SILT_LIMIT, "the build needs too much memory");
        silt_build_fail(b, &e);
    }
    return copy;
}

void silt_build_notice(struct silt_build *b, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    b->sink->notice(b->sink, text);
}

const struct silt_docker_step *silt_build_step_of(const struct silt_build *b)
{
    return &b->file.steps[b->step];
}

bool silt_build_fail_step(struct silt_build *b, struct silt_error *e)
{
    char place[48];
    (void)snprintf(place, sizeof(place), "Dockerfile line %u", silt_build_step_of(b)->line);
    (void)silt_because(e, "%s", place);
    silt_build_fail(b, e);
    return false;
}

bool silt_build_refuse(struct silt_build *b, const char *why)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_INVALID, "%s", why);
    return silt_build_fail_step(b, &e);
}

const char *silt_build_config_text(struct silt_build *b)
{
    silt_auto_buf text;
    struct silt_error e;
    silt_buf_init(&text, SILT_IMAGE_CONFIG_MAX);
    silt_image_config_write(&text, &b->config);
    if (text.broken) {
        (void)silt_fail(&e, SILT_LIMIT, "the image's configuration is larger than %d bytes",
                        SILT_IMAGE_CONFIG_MAX);
        silt_build_fail(b, &e);
        return NULL;
    }
    return silt_build_dup(b, silt_buf_slice(&text));
}

/* ---- stages ---- */

static void next_stage(struct silt_build *b);

/* By name or number, among those before `until`. -1: none. */
static ssize_t find_stage(const struct silt_build *b, silt_slice name, size_t until)
{
    struct silt_error e;
    uint64_t number;
    for (size_t i = 0; i < until; i++)
        if (b->file.stages[i].name.len > 0 && silt_slice_ieq(b->file.stages[i].name, name))
            return (ssize_t)i;
    if (until > 0 && silt_slice_to_u64(name, 0, until - 1, &number, &e) == 0)
        return (ssize_t)number;
    return -1;
}

struct silt_image *silt_build_find_image(struct silt_build *b, silt_slice name, bool *ret_mapped)
{
    struct silt_error e;
    bool mapped = false;
    if (ret_mapped != NULL)
        *ret_mapped = false;
    ssize_t stage = find_stage(b, name, b->stage);
    if (stage >= 0 && b->images[stage] != NULL)
        return b->images[stage];
    struct silt_image *i = silt_image_find(b->registry, silt_build_without_digest(name), &mapped);
    if (i == NULL) {
        (void)silt_fail(
            &e, SILT_NOT_FOUND,
            "Dockerfile line %u: image '%.*s' is not here; fetch it with: silt image pull %.*s",
            silt_build_step_of(b)->line, name.len > 200 ? 200 : (int)name.len, name.data,
            name.len > 200 ? 200 : (int)name.len, name.data);
        silt_build_fail(b, &e);
        return NULL;
    }
    if (mapped) {
        char title[SILT_IMAGE_NAME_SIZE];
        silt_image_title(i, title);
        silt_build_notice(b, "%.*s: image '%s' stands in for it", (int)name.len, name.data, title);
        if (ret_mapped != NULL)
            *ret_mapped = true;
    } else if (silt_build_without_digest(name).len < name.len) {
        silt_build_notice(
            b, "%.*s: what is here under this name is taken, whatever its digest in a registry is",
            name.len > 200 ? 200 : (int)name.len, name.data);
    }
    return i;
}

static void finish_build(struct silt_build *b)
{
    struct silt_image *i = b->images[b->target];
    struct silt_build_sink *sink = b->sink;
    struct silt_error e;
    for (size_t n = 0; n < b->options.arg_count; n++)
        if (!b->arg_used[n])
            silt_build_notice(b, "build argument %.*s is not used",
                              (int)b->options.args[n].name.len, b->options.args[n].name.data);
    for (size_t n = 0; n < b->options.name_count; n++)
        if (silt_image_tag(b->registry, i, b->options.names[n], &e) < 0) {
            silt_build_fail(b, &e);
            return;
        }
    if (b->options.name_count == 0) /* the caller knows only its digest */
        silt_step_cache_put(b->registry, i->row.digest, i);
    silt_image_hold(i);
    end(b);
    sink->done(sink, i);
    silt_image_release(i);
}

/* A configuration that cannot be parsed again must not be stored. */
static int check_config(const char *config, struct silt_error *e)
{
    struct silt_image_config ignored;
    struct silt_arena room;
    silt_arena_init(&room, ARENA_MAX);
    int done = silt_image_config_read(&room, silt_slice_of(config), &ignored, e);
    silt_arena_fini(&room);
    return done;
}

/* The last steps may have changed the configuration since the seal. */
static void finish_stage(struct silt_build *b)
{
    const char *config = silt_build_add_labels(b) ? silt_build_config_text(b) : NULL;
    struct silt_image *i = NULL;
    struct silt_error e;
    if (config == NULL)
        return;
    if (check_config(config, &e) < 0
        || silt_image_derive(b->image, config, b->image->row.host_usr, &i, &e) < 0) {
        silt_build_fail(b, &e);
        return;
    }
    silt_image_hold(i);
    silt_image_release(b->image);
    b->image = NULL;
    b->images[b->stage] = i;
    silt_build_drop(b, &b->work);
    next_stage(b);
}

static void tell(struct silt_build *b)
{
    struct silt_build_step told = {.number = b->number,
                                   .total = b->total,
                                   .stage = b->file.stages[b->stage].name,
                                   .text = silt_build_step_of(b)->text};
    b->sink->step(b->sink, &told);
}

static void do_step(struct silt_build *b)
{
    const struct silt_docker_step *s = silt_build_step_of(b);
    b->number++;
    silt_buf_clear(&b->errors);
    silt_buf_clear(&b->said);
    b->other = (struct silt_build_run){0};
    if (s->op == SILT_DOCKER_RUN) {
        silt_build_run_step(b, s);
    } else if (s->op == SILT_DOCKER_WORKDIR) {
        silt_build_workdir(b, s);
    } else if (s->op == SILT_DOCKER_COPY || s->op == SILT_DOCKER_ADD) {
        silt_build_copy(b, s);
    } else {
        tell(b);
        if (silt_build_configure(b, s))
            silt_build_next_step(b);
    }
}

static void on_turn(struct silt_timer *t)
{
    struct silt_build *b = silt_outer(t, struct silt_build, turn);
    b->step++;
    if (b->step == b->file.stages[b->stage].end)
        finish_stage(b);
    else
        do_step(b);
}

/* In a loop turn of its own: a thousand steps without commands must not block others. */
void silt_build_next_step(struct silt_build *b)
{
    if (!b->over)
        silt_loop_after(b->registry->loop, &b->turn, 0);
}

static bool check_platform(struct silt_build *b, const struct silt_docker_step *s)
{
    silt_slice flag = silt_docker_flag(s, SILT_LIT("platform"));
    struct silt_error e;
    if (flag.data == NULL)
        return true;
    silt_slice platform = silt_build_expand_global(b, flag);
    if (platform.data == NULL || silt_slice_eq(platform, SILT_LIT("linux/amd64"))
        || platform.len == 0)
        return platform.data != NULL;
    (void)silt_fail(&e, SILT_INVALID,
                    "Dockerfile line %u: platform %.*s; this machine is linux/amd64", s->line,
                    platform.len > 60 ? 60 : (int)platform.len, platform.data);
    silt_build_fail(b, &e);
    return false;
}

static void start_stage(struct silt_build *b)
{
    const struct silt_docker_stage *g = &b->file.stages[b->stage];
    struct silt_error e;
    b->step = g->from;
    b->number++;
    tell(b);
    if (!check_platform(b, silt_build_step_of(b)))
        return;
    silt_slice name = silt_build_expand_global(b, g->image);
    bool mapped = false;
    struct silt_image *i = name.data != NULL ? silt_build_find_image(b, name, &mapped) : NULL;
    if (i == NULL)
        return;
    silt_image_hold(i);
    b->image = i;
    b->cmd_given = false;
    b->args = (silt_slice){NULL, 0};
    memcpy(b->key, i->row.digest, sizeof(b->key));
    if (silt_image_config_read(&b->arena, silt_slice_of(i->row.config), &b->config, &e) < 0) {
        silt_build_fail(b, &e);
        return;
    }
    silt_build_drop_sizes(b);
    if (!mapped || silt_build_take_version(b, name))
        silt_build_next_step(b);
}

static void next_stage(struct silt_build *b)
{
    for (b->stage = 0; b->stage < b->file.stage_count; b->stage++)
        if (b->needed[b->stage] && b->images[b->stage] == NULL) {
            start_stage(b);
            return;
        }
    finish_build(b);
}

/* ---- the plan ---- */

static void need(struct silt_build *b, size_t stage);

static void need_named(struct silt_build *b, silt_slice name, size_t before)
{
    ssize_t stage = find_stage(b, name, before);
    if (stage >= 0)
        need(b, (size_t)stage);
}

/* COPY --from, and RUN --mount=type=bind,from=. Errors in a mount are reported when its step
 * runs. */
static void need_of_step(struct silt_build *b, const struct silt_docker_step *s, size_t stage)
{
    struct silt_docker_mount m;
    struct silt_error e;
    for (size_t i = 0; i < s->flag_count; i++) {
        const struct silt_docker_flag *f = &s->flags[i];
        if (silt_slice_eq(f->name, SILT_LIT("from")))
            need_named(b, f->value, stage);
        else if (silt_slice_eq(f->name, SILT_LIT("mount"))
                 && silt_docker_mount_read(f->value, &m, &e) == 0 && m.kind == SILT_DOCKER_BIND
                 && m.from.len > 0)
            need_named(b, m.from, stage);
    }
}

static void need(struct silt_build *b, size_t stage)
{
    const struct silt_docker_stage *g = &b->file.stages[stage];
    if (b->needed[stage])
        return;
    b->needed[stage] = true;
    b->total += 1 + g->end - g->first;
    silt_slice image = silt_build_expand_global(b, g->image);
    if (image.data == NULL)
        return;
    need_named(b, image, stage);
    for (size_t i = g->first; i < g->end && !b->over; i++)
        need_of_step(b, &b->file.steps[i], stage);
}

static void add_platform(struct silt_build *b)
{
    b->globals =
        SILT_LIT("TARGETPLATFORM=linux/amd64\0TARGETOS=linux\0TARGETARCH=amd64\0TARGETVARIANT=\0"
                 "BUILDPLATFORM=linux/amd64\0BUILDOS=linux\0BUILDARCH=amd64\0BUILDVARIANT=\0");
}

static bool choose_target(struct silt_build *b)
{
    struct silt_error e;
    b->target = b->file.stage_count - 1;
    if (b->options.target.len == 0)
        return true;
    ssize_t found = find_stage(b, b->options.target, b->file.stage_count);
    if (found < 0) {
        (void)silt_fail(&e, SILT_NOT_FOUND, "the Dockerfile has no stage '%.*s'",
                        b->options.target.len > 80 ? 80 : (int)b->options.target.len,
                        b->options.target.data);
        silt_build_fail(b, &e);
        return false;
    }
    b->target = (size_t)found;
    return true;
}

static void plan(struct silt_build *b)
{
    struct silt_error e;
    char *text = silt_build_dup(b, silt_buf_slice(&b->said));
    if (text == NULL)
        return;
    if (silt_dockerfile_read(&b->arena, (silt_slice){text, b->said.len}, &b->file, &e) < 0) {
        silt_build_fail(b, &e);
        return;
    }
    add_platform(b);
    for (b->step = 0; b->file.steps[b->step].op == SILT_DOCKER_ARG; b->step++)
        if (!silt_build_declare(b, silt_build_step_of(b), true))
            return;
    if (!choose_target(b))
        return;
    need(b, b->target);
    if (!b->over)
        next_stage(b);
}

/* ---- the context ---- */

static void on_dockerfile(struct silt_build *b)
{
    struct silt_error e;
    if (b->run.code == 0 && !b->said.broken) {
        plan(b);
        return;
    }
    (void)silt_fail(&e, SILT_NOT_FOUND,
                    "the context has no Dockerfile '%.*s', or it is larger than %d bytes",
                    b->options.dockerfile.len > 200 ? 200 : (int)b->options.dockerfile.len,
                    b->options.dockerfile.data, SILT_DOCKERFILE_MAX);
    silt_build_fail(b, &e);
}

static void read_dockerfile(struct silt_build *b)
{
    /* A Dockerfile the client added is not part of the context. */
    static const char text[] =
        "cat -- \"$1\" && { [ \"$1\" != .silt-dockerfile ] || rm -f -- \"$1\"; }";
    const silt_slice argv[] = {SILT_LIT("/bin/sh"), SILT_LIT("-c"), silt_slice_of(text),
                               SILT_LIT("silt"), b->options.dockerfile};
    struct silt_build_command c = {.box = &b->context,
                                   .argv = argv,
                                   .argc = SILT_COUNT(argv),
                                   .cwd = SILT_LIT("/context"),
                                   .to_text = true};
    b->unpacked = true;
    if (b->run.code != 0) {
        silt_build_say_failed(b, "unpacking the context", b->run.code);
        return;
    }
    silt_buf_clear(&b->errors);
    b->next = on_dockerfile;
    (void)silt_build_execute(b, &b->run, &c);
}

static void unpack(struct silt_build *b)
{
    static const silt_slice argv[] = {
        {"/bin/sh", 7},
        {"-c", 2},
        {"mkdir /context && exec tar -C /context --no-same-owner -xpf -", 61}};
    struct silt_build_command c = {
        .box = &b->context, .argv = argv, .argc = SILT_COUNT(argv), .input = true, .to_text = true};
    b->next = read_dockerfile;
    if (silt_build_execute(b, &b->run, &c))
        silt_build_feed_on(b);
}

bool silt_build_feed(struct silt_build *b, silt_slice bytes)
{
    struct silt_error e;
    if (b->over || b->unpacked)
        return true;
    b->received += bytes.len;
    if (b->received > b->registry->settings.build_context_max) {
        (void)silt_fail(&e, SILT_LIMIT,
                        "a context of more than %llu bytes (setting build.context_max)",
                        (unsigned long long)b->registry->settings.build_context_max);
        silt_build_fail(b, &e);
        return true;
    }
    silt_buf_add(&b->waiting, bytes);
    silt_build_feed_on(b);
    return b->waiting.len < SILT_BUILD_WAITING_MAX / 4;
}

void silt_build_end(struct silt_build *b)
{
    if (b->over)
        return;
    b->ended = true;
    silt_build_feed_on(b);
}

void silt_build_resume(struct silt_build *b)
{
    size_t n = b->uncredited;
    b->uncredited = 0;
    if (n > 0 && b->run.exec != NULL)
        silt_exec_credit(b->run.exec, n);
}

/* ---- start ---- */

static silt_slice copy(struct silt_build *b, silt_slice s)
{
    char *text = silt_arena_dup(&b->arena, s);
    if (text == NULL)
        abort(); /* options are far smaller than the arena */
    return (silt_slice){text, s.len};
}

static void copy_options(struct silt_build *b, const struct silt_build_options *o)
{
    b->options = *o;
    b->options.dockerfile = copy(b, o->dockerfile.len > 0 ? o->dockerfile : SILT_LIT("Dockerfile"));
    b->options.target = copy(b, o->target);
    for (size_t i = 0; i < o->name_count; i++)
        b->options.names[i] = copy(b, silt_slice_of(o->names[i])).data;
    for (size_t i = 0; i < o->arg_count; i++) {
        b->options.args[i].name = copy(b, o->args[i].name);
        b->options.args[i].value = copy(b, o->args[i].value);
    }
    for (size_t i = 0; i < o->label_count; i++) {
        b->options.labels[i].name = copy(b, o->labels[i].name);
        b->options.labels[i].value = copy(b, o->labels[i].value);
    }
    b->options.type = copy(b, o->type);
    b->options.max_instances = copy(b, o->max_instances);
}

int silt_build_start(struct silt_registry *r, const struct silt_build_options *o,
                     struct silt_build_sink *sink, struct silt_build **ret, struct silt_error *e)
{
    char random[17];
    struct silt_image *image = silt_image_find(r, silt_slice_of(r->settings.image), NULL);
    if (r->build_count >= SILT_BUILDS_MAX)
        return silt_fail(e, SILT_LIMIT, "%d images are being built already", SILT_BUILDS_MAX);
    if (image == NULL)
        return silt_fail(e, SILT_NOT_FOUND,
                         "image '%s', in which contexts are unpacked, does not exist",
                         r->settings.image);
    struct silt_build *b = calloc(1, sizeof(*b));
    if (b == NULL)
        abort();
    *b = (struct silt_build){
        .registry = r, .sink = sink, .turn = {.on_time = on_turn}, .grave = {.free = free_build}};
    silt_arena_init(&b->arena, ARENA_MAX);
    silt_buf_init(&b->waiting, SILT_BUILD_WAITING_MAX);
    silt_buf_init(&b->said, SAID_MAX);
    silt_buf_init(&b->errors, ERRORS_ROOM);
    silt_list_init(&b->waiter.link);
    silt_list_init(&b->turning.link);
    silt_list_append(&r->builds, &b->link);
    r->build_count++;
    silt_id_random(random, 16);
    (void)snprintf(b->name, sizeof(b->name), "build-%s", random);
    copy_options(b, o);
    *ret = b; /* before anything can fail */
    silt_build_need(b, &b->context, image, SILT_NET_NONE, unpack);
    return 0;
}

static void sweep(struct silt_registry *r)
{
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        struct silt_sandbox *s = r->by_slot[i];
        if (s != NULL && strncmp(s->row.id, "build-", 6) == 0 && s->row.labels != NULL
            && strcmp(s->row.labels, "{\"silt.build\":\"\"}") == 0)
            silt_sandbox_destroy(s, NULL);
    }
}

const struct silt_facet silt_build_facet = {.recovered = sweep};
