/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/session_choice.h"

/* False if the percent-encoding is invalid. */
static bool from_query(struct silt_call *c, silt_slice name, silt_slice *ret)
{
    silt_slice raw = silt_query(c->request, name);
    return raw.len == 0 || silt_query_decode(c->request, raw, ret);
}

bool silt_session_choice_read(struct silt_call *c, struct silt_session_choice *ret)
{
    silt_slice name = {NULL, 0};
    if (!silt_body_string(c, "sessionId", &name))
        return false;
    if (name.len == 0)
        name = silt_http_field(c->request->head, SILT_LIT("x-session-id"));
    bool good = name.len > 0 || from_query(c, SILT_LIT("session"), &name);
    good = good && (name.len > 0 || from_query(c, SILT_LIT("sessionId"), &name));
    if (!good || name.len > SILT_SESSION_NAME_MAX || silt_slice_has_byte(name, 0)) {
        silt_api_refuse_field(
            c->request, "sessionId",
            "is longer than 256 bytes, holds a NUL character or is badly escaped");
        return false;
    }
    *ret = (struct silt_session_choice){.name = name, .given = name.len > 0};
    ret->plain = silt_slice_eq(name, SILT_LIT("__DISABLE_SESSION__"));
    ret->blank = ret->given && silt_is_blank(name);
    if (!ret->given)
        ret->name = SILT_LIT("default");
    return true;
}

struct silt_session *silt_session_choice_session(struct silt_call *c,
                                                 const struct silt_session_choice *choice,
                                                 silt_slice cwd, struct silt_error *e)
{
    struct silt_session *s = silt_session_find(c->sandbox, choice->name);
    struct silt_session_options o = {.cwd = cwd};
    if (s != NULL)
        return s;
    return silt_session_new(c->sandbox, choice->name, &o, &s, e) < 0 ? NULL : s;
}
