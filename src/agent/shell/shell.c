/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shell/shell.h"
#include "agent/shell/state.h"
#include "base/own.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

char *const *silt_shell_argv(void)
{
    static char name[] = "bash";
    static char option[] = "--norc";
    static char *const argv[] = {name, option, NULL};
    return argv;
}

void silt_shell_name(unsigned slot, enum silt_shell_file file, char out[SILT_DEV_SILT_NAME_SIZE])
{
    (void)snprintf(out, SILT_DEV_SILT_NAME_SIZE, "%u%c", slot, (char)file);
}

void silt_shell_add_dir(struct silt_script *s, silt_slice dir)
{
    silt_script_open_quote(s);
    if (dir.len == 0 || dir.data[0] != '/')
        silt_script_add_c(s, "./");
    silt_script_add(s, dir);
    silt_script_close_quote(s);
}

void silt_shell_expect(struct silt_script *s, const struct silt_start_frame *start)
{
    silt_script_expect(s, start->cwd);
    silt_script_expect(s, start->env);
    silt_script_expect(s, start->command);
}

__attribute__((format(printf, 2, 3))) static void addf(struct silt_script *s, const char *format,
                                                       ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < sizeof(text));
    silt_script_add(s, (silt_slice){text, (size_t)n});
}

static void add_status(struct silt_script *s, const struct silt_shell *sh)
{
    addf(s, "\\command printf '%%s\\0' %u \"$?\" \"${PWD-}\" >|" SILT_DEV_SILT "%us", sh->mark,
         sh->slot);
}

/* After the answer: nobody waits for it. The mark at the end says that it is whole. */
static void add_exported(struct silt_script *s, const struct silt_shell *sh)
{
    addf(s,
         " && { { \\command declare -px; \\command printf '#%%s' %u; } >|" SILT_DEV_SILT
         "%u%c || :; }",
         sh->mark, sh->slot, SILT_SHELL_EXPORTED);
}

/* Not for a shell that did not answer. A function called `command` would wait at the gate before it
 * is called, so the commands are passed as text. The last word is what the next command finds in
 * $_. */
static void add_way(struct silt_script *s, const struct silt_shell *sh)
{
    addf(s, "\\command eval '\\command exec <" SILT_DEV_SILT "%u%c <" SILT_DEV_SILT "%u%c' ''",
         sh->slot, SILT_SHELL_GATE + (int)sh->turn, sh->slot, SILT_SHELL_IN + (int)sh->turn);
}

/* The command runs in an eval inside its redirections; assignments before the eval last as long as
 * it does, and bash restores what they hid. */
static void add_command(struct silt_script *s, const struct silt_start_frame *start)
{
    silt_script_add_env(s, start->env);
    silt_script_add_c(s, "\\command eval ");
    silt_script_add_word(s, start->command);
}

static void add_in_dir(struct silt_script *s, const struct silt_shell *sh,
                       const struct silt_start_frame *start)
{
    char tail[64];
    silt_script_add_c(s, "PWD=\"${PWD-}\" OLDPWD=\"${OLDPWD-}\" \\command eval ");
    silt_script_open_quote(s);
    silt_script_add_c(s, "if \\command cd -- ");
    silt_shell_add_dir(s, start->cwd);
    silt_script_add_c(s, " 2>/dev/null; then ");
    add_command(s, start);
    silt_script_add_c(s, "; else \\command printf '%s\\0' ");
    (void)snprintf(tail, sizeof(tail), "%u x x >|" SILT_DEV_SILT "%us; fi", sh->mark, sh->slot);
    silt_script_add_c(s, tail);
    silt_script_close_quote(s);
}

static void add_body(struct silt_script *s, const struct silt_shell *sh,
                     const struct silt_start_frame *start)
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

/* All of it is one line, read before any of it runs: a command that closes the descriptors bash
 * saved (10 and up) cannot keep it from answering, and the last word restores the shell's input. */
void silt_shell_foreground(struct silt_script *s, const struct silt_shell *sh,
                           const struct silt_start_frame *start)
{
    silt_shell_expect(s, start);
    if (start->head.timeout_ms > 0)
        addf(s,
             "\\command . " SILT_DEV_SILT SILT_STATE_SAVE " >|" SILT_DEV_SILT
             "%ud 2>/dev/null || :\n",
             sh->slot);
    add_body(s, sh, start);
    addf(s, " </dev/null >|" SILT_DEV_SILT "%uo 2>|" SILT_DEV_SILT "%ue; ", sh->slot, sh->slot);
    add_status(s, sh);
    add_exported(s, sh);
    silt_script_add_c(s, start->cwd.len > 0 ? " && { " SILT_SHELL_GO_TO_PWD "; " : " && ");
    add_way(s, sh);
    silt_script_add_c(s, start->cwd.len > 0 ? "; }\n" : "\n");
}

static void answer_and_wait(struct silt_script *s, const struct silt_shell *sh)
{
    add_status(s, sh);
    silt_script_add_c(s, " && ");
    add_way(s, sh);
    silt_script_add_c(s, "\n");
}

void silt_shell_begin(struct silt_script *s, const struct silt_shell *sh)
{
    add_way(s, sh);
    silt_script_add_c(s, "\n");
}

void silt_shell_save(struct silt_script *s, const struct silt_shell *sh)
{
    addf(s,
         "\\command . " SILT_DEV_SILT SILT_STATE_FORK " >|" SILT_DEV_SILT "%ud 2>/dev/null || :\n",
         sh->slot);
    addf(s,
         "{ \\command trap -p; \\command printf '%%s\\0' %u 0 \"${PWD-}\"; } >|" SILT_DEV_SILT
         "%us && ",
         sh->mark, sh->slot);
    add_way(s, sh);
    silt_script_add_c(s, "\n");
}

void silt_shell_reload(struct silt_script *s, const struct silt_shell *sh)
{
    addf(s, "\\command . " SILT_DEV_SILT "%ud || :\n" SILT_SHELL_GO_TO_PWD "\n", sh->slot);
    answer_and_wait(s, sh);
}

static int code_of(const char *text)
{
    unsigned code = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        code = code * 10 + (unsigned)(*text - '0');
    return (int)(code & 255);
}

/* The position of the mark and its terminator, or NULL; and their length. */
static const char *find_mark(silt_slice text, uint32_t mark, size_t *ret_len)
{
    char key[SILT_MARK_SIZE];
    *ret_len = (size_t)snprintf(key, sizeof(key), "%u", mark) + 1;
    return text.len > 0 ? memmem(text.data, text.len, key, *ret_len) : NULL;
}

/* Three NUL-terminated fields: mark, code (or x), directory. */
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
        .alone = at == text.data,
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
