/* SPDX-License-Identifier: Apache-2.0 */
/* COPY and ADD: a tar from the sandbox that has the files to the one of the stage. The first time only its hash is made, with
 * all times alike, to find out whether the step was done before. */
#include "sandbox/build_own.h"

#include <stdio.h>

struct silt_build_copy {
    const struct silt_docker_step *step;
    struct silt_build_box *source;
    const struct silt_image *image; /* of the source; NULL: the context */
    uint8_t digest[SILT_DIGEST_SIZE]; /* its: it may go while owners are looked up */
    silt_slice sources[SILT_BUILD_WORDS_MAX / 2];
    size_t count;
    silt_slice dest;
    bool slash; /* dest is a folder */
    silt_slice user, group; /* as given; then numbers */
    silt_slice mode;
    silt_slice kind; /* F: one file; D: what goes into a folder */
    size_t heredoc;  /* the next one to write */
};

/* Patterns become names, and nothing outside of the root is one. Each folder is packed with what is in it, each file by its
 * name. What is mounted in a sandbox is none of its image. `hash`: only what it would be. */
static const char pack_script[] =
    "set -o pipefail; shopt -s dotglob; root=$1 owner=$2 group=$3 mode=$4 add=$5 what=$6; shift 6; IFS=\n"
    "cd -- \"$root\" || exit 3; top=$(realpath .); top=${top%/}; items=() names=()\n"
    "for p; do p=${p#\"${p%%[!/]*}\"}; [ -n \"$p\" ] || p=.; n=0\n"
    "for m in $p; do [ -e \"$m\" ] || continue; r=$(realpath -- \"$m\") || exit 3\n"
    "case $r/ in \"$top\"/*) ;; *) echo \"$p leads out of the context\" >&2; exit 3;; esac\n"
    "m=${m%/}; items+=(\"$r\"); names+=(\"${m##*/}\"); n=$((n+1)); done\n"
    "[ $n -gt 0 ] || { echo \"$p: no such file or folder\" >&2; exit 3; }; done\n"
    "opts=(--numeric-owner --sort=name); own=(--owner=silt:$owner --group=silt:$group); [ -z \"$mode\" ] || own+=(--mode=$mode)\n"
    "[ $what = pack ] || opts+=(--mtime=@0)\n"
    "is_archive() { [ $add = 1 ] && [ -s \"$1\" ] && tar -tf \"$1\" >/dev/null 2>&1; }\n"
    "folder() { (cd -- \"$1\" || exit; skip=(); case $1 in /) skip=(--exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*');;\n"
    "/proc|/sys|/dev) skip=(--exclude='./*');; esac; shift\n"
    "find . -mindepth 1 -maxdepth 1 -print0 | LC_ALL=C sort -z | tar \"${skip[@]}\" \"$@\" --null -T - -cf -); }\n"
    "emit() { for i in \"${!items[@]}\"; do r=${items[i]} n=${names[i]}\n"
    "if [ -d \"$r\" ]; then folder \"$r\" \"${opts[@]}\" \"${own[@]}\" || return\n"
    "else t=$(mktemp -d -p / .silt-XXXXXX) || return\n"
    "if is_archive \"$r\"; then tar -C \"$t\" --numeric-owner -pxf \"$r\" && folder \"$t\" \"${opts[@]}\" || return\n"
    "else { ln -- \"$r\" \"$t/$n\" 2>/dev/null || cp -a -- \"$r\" \"$t/$n\"; } && tar -C \"$t\" \"${opts[@]}\" \"${own[@]}\" -cf - -- \"./$n\" || return; fi\n"
    "rm -rf -- \"$t\"; fi; done; }\n"
    "if [ $what = pack ]; then emit; exit; fi\n"
    "kind=D; if [ ${#items[@]} = 1 ] && [ ! -d \"${items[0]}\" ] && ! is_archive \"${items[0]}\"; then kind=F; fi\n"
    "sum=$(emit | sha256sum) && echo $kind ${sum%% *}\n";

static const char unpack_script[] =
    "shopt -s dotglob; kind=$1 dest=$2 slash=$3 owner=$4 group=$5\n"
    "x=(--numeric-owner --keep-directory-symlink --no-overwrite-dir --ignore-zeros -pxf -)\n"
    "if [ $kind = F ] && [ $slash = 0 ] && [ ! -d \"$dest\" ]; then\n"
    "d=$(dirname -- \"$dest\"); mkdir -p -- \"$d\" && t=$(mktemp -d -p \"$d\" .silt-XXXXXX) && tar -C \"$t\" \"${x[@]}\" \\\n"
    "&& mv -fT -- \"$t\"/* \"$dest\" && rmdir -- \"$t\"\n"
    "else if [ ! -d \"$dest\" ]; then mkdir -p -- \"$dest\" && chown $owner:$group -- \"$dest\" || exit; fi\n"
    "if [ \"$(cd -- \"$dest\" && pwd -P)\" = / ]; then x+=(--exclude=./proc --exclude=./sys --exclude=./dev); fi\n"
    "tar -C \"$dest\" \"${x[@]}\"; fi\n";

/* The official server, copied into an image of one's own: siltd is that server, and what its arguments name runs beside it. */
static const char server_path[] = "/container-server/sandbox";
static const char server_script[] = "#!/bin/sh\n# Silt itself answers on port 3000 of this image.\n[ $# -eq 0 ] || exec \"$@\"\n";

/* Numbers of the image's own users and groups. */
static const char owner_script[] =
    "u=$1 g=$2; case $u in *[!0-9]*) u=$(id -u -- \"$u\") && [ -n \"$g\" ] || g=${g:-$(id -g -- \"$1\")} ;; esac\n"
    "[ -n \"$u\" ] || exit 3; case $g in '') g=$u;; *[!0-9]*) n=$g; g=$(awk -F: -v n=\"$n\" '$1 == n { print $3 }' /etc/group)\n"
    "[ -n \"$g\" ] || { echo \"no group $n in the image\" >&2; exit 3; };; esac; echo $u $g\n";

static const char write_script[] =
    "shopt -s dotglob; dest=$1 slash=$2 name=$3 owner=$4 group=$5 mode=$6\n"
    "if [ $slash = 1 ] || [ -d \"$dest\" ]; then dest=${dest%/}/$name; fi\n"
    "mkdir -p -- \"$(dirname -- \"$dest\")\" && rm -f -- \"$dest\" && cat > \"$dest\" && chown $owner:$group -- \"$dest\" \\\n"
    "&& chmod ${mode:-644} -- \"$dest\"\n";

static bool refuse(struct silt_build *b, const char *why)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_INVALID, "Dockerfile line %u: %s", silt_build_step_of(b)->line, why);
    silt_build_fail(b, &e);
    return false;
}

/* ---- what stands in the Dockerfile ---- */

static bool read_owner(struct silt_build *b, struct silt_build_copy *c)
{
    silt_slice flag = silt_docker_flag(c->step, SILT_LIT("chown"));
    c->user = SILT_LIT("0");
    c->group = SILT_LIT("0");
    if (flag.data == NULL)
        return true;
    silt_slice rest = silt_build_expand(b, flag);
    if (rest.data == NULL)
        return false;
    (void)silt_slice_split(&rest, ':', &c->user);
    c->group = rest.data != NULL ? rest : SILT_LIT("");
    return c->user.len > 0 || refuse(b, "--chown needs a user");
}

static bool read_mode(struct silt_build *b, struct silt_build_copy *c)
{
    silt_slice flag = silt_docker_flag(c->step, SILT_LIT("chmod"));
    if (flag.data == NULL)
        return true;
    c->mode = silt_build_expand(b, flag);
    if (c->mode.data == NULL)
        return false;
    for (size_t i = 0; i < c->mode.len; i++)
        if (c->mode.data[i] < '0' || c->mode.data[i] > '7')
            return refuse(b, "--chmod needs an octal number");
    return (c->mode.len > 0 && c->mode.len <= 5) || refuse(b, "--chmod needs an octal number");
}

static bool check_flags(struct silt_build *b, const struct silt_docker_step *s)
{
    static const char *const known[] = {"from", "chown", "chmod", "link"};
    for (size_t i = 0; i < s->flag_count; i++) {
        bool good = false;
        for (size_t k = 0; k < SILT_COUNT(known); k++)
            good = good || silt_slice_eq(s->flags[i].name, silt_slice_of(known[k]));
        if (!good)
            return refuse(b, "a flag of COPY or ADD that is not supported");
    }
    return s->op != SILT_DOCKER_ADD || silt_docker_flag(s, SILT_LIT("from")).data == NULL || refuse(b, "ADD has no --from");
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
        return refuse(b, "COPY and ADD need a source and a destination");
    silt_slice dest = silt_build_expand(b, s->words[s->word_count - 1]);
    if (dest.data == NULL)
        return false;
    c->slash = dest.len == 0 || dest.data[dest.len - 1] == '/' || s->word_count > 2 || silt_slice_eq(dest, SILT_LIT("."))
               || (dest.len > 1 && silt_slice_eq((silt_slice){dest.data + dest.len - 2, 2}, SILT_LIT("/.")));
    c->dest = silt_build_path(b, dest);
    for (size_t i = 0; i + 1 < s->word_count && c->dest.data != NULL; i++) {
        if (s->heredoc_count > 0 && silt_slice_starts(s->words[i], SILT_LIT("<<")))
            continue;
        if (c->count == SILT_COUNT(c->sources))
            return refuse(b, "too many sources");
        silt_slice source = silt_build_expand(b, s->words[i]);
        if (source.data == NULL)
            return false;
        if (is_remote(source))
            return refuse(b, "ADD takes files of the context only; fetch others with RUN");
        c->sources[c->count++] = source;
    }
    if (s->heredoc_count > 0 && c->count > 0)
        return refuse(b, "files and heredocs need a COPY each");
    return c->dest.data != NULL;
}

static bool is_of_server(const struct silt_build_copy *c)
{
    return c->count == 1 && silt_slice_eq(c->sources[0], silt_slice_of(server_path))
           && silt_image_config_is_builtin(&c->image->config);
}

/* A script is written in its place, and the image is one like those that it comes from. */
static bool write_server(struct silt_build *b, struct silt_build_copy *c, silt_slice from, bool mapped)
{
    struct silt_docker_step *step = silt_arena_alloc(&b->arena, sizeof(*step));
    struct silt_docker_heredoc *file = silt_arena_alloc(&b->arena, sizeof(*file));
    if (step == NULL || file == NULL)
        return refuse(b, "the build needs too much memory");
    *file = (struct silt_docker_heredoc){.name = SILT_LIT("sandbox"), .body = silt_slice_of(server_script)};
    *step = *c->step;
    step->heredocs = file;
    step->heredoc_count = 1;
    c->step = step;
    c->image = NULL;
    if (c->mode.data == NULL)
        c->mode = SILT_LIT("755");
    silt_build_notice(b, "line %u: Silt itself is the server that is copied here", step->line);
    return silt_build_be_builtin(b) && (!mapped || silt_build_take_version(b, from));
}

static bool find_source(struct silt_build *b, struct silt_build_copy *c)
{
    silt_slice from = silt_docker_flag(c->step, SILT_LIT("from"));
    bool mapped;
    c->source = &b->context;
    if (from.data == NULL)
        return true;
    c->image = silt_build_find_image(b, from, &mapped);
    if (c->image == NULL)
        return false;
    if (is_of_server(c))
        return write_server(b, c, from, mapped);
    memcpy(c->digest, c->image->row.digest, sizeof(c->digest));
    for (size_t i = 0; i < SILT_BUILD_SOURCES_MAX; i++) {
        c->source = &b->sources[i];
        if (c->source->id[0] == 0 || memcmp(c->source->digest, c->image->row.digest, SILT_DIGEST_SIZE) == 0)
            return true;
    }
    silt_build_drop(b, c->source); /* the last one makes room */
    return true;
}

/* ---- commands ---- */

static silt_slice script(const char *text)
{
    return silt_slice_of(text);
}

/* bash -c SCRIPT silt-copy …: what every one of them begins with. */
static size_t begin(silt_slice *argv, const char *text)
{
    argv[0] = SILT_LIT("bash");
    argv[1] = SILT_LIT("-c");
    argv[2] = script(text);
    argv[3] = SILT_LIT("silt-copy");
    return 4;
}

static bool pack(struct silt_build *b, struct silt_build_run *run, bool hash)
{
    struct silt_build_copy *c = b->copy;
    silt_slice argv[SILT_BUILD_WORDS_MAX];
    size_t n = begin(argv, pack_script);
    argv[n++] = c->image == NULL ? SILT_LIT("/context") : SILT_LIT("/");
    argv[n++] = c->user;
    argv[n++] = c->group;
    argv[n++] = c->mode.data != NULL ? c->mode : SILT_LIT("");
    argv[n++] = c->step->op == SILT_DOCKER_ADD ? SILT_LIT("1") : SILT_LIT("0");
    argv[n++] = hash ? SILT_LIT("hash") : SILT_LIT("pack");
    for (size_t i = 0; i < c->count; i++)
        argv[n++] = c->sources[i];
    struct silt_build_command q = {.box = c->source, .argv = argv, .argc = n, .to_text = hash, .to_pipe = !hash};
    return silt_build_execute(b, run, &q);
}

static void on_moved(struct silt_build *b)
{
    int code = b->other.code != 0 && b->run.code == 0 ? b->other.code : b->run.code;
    b->other = (struct silt_build_run){0};
    if (code != 0)
        silt_build_say_failed(b, "copying", code);
    else
        silt_build_seal(b);
}

static void move_files(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    silt_slice argv[SILT_BUILD_WORDS_MAX];
    size_t n = begin(argv, unpack_script);
    argv[n++] = c->kind;
    argv[n++] = c->dest;
    argv[n++] = c->slash ? SILT_LIT("1") : SILT_LIT("0");
    argv[n++] = c->user;
    argv[n++] = c->group;
    struct silt_build_command q = {.box = &b->work, .argv = argv, .argc = n, .input = true, .to_text = true};
    b->next = on_moved;
    b->other.build = b; /* so that nobody takes it for the context's */
    if (silt_build_execute(b, &b->run, &q))
        (void)pack(b, &b->other, false);
}

static void on_hashed(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    silt_slice said = silt_buf_slice(&b->said), line;
    if (b->run.code != 0) {
        silt_build_say_failed(b, c->step->op == SILT_DOCKER_ADD ? "ADD" : "COPY", b->run.code);
        return;
    }
    if (!silt_slice_split(&said, '\n', &line) || line.len != 66) {
        (void)refuse(b, "the hash of the files could not be made");
        return;
    }
    c->kind = line.data[0] == 'F' ? SILT_LIT("F") : SILT_LIT("D");
    char *hash = silt_build_dup(b, line);
    if (hash == NULL)
        return;
    /* The hash is what the source's own programs say it is: it counts for that source only. */
    silt_slice whose = {(const char *)c->digest, c->image != NULL ? sizeof(c->digest) : 0};
    const silt_slice parts[] = {silt_slice_of(hash), c->dest, c->slash ? SILT_LIT("/") : SILT_LIT(""), whose};
    silt_build_hash(b, "copy", parts, SILT_COUNT(parts));
    if (!b->over && !silt_build_hit(b))
        silt_build_need(b, &b->work, b->image, silt_build_network(b), move_files);
}

static void make_hash(struct silt_build *b)
{
    silt_buf_clear(&b->said);
    b->next = on_hashed;
    (void)pack(b, &b->run, true);
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
    size_t n = begin(argv, write_script);
    if (body.data == NULL && b->over)
        return;
    argv[n++] = c->dest;
    argv[n++] = c->slash ? SILT_LIT("1") : SILT_LIT("0");
    argv[n++] = h->name;
    argv[n++] = c->user;
    argv[n++] = c->group;
    argv[n++] = c->mode.data != NULL ? c->mode : SILT_LIT("");
    struct silt_build_command q = {.box = &b->work, .argv = argv, .argc = n, .input = true, .to_text = true};
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
    parts[n++] = c->dest;
    parts[n++] = c->slash ? SILT_LIT("/") : SILT_LIT("");
    parts[n++] = c->user;
    parts[n++] = c->group;
    parts[n++] = c->mode;
    silt_build_hash(b, "write", parts, n);
    if (!b->over && !silt_build_hit(b))
        silt_build_need(b, &b->work, b->image, silt_build_network(b), write_next);
}

/* ---- owners, and the beginning ---- */

static void with_owner(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    if (c->image != NULL && (c->image = silt_image_by_digest(b->registry, c->digest)) == NULL)
        (void)refuse(b, "the image of --from was removed meanwhile");
    else if (c->step->heredoc_count > 0)
        hash_heredocs(b);
    else
        silt_build_need(b, c->source, c->image, SILT_NET_NONE, make_hash);
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
    bool good = silt_slice_split(&rest, ' ', &c->user) && rest.data != NULL;
    c->group = rest;
    if (!good || !is_number(c->user) || !is_number(c->group))
        (void)refuse(b, "--chown names somebody whom the image does not know");
    else
        with_owner(b);
}

static void ask_owner(struct silt_build *b)
{
    struct silt_build_copy *c = b->copy;
    silt_slice argv[8];
    size_t n = begin(argv, owner_script);
    argv[n++] = c->user;
    argv[n++] = c->group;
    struct silt_build_command q = {.box = &b->work, .argv = argv, .argc = n, .to_text = true};
    silt_buf_clear(&b->said);
    b->next = on_owner;
    (void)silt_build_execute(b, &b->run, &q);
}

void silt_build_copy(struct silt_build *b, const struct silt_docker_step *s)
{
    struct silt_build_copy *c = silt_arena_alloc(&b->arena, sizeof(*c));
    if (c == NULL) {
        (void)refuse(b, "the build needs too much memory");
        return;
    }
    *c = (struct silt_build_copy){.step = s};
    b->copy = c;
    if (!check_flags(b, s) || !read_owner(b, c) || !read_mode(b, c) || !read_paths(b, c) || !find_source(b, c))
        return;
    if (is_number(c->user) && c->group.len == 0)
        c->group = c->user;
    if (is_number(c->user) && is_number(c->group))
        with_owner(b);
    else
        silt_build_need(b, &b->work, b->image, silt_build_network(b), ask_owner);
}
