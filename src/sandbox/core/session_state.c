/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/session_state.h"
#include "base/map.h"
#include "base/own.h"
#include "sandbox/core/start_frame.h"

/* ---- bash's text ---- */

static bool is_name(silt_slice name)
{
    if (name.len == 0 || (name.data[0] >= '0' && name.data[0] <= '9'))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || c == '_'))
            return false;
    }
    return true;
}

static bool is_own(silt_slice name)
{
    static const char *const own[] = {"_",       "PWD",    "SHLVL", "BASHOPTS", "SHELLOPTS",
                                      "BASHPID", "RANDOM", "EUID",  "PPID",     "UID"};
    for (size_t i = 0; i < SILT_COUNT(own); i++)
        if (silt_slice_eq(name, silt_slice_of(own[i])))
            return true;
    return false;
}

static bool take(silt_slice *in, char c)
{
    if (in->len == 0 || in->data[0] != c)
        return false;
    *in = (silt_slice){in->data + 1, in->len - 1};
    return true;
}

/* "…" with a backslash before some characters. */
static bool read_plain(silt_slice *in, struct silt_buf *ret)
{
    while (in->len > 0 && !take(in, '"')) {
        (void)take(in, '\\');
        if (in->len == 0)
            return false;
        silt_buf_add_byte(ret, in->data[0]);
        *in = (silt_slice){in->data + 1, in->len - 1};
        if (in->len == 0)
            return false; /* without the quote at its end */
    }
    return true;
}

static bool read_octal(silt_slice *in, struct silt_buf *ret)
{
    unsigned value = 0;
    for (int i = 0; i < 3 && in->len > 0 && in->data[0] >= '0' && in->data[0] <= '7'; i++) {
        value = value * 8 + (unsigned)(in->data[0] - '0');
        *in = (silt_slice){in->data + 1, in->len - 1};
    }
    if (value == 0 || value > 255)
        return false;
    silt_buf_add_byte(ret, (char)value);
    return true;
}

static bool read_escape(silt_slice *in, struct silt_buf *ret)
{
    static const char letters[] = "abtnvfreE\\'\"?", meant[] = "\a\b\t\n\v\f\r\033\033\\'\"?";
    if (in->len == 0)
        return false;
    if (in->data[0] >= '0' && in->data[0] <= '7')
        return read_octal(in, ret);
    const char *at = memchr(letters, in->data[0], sizeof(letters) - 1);
    if (at == NULL)
        return false;
    silt_buf_add_byte(ret, meant[at - letters]);
    *in = (silt_slice){in->data + 1, in->len - 1};
    return true;
}

/* $'…' */
static bool read_ansi(silt_slice *in, struct silt_buf *ret)
{
    while (in->len > 0) {
        if (take(in, '\''))
            return true;
        if (take(in, '\\')) {
            if (!read_escape(in, ret))
                return false;
            continue;
        }
        silt_buf_add_byte(ret, in->data[0]);
        *in = (silt_slice){in->data + 1, in->len - 1};
    }
    return false;
}

static bool read_value(silt_slice *in, struct silt_buf *ret)
{
    if (take(in, '"'))
        return read_plain(in, ret);
    return take(in, '$') && take(in, '\'') && read_ansi(in, ret);
}

/* Skips to the next line; false at the end of the text. */
static bool skip_line(silt_slice *in)
{
    silt_slice line;
    return in->len > 0 && silt_slice_split(in, '\n', &line);
}

static size_t name_len(silt_slice in)
{
    size_t n = 0;
    while (n < in.len && in.data[n] != '=' && in.data[n] != '\n')
        n++;
    return n;
}

/* declare -x NAME="value" */
static bool read_one(silt_slice *in, struct silt_buf *ret)
{
    silt_slice flags;
    if (!silt_slice_starts(*in, SILT_LIT("declare -")))
        return false;
    *in = (silt_slice){in->data + 9, in->len - 9};
    if (!silt_slice_split(in, ' ', &flags) || in->data == NULL || flags.len > 16)
        return false;
    size_t n = name_len(*in), before = ret->len;
    silt_slice name = {in->data, n};
    bool array = silt_slice_has_byte(flags, 'a') || silt_slice_has_byte(flags, 'A');
    if (!is_name(name))
        return false;
    *in = (silt_slice){in->data + n, in->len - n};
    if (array || !take(in, '='))
        return skip_line(in) || in->len == 0;
    silt_buf_add(ret, name);
    silt_buf_add_byte(ret, '=');
    if (!read_value(in, ret))
        return false;
    silt_buf_add_byte(ret, 0);
    if (is_own(name))
        ret->len = before;
    return in->len == 0 || take(in, '\n');
}

int silt_session_state_parse(silt_slice text, struct silt_buf *ret, struct silt_error *e)
{
    if (silt_slice_has_byte(text, 0))
        return silt_fail(e, SILT_INVALID, "the shell's variables contain a NUL byte");
    while (text.len > 0 && !ret->broken)
        if (!read_one(&text, ret))
            return silt_fail(e, SILT_INVALID, "the shell's variables are not what bash prints");
    if (ret->broken)
        return silt_fail(e, SILT_LIMIT, "the shell's variables are larger than %zu bytes",
                         ret->max);
    return 0;
}

/* ---- differences: in one pass each, because a guest may have thousands ---- */

static void note_all(struct silt_map *map, silt_slice env, bool names)
{
    silt_slice one, key;
    while (env.len > 0 && silt_slice_split(&env, 0, &one)) {
        silt_slice rest = one;
        (void)silt_slice_split(&rest, '=', &key);
        key = names ? key : one;
        if (key.len > 0 && silt_map_find(map, key) == NULL)
            silt_map_put(map, key, map); /* any value will do */
    }
}

void silt_session_state_diff(silt_slice now, silt_slice base, silt_slice former,
                             struct silt_buf *ret)
{
    silt_slice one, name, rest = now;
    struct silt_map known, names;
    silt_map_init(&known);
    silt_map_init(&names);
    note_all(&known, base, false);
    note_all(&known, former, false);
    note_all(&names, now, true);
    while (rest.len > 0 && silt_slice_split(&rest, 0, &one)) {
        if (one.len == 0 || silt_map_find(&known, one) != NULL)
            continue;
        silt_buf_add(ret, one);
        silt_buf_add_byte(ret, 0);
    }
    while (base.len > 0 && silt_slice_split(&base, 0, &one)) {
        if (!silt_slice_split(&one, '=', &name) || name.len == 0
            || silt_map_find(&names, name) != NULL)
            continue;
        silt_buf_add(ret, name);
        silt_buf_add_byte(ret, 0);
    }
    silt_map_fini(&known);
    silt_map_fini(&names);
}

void silt_session_state_apply(struct silt_buf *env, silt_slice kept)
{
    silt_slice one;
    size_t to = 0;
    silt_env_merge(env, kept); /* names without a value are then left out */
    for (size_t at = 0; at < env->len;) {
        one = silt_slice_of(env->data + at);
        if (silt_slice_has_byte(one, '=')) {
            memmove(env->data + to, one.data, one.len + 1);
            to += one.len + 1;
        }
        at += one.len + 1;
    }
    env->len = to;
}
