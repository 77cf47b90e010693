/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/script.h"
#include "base/fd.h"

#include <string.h>

void silt_script_init(struct silt_script *s, int (*open_file)(void *arg), void *arg)
{
    s->len = 0;
    s->depth = 0;
    s->expected = 0;
    s->file = -1;
    s->broken = false;
    s->open_file = open_file;
    s->arg = arg;
}

void silt_script_fini(struct silt_script *s)
{
    silt_close_fd(&s->file);
}

static void write_out(struct silt_script *s)
{
    struct silt_error e;
    if (s->broken)
        return;
    if (s->file < 0)
        s->file = s->open_file(s->arg);
    if (s->file < 0 || silt_fd_write_all(s->file, (silt_slice){s->text, s->len}, &e) < 0)
        s->broken = true;
    s->len = 0;
}

static void put(struct silt_script *s, silt_slice text)
{
    while (text.len > 0 && !s->broken) {
        size_t room = sizeof(s->text) - s->len;
        size_t n = text.len < room ? text.len : room;
        memcpy(s->text + s->len, text.data, n);
        s->len += n;
        text.data += n;
        text.len -= n;
        if (text.len > 0)
            write_out(s);
    }
}

void silt_script_expect(struct silt_script *s, silt_slice text)
{
    for (size_t i = 0; i < text.len && s->expected <= SILT_SCRIPT_QUOTES_MAX; i++)
        s->expected += text.data[i] == '\'';
}

static bool is_double(const struct silt_script *s)
{
    return s->expected > SILT_SCRIPT_QUOTES_MAX;
}

/* Characters with a meaning inside the quotes. */
static bool is_special(const struct silt_script *s, char c)
{
    return is_double(s) ? c == '"' || c == '\\' || c == '$' || c == '`' : c == '\'';
}

/* Adds one byte inside `depth` quotes. Double quotes: a backslash before it. Single quotes: end the
 * word, add an escaped quote, start the word again. Each of these is inside one quote less. */
static void put_byte(struct silt_script *s, char c, unsigned depth)
{
    if (depth == 0 || !is_special(s, c)) {
        put(s, (silt_slice){&c, 1});
    } else if (is_double(s)) {
        put_byte(s, '\\', depth - 1);
        put_byte(s, c, depth - 1);
    } else {
        put_byte(s, '\'', depth - 1);
        put_byte(s, '\\', depth - 1);
        put_byte(s, '\'', depth - 1);
        put_byte(s, '\'', depth - 1);
    }
}

void silt_script_add(struct silt_script *s, silt_slice text)
{
    while (text.len > 0 && !s->broken) {
        size_t plain = s->depth > 0 ? 0 : text.len;
        while (plain < text.len && !is_special(s, text.data[plain]))
            plain++;
        put(s, (silt_slice){text.data, plain});
        if (plain == text.len)
            return;
        put_byte(s, text.data[plain], s->depth);
        text.data += plain + 1;
        text.len -= plain + 1;
    }
}

void silt_script_add_c(struct silt_script *s, const char *text)
{
    silt_script_add(s, silt_slice_of(text));
}

void silt_script_open_quote(struct silt_script *s)
{
    put_byte(s, is_double(s) ? '"' : '\'', s->depth++);
}

void silt_script_close_quote(struct silt_script *s)
{
    put_byte(s, is_double(s) ? '"' : '\'', --s->depth);
}

void silt_script_add_word(struct silt_script *s, silt_slice word)
{
    silt_script_open_quote(s);
    silt_script_add(s, word);
    silt_script_close_quote(s);
}

void silt_script_add_env(struct silt_script *s, silt_slice env)
{
    silt_slice variable;
    while (silt_slice_split(&env, 0, &variable)) {
        silt_slice name;
        if (variable.len == 0 || !silt_slice_split(&variable, '=', &name))
            continue;
        silt_script_add(s, name);
        silt_script_add(s, SILT_LIT("="));
        silt_script_add_word(s, variable);
        silt_script_add(s, SILT_LIT(" "));
    }
}

bool silt_script_flush(struct silt_script *s)
{
    if (s->file >= 0 && s->len > 0)
        write_out(s);
    return s->file >= 0;
}
