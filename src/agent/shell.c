/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shell.h"
#include "agent/state.h"
#include "base/fd.h"
#include "base/own.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

enum { QUOTES_MAX = 256 };

char *const *silt_shell_argv(void)
{
    static char name[] = "bash";
    static char option[] = "--norc";
    static char *const argv[] = {name, option, NULL};
    return argv;
}

void silt_shell_name(unsigned slot, enum silt_shell_file file, char out[SILT_FOLDER_NAME_SIZE])
{
    (void)snprintf(out, SILT_FOLDER_NAME_SIZE, "%u%c", slot, (char)file);
}

void silt_shell_add_dir(struct silt_script *s, silt_slice dir)
{
    silt_script_open_quote(s);
    if (dir.len == 0 || dir.data[0] != '/')
        silt_script_add_c(s, "./");
    silt_script_add(s, dir);
    silt_script_close_quote(s);
}

static void clear(struct silt_lines *l)
{
    l->len = 0;
    l->broken = false;
}

__attribute__((format(printf, 2, 3))) static void addf(struct silt_lines *l, const char *format,
                                                       ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->text + l->len, sizeof(l->text) - l->len, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(l->text) - l->len)
        l->broken = true;
    else
        l->len += (size_t)n;
}

static void add_status(struct silt_lines *l, const struct silt_shell *sh)
{
    addf(l, "\\command printf '%%s\\0' %u \"$?\" \"${PWD+${PWD:0:%d}}\" >|" SILT_FOLDER "%us",
         sh->mark, PATH_MAX - 1, sh->slot);
}

/* What runs is an eval inside the command's redirections; the assignments before it last as long as
 * it does, and bash restores what they hid. */
static void add_command(struct silt_script *s, const struct silt_start *start)
{
    silt_script_add_env(s, start->env);
    silt_script_add_c(s, "\\command eval ");
    silt_script_add_word(s, start->command);
}

static void add_in_dir(struct silt_script *s, const struct silt_shell *sh,
                       const struct silt_start *start)
{
    char tail[64];
    silt_script_add_c(s, "PWD=\"${PWD-}\" OLDPWD=\"${OLDPWD-}\" \\command eval ");
    silt_script_open_quote(s);
    silt_script_add_c(s, "if \\command cd -- ");
    silt_shell_add_dir(s, start->cwd);
    silt_script_add_c(s, " 2>/dev/null; then ");
    add_command(s, start);
    silt_script_add_c(s, "; else \\command printf '%s\\0' ");
    (void)snprintf(tail, sizeof(tail), "%u x x >|" SILT_FOLDER "%us; fi", sh->mark, sh->slot);
    silt_script_add_c(s, tail);
    silt_script_close_quote(s);
}

static void add_body(struct silt_script *s, const struct silt_shell *sh,
                     const struct silt_start *start)
{
    if (start->cwd.len > 0) {
        add_in_dir(s, sh, start);
    } else if (start->env.len > 0) {
        silt_script_add_c(s, "\\command eval ");
        silt_script_open_quote(s);
        add_command(s, start);
        silt_script_close_quote(s);
    } else {
        add_command(s, start);
    }
}

static int open_command_file(void *arg)
{
    const struct silt_shell *sh = arg;
    char name[SILT_FOLDER_NAME_SIZE];
    struct silt_error e;
    int fd;
    silt_shell_name(sh->slot, SILT_SHELL_COMMAND, name);
    return silt_folder_create(sh->folder, name, &fd, &e) < 0 ? -1 : fd;
}

static bool has_many_quotes(silt_slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len && count <= QUOTES_MAX; i++)
        count += text.data[i] == '\'';
    return count > QUOTES_MAX;
}

/* bash takes quadratic time for a word that is made of many quoted pieces. Such a command lies in a
 * file as it is, and what is quoted is the eval of that file. */
static int put_raw(const struct silt_shell *sh, struct silt_start *start, char *stand_in,
                   size_t size, struct silt_error *e)
{
    char name[SILT_FOLDER_NAME_SIZE];
    silt_auto_fd fd = -1;
    silt_shell_name(sh->slot, SILT_SHELL_RAW, name);
    if (silt_folder_create(sh->folder, name, &fd, e) < 0
        || silt_fd_write_all(fd, start->command, e) < 0)
        return -1;
    (void)snprintf(stand_in, size, "\\command eval \"$(<" SILT_FOLDER "%ur)\n\"", sh->slot);
    start->command = silt_slice_of(stand_in);
    return 0;
}

/* All of it is one line, read before any of it runs: a command that closes the descriptors which
 * bash has put away (10 and up) cannot keep it from answering, and the last word gives the shell
 * its input back. The empty line behind it is read only when all of that is done: see on_doubt in
 * foreground.c. */
int silt_shell_foreground(struct silt_lines *l, const struct silt_shell *sh,
                          const struct silt_start *asked, struct silt_error *e)
{
    static struct silt_script s;
    struct silt_start changed = *asked;
    const struct silt_start *start = &changed;
    char stand_in[64];
    struct silt_shell copy = *sh;
    unsigned slot = sh->slot;
    clear(l);
    bool raw = has_many_quotes(asked->command);
    if (raw && put_raw(sh, &changed, stand_in, sizeof(stand_in), e) < 0)
        return -1;
    silt_script_init(&s, open_command_file, &copy);
    add_body(&s, sh, start);
    l->in_file = silt_script_flush(&s);
    l->raw = raw;
    silt_script_fini(&s);
    if (s.broken)
        return silt_fail(e, SILT_LIMIT, "put down a command of %zu bytes", start->command.len);
    if (start->head.timeout_ms > 0)
        addf(l,
             "\\command . " SILT_FOLDER SILT_STATE_SAVE " >|" SILT_FOLDER "%ud 2>/dev/null || :\n",
             slot);
    if (l->in_file)
        addf(l, "\\command eval \"$(<" SILT_FOLDER "%uc)\"", slot);
    else
        addf(l, "%.*s", (int)s.len, s.text);
    addf(l, " </dev/null >|" SILT_FOLDER "%uo 2>|" SILT_FOLDER "%ue; ", slot, slot);
    add_status(l, sh);
    if (start->cwd.len > 0)
        addf(l, "; " SILT_SHELL_GO_TO_PWD);
    addf(l, "; \\command exec <" SILT_FOLDER "%ui\n\n", slot);
    return l->broken ? silt_fail(e, SILT_INTERNAL, "lines for the shell are too long") : 0;
}

void silt_shell_save(struct silt_lines *l, const struct silt_shell *sh)
{
    clear(l);
    addf(l, "\\command . " SILT_FOLDER SILT_STATE_FORK " >|" SILT_FOLDER "%ud 2>/dev/null || :\n",
         sh->slot);
    add_status(l, sh);
    addf(l, "\n\n");
}

void silt_shell_reload(struct silt_lines *l, const struct silt_shell *sh)
{
    clear(l);
    addf(l, "\\command . " SILT_FOLDER "%ud || :\n" SILT_SHELL_GO_TO_PWD "\n", sh->slot);
    add_status(l, sh);
    addf(l, "\n\n");
}

static int code_of(const char *text)
{
    unsigned code = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        code = code * 10 + (unsigned)(*text - '0');
    return (int)(code & 255);
}

/* Three terminated fields: mark, code (or x), directory. */
size_t silt_shell_answer(silt_slice text, uint32_t mark, struct silt_answer *ret)
{
    char key[SILT_MARK_SIZE];
    int len = snprintf(key, sizeof(key), "%u", mark);
    const char *at = memmem(text.data, text.len, key, (size_t)len + 1);
    if (at == NULL)
        return 0;
    silt_slice rest = {at, text.len - (size_t)(at - text.data)};
    silt_slice fields[3];
    for (int i = 0; i < 3; i++)
        if (!silt_slice_split(&rest, 0, &fields[i]) || rest.data == NULL)
            return 0;
    *ret = (struct silt_answer){
        .no_dir = fields[1].len > 0 && fields[1].data[0] == 'x',
        .code = code_of(fields[1].data),
        .cwd = fields[2],
    };
    return text.len - rest.len;
}
