/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/image_archive.h"
#include "base/fd.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/file/source.h"
#include "cli/core/wait.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { PATH_SIZE = 1024, TIMEOUT_MS = 30 * 60 * 1000 };

/* Appends `?` or `&`, the name and the encoded value. */
static int add_query(char *path, size_t size, const char *name, const char *value,
                     struct silt_error *e)
{
    size_t len = strlen(path);
    char before[32];
    if (value == NULL)
        return 0;
    (void)snprintf(before, sizeof(before), "%c%s=", strchr(path, '?') != NULL ? '&' : '?', name);
    return silt_cli_path(path + len, size - len, before, value, "", e);
}

static int make_path(const struct silt_image_archive *a, char path[PATH_SIZE], struct silt_error *e)
{
    (void)snprintf(path, PATH_SIZE, "/v1/images/import");
    if (a->name != NULL && silt_cli_path(path, PATH_SIZE, "/v1/images/", a->name, "", e) < 0)
        return -1;
    if (add_query(path, PATH_SIZE, "format", a->format, e) < 0)
        return -1;
    return add_query(path, PATH_SIZE, "image", a->image, e);
}

static void tell(const struct silt_image_archive *a, const struct silt_json *answer)
{
    silt_slice name = silt_cli_text(answer, "name"), digest = silt_cli_text(answer, "digest");
    int64_t left_out = silt_cli_number(answer, "leftOut");
    if (a->as_docker)
        (void)printf("Loaded image%s: %.*s\n", name.len > 0 ? "" : " ID",
                     (int)(name.len > 0 ? name : digest).len, (name.len > 0 ? name : digest).data);
    else
        (void)printf("%.*s %.*s\n", (int)name.len, name.data, (int)digest.len, digest.data);
    if (left_out > 0)
        (void)fprintf(stderr, "silt: %lld device nodes were left out\n", (long long)left_out);
}

static int send(struct silt_client *c, const struct silt_image_archive *a,
                struct silt_client_request *q, uint64_t size, struct silt_error *e)
{
    silt_auto_arena arena = {0};
    const struct silt_json *answer;
    struct silt_progress progress;
    char path[PATH_SIZE];
    if (make_path(a, path, e) < 0)
        return -1;
    q->method = a->name != NULL ? "PUT" : "POST";
    q->path = path;
    q->content_type = "application/x-tar";
    q->progress = &progress;
    silt_arena_init(&arena, SILT_CLI_ARENA_MAX);
    c->timeout_ms = TIMEOUT_MS;
    silt_progress_start(&progress, a->name != NULL ? a->name : a->path, size);
    int got = silt_client_call(c, q, &arena, &answer, e);
    silt_progress_end(&progress);
    if (got < 0)
        return silt_because(e, "import %s", a->path);
    tell(a, answer);
    return 0;
}

static int send_directory(struct silt_client *c, const struct silt_image_archive *a,
                          struct silt_error *e)
{
    static struct silt_source_fd source;
    struct silt_client_request q = {.file = -1, .source = &source.source};
    struct silt_error tar_error;
    struct silt_tar tar;
    struct stat st;
    silt_auto_fd directory = open(a->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return silt_fail_errno(e, "open %s", a->path);
    if (fstatat(directory, "oci-layout", &st, 0) < 0)
        return silt_fail(e, SILT_INVALID,
                         "directory %s is no OCI layout: it has no file oci-layout", a->path);
    if (silt_tar_pack(&tar, a->path, e) < 0)
        return -1;
    silt_source_from_fd(&source, tar.fd, &tar);
    int got = send(c, a, &q, silt_tar_size(a->path), e);
    if (source.tar != NULL) /* not read to the end */
        (void)silt_tar_end(&tar, &tar_error);
    return got;
}

int silt_image_import(struct silt_client *c, const struct silt_image_archive *a,
                      struct silt_error *e)
{
    static struct silt_source_fd source;
    bool in = strcmp(a->path, "-") == 0;
    silt_auto_fd own = in ? -1 : open(a->path, O_RDONLY | O_CLOEXEC);
    int fd = in ? STDIN_FILENO : own;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return silt_fail_errno(e, "open %s", a->path);
    if (S_ISDIR(st.st_mode))
        return send_directory(c, a, e);
    struct silt_client_request q = {.file = S_ISREG(st.st_mode) ? fd : -1};
    if (q.file < 0) {
        silt_source_from_fd(&source, fd, NULL);
        q.source = &source.source;
    }
    return send(c, a, &q, q.file >= 0 ? (uint64_t)st.st_size : 0, e);
}

/* ---- export ---- */

static int receive(struct silt_client *c, const struct silt_image_archive *a, int out,
                   struct silt_error *e)
{
    struct silt_progress progress;
    char path[PATH_SIZE];
    silt_slice piece;
    int got;
    if (silt_cli_path(path, sizeof(path), "/v1/images/", a->name, "/export", e) < 0
        || add_query(path, sizeof(path), "format", a->format, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    c->timeout_ms = TIMEOUT_MS;
    silt_progress_start(&progress, a->name, 0);
    silt_progress_tell(&progress, "being hashed");
    int asked = silt_client_ask(c, &q, e);
    silt_progress_tell(&progress, NULL);
    if (asked < 0)
        return -1;
    if (c->head.status != 200)
        return silt_client_fail(c, e);
    silt_progress_start(&progress, a->name, 0); /* the clock starts with the first byte */
    while ((got = silt_client_read(c, &piece, e)) > 0
           && (got = silt_fd_write_all(out, piece, e)) == 0)
        silt_progress_add(&progress, piece.len);
    silt_progress_end(&progress);
    return got;
}

/* Writes a file beside the target and renames it. */
static int replace_file(struct silt_client *c, const struct silt_image_archive *a,
                        struct silt_error *e)
{
    char part[PATH_MAX];
    int n = snprintf(part, sizeof(part), "%s.part-%d", a->path, (int)getpid());
    if (n < 0 || n >= (int)sizeof(part))
        return silt_fail(e, SILT_INVALID, "the name of the file is too long");
    if (silt_wait_catch_interrupt(e) < 0)
        return -1;
    silt_auto_fd fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return silt_fail_errno(e, "make %s", part);
    int got = receive(c, a, fd, e);
    if (got == 0 && rename(part, a->path) < 0)
        got = silt_fail_errno(e, "rename %s to %s", part, a->path);
    if (got < 0)
        (void)unlink(part);
    return got;
}

/* Devices, pipes and links are written to, not replaced: root may have passed /dev/null. */
static int receive_file(struct silt_client *c, const struct silt_image_archive *a,
                        struct silt_error *e)
{
    struct stat st;
    bool there = lstat(a->path, &st) == 0;
    if (!there || S_ISREG(st.st_mode))
        return replace_file(c, a, e);
    silt_auto_fd fd = open(a->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", a->path);
    return receive(c, a, fd, e);
}

int silt_image_export(struct silt_client *c, const struct silt_image_archive *a,
                      struct silt_error *e)
{
    bool out = strcmp(a->path, "-") == 0;
    if (out && isatty(STDOUT_FILENO))
        return silt_fail(e, SILT_INVALID, "an archive is nothing for a terminal\nTry: -o FILE");
    if ((out ? receive(c, a, STDOUT_FILENO, e) : receive_file(c, a, e)) < 0)
        return silt_because(e, "export %s", a->name);
    return 0;
}
