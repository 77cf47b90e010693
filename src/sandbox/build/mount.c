/* SPDX-License-Identifier: Apache-2.0 */
/* mount: RUN --mount. A sandbox cannot change its mount table, so the files are copied to the
 * target, its old contents are moved aside, and both are undone after the command: nothing of a
 * mount is in the image, and nothing written to it is kept. */
#include "sandbox/build/internal.h"

#include <stdio.h>

struct mount {
    struct silt_build_files files; /* dest: links resolved once it is in place */
    bool empty;                    /* a tmpfs */
    silt_slice made;               /* first directory of dest that did not exist; empty: all did */
};

struct silt_build_mounts {
    size_t count, at;
    char aside[SILT_BUILD_ID_SIZE + 8]; /* where the old contents are */
    silt_build_next *then;
    struct mount items[SILT_DOCKER_FLAGS_MAX];
};

/* Prints two lines: the target with all links resolved, and the first directory to create. */
static const char put_script[] =
    "dest=$(realpath -m -- \"$1\") || exit; aside=$2 n=$3; p=$dest new=\n"
    "[ \"$dest\" != / ] || { echo 'nothing can be mounted on /' >&2; exit 3; }\n"
    "while [ ! -e \"$p\" ]; do new=$p; p=$(dirname -- \"$p\"); done\n"
    "if [ -z \"$new\" ]; then mkdir -p -m 700 -- \"$aside\" && mv -T -- \"$dest\" \"$aside/$n\" || "
    "exit; fi\n"
    "if [ $4 = 1 ]; then mkdir -p -- \"$dest\" && chmod 1777 -- \"$dest\" || exit; fi\n"
    "printf '%s\\n%s\\n' \"$dest\" \"$new\"\n";

/* Directories created for it are removed if empty, as other builders do. */
static const char take_script[] =
    "dest=$1 aside=$2 n=$3 new=$4; rm -rf -- \"$dest\" || exit; p=$(dirname -- \"$dest\")\n"
    "if [ -z \"$new\" ]; then mkdir -p -- \"$p\" && mv -T -- \"$aside/$n\" \"$dest\" || exit\n"
    "else while [ ${#p} -ge ${#new} ] && rmdir -- \"$p\" 2>/dev/null; do p=$(dirname -- \"$p\"); "
    "done; fi\n"
    "[ $n != 0 ] || rm -rf -- \"$aside\"\n";

/* ---- parsing ---- */

static bool take_source(struct silt_build *b, const struct silt_docker_mount *m,
                        struct silt_build_files *f)
{
    f->sources[0] = m->source.len > 0 ? silt_build_expand(b, m->source) : SILT_LIT("/");
    f->count = 1;
    if (f->sources[0].data == NULL || m->from.len == 0)
        return f->sources[0].data != NULL;
    const struct silt_image *image = silt_build_find_image(b, m->from, NULL);
    if (image != NULL)
        silt_build_take_from(f, image);
    return image != NULL;
}

static bool take(struct silt_build *b, const struct silt_docker_mount *m)
{
    struct mount *x = &b->mounts->items[b->mounts->count++];
    silt_slice target = silt_build_expand(b, m->target);
    *x = (struct mount){.files.how = "mount", .empty = m->kind == SILT_DOCKER_TMPFS};
    if (target.data == NULL)
        return false;
    x->files.dest = silt_build_path(b, target);
    return x->files.dest.data != NULL && (x->empty || take_source(b, m, &x->files));
}

/* As in other builders: a missing secret is skipped unless it is required. */
static bool do_without(struct silt_build *b, const struct silt_docker_mount *m, silt_slice text)
{
    struct silt_error e;
    int len = text.len > 200 ? 200 : (int)text.len;
    if (m->required) {
        (void)silt_fail(
            &e, SILT_INVALID,
            "--mount=%.*s is required, but builds are given no secrets and no keys here", len,
            text.data);
        return silt_build_fail_step(b, &e);
    }
    silt_build_notice(b, "line %u: --mount=%.*s has no effect here", silt_build_step_of(b)->line,
                      len, text.data);
    return true;
}

static bool read_mount(struct silt_build *b, silt_slice text)
{
    struct silt_docker_mount m;
    struct silt_error e;
    if (silt_docker_mount_read(text, &m, &e) < 0)
        return silt_build_fail_step(b, &e);
    switch (m.kind) {
    case SILT_DOCKER_BIND:
    case SILT_DOCKER_TMPFS:
        return take(b, &m);
    case SILT_DOCKER_CACHE:
        m.required = false;
        return do_without(b, &m, text);
    case SILT_DOCKER_SECRET:
    case SILT_DOCKER_SSH:
        return do_without(b, &m, text);
    case SILT_DOCKER_MOUNT_MAX:
        break;
    }
    return true;
}

bool silt_build_read_mounts(struct silt_build *b, const struct silt_docker_step *s)
{
    struct silt_error e;
    b->mounts = silt_arena_alloc(&b->arena, sizeof(*b->mounts));
    if (b->mounts == NULL) {
        (void)silt_fail(&e, SILT_LIMIT, "the build needs too much memory");
        return silt_build_fail_step(b, &e);
    }
    b->mounts->count = 0;
    (void)snprintf(b->mounts->aside, sizeof(b->mounts->aside), "/.silt-%s", b->name);
    for (size_t i = 0; i < s->flag_count; i++)
        if (silt_slice_eq(s->flags[i].name, SILT_LIT("mount")) && !read_mount(b, s->flags[i].value))
            return false;
    return true;
}

/* ---- contents ---- */

static void hash_next(struct silt_build *b)
{
    struct silt_build_mounts *m = b->mounts;
    while (m->at < m->count && m->items[m->at].empty)
        m->at++;
    if (m->at == m->count)
        m->then(b);
    else
        silt_build_hash_files(b, &m->items[m->at++].files, hash_next);
}

void silt_build_hash_mounts(struct silt_build *b, silt_build_next *then)
{
    b->mounts->at = 0;
    b->mounts->then = then;
    hash_next(b);
}

size_t silt_build_mount_parts(const struct silt_build *b,
                              silt_slice parts[SILT_BUILD_MOUNT_PARTS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < b->mounts->count; i++) {
        const struct silt_build_files *f = &b->mounts->items[i].files;
        parts[n++] = f->dest;
        parts[n++] = f->hash;
        parts[n++] = (silt_slice){(const char *)f->digest, f->of_image ? sizeof(f->digest) : 0};
    }
    return n;
}

/* ---- mount and unmount ---- */

static size_t say_which(struct silt_build *b, silt_slice *argv, size_t n, char number[static 8])
{
    const struct silt_build_mounts *m = b->mounts;
    (void)snprintf(number, 8, "%zu", m->at);
    argv[n++] = m->items[m->at].files.dest;
    argv[n++] = silt_slice_of(m->aside);
    argv[n++] = silt_slice_of(number);
    return n;
}

static void put_next(struct silt_build *b);

static void on_put(struct silt_build *b)
{
    struct mount *x = &b->mounts->items[b->mounts->at];
    silt_slice said = silt_buf_slice(&b->said), dest = {NULL, 0}, made = {NULL, 0};
    struct silt_error e;
    if (b->run.code != 0) {
        silt_build_say_failed(b, "RUN --mount", b->run.code);
        return;
    }
    if (!silt_slice_split(&said, '\n', &dest) || !silt_slice_split(&said, '\n', &made)
        || dest.len > PATH_MAX || made.len > PATH_MAX) {
        (void)silt_fail(&e, SILT_INVALID, "the place of a mount could not be made");
        (void)silt_build_fail_step(b, &e);
        return;
    }
    x->files.dest = (silt_slice){silt_build_dup(b, dest), dest.len};
    x->made = (silt_slice){b->over ? NULL : silt_build_dup(b, made), made.len};
    if (b->over)
        return;
    b->mounts->at++;
    if (x->empty)
        put_next(b);
    else
        silt_build_move_files(b, &x->files, put_next);
}

static void put_next(struct silt_build *b)
{
    struct silt_build_mounts *m = b->mounts;
    silt_slice argv[8];
    char number[8];
    if (m->at == m->count) {
        m->then(b);
        return;
    }
    size_t n = say_which(b, argv, silt_build_script(argv, put_script), number);
    argv[n++] = m->items[m->at].empty ? SILT_LIT("1") : SILT_LIT("0");
    struct silt_build_command q = {.box = &b->work, .argv = argv, .argc = n, .to_text = true};
    silt_buf_clear(&b->said);
    b->next = on_put;
    (void)silt_build_execute(b, &b->run, &q);
}

void silt_build_mount(struct silt_build *b, silt_build_next *then)
{
    b->mounts->at = 0;
    b->mounts->then = then;
    put_next(b);
}

static void take_next(struct silt_build *b);

static void on_taken(struct silt_build *b)
{
    if (b->run.code != 0)
        silt_build_say_failed(b, "taking a mount away", b->run.code);
    else
        take_next(b);
}

/* In reverse order: one may lie in another. */
static void take_next(struct silt_build *b)
{
    struct silt_build_mounts *m = b->mounts;
    silt_slice argv[8];
    char number[8];
    if (m->at == 0) {
        m->then(b);
        return;
    }
    m->at--;
    size_t n = say_which(b, argv, silt_build_script(argv, take_script), number);
    argv[n++] = m->items[m->at].made;
    struct silt_build_command q = {.box = &b->work, .argv = argv, .argc = n, .to_text = true};
    silt_buf_clear(&b->said);
    b->next = on_taken;
    (void)silt_build_execute(b, &b->run, &q);
}

void silt_build_unmount(struct silt_build *b, silt_build_next *then)
{
    b->mounts->at = b->mounts->count;
    b->mounts->then = then;
    take_next(b);
}
