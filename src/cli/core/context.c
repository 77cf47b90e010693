/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/context.h"
#include "base/fd.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, PATH_SIZE = PATH_MAX + 64 };

static const char *chosen;

static int directory(char out[PATH_SIZE], struct silt_error *e)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool own = base != NULL && base[0] == '/';
    if (!own && (home == NULL || home[0] != '/'))
        return silt_fail(e, SILT_NOT_FOUND, "no home directory: HOME is not set");
    int len = snprintf(out, PATH_SIZE, own ? "%s/silt" : "%s/.config/silt", own ? base : home);
    return len > 0 && len < PATH_MAX ? 0 : silt_fail(e, SILT_INVALID, "HOME is too long");
}

static int file_path(char out[PATH_SIZE], struct silt_error *e)
{
    if (directory(out, e) < 0)
        return -1;
    size_t len = strlen(out);
    (void)snprintf(out + len, PATH_SIZE - len, "/contexts.json");
    return 0;
}

static int take(const struct silt_json *from, const char *key, char *to, size_t size,
                struct silt_error *e)
{
    return silt_slice_to_cstr(silt_cli_text(from, key), to, size, e);
}

static int take_one(struct silt_contexts *c, const struct silt_json *v, struct silt_error *e)
{
    char name[SILT_CONTEXT_NAME_MAX + 1];
    struct silt_context *one;
    if (v->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_INVALID, "a context is an object");
    if (silt_slice_to_cstr(v->key, name, sizeof(name), e) < 0
        || silt_contexts_put(c, name, &one, e) < 0
        || take(v, "url", one->url, sizeof(one->url), e) < 0
        || take(v, "token", one->token, sizeof(one->token), e) < 0
        || take(v, "ca", one->authorities, sizeof(one->authorities), e) < 0)
        return -1;
    return 0;
}

static int read_them(silt_slice text, struct silt_contexts *ret, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *whole;
    silt_arena_init(&a, 8 * (size_t)FILE_MAX);
    if (silt_json_read(&a, text, &whole, e) < 0
        || take(whole, "current", ret->current, sizeof(ret->current), e) < 0)
        return -1;
    const struct silt_json *all = silt_json_get(whole, SILT_LIT("contexts"));
    if (all == NULL || all->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_INVALID, "no contexts in it");
    for (const struct silt_json *v = all->items.first; v != NULL; v = v->next)
        if (take_one(ret, v, e) < 0)
            return -1;
    return 0;
}

int silt_contexts_load(struct silt_contexts *ret, struct silt_error *e)
{
    silt_auto_free char *text = NULL;
    size_t len = 0;
    char path[PATH_SIZE];
    struct stat st;
    *ret = (struct silt_contexts){0};
    if (file_path(path, e) < 0 || stat(path, &st) < 0)
        return 0;
    if ((st.st_mode & 077) != 0)
        return silt_fail(e, SILT_DENIED,
                         "%s holds tokens and others may read it\nTry: chmod 600 %s", path, path);
    if (silt_fd_read_file(AT_FDCWD, path, FILE_MAX, &text, &len, e) < 0)
        return -1;
    return read_them((silt_slice){text, len}, ret, e) < 0 ? silt_because(e, "%s", path) : 0;
}

static void write_them(const struct silt_contexts *c, struct silt_buf *b)
{
    silt_json_open(b, '{');
    silt_command_add_text(b, "current", c->current[0] != 0 ? c->current : NULL);
    silt_json_key(b, SILT_LIT("contexts"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < c->count; i++) {
        const struct silt_context *one = &c->items[i];
        silt_json_key(b, silt_slice_of(one->name));
        silt_json_open(b, '{');
        silt_command_add_text(b, "url", one->url);
        silt_command_add_text(b, "token", one->token);
        silt_command_add_text(b, "ca", one->authorities[0] != 0 ? one->authorities : NULL);
        silt_json_close(b, '}');
    }
    silt_json_close(b, '}');
    silt_json_close(b, '}');
    silt_buf_add_byte(b, '\n');
}

static int make_directory(char path[PATH_SIZE], struct silt_error *e)
{
    if (directory(path, e) < 0)
        return -1;
    char *slash = strrchr(path, '/');
    *slash = 0;
    (void)mkdir(path, 0700); /* ~/.config */
    *slash = '/';
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make directory %s", path);
    return 0;
}

int silt_contexts_save(const struct silt_contexts *c, struct silt_error *e)
{
    char path[PATH_SIZE], temporary[PATH_SIZE];
    silt_auto_buf text;
    silt_buf_init(&text, FILE_MAX);
    write_them(c, &text);
    if (make_directory(path, e) < 0 || file_path(path, e) < 0)
        return -1;
    (void)snprintf(temporary, sizeof(temporary), "%.*s.XXXXXX", PATH_MAX, path);
    silt_auto_fd fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
    if (fd < 0)
        return silt_fail_errno(e, "make a file beside %s", path);
    int got = silt_fd_write_all(fd, silt_buf_slice(&text), e);
    if (got == 0 && rename(temporary, path) < 0)
        got = silt_fail_errno(e, "put %s in its place", path);
    if (got < 0)
        (void)unlink(temporary);
    return got;
}

struct silt_context *silt_contexts_find(struct silt_contexts *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->items[i].name, name) == 0)
            return &c->items[i];
    return NULL;
}

int silt_contexts_put(struct silt_contexts *c, const char *name, struct silt_context **ret,
                      struct silt_error *e)
{
    struct silt_context *one = silt_contexts_find(c, name);
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strlen(name);
    if (len == 0 || len > SILT_CONTEXT_NAME_MAX || strspn(name, safe) != len)
        return silt_fail(e, SILT_INVALID, "a context's name has 1 to %d of A-Z a-z 0-9 . _ -",
                         SILT_CONTEXT_NAME_MAX);
    if (one == NULL && c->count == SILT_CONTEXTS_MAX)
        return silt_fail(e, SILT_LIMIT, "more than %d contexts", SILT_CONTEXTS_MAX);
    if (one == NULL)
        one = &c->items[c->count++];
    *one = (struct silt_context){0};
    (void)snprintf(one->name, sizeof(one->name), "%s", name);
    *ret = one;
    return 0;
}

void silt_contexts_drop(struct silt_contexts *c, struct silt_context *one)
{
    if (strcmp(c->current, one->name) == 0)
        c->current[0] = 0;
    *one = c->items[--c->count];
}

void silt_context_choose(const char *name)
{
    chosen = name;
}

bool silt_context_is_chosen(void)
{
    return chosen != NULL;
}

int silt_context_current(const struct silt_context **ret, struct silt_error *e)
{
    static struct silt_contexts all;
    const char *name = chosen != NULL ? chosen : getenv("SILT_CONTEXT");
    *ret = NULL;
    if (silt_contexts_load(&all, e) < 0)
        return -1;
    if (name == NULL || name[0] == 0)
        name = all.current;
    if (name[0] == 0)
        return 0;
    *ret = silt_contexts_find(&all, name);
    return *ret != NULL ? 0
                        : silt_fail(e, SILT_NOT_FOUND, "no context %s\nSee: silt context ls", name);
}
