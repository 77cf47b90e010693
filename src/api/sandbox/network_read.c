/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a network policy. It is accepted as a whole or not at all: an entry we do not understand
 * may have been meant to forbid something. */
#include "api/sandbox/network.h"
#include "sandbox/network/allow_rule.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIELD_SIZE = 64, WHY_SIZE = 512, SHOWN_MAX = 80, PORT_SIZE = 24 };

const char *const silt_api_network_modes[SILT_NET_MODE_MAX] = {
    [SILT_NET_DEFAULT] = "public", [SILT_NET_NONE] = "none",       [SILT_NET_PUBLIC] = "public",
    [SILT_NET_ALLOW] = "allow",    [SILT_NET_CAPTIVE] = "captive",
};

static const char *code_of(const struct silt_error *e)
{
    return e->code == SILT_DENIED     ? "CLOSED_NETWORK"
           : e->code == SILT_CONFLICT ? "DUPLICATE_RULE"
           : e->code == SILT_LIMIT    ? "TOO_MANY_RULES"
                                      : "INVALID_RULE";
}

/* One entry of the list. */
struct entry {
    struct silt_call *call;
    const char *list;
    size_t at;
    silt_slice host, port; /* port.data NULL: none */
    bool whole;            /* host is the whole rule */
    char number[PORT_SIZE];
};

static void refuse(const struct entry *n, const struct silt_error *e)
{
    char field[FIELD_SIZE], why[WHY_SIZE];
    int shown = (int)(n->host.len < SHOWN_MAX ? n->host.len : SHOWN_MAX);
    (void)snprintf(field, sizeof(field), "%s[%zu]", n->list, n->at);
    (void)snprintf(why, sizeof(why), "'%.*s%s' %s", shown, n->host.data != NULL ? n->host.data : "",
                   n->host.len > SHOWN_MAX ? "..." : "", e->text);
    silt_api_refuse_value(n->call->request, field, why, code_of(e));
}

static bool refuse_form(const struct entry *n, const char *why)
{
    char field[FIELD_SIZE];
    (void)snprintf(field, sizeof(field), "%s[%zu]", n->list, n->at);
    silt_api_refuse_value(n->call->request, field, why, "INVALID_RULE");
    return false;
}

static bool read_port(struct entry *n, const struct silt_json *port)
{
    if (port->type == SILT_JSON_STRING) {
        n->port = port->string;
    } else if (port->type == SILT_JSON_INT) {
        int len = snprintf(n->number, sizeof(n->number), "%lld", (long long)port->integer);
        n->port = (silt_slice){n->number, (size_t)len};
    } else {
        return refuse_form(n, "port must be a number or a range like \"8000-9000\"");
    }
    return true;
}

static bool read_object(struct entry *n, const struct silt_json *v)
{
    const struct silt_json *host = silt_json_get(v, SILT_LIT("host"));
    const struct silt_json *port = silt_json_get(v, SILT_LIT("port"));
    size_t known = (host != NULL) + (size_t)(port != NULL);
    if (host == NULL || host->type != SILT_JSON_STRING || known != v->items.count)
        return refuse_form(
            n, "must be like {\"host\": \"example.com\", \"port\": 443}, with host and port only");
    n->host = host->string;
    return port == NULL || port->type == SILT_JSON_NULL || read_port(n, port);
}

static bool read_entry(struct entry *n, const struct silt_json *v)
{
    n->host = n->port = (silt_slice){NULL, 0};
    n->whole = v->type == SILT_JSON_STRING;
    if (v->type == SILT_JSON_OBJECT)
        return read_object(n, v);
    if (!n->whole)
        return refuse_form(
            n, "must be a string like \"example.com:443\", or an object with host and port");
    n->host = v->string;
    return true;
}

static int parse_entry(const struct entry *n, struct silt_allow_rule *ret, struct silt_error *e)
{
    if (n->whole)
        return silt_allow_rule_parse(n->host, ret, e);
    if (n->host.len > 0 && memchr(n->host.data, 0, n->host.len) != NULL)
        return silt_fail(e, SILT_INVALID, "has a NUL byte");
    return silt_allow_rule_parse_parts(n->host, n->port, ret, e);
}

static bool read_entries(struct silt_call *c, const struct silt_json *list, const char *name,
                         struct silt_allow_rules *rules)
{
    struct entry n = {.call = c, .list = name};
    struct silt_allow_rule rule;
    struct silt_error e;
    for (const struct silt_json *v = list->items.first; v != NULL; v = v->next, n.at++) {
        if (!read_entry(&n, v))
            return false;
        if (parse_entry(&n, &rule, &e) < 0 || silt_allow_rules_add(rules, &rule, &e) < 0) {
            refuse(&n, &e);
            return false;
        }
    }
    return true;
}

static bool read_list(struct silt_call *c, const struct silt_json *list, const char *name,
                      silt_slice *ret)
{
    char why[WHY_SIZE];
    struct silt_allow_rules rules;
    if (list->items.count > SILT_ALLOW_RULES_MAX) {
        (void)snprintf(why, sizeof(why),
                       "has %zu rules, at most %d; *.example.com and networks stand for many",
                       list->items.count, SILT_ALLOW_RULES_MAX);
        silt_api_refuse_value(c->request, name, why, "TOO_MANY_RULES");
        return false;
    }
    silt_allow_rules_init(&rules, &c->api->registry->settings.open);
    bool good = read_entries(c, list, name, &rules);
    char *copy = good ? silt_arena_dup(c->request->arena, silt_buf_slice(&rules.text)) : NULL;
    silt_allow_rules_fini(&rules);
    if (good && copy == NULL)
        silt_api_refuse_value(c->request, name, "does not fit; send fewer rules", "TOO_MANY_RULES");
    *ret = copy != NULL ? silt_slice_of(copy) : (silt_slice){NULL, 0};
    return copy != NULL;
}

static bool read_mode(const struct silt_json *object, enum silt_net_mode *ret)
{
    const struct silt_json *mode =
        object->type == SILT_JSON_OBJECT ? silt_json_get(object, SILT_LIT("mode")) : NULL;
    if (mode == NULL || mode->type != SILT_JSON_STRING)
        return false;
    for (int i = SILT_NET_NONE; i <= SILT_NET_ALLOW;
         i++) /* only the engine socket creates captive sandboxes */
        if (silt_slice_eq(mode->string, silt_slice_of(silt_api_network_modes[i]))) {
            *ret = (enum silt_net_mode)i;
            return true;
        }
    return false;
}

static bool refuse_field(struct silt_call *c, const char *field, const char *why)
{
    silt_api_refuse_field(c->request, field, why);
    return false;
}

bool silt_api_network_read(struct silt_call *c, const struct silt_json *object, const char *allow,
                           struct silt_api_network *ret)
{
    enum silt_net_mode mode;
    if (object == NULL || object->type == SILT_JSON_NULL)
        return true;
    if (!read_mode(object, &mode))
        return refuse_field(c, "mode", "must be one of none, public, allow");
    const struct silt_json *list = silt_json_get(object, SILT_LIT("allow"));
    if (object->items.count != 1 + (size_t)(list != NULL))
        return refuse_field(c, "network",
                            "has a field that it does not know; mode and allow are all");
    if (list != NULL && mode != SILT_NET_ALLOW)
        return refuse_field(c, allow,
                            "goes with mode allow only; leave it out, or choose that mode");
    if (mode == SILT_NET_ALLOW && (list == NULL || list->type != SILT_JSON_ARRAY))
        return refuse_field(c, allow,
                            "must be a list of what may be reached, like [\"example.com:443\"]");
    if (list != NULL && !read_list(c, list, allow, &ret->allow))
        return false;
    ret->mode = mode;
    return true;
}

void silt_api_network_refuse(struct silt_http_request *r, const struct silt_error *e)
{
    silt_slice none = {NULL, 0};
    if (e->code == SILT_UNAVAILABLE)
        silt_api_refuse(r, SILT_API_NETWORK_UNAVAILABLE, none,
                        "This machine has no network for sandboxes");
    else if (e->code == SILT_CONFLICT)
        silt_api_refuse(r, SILT_API_CAPTIVE, none, "%s", e->text);
    else if (e->code == SILT_TIMEOUT)
        silt_api_refuse(r, SILT_API_NETWORK_UNAVAILABLE, none, "%s; the old policy is in force",
                        e->text);
    else
        silt_api_refuse_error(r, e);
}
