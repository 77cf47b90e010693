/* SPDX-License-Identifier: Apache-2.0 */
/* silt new: creates a directory with one of the examples, named after the directory, ready to run
 * under wrangler. */
#include "base/buf.h"
#include "base/fd.h"
#include "cli/core/cli.h"
#include "cli/command/example.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_SIZE = 55,
    TEXT_MAX = 1 << 20
}; /* wrangler derives longer names from it, of at most 63 characters */

/* A name that wrangler accepts for a Worker: lower-case letters, digits and dashes. */
static void make_name(const char *directory, const char *otherwise, char ret[NAME_SIZE])
{
    const char *base = strrchr(directory, '/') != NULL ? strrchr(directory, '/') + 1 : directory;
    size_t len = 0;
    for (; *base != 0 && len < NAME_SIZE - 1; base++) {
        char c = *base >= 'A' && *base <= 'Z' ? (char)(*base + 32) : *base;
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (good || (len > 0 && ret[len - 1] != '-'))
            ret[len++] = good ? c : '-';
    }
    while (len > 0 && ret[len - 1] == '-')
        len--;
    ret[len] = 0;
    if (len == 0)
        (void)snprintf(ret, NAME_SIZE, "%s", otherwise);
}

static bool has_name(const char *path)
{
    return strcmp(path, "package.json") == 0 || strcmp(path, "wrangler.jsonc") == 0;
}

/* The first "name" is that of the app. */
static void rename_app(struct silt_buf *b, silt_slice text, const char *name)
{
    static const char key[] = "\"name\": \"";
    const char *at = memmem(text.data, text.len, key, strlen(key));
    const char *end = at != NULL ? memchr(at + strlen(key), '"',
                                          text.len - (size_t)(at + strlen(key) - text.data))
                                 : NULL;
    if (end == NULL) {
        silt_buf_add(b, text);
        return;
    }
    silt_buf_add(b, (silt_slice){text.data, (size_t)(at - text.data) + strlen(key)});
    silt_buf_add(b, silt_slice_of(name));
    silt_buf_add(b, (silt_slice){end, text.len - (size_t)(end - text.data)});
}

static int write_file(int directory, const struct silt_example_file *f, const char *name,
                      struct silt_error *e)
{
    silt_auto_buf text;
    silt_buf_init(&text, TEXT_MAX);
    if (strchr(f->path, '/') != NULL) {
        char around[64];
        (void)snprintf(around, sizeof(around), "%.*s", (int)(strrchr(f->path, '/') - f->path),
                       f->path);
        if (mkdirat(directory, around, 0777) < 0 && errno != EEXIST)
            return silt_fail_errno(e, "make the directory %s", around);
    }
    silt_auto_fd fd = openat(directory, f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return silt_fail_errno(e, "create %s", f->path);
    if (has_name(f->path))
        rename_app(&text, f->text, name);
    else
        silt_buf_add(&text, f->text);
    return silt_fd_write_all(fd, silt_buf_slice(&text), e) < 0
               ? silt_because(e, "write %s", f->path)
               : 0;
}

static bool is_empty(int directory)
{
    struct dirent **names;
    int count = scandirat(directory, ".", &names, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(names[i]);
    if (count >= 0)
        free(names);
    return count == 2; /* only . and .. */
}

static int open_directory(const char *path, int *ret, struct silt_error *e)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make the directory %s", path);
    silt_auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open the directory %s", path);
    if (!is_empty(fd))
        return silt_fail(e, SILT_CONFLICT,
                         "%s is not empty; name a directory that is not there yet", path);
    *ret = silt_take_fd(&fd);
    return 0;
}

static int refuse_template(const char *name, struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    for (size_t i = 0; i < silt_example_file_count; i++)
        if (i == 0 || strcmp(silt_example_files[i].example, silt_example_files[i - 1].example) != 0)
            silt_buf_addf(&b, "%s%s", b.len > 0 ? ", " : "", silt_example_files[i].example);
    return silt_fail(e, SILT_INVALID, "there is no template %s; there are %.*s", name, (int)b.len,
                     b.data);
}

static const struct silt_example_file *find_template(const char *name)
{
    for (size_t i = 0; i < silt_example_file_count; i++)
        if (strcmp(silt_example_files[i].example, name) == 0)
            return &silt_example_files[i];
    return NULL;
}

static int make_project(const char *path, const char *template, struct silt_error *e)
{
    const struct silt_example_file *end = silt_example_files + silt_example_file_count,
                                   *f = find_template(template);
    char name[NAME_SIZE], whole[PATH_MAX];
    silt_auto_fd directory = -1;
    if (f == NULL)
        return refuse_template(template, e);
    if (open_directory(path, &directory, e) < 0)
        return -1;
    if (realpath(path, whole) == NULL)
        return silt_fail_errno(e, "find the directory %s", path);
    make_name(whole, template, name);
    for (; f < end && strcmp(f->example, template) == 0; f++)
        if (write_file(directory, f, name, e) < 0)
            return -1;
    return 0;
}

int silt_cli_new(int argc, char **argv)
{
    static struct silt_cli cli;
    const char *template = "minimal";
    struct silt_error e;
    const struct silt_option table[] = {{.name = "template", .letter = 't', .value = &template}};
    struct silt_options options = {.table = table, .count = SILT_COUNT(table)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count != 1)
        return silt_cli_usage();
    if (make_project(cli.plain.items[0], template, &e) < 0)
        return silt_cli_fail(&e);
    (void)printf("%s: an app of the template %s. To run it (Node 22 or newer):\n\n  cd %s\n  npm "
                 "install\n  eval \"$(silt wrangler-env)\"\n  npm run dev\n",
                 cli.plain.items[0], template, cli.plain.items[0]);
    return EXIT_SUCCESS;
}
