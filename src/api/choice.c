/* SPDX-License-Identifier: Apache-2.0 */
#include "api/choice.h"

static bool is_blank(silt_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!strchr(" \t\r\n\f\v", s.data[i]))
            return false;
    return true;
}

bool silt_choice_read(struct silt_call *c, struct silt_choice *ret)
{
    silt_slice name = {NULL, 0};
    if (!silt_body_string(c, "sessionId", &name))
        return false;
    if (name.len == 0)
        name = silt_http_field(c->request->head, SILT_LIT("x-session-id"));
    if (name.len == 0)
        name = silt_query(c->request, SILT_LIT("session"));
    if (name.len == 0)
        name = silt_query(c->request, SILT_LIT("sessionId"));
    if (name.len > SILT_SESSION_NAME_MAX) {
        silt_api_refuse_field(c->request, "sessionId", "is longer than 256 bytes");
        return false;
    }
    *ret = (struct silt_choice){.name = name, .given = name.len > 0};
    ret->plain = silt_slice_eq(name, SILT_LIT("__DISABLE_SESSION__"));
    ret->blank = ret->given && is_blank(name);
    if (!ret->given)
        ret->name = SILT_LIT("default");
    return true;
}

struct silt_session *silt_choice_session(struct silt_call *c, const struct silt_choice *choice, silt_slice cwd,
                                         struct silt_error *e)
{
    struct silt_session *s = silt_session_find(c->sandbox, choice->name);
    struct silt_session_options o = {.cwd = cwd};
    if (s != NULL)
        return s;
    return silt_session_new(c->sandbox, choice->name, &o, &s, e) < 0 ? NULL : s;
}
