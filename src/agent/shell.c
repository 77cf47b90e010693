/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shell.h"
#include "agent/state.h"
#include "base/own.h"

#include <stdarg.h>
#include <stdio.h>

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

void silt_shell_expect(struct silt_script *s, const struct silt_start *start)
{
    silt_script_expect(s, start->cwd);
    silt_script_expect(s, start->env);
    silt_script_expect(s, start->command);
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
    addf(l, "\\command printf '%%s\\0' %u \"$?\" \"${PWD-}\" >|" SILT_FOLDER "%us", sh->mark,
         sh->slot);
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

/* All of it is one line, read before any of it runs: a command that closes the descriptors which
 * bash has put away (10 and up) cannot keep it from answering, and the last word gives the shell
 * its input back. The empty line behind it is read only when all of that is done: see on_doubt in
 * foreground.c. */
int silt_shell_foreground(struct silt_lines *l, const struct silt_shell *sh,
                          const struct silt_start *start, struct silt_error *e)
{
    static struct silt_script s;
    struct silt_shell copy = *sh;
    unsigned slot = sh->slot;
    clear(l);
    silt_script_init(&s, open_command_file, &copy);
    silt_shell_expect(&s, start);
    add_body(&s, sh, start);
    l->in_file = silt_script_flush(&s);
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

/* Where the mark and its terminator stand, or NULL; and their length. */
static const char *find_mark(silt_slice text, uint32_t mark, size_t *ret_len)
{
    char key[SILT_MARK_SIZE];
    *ret_len = (size_t)snprintf(key, sizeof(key), "%u", mark) + 1;
    return text.len > 0 ? memmem(text.data, text.len, key, *ret_len) : NULL;
}

/* Three terminated fields: mark, code (or x), directory. */
size_t silt_shell_answer(silt_slice text, uint32_t mark, bool full, struct silt_answer *ret)
{
    size_t len;
    silt_slice code;
    const char *at = find_mark(text, mark, &len);
    if (at == NULL)
        return 0;
    silt_slice rest = {at + len, text.len - len - (size_t)(at - text.data)};
    if (!silt_slice_split(&rest, 0, &code) || rest.data == NULL)
        return 0;
    *ret = (struct silt_answer){
        .no_dir = code.len > 0 && code.data[0] == 'x',
        .code = code_of(code.data),
    };
    if (!silt_slice_has_byte(rest, 0))
        return full && at == text.data ? text.len : 0;
    (void)silt_slice_split(&rest, 0, &ret->cwd);
    return text.len - rest.len;
}

size_t silt_shell_junk(silt_slice text, uint32_t mark)
{
    size_t len;
    const char *at = find_mark(text, mark, &len);
    if (at == NULL)
        return text.len - SILT_MARK_SIZE;
    return at > text.data ? (size_t)(at - text.data) : len;
}
