/* SPDX-License-Identifier: Apache-2.0 */
/* files: copies files between sandboxes of a build: a tar goes from the sandbox that has them to
 * that of the stage. The first pass only hashes it, with all times equal, to find out whether the
 * step is cached. */
#include "sandbox/build/internal.h"

#include <stdio.h>

/* Expands patterns to names, possibly none, and refuses anything outside the root. A directory is
 * packed with its contents, a file by its name; `parents`: each with its parent directories, from a
 * `/./` on. Mounts in a sandbox do not belong to its image. `mount`: names are not patterns, owners
 * are kept. Exclusions are regular expressions for paths below a source, or for file names: the
 * last match decides, `-` re-includes. `hash`: prints only the hash. */
static const char pack_script[] =
    "set -o pipefail; shopt -s dotglob; root=$1 owner=$2 group=$3 mode=$4 how=$5 what=$6; "
    "rules=(\"${@:8:$7}\"); shift $((7+$7)); IFS=\n"
    "[ $how != mount ] || set -f; [ $how != parents ] || shopt -s globstar; left=(-name '') "
    "regex=(); [ ${#rules[@]} = 0 ] || regex=(-regextype posix-extended)\n"
    "for r in \"${rules[@]}\"; do case $r in +*) left=('(' \"${left[@]}\" -o -regex \"${r:1}\" "
    "')');; *) left=('(' \"${left[@]}\" ! -regex \"${r:1}\" ')');; esac; done\n"
    "is_left() { local r x=1 LC_ALL=C; for r in \"${rules[@]}\"; do if [[ ./$1 =~ ^${r:1}$ ]]; "
    "then x=0; [[ $r == +* ]] || x=1; fi; done; return $x; }\n"
    "cd -- \"$root\" || exit 3; top=$(realpath .); top=${top%/}; items=() names=()\n"
    "for p; do p=${p#\"${p%%[!/]*}\"}; [ -n \"$p\" ] || p=.; n=0\n"
    "for m in $p; do [ -e \"$m\" ] || continue; r=$(realpath -- \"$m\") || exit 3\n"
    "case $r/ in \"$top\"/*) ;; *) echo \"$p leads out of the context\" >&2; exit 3;; esac\n"
    "m=${m%/} n=$((n+1)); if [ $how = parents ]; then r=.; case $m in */./*) r=${m%%/./*} "
    "m=${m#*/./};; esac; items+=(\"$r\"); names+=(\"$m\"); continue; fi\n"
    "[ -d \"$r\" ] || ! is_left \"${m##*/}\" || continue\n"
    "items+=(\"$r\"); names+=(\"${m##*/}\"); done\n"
    "[ $n -gt 0 ] || { [ $how != mount ] && [[ $p == *[*?[]* ]]; } || { echo \"$p: no such file or "
    "directory\" >&2; exit 3; }; done\n"
    "opts=(--numeric-owner --sort=name) own=(); [ -z \"$owner\" ] || own=(--owner=silt:$owner "
    "--group=silt:$group); [ -z \"$mode\" ] || own+=(--mode=$mode)\n"
    "[ $what = pack ] || opts+=(--mtime=@0)\n"
    "is_archive() { [ $how = add ] && [ -s \"$1\" ] && tar -tf \"$1\" >/dev/null 2>&1; }\n"
    "walk() { local skip=(-name ''); case $PWD in /) skip=('(' -path './proc/*' -o -path './sys/*' "
    "-o -path './dev/*' ')');; /proc|/sys|/dev) skip=(-path './*');; esac\n"
    "LC_ALL=C find \"$@\" \"${regex[@]}\" \"${skip[@]}\" -prune -o ! \"${left[@]}\" -print0 | "
    "LC_ALL=C sort -z | tar \"${how_packed[@]}\" --no-recursion --null -T - -cf -; }\n"
    "directory() { (cd -- \"$1\" || exit; shift; how_packed=(\"$@\"); walk . -mindepth 1); }\n"
    "emit() { [ ${#items[@]} -gt 0 ] || tar -T /dev/null -cf -; for i in \"${!items[@]}\"; do "
    "r=${items[i]} n=${names[i]}\n"
    "if [ $how = parents ]; then (cd -- \"$r\" && how_packed=(\"${opts[@]}\" \"${own[@]}\") && "
    "walk \"./$n\") || return\n"
    "elif [ -d \"$r\" ]; then directory \"$r\" \"${opts[@]}\" \"${own[@]}\" || return\n"
    "else t=$(mktemp -d -p / .silt-XXXXXX) || return\n"
    "if is_archive \"$r\"; then tar -C \"$t\" --numeric-owner -pxf \"$r\" && directory \"$t\" "
    "\"${opts[@]}\" || return\n"
    "else { ln -- \"$r\" \"$t/$n\" 2>/dev/null || cp -a -- \"$r\" \"$t/$n\"; } && tar -C \"$t\" "
    "\"${opts[@]}\" \"${own[@]}\" -cf - -- \"./$n\" || return; fi\n"
    "rm -rf -- \"$t\"; fi; done; }\n"
    "if [ $what = pack ]; then emit; exit; fi\n"
    "kind=D; if [ ${#items[@]} = 1 ] && [ ! -d \"${items[0]}\" ] && ! is_archive \"${items[0]}\"; "
    "then kind=F; fi\n"
    "sum=$(emit | sha256sum) && echo $kind ${sum%% *}\n";

static const char unpack_script[] =
    "shopt -s dotglob; kind=$1 dest=$2 slash=$3 owner=$4 group=$5\n"
    "x=(--numeric-owner --keep-directory-symlink --no-overwrite-dir --ignore-zeros -pxf -)\n"
    "if [ $kind = F ] && [ $slash = 0 ] && [ ! -d \"$dest\" ]; then\n"
    "d=$(dirname -- \"$dest\"); mkdir -p -- \"$d\" && t=$(mktemp -d -p \"$d\" .silt-XXXXXX) && tar "
    "-C \"$t\" \"${x[@]}\" \\\n"
    "&& mv -fT -- \"$t\"/* \"$dest\" && rmdir -- \"$t\"\n"
    "else if [ ! -d \"$dest\" ]; then mkdir -p -- \"$dest\" && chown $owner:$group -- \"$dest\" || "
    "exit; fi\n"
    "if [ \"$(cd -- \"$dest\" && pwd -P)\" = / ]; then x+=(--exclude=./proc --exclude=./sys "
    "--exclude=./dev); fi\n"
    "tar -C \"$dest\" \"${x[@]}\"; fi\n";

/* ---- sources ---- */

static struct silt_build_box *find_box(struct silt_build *b, const struct silt_build_files *f)
{
    struct silt_build_box *box = &b->context;
    if (!f->of_image)
        return box;
    for (size_t i = 0; i < SILT_BUILD_SOURCES_MAX; i++) {
        box = &b->sources[i];
        if (box->id[0] == 0 || memcmp(box->digest, f->digest, SILT_DIGEST_SIZE) == 0)
            return box;
    }
    silt_build_drop(b, box); /* reuse the place of the last one */
    return box;
}

/* The image may have been removed since it was found. */
static void need_source(struct silt_build *b, struct silt_build_files *f, silt_build_next *next)
{
    const struct silt_image *image =
        f->of_image ? silt_image_by_digest(b->registry, f->digest) : NULL;
    b->files = f;
    if (f->of_image && image == NULL)
        (void)silt_build_refuse(b, "the image that files come from was removed meanwhile");
    else
        silt_build_need(b, find_box(b, f), image, SILT_NET_NONE, next);
}

void silt_build_take_from(struct silt_build_files *f, const struct silt_image *image)
{
    f->of_image = true;
    memcpy(f->digest, image->row.digest, sizeof(f->digest));
}

/* ---- commands ---- */

size_t silt_build_script(silt_slice *argv, const char *text)
{
    argv[0] = SILT_LIT("bash");
    argv[1] = SILT_LIT("-c");
    argv[2] = silt_slice_of(text);
    argv[3] = SILT_LIT("silt-copy");
    return 4;
}

static bool pack(struct silt_build *b, struct silt_build_run *run, bool hash)
{
    struct silt_build_files *f = b->files;
    silt_slice argv[SILT_BUILD_WORDS_MAX];
    char count[8];
    size_t n = silt_build_script(argv, pack_script);
    argv[n++] = f->of_image ? SILT_LIT("/") : SILT_LIT("/context");
    argv[n++] = f->user;
    argv[n++] = f->group;
    argv[n++] = f->mode;
    argv[n++] = silt_slice_of(f->how);
    argv[n++] = hash ? SILT_LIT("hash") : SILT_LIT("pack");
    (void)snprintf(count, sizeof(count), "%zu", f->left_count);
    argv[n++] = silt_slice_of(count);
    for (size_t i = 0; i < f->left_count; i++)
        argv[n++] = f->left[i];
    for (size_t i = 0; i < f->count; i++)
        argv[n++] = f->sources[i];
    struct silt_build_command q = {
        .box = find_box(b, f), .argv = argv, .argc = n, .to_text = hash, .to_pipe = !hash};
    return silt_build_execute(b, run, &q);
}

static void on_hashed(struct silt_build *b)
{
    struct silt_build_files *f = b->files;
    silt_slice said = silt_buf_slice(&b->said), line;
    if (b->run.code != 0) {
        silt_build_say_failed(b, silt_docker_op_name(silt_build_step_of(b)->op), b->run.code);
        return;
    }
    if (!silt_slice_split(&said, '\n', &line) || line.len != 66) {
        (void)silt_build_refuse(b, "the hash of the files could not be made");
        return;
    }
    f->kind = line.data[0] == 'F' ? SILT_LIT("F") : SILT_LIT("D");
    f->hash = (silt_slice){silt_build_dup(b, line), line.len};
    if (f->hash.data != NULL)
        f->then(b);
}

static void make_hash(struct silt_build *b)
{
    silt_buf_clear(&b->said);
    b->next = on_hashed;
    (void)pack(b, &b->run, true);
}

void silt_build_hash_files(struct silt_build *b, struct silt_build_files *f, silt_build_next *then)
{
    f->then = then;
    need_source(b, f, make_hash);
}

static void on_moved(struct silt_build *b)
{
    int code = b->other.code != 0 && b->run.code == 0 ? b->other.code : b->run.code;
    b->other = (struct silt_build_run){0};
    if (code != 0)
        silt_build_say_failed(b, "copying", code);
    else
        b->files->then(b);
}

static void move(struct silt_build *b)
{
    const struct silt_build_files *f = b->files;
    silt_slice argv[SILT_BUILD_WORDS_MAX];
    size_t n = silt_build_script(argv, unpack_script);
    argv[n++] = f->kind;
    argv[n++] = f->dest;
    argv[n++] = f->slash ? SILT_LIT("1") : SILT_LIT("0");
    argv[n++] = f->user.len > 0 ? f->user : SILT_LIT("0");
    argv[n++] = f->group.len > 0 ? f->group : SILT_LIT("0");
    struct silt_build_command q = {
        .box = &b->work, .argv = argv, .argc = n, .input = true, .to_text = true};
    b->next = on_moved;
    b->other.build = b; /* stdin comes from the other command, not from the context */
    if (silt_build_execute(b, &b->run, &q))
        (void)pack(b, &b->other, false);
}

static void need_work(struct silt_build *b)
{
    silt_build_need(b, &b->work, b->image, silt_build_network(b), move);
}

void silt_build_move_files(struct silt_build *b, struct silt_build_files *f, silt_build_next *then)
{
    f->then = then;
    need_source(b, f, need_work);
}
