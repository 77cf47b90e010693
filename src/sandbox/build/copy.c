/* SPDX-License-Identifier: Apache-2.0 */
/* copy: COPY and ADD: files of the context, of a stage or of an image, and heredocs. */
#include "sandbox/build/internal.h"

enum { MODE_MAX = 64 }; /* characters */

struct silt_build_copy {
    struct silt_build_files files; /* user and group: as given, later numeric */
    const struct silt_docker_step *step;
    size_t heredoc; /* the next one to write */
};

/* The official server copied into a custom image: siltd is that server, and the program named by
 * its arguments runs beside it. */
static const char server_path[] = "/container-server/sandbox";
static const char server_script[] =
    "#!/bin/sh\n# Silt itself answers on port 3000 of this image.\n[ $# -eq 0 ] || exec \"$@\"\n";

/* Numeric ids from the image's own users and groups. */
static const char owner_script[] =
    "u=$1 g=$2; case $u in *[!0-9]*) u=$(id -u -- \"$u\") && [ -n \"$g\" ] || g=${g:-$(id -g -- "
    "\"$1\")} ;; esac\n"
    "[ -n \"$u\" ] || exit 3; case $g in '') g=$u;; *[!0-9]*) n=$g; g=$(awk -F: -v n=\"$n\" '$1 == "
    "n { print $3 }' /etc/group)\n"
    "[ -n \"$g\" ] || { echo \"no group $n in the image\" >&2; exit 3; };; esac; echo $u $g\n";

static const char write_script[] =
    "shopt -s dotglob; dest=$1 slash=$2 name=$3 owner=$4 group=$5 mode=$6\n"
    "if [ $slash = 1 ] || [ -d \"$dest\" ]; then dest=${dest%/}/$name; fi\n"
    "mkdir -p -- \"$(dirname -- \"$dest\")\" && rm -f -- \"$dest\" && cat > \"$dest\" && chown "
    "$owner:$group -- \"$dest\" \\\n"
    "&& chmod ${mode:-644} -- \"$dest\"\n";

/* ---- parsing ---- */

static bool read_owner(struct silt_build *b, struct silt_build_copy *c)
{
    silt_slice flag = silt_docker_flag(c->step, SILT_LIT("chown"));
    c->files.user = SILT_LIT("0");
    c->files.group = SILT_LIT("0");
    if (flag.data == NULL)
        return true;
    silt_slice rest = silt_build_expand(b, flag);
    if (rest.data == NULL)
        return false;
    (void)silt_slice_split(&rest, ':', &c->files.user);
    c->files.group = rest.data != NULL ? rest : SILT_LIT("");
    return c->files.user.len > 0 || silt_build_refuse(b, "--chown needs a user");
}

static bool read_mode(struct silt_build *b, struct silt_build_copy *c)
{
    silt_slice flag = silt_docker_flag(c->step, SILT_LIT("chmod"));
    if (flag.data == NULL)
        return true;
    c->files.mode = silt_build_expand(b, flag);
    if (c->files.mode.data == NULL)
        return false;
    bool octal = c->files.mode.len > 0 && c->files.mode.len <= 5,
         letters = c->files.mode.len > 0 && c->files.mode.len <= MODE_MAX;
    for (size_t i = 0; i < c->files.mode.len; i++) {
        octal = octal && c->files.mode.data[i] >= '0' && c->files.mode.data[i] <= '7';
        letters = letters && silt_is_any(c->files.mode.data[i], "ugoa+-=rwxXst,");
    }
    return octal || letters
           || silt_build_refuse(b, "--chmod needs an octal number, or letters as in u=rwX,go=rX");
}

static bool read_excludes(struct silt_build *b, struct silt_build_copy *c)
{
    struct silt_error e;
    for (size_t i = 0; i < c->step->flag_count; i++) {
        if (!silt_slice_eq(c->step->flags[i].name, SILT_LIT("exclude")))
            continue;
        silt_auto_buf text;
        silt_buf_init(&text, SILT_DOCKER_VALUE_MAX);
        silt_slice glob = silt_build_expand(b, c->step->flags[i].value);
        if (glob.data == NULL)
            return false;
        if (silt_docker_exclude(&text, glob, &e) < 0)
            return silt_build_refuse(b, e.text);
        c->files.left[c->files.left_count++] =
            (silt_slice){silt_build_dup(b, silt_buf_slice(&text)), text.len};
    }
    return !b->over;
}

static bool check_flags(struct silt_build *b, const struct silt_docker_step *s)
{
    static const char *const known[] = {"from", "chown", "chmod", "link", "exclude", "parents"};
    for (size_t i = 0; i < s->flag_count; i++) {
        bool good = false;
        for (size_t k = 0; k < SILT_COUNT(known); k++)
            good = good || silt_slice_eq(s->flags[i].name, silt_slice_of(known[k]));
        if (!good)
            return silt_build_refuse(b, "a flag of COPY or ADD that is not supported");
    }
    bool adds = s->op == SILT_DOCKER_ADD;
    if (adds
        && (silt_docker_flag(s, SILT_LIT("from")).data != NULL
            || silt_docker_flag(s, SILT_LIT("parents")).data != NULL))
        return silt_build_refuse(b, "ADD has no --from and no --parents");
    return true;
}

static bool is_remote(silt_slice s)
{
    return silt_slice_starts(s, SILT_LIT("http://")) || silt_slice_starts(s, SILT_LIT("https://"))
           || silt_slice_starts(s, SILT_LIT("git@")) || silt_slice_starts(s, SILT_LIT("ftp://"));
}

static bool read_paths(struct silt_build *b, struct silt_build_copy *c)
{
    const struct silt_docker_step *s = c->step;
    if (s->word_count < 2)
        return silt_build_refuse(b, "COPY and ADD need a source and a destination");
    silt_slice dest = silt_build_expand(b, s->words[s->word_count - 1]);
    if (dest.data == NULL)
        return false;
    c->files.slash =
        dest.len == 0 || dest.data[dest.len - 1] == '/' || s->word_count > 2
        || silt_slice_eq(dest, SILT_LIT("."))
        || (dest.len > 1
            && silt_slice_eq((silt_slice){dest.data + dest.len - 2, 2}, SILT_LIT("/.")));
    c->files.dest = silt_build_path(b, dest);
    for (size_t i = 0; i + 1 < s->word_count && c->files.dest.data != NULL; i++) {
        if (s->heredoc_count > 0 && silt_slice_starts(s->words[i], SILT_LIT("<<")))
            continue;
        if (c->files.count == SILT_COUNT(c->files.sources))
            return silt_build_refuse(b, "too many sources");
        silt_slice source = silt_build_expand(b, s->words[i]);
        if (source.data == NULL)
            return false;
        if (is_remote(source))
            return silt_build_refuse(b,
                                     "ADD takes files of the context only; fetch others with RUN");
        c->files.sources[c->files.count++] = source;
    }
    if (s->heredoc_count > 0 && c->files.count > 0)
        return silt_build_refuse(b, "files and heredocs need a COPY each");
    return c->files.dest.data != NULL;
}

static bool is_of_server(const struct silt_build_copy *c, const struct silt_image *image)
{
    return c->files.count == 1 && silt_slice_eq(c->files.sources[0], silt_slice_of(server_path))
           && silt_image_config_is_builtin(&image->config);
}

/* Writes a script in its place and makes the image builtin, like the one the server comes from. */
static bool write_server(struct silt_build *b, struct silt_build_copy *c, silt_slice from,
                         bool mapped)
{
    struct silt_docker_step *step = silt_arena_alloc(&b->arena, sizeof(*step));
    struct silt_docker_heredoc *file = silt_arena_alloc(&b->arena, sizeof(*file));
    if (step == NULL || file == NULL)
        return silt_build_refuse(b, "the build needs too much memory");
    *file = (struct silt_docker_heredoc){.name = SILT_LIT("sandbox"),
                                         .body = silt_slice_of(server_script)};
    *step = *c->step;
    step->heredocs = file;
    step->heredoc_count = 1;
    c->step = step;
    if (c->files.mode.data == NULL)
        c->files.mode = SILT_LIT("755");
    silt_build_notice(b, "line %u: Silt itself is the server that is copied here", step->line);
    return silt_build_be_builtin(b) && (!mapped || silt_build_take_version(b, from));
}

static bool find_source(struct silt_build *b, struct silt_build_copy *c)
{
    silt_slice from = silt_docker_flag(c->step, SILT_LIT("from"));
    bool mapped;
    if (from.data == NULL)
        return true;
    const struct silt_image *image = silt_build_find_image(b, from, &mapped);
    if (image == NULL)
        return false;
    if (is_of_server(c, image))
        return write_server(b, c, from, mapped);
    silt_build_take_from(&c->files, image);
    return true;
}

/* ---- files ---- */

static void move_files(struct silt_build *b)
{
    silt_build_move_files(b, &b->copy->files, silt_build_seal);
}

static void on_hashed(struct silt_build *b)
{
    const struct silt_build_files *f = &b->copy->files;
    /* The hash is computed by the source's own programs, so it is valid for that source only. */
    silt_slice whose = {(const char *)f->digest, f->of_image ? sizeof(f->digest) : 0};
    const silt_slice parts[] = {f->hash, f->dest, f->slash ? SILT_LIT("/") : SILT_LIT(""), whose};
    silt_build_hash(b, "copy", parts, SILT_COUNT(parts));
    if (!b->over && !silt_build_hit(b))
        move_files(b);
}

/* ---- heredocs ---- */

static void write_next(struct silt_build *b);

static void on_written(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    if (b->run.code != 0) {
        silt_build_say_failed(b, "writing", b->run.code);
        return;
    }
    c->heredoc++;
    if (c->heredoc < c->step->heredoc_count)
        write_next(b);
    else
        silt_build_seal(b);
}

static void write_next(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    const struct silt_docker_heredoc *h = &c->step->heredocs[c->heredoc];
    silt_slice argv[SILT_BUILD_WORDS_MAX], body = silt_build_expand_heredoc(b, h);
    size_t n = silt_build_script(argv, write_script);
    if (body.data == NULL && b->over)
        return;
    argv[n++] = c->files.dest;
    argv[n++] = c->files.slash ? SILT_LIT("1") : SILT_LIT("0");
    argv[n++] = h->name;
    argv[n++] = c->files.user;
    argv[n++] = c->files.group;
    argv[n++] = c->files.mode;
    struct silt_build_command q = {
        .box = &b->work, .argv = argv, .argc = n, .input = true, .to_text = true};
    b->next = on_written;
    silt_buf_clear(&b->waiting);
    silt_buf_add(&b->waiting, body);
    if (silt_build_execute(b, &b->run, &q))
        silt_build_feed_on(b);
}

static void hash_heredocs(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    silt_slice parts[SILT_DOCKER_HEREDOCS_MAX * 2 + 5];
    size_t n = 0;
    for (size_t i = 0; i < c->step->heredoc_count; i++) {
        parts[n++] = c->step->heredocs[i].name;
        parts[n] = silt_build_expand_heredoc(b, &c->step->heredocs[i]);
        if (parts[n++].data == NULL && b->over)
            return;
    }
    parts[n++] = c->files.dest;
    parts[n++] = c->files.slash ? SILT_LIT("/") : SILT_LIT("");
    parts[n++] = c->files.user;
    parts[n++] = c->files.group;
    parts[n++] = c->files.mode;
    silt_build_hash(b, "write", parts, n);
    if (!b->over && !silt_build_hit(b))
        silt_build_need(b, &b->work, b->image, silt_build_network(b), write_next);
}

/* ---- owners, and the start ---- */

static void with_owner(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    if (c->step->heredoc_count > 0)
        hash_heredocs(b);
    else
        silt_build_hash_files(b, &c->files, on_hashed);
}

static bool is_number(silt_slice s)
{
    struct silt_error e;
    uint64_t n;
    return silt_slice_to_u64(s, 0, 65535, &n, &e) == 0;
}

static void on_owner(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    silt_slice said = silt_buf_slice(&b->said), line = {NULL, 0};
    if (b->run.code != 0) {
        silt_build_say_failed(b, "looking up --chown", b->run.code);
        return;
    }
    (void)silt_slice_split(&said, '\n', &line);
    char *text = silt_build_dup(b, line);
    silt_slice rest = {text, line.len};
    if (text == NULL)
        return;
    bool good = silt_slice_split(&rest, ' ', &c->files.user) && rest.data != NULL;
    c->files.group = rest;
    if (!good || !is_number(c->files.user) || !is_number(c->files.group))
        (void)silt_build_refuse(b, "--chown names somebody whom the image does not know");
    else
        with_owner(b);
}

static void ask_owner(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    silt_slice argv[8];
    size_t n = silt_build_script(argv, owner_script);
    argv[n++] = c->files.user;
    argv[n++] = c->files.group;
    struct silt_build_command q = {.box = &b->work, .argv = argv, .argc = n, .to_text = true};
    silt_buf_clear(&b->said);
    b->next = on_owner;
    (void)silt_build_execute(b, &b->run, &q);
}

void silt_build_copy(struct silt_build *b, const struct silt_docker_step *s)
{
    struct silt_build_copy *c = silt_arena_alloc(&b->arena, sizeof(*c));
    if (c == NULL) {
        (void)silt_build_refuse(b, "the build needs too much memory");
        return;
    }
    silt_slice parents = silt_docker_flag(s, SILT_LIT("parents"));
    bool keeps = parents.data != NULL && !silt_slice_ieq(parents, SILT_LIT("false"));
    *c = (struct silt_build_copy){.step = s,
                                  .files.how = s->op == SILT_DOCKER_ADD ? "add"
                                               : keeps                  ? "parents"
                                                                        : "copy"};
    b->copy = c;
    if (!check_flags(b, s) || !read_owner(b, c) || !read_mode(b, c) || !read_excludes(b, c)
        || !read_paths(b, c) || !find_source(b, c))
        return;
    if (is_number(c->files.user) && c->files.group.len == 0)
        c->files.group = c->files.user;
    if (is_number(c->files.user) && is_number(c->files.group))
        with_owner(b);
    else
        silt_build_need(b, &b->work, b->image, silt_build_network(b), ask_owner);
}
