/* SPDX-License-Identifier: Apache-2.0 */
/* silt cp: copies a file or a directory into a sandbox, out of one, or from one to another. A file
 * is replaced as a whole or not at all. */
#include "base/fd.h"
#include "cli/core/box.h"
#include "cli/core/cli.h"
#include "cli/file/files.h"
#include "cli/file/merge.h"
#include "cli/file/source.h"
#include "cli/core/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

struct copy {
    struct silt_cli cli;
    struct silt_copy_target from, to;
    struct silt_client client, other; /* other: the source in a copy from sandbox to sandbox */
    struct silt_progress progress;
    bool directory; /* what is copied */
    uint64_t size;  /* of the source; 0: unknown */
    unsigned mode;  /* of the source */
};

/* Source and target */

static enum silt_files_kind kind_of(const struct stat *st)
{
    return S_ISDIR(st->st_mode) ? SILT_FILES_DIRECTORY : SILT_FILES_FILE;
}

static int look(struct copy *x, const struct silt_copy_target *p, struct silt_files_look *ret,
                struct silt_error *e)
{
    struct stat st = {0};
    if (p->kind == SILT_COPY_TARGET_BOX)
        return silt_files_look(&x->client, p, ret, e);
    *ret = (struct silt_files_look){.kind = SILT_FILES_NOTHING, .mode = 0666};
    int got = p->kind == SILT_COPY_TARGET_STDIO ? fstat(STDIN_FILENO, &st) : stat(p->path, &st);
    if (got < 0 && errno == ENOENT)
        return 0;
    if (got < 0)
        return silt_fail_errno(e, "look at %s", p->word);
    ret->kind = kind_of(&st);
    ret->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    ret->mode = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? st.st_mode & 0777 : 0666;
    return 0;
}

static int look_at_source(struct copy *x, struct silt_error *e)
{
    struct silt_files_look found;
    if (look(x, &x->from, &found, e) < 0)
        return -1;
    if (found.kind == SILT_FILES_NOTHING)
        return silt_fail(e, SILT_NOT_FOUND, "%s: no such file or directory", x->from.word);
    x->directory = found.kind == SILT_FILES_DIRECTORY;
    x->size = found.size;
    x->mode = found.mode;
    return 0;
}

/* An existing file keeps its permissions. */
static void take_place_of(struct copy *x, const struct silt_files_look *found)
{
    if (x->directory || found->kind == SILT_FILES_FILE)
        x->mode = SILT_FILES_KEEP_MODE;
}

/* If the target is an existing directory or ends with a slash, the copy goes into it under the
 * source's name. */
static int go_into(struct copy *x, struct silt_files_look *found, struct silt_error *e)
{
    if (x->from.kind == SILT_COPY_TARGET_STDIO)
        return silt_fail(e, SILT_INVALID,
                         "%s is a directory\nName the file in it: silt cp - %s%sNAME", x->to.word,
                         x->to.word, silt_copy_target_is_directory(x->to.word) ? "" : "/");
    if (silt_copy_target_add(x->to.path, silt_copy_target_name(x->from.path), e) < 0)
        return -1;
    return look(x, &x->to, found, e);
}

/* The first use of an id creates its sandbox, as in other commands. */
static int look_at_target(struct copy *x, struct silt_files_look *ret, struct silt_error *e)
{
    if (look(x, &x->to, ret, e) == 0)
        return 0;
    if (x->to.kind != SILT_COPY_TARGET_BOX || !silt_box_is_missing(&x->client)
        || silt_box_make(&x->client, x->to.id, e) < 0)
        return -1;
    return look(x, &x->to, ret, e);
}

static int choose_target(struct copy *x, struct silt_error *e)
{
    struct silt_files_look found;
    if (x->to.kind == SILT_COPY_TARGET_STDIO)
        return 0;
    if (look_at_target(x, &found, e) < 0)
        return -1;
    bool asked = !x->directory
                 && silt_copy_target_is_directory(
                     x->to.path); /* a directory is copied to the missing path itself */
    if (found.kind == SILT_FILES_DIRECTORY || (asked && found.kind == SILT_FILES_NOTHING))
        if (go_into(x, &found, e) < 0)
            return -1;
    if (x->directory && found.kind == SILT_FILES_FILE)
        return silt_fail(e, SILT_CONFLICT, "%s is a file, %s a directory", x->to.word,
                         x->from.word);
    if (!x->directory && found.kind == SILT_FILES_DIRECTORY)
        return silt_fail(e, SILT_CONFLICT, "%s has a directory with the name of %s", x->to.word,
                         x->from.word);
    take_place_of(x, &found);
    return 0;
}

/* Into a sandbox */

static int send(struct copy *x, struct silt_client_request *q, struct silt_error *e)
{
    q->progress = &x->progress;
    if (silt_files_put(&x->client, &x->to, x->directory, x->mode, q, e) < 0)
        return silt_because(e, "copy %s to %s", x->from.word, x->to.word);
    return 0;
}

static int send_directory(struct copy *x, struct silt_error *e)
{
    static struct silt_source_fd source;
    struct silt_client_request q = {.file = -1, .source = &source.source};
    struct silt_error tar_error;
    struct silt_tar tar;
    if (x->progress.live)
        x->progress.total = silt_tar_size(x->from.path);
    if (silt_tar_pack(&tar, x->from.path, e) < 0)
        return -1;
    silt_source_from_fd(&source, tar.fd, &tar);
    int got = send(x, &q, e);
    if (source.tar != NULL) /* not read to the end */
        (void)silt_tar_end(&tar, &tar_error);
    return got;
}

static int send_file(struct copy *x, struct silt_error *e)
{
    static struct silt_source_fd source;
    bool in = x->from.kind == SILT_COPY_TARGET_STDIO;
    silt_auto_fd own = in ? -1 : open(x->from.path, O_RDONLY | O_CLOEXEC);
    int fd = in ? STDIN_FILENO : own;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return silt_fail_errno(e, "open %s", x->from.word);
    struct silt_client_request q = {.file = S_ISREG(st.st_mode) ? fd : -1};
    if (q.file < 0) {
        silt_source_from_fd(&source, fd, NULL);
        q.source = &source.source;
    }
    return send(x, &q, e);
}

static int pass_on(struct copy *x, struct silt_error *e)
{
    struct silt_source_answer source;
    struct silt_client_request q = {.file = -1, .source = &source.source};
    if (silt_files_get(&x->other, &x->from, x->directory, e) < 0)
        return silt_because(e, "copy %s", x->from.word);
    silt_source_from_answer(&source, &x->other);
    return send(x, &q, e);
}

/* Out of a sandbox */

static int write_answer(struct copy *x, int fd, struct silt_error *e)
{
    silt_slice piece;
    int got;
    while ((got = silt_client_read(&x->client, &piece, e)) > 0) {
        if (silt_fd_write_all(fd, piece, e) < 0)
            return silt_because(e, "write %s", x->to.word);
        silt_progress_add(&x->progress, piece.len);
    }
    return got;
}

static int fetch(struct copy *x, struct silt_error *e)
{
    if (silt_files_get(&x->client, &x->from, x->directory, e) < 0)
        return silt_because(e, "copy %s", x->from.word);
    return 0;
}

static int run_tar(struct copy *x, const char *directory, struct silt_error *e)
{
    struct silt_tar tar;
    struct silt_error why;
    if (silt_tar_unpack(&tar, directory, e) < 0)
        return -1;
    tar.directory = x->to.word; /* the name that the user typed, for errors */
    int got = write_answer(x, tar.fd, e);
    if (silt_tar_end(&tar, &why) == 0)
        return got;
    if (got == 0 || e->sys == EPIPE)
        *e = why;
    return -1;
}

/* Unpacks into a temporary directory, which is then moved or merged into place: a partial copy
 * changes nothing, and links of an earlier copy are not followed. The temporary directory lies
 * inside an existing target, because its parent may not be writable. */
static int unpack(struct copy *x, struct silt_error *e)
{
    char temporary[PATH_MAX + 16];
    size_t len = strlen(x->to.path);
    while (len > 1 && x->to.path[len - 1] == '/')
        x->to.path[--len] = 0;
    bool there = access(x->to.path, F_OK) == 0;
    (void)snprintf(temporary, sizeof(temporary), "%s%s", x->to.path,
                   there ? "/.XXXXXX" : ".XXXXXX");
    if (mkdtemp(temporary) == NULL)
        return silt_fail_errno(e, "make a directory for %s", x->to.path);
    int got = run_tar(x, temporary, e);
    if (got == 0 && there)
        got = silt_merge_move(temporary, x->to.path, e);
    else if (got == 0 && rename(temporary, x->to.path) < 0)
        got = silt_fail_errno(e, "put %s in its place", x->to.path);
    silt_merge_remove(temporary);
    return got;
}

/* Writes a file beside the target and renames it; an existing file keeps its permissions. */
static int replace_file(struct copy *x, struct silt_error *e)
{
    char temporary[PATH_MAX + 16];
    struct stat st;
    mode_t mask = umask(0);
    (void)umask(mask);
    mode_t mode = stat(x->to.path, &st) == 0 ? st.st_mode & 0777 : x->mode & 0777 & ~mask;
    (void)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", x->to.path);
    silt_auto_fd fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "make a file beside %s", x->to.path);
    int got = write_answer(x, fd, e);
    if (got == 0 && (fchmod(fd, mode) < 0 || rename(temporary, x->to.path) < 0))
        got = silt_fail_errno(e, "put %s in its place", x->to.path);
    if (got < 0)
        (void)unlink(temporary);
    return got;
}

/* Devices, pipes and links are written to, not replaced. */
static int write_file(struct copy *x, struct silt_error *e)
{
    struct stat st;
    bool there = lstat(x->to.path, &st) == 0;
    if (!there || S_ISREG(st.st_mode))
        return replace_file(x, e);
    silt_auto_fd fd = open(x->to.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", x->to.path);
    return write_answer(x, fd, e);
}

static int receive(struct copy *x, struct silt_error *e)
{
    if (fetch(x, e) < 0)
        return -1;
    if (x->to.kind == SILT_COPY_TARGET_STDIO)
        return write_answer(x, STDOUT_FILENO, e); /* a directory as a tar */
    return x->directory ? unpack(x, e) : write_file(x, e);
}

/* The command */

/* The name for the progress line: the last component of the path. */
static const char *title(const struct copy *x)
{
    silt_slice name = silt_copy_target_name(x->from.path);
    return name.len > 0 ? name.data : x->from.word;
}

static int copy(struct copy *x, struct silt_error *e)
{
    bool from_box = x->from.kind == SILT_COPY_TARGET_BOX;
    if (look_at_source(x, e) < 0 || choose_target(x, e) < 0)
        return -1;
    silt_progress_start(&x->progress, title(x), x->directory ? 0 : x->size);
    int got = from_box && x->to.kind == SILT_COPY_TARGET_BOX ? pass_on(x, e)
              : from_box                                     ? receive(x, e)
              : x->directory                                 ? send_directory(x, e)
                                                             : send_file(x, e);
    silt_progress_end(&x->progress);
    return got;
}

static int parse(struct copy *x, int argc, char **argv, struct silt_error *e)
{
    bool recursive = false; /* directories are always copied whole */
    const struct silt_option own[] = {{.name = "recursive", .letter = 'r', .flag = &recursive}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&x->cli, &options, argc, argv, e) < 0)
        return -1;
    const struct silt_words *w = &x->cli.plain;
    if (w->count != 2 || x->cli.rest.count > 0)
        return silt_cli_misused(e);
    if (silt_copy_target_parse(w->items[0], &x->from, e) < 0
        || silt_copy_target_parse(w->items[1], &x->to, e) < 0)
        return -1;
    if (x->from.kind != SILT_COPY_TARGET_BOX && x->to.kind != SILT_COPY_TARGET_BOX)
        return silt_fail(e, SILT_INVALID,
                         "neither %s nor %s is in a sandbox\nWrite a path there as ID:PATH.",
                         x->from.word, x->to.word);
    return 0;
}

int silt_cli_cp(int argc, char **argv)
{
    static struct copy x;
    struct silt_error e = {0};
    if (parse(&x, argc, argv, &e) < 0
        || silt_client_init(&x.client, x.cli.server, x.cli.token_file, &e) < 0
        || silt_client_init(&x.other, x.cli.server, x.cli.token_file, &e) < 0
        || silt_wait_catch_interrupt(&e) < 0)
        return silt_cli_fail(&e);
    int got = copy(&x, &e);
    silt_client_fini(&x.client);
    silt_client_fini(&x.other);
    if (got < 0 && e.code == SILT_INTERRUPTED)
        return SILT_EXIT_INTERRUPTED;
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
