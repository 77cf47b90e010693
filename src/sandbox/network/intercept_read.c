/* SPDX-License-Identifier: Apache-2.0 */
/* intercept_read: the body of `PUT /egress`. Every member is optional, at least one is required;
 * unknown members are ignored, for later versions. */
#include "json/json.h"
#include "sandbox/network/intercept.h"

enum { GLOB_MAX = SILT_EGRESS_NAME - 1 };

/* Adds the canonical form. False: no name can match it, so it may be dropped. */
static bool add_glob(struct silt_buf *out, silt_slice glob)
{
    if (glob.len > 0 && glob.data[glob.len - 1] == '.')
        glob.len--;
    if (glob.len == 0 || glob.len > GLOB_MAX)
        return false;
    for (size_t i = 0; i < glob.len; i++)
        if (glob.data[i] <= ' ' || glob.data[i] >= 0x7f)
            return false;
    for (size_t i = 0; i < glob.len; i++) {
        char c = glob.data[i];
        silt_buf_add_byte(out, (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c));
    }
    silt_buf_add_byte(out, '\n');
    return true;
}

static int read_hostnames(struct silt_arena *a, const struct silt_json *list, silt_slice *ret,
                          struct silt_error *e)
{
    silt_auto_buf out;
    silt_buf_init(&out, SILT_EGRESS_GLOBS_MAX);
    if (list->type != SILT_JSON_ARRAY)
        return silt_fail(e, SILT_INVALID, "dns.allowHostnames must be a list of names");
    for (const struct silt_json *one = list->items.first; one != NULL; one = one->next) {
        if (one->type != SILT_JSON_STRING)
            return silt_fail(e, SILT_INVALID, "dns.allowHostnames must be a list of names");
        (void)add_glob(&out, one->string);
    }
    if (out.broken)
        return silt_fail(e, SILT_LIMIT, "dns.allowHostnames has more than %d bytes",
                         SILT_EGRESS_GLOBS_MAX);
    const char *copy = silt_arena_dup(a, silt_buf_slice(&out));
    if (copy == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for dns.allowHostnames");
    *ret = (silt_slice){copy, out.len};
    return 0;
}

static int read_port(const struct silt_json *port, uint16_t *ret, struct silt_error *e)
{
    if (port->type != SILT_JSON_INT || port->integer < 1 || port->integer > UINT16_MAX)
        return silt_fail(e, SILT_INVALID, "port must be a number from 1 to 65535");
    *ret = (uint16_t)port->integer;
    return 0;
}

/* A nested member; null counts as absent. -1: the outer member is not an object. */
static int find_inner(const struct silt_json *body, silt_slice outer, silt_slice inner,
                      const struct silt_json **ret, struct silt_error *e)
{
    const struct silt_json *o = silt_json_get(body, outer);
    *ret = NULL;
    if (o == NULL || o->type == SILT_JSON_NULL)
        return 0;
    if (o->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_INVALID, "%.*s must be an object", (int)outer.len, outer.data);
    *ret = silt_json_get(o, inner);
    if (*ret != NULL && (*ret)->type == SILT_JSON_NULL)
        *ret = NULL;
    return 0;
}

static int read_change(struct silt_arena *a, const struct silt_json *body,
                       struct silt_intercept_change *c, struct silt_error *e)
{
    const struct silt_json *port = silt_json_get(body, SILT_LIT("port")), *internet, *hostnames;
    if (find_inner(body, SILT_LIT("internet"), SILT_LIT("enabled"), &internet, e) < 0
        || find_inner(body, SILT_LIT("dns"), SILT_LIT("allowHostnames"), &hostnames, e) < 0)
        return -1;
    c->has_port = port != NULL && port->type != SILT_JSON_NULL;
    c->has_internet = internet != NULL;
    c->has_hostnames = hostnames != NULL;
    if (c->has_port && read_port(port, &c->port, e) < 0)
        return -1;
    if (internet != NULL && internet->type != SILT_JSON_BOOL)
        return silt_fail(e, SILT_INVALID, "internet.enabled must be true or false");
    c->internet = internet != NULL && internet->boolean;
    return hostnames != NULL ? read_hostnames(a, hostnames, &c->hostnames, e) : 0;
}

int silt_intercept_read(struct silt_arena *a, silt_slice body, struct silt_intercept_change *ret,
                        struct silt_error *e)
{
    const struct silt_json *tree;
    struct silt_intercept_change c = {0};
    if (body.len > SILT_INTERCEPT_BODY_MAX)
        return silt_fail(e, SILT_LIMIT, "a body of more than %d bytes", SILT_INTERCEPT_BODY_MAX);
    if (silt_json_read(a, body, &tree, e) < 0)
        return -1;
    if (tree->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_INVALID, "must be an object");
    if (read_change(a, tree, &c, e) < 0)
        return -1;
    if (!c.has_port && !c.has_internet && !c.has_hostnames)
        return silt_fail(e, SILT_INVALID,
                         "must have one of port, internet.enabled, dns.allowHostnames");
    *ret = c;
    return 0;
}
