/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/script.h"
#include "base/fd.h"

#include <string.h>

void silt_script_init(struct silt_script *s, int (*open_file)(void *arg), void *arg)
{
    s->len = 0;
    s->depth = 0;
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

/* A quote inside `depth` quotes: end the word, a quote of one level less behind a backslash, begin
 * it again. */
static void put_quote(struct silt_script *s, unsigned depth)
{
    if (depth == 0) {
        put(s, SILT_LIT("'"));
        return;
    }
    put_quote(s, depth - 1);
    put(s, SILT_LIT("\\"));
    put_quote(s, depth - 1);
    put_quote(s, depth - 1);
}

void silt_script_add(struct silt_script *s, silt_slice text)
{
    while (text.len > 0 && !s->broken) {
        const char *quote = s->depth > 0 ? memchr(text.data, '\'', text.len) : NULL;
        size_t plain = quote != NULL ? (size_t)(quote - text.data) : text.len;
        put(s, (silt_slice){text.data, plain});
        if (quote == NULL)
            return;
        put_quote(s, s->depth);
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
    put_quote(s, s->depth++);
}

void silt_script_close_quote(struct silt_script *s)
{
    put_quote(s, --s->depth);
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
