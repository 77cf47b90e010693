/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/client_env.h"
#include "sandbox/core/session.h"

static bool is_name(silt_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        if (c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
            && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.len > 0;
}

/* 'it'\''s' is it's. False unless it is one word quoted like that. */
static bool unquote(silt_slice word, struct silt_buf *b)
{
    static const silt_slice escaped = {"'\\''", 4};
    if (word.len < 2 || word.data[0] != '\'' || word.data[word.len - 1] != '\'')
        return false;
    for (size_t i = 1; i < word.len - 1; i++) {
        silt_slice rest = {word.data + i, word.len - i};
        if (word.data[i] == '\'' && (!silt_slice_starts(rest, escaped) || rest.len == escaped.len))
            return false;
        if (word.data[i] == '\'')
            i += escaped.len - 1;
        silt_buf_add_byte(b, word.data[i]);
    }
    return !b->broken && !silt_slice_has_byte(silt_buf_slice(b), 0);
}

static silt_slice behind(silt_slice s, silt_slice beginning)
{
    return (silt_slice){s.data + beginning.len, s.len - beginning.len};
}

static void note(struct silt_sandbox *s, silt_slice command)
{
    static const silt_slice export = {"export ", 7}, unset = {"unset ", 6};
    silt_slice name, value;
    silt_auto_buf plain;
    silt_buf_init(&plain, SILT_EXPORTED_MAX);
    if (silt_slice_starts(command, unset) && is_name(behind(command, unset)))
        silt_session_export(s, behind(command, unset), (silt_slice){NULL, 0});
    if (!silt_slice_starts(command, export))
        return;
    value = behind(command, export);
    if (silt_slice_split(&value, '=', &name) && value.data != NULL && is_name(name)
        && unquote(value, &plain))
        silt_session_export(s, name, plain.len > 0 ? silt_buf_slice(&plain) : SILT_LIT(""));
}

void silt_export_note(struct silt_call *c, silt_slice command)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("origin"));
    if (v != NULL && v->type == SILT_JSON_STRING && silt_slice_eq(v->string, SILT_LIT("internal")))
        note(c->sandbox, command);
}
