/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/preview/exposed_port.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/json.h"
#include "sandbox/preview/preview_channel.h"
#include "sandbox/preview/signed_url.h"
#include "sandbox/core/recovery.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum { LABEL_MAX = 63, TOKEN_GENERATED = 16 };

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_exposed(const struct silt_exposed_port *x)
{
    return x->row.token[0] != 0;
}

/* Names */

/* True if the id itself fits into a host name. */
static bool fits_label(const char *id, uint16_t port, const char *token)
{
    for (const char *c = id; *c != 0; c++)
        if (!is_plain(*c) && *c != '-')
            return false;
    return snprintf(NULL, 0, "%u-%s-%s", port, id, token) <= LABEL_MAX;
}

static int need_alias(struct silt_sandbox *s, struct silt_error *e)
{
    struct silt_registry *r = s->registry;
    if (s->row.alias[0] != 0)
        return 0;
    do {
        s->row.alias[0] = 's';
        silt_id_random(s->row.alias + 1, SILT_ALIAS_SIZE - 2);
    } while (silt_registry_find(r, silt_slice_of(s->row.alias)) != NULL);
    if (silt_store_put_alias(r->store, &s->row, e) < 0) {
        s->row.alias[0] = 0;
        return -1;
    }
    silt_preview_add_alias(s);
    return 0;
}

/* From [a-z0-9]; bytes past the last multiple are rejected, as they would favour some letters. */
static void make_token(char out[SILT_PORT_TOKEN_MAX + 1])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    enum { LETTERS = sizeof(alphabet) - 1 };
    size_t n = 0;
    while (n < TOKEN_GENERATED) {
        unsigned char byte;
        if (getrandom(&byte, 1, 0) != 1)
            abort();
        if (byte < 256 / LETTERS * LETTERS)
            out[n++] = alphabet[byte % LETTERS];
    }
    out[n] = 0;
}

static int check_token(const struct silt_sandbox *s, const struct silt_exposed_port_options *o,
                       struct silt_error *e)
{
    bool any = s->registry->settings.preview.short_tokens;
    if (o->token.len < (any ? 1 : SILT_TOKEN_USUAL_MIN) || o->token.len > SILT_PORT_TOKEN_MAX)
        return silt_fail(e, SILT_INVALID, "has %zu characters, not %d to %d", o->token.len,
                         any ? 1 : SILT_TOKEN_USUAL_MIN, SILT_PORT_TOKEN_MAX);
    for (size_t i = 0; i < o->token.len; i++)
        if (!is_plain(o->token.data[i]))
            return silt_fail(e, SILT_INVALID, "holds other characters than a-z and 0-9");
    silt_list_each(it, &s->entrances)
    {
        const struct silt_exposed_port *x = silt_outer(it, struct silt_exposed_port, link);
        if (x->row.port != o->port && silt_slice_eq(silt_slice_of(x->row.token), o->token))
            return silt_fail(e, SILT_CONFLICT, "The token is in use by port %u", x->row.port);
    }
    return 0;
}

/* The list */

static void free_entrance(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_exposed_port, grave));
}

static uint32_t count(const struct silt_sandbox *s, bool exposed)
{
    uint32_t n = 0;
    silt_list_each(it, &s->entrances) n +=
        is_exposed(silt_outer(it, struct silt_exposed_port, link)) == exposed;
    return n;
}

static struct silt_exposed_port *find(const struct silt_sandbox *s, uint16_t port, bool exposed)
{
    silt_list_each(it, &s->entrances)
    {
        struct silt_exposed_port *x = silt_outer(it, struct silt_exposed_port, link);
        if (x->row.port == port && is_exposed(x) == exposed)
            return x;
    }
    return NULL;
}

struct silt_exposed_port *silt_exposed_port_find(const struct silt_sandbox *s, uint16_t port)
{
    return find(s, port, true);
}

static struct silt_exposed_port *add(struct silt_sandbox *s, const struct silt_port_row *row)
{
    struct silt_exposed_port *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct silt_exposed_port){.sandbox = s, .row = *row, .grave = {.free = free_entrance}};
    silt_list_init(&x->refused);
    struct silt_link *before = &s->entrances;
    silt_list_each(it,
                   &s->entrances) if (before == &s->entrances
                                      && silt_outer(it, struct silt_exposed_port, link)->row.port
                                             > row->port) before = it;
    silt_list_append(before, &x->link); /* inserts in front of it */
    silt_preview_add(x);
    return x;
}

/* Removes it from the tables and answers its waiting dials. Returns the number to drop in
 * silt-proxy; 0: none. */
static uint64_t close_entrance(struct silt_exposed_port *x)
{
    uint64_t number = x->told ? x->row.route : 0;
    silt_preview_remove(x);
    silt_list_remove(&x->link);
    silt_loop_bury(x->sandbox->registry->loop, &x->grave);
    return number;
}

static void load_row(void *context, const struct silt_port_row *row)
{
    struct silt_registry *r = context;
    struct silt_sandbox *s = row->slot < r->settings.slots ? r->by_slot[row->slot] : NULL;
    if (s == NULL || s->row.id[0] == 0)
        return;
    add(s, row)->told = true; /* a silt-proxy that outlived the previous siltd may know it */
}

static void forget_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->entrances)
    {
        struct silt_exposed_port *x = silt_outer(it, struct silt_exposed_port, link);
        silt_preview_remove(x);
        silt_list_remove(&x->link);
        free(x);
    }
}

static void on_dropped(void *sandbox)
{
    silt_sandbox_on_dropped(sandbox);
}

static void close_all(struct silt_sandbox *s)
{
    struct silt_error e;
    silt_preview_remove_alias(s);
    if (s->row.alias[0] != 0 || !silt_list_empty(&s->entrances))
        if (silt_store_remove_ports(s->registry->store, s->row.slot, &e) < 0)
            silt_log(SILT_LOG_ERROR, "store.remove", "slot=%u error=%s", s->row.slot, e.text);
    s->row.alias[0] = 0;
    silt_list_each(it, &s->entrances)
    {
        uint64_t number = close_entrance(silt_outer(it, struct silt_exposed_port, link));
        if (number == 0)
            continue;
        silt_preview_drop(s->registry->preview, number, on_dropped, s);
        s->drops++;
    }
}

uint32_t silt_exposed_ports_close_direct(struct silt_sandbox *s, void (*on_cut)(void *context),
                                         void *context)
{
    uint32_t n = 0;
    silt_list_each(it, &s->entrances)
    {
        struct silt_exposed_port *x = silt_outer(it, struct silt_exposed_port, link);
        uint64_t number = is_exposed(x) ? 0 : close_entrance(x);
        if (number == 0)
            continue;
        silt_preview_drop(s->registry->preview, number, on_cut, context);
        n++;
    }
    return n;
}

/* Changes */

/* Omitted options keep their values. */
static struct silt_port_row merge(struct silt_sandbox *s, const struct silt_exposed_port *former,
                                  const struct silt_exposed_port_options *o)
{
    struct silt_port_row row = {
        .slot = s->row.slot, .port = o->port, .exposed_ms = silt_clock_wall_ms()};
    if (former != NULL)
        row = former->row;
    if (o->name.data != NULL)
        (void)snprintf(row.name, sizeof(row.name), "%.*s", (int)o->name.len, o->name.data);
    if (o->token.data != NULL)
        (void)snprintf(row.token, sizeof(row.token), "%.*s", (int)o->token.len, o->token.data);
    if (o->locked != NULL)
        row.locked = *o->locked;
    if (row.token[0] == 0)
        make_token(row.token);
    return row;
}

/* Without its URL, which opens it. */
static void note_exposed(const struct silt_exposed_port *x)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_EVENT_DETAILS_MAX);
    silt_json_open(&b, '{');
    silt_json_add_u64(&b, "port", x->row.port);
    if (x->row.name[0] != 0)
        silt_json_add_text(&b, "name", x->row.name);
    silt_json_close(&b, '}');
    silt_journal_add(x->sandbox->registry, x->sandbox->row.id, SILT_EVENT_EXPOSED,
                     silt_buf_slice(&b));
}

int silt_exposed_port_expose(struct silt_sandbox *s, const struct silt_exposed_port_options *o,
                             struct silt_exposed_port **ret, uint64_t *ret_former,
                             struct silt_error *e)
{
    struct silt_exposed_port *former = silt_exposed_port_find(s, o->port);
    *ret_former = 0;
    /* Its ports are closed already: nothing would close this one. */
    if (s->state == SILT_SANDBOX_DESTROYING)
        return silt_fail(e, SILT_GONE, "sandbox '%s' is being destroyed", s->row.id);
    if (o->token.data != NULL && check_token(s, o, e) < 0)
        return -1;
    if (former == NULL && count(s, true) >= SILT_EXPOSED_PORTS_MAX)
        return silt_fail(e, SILT_LIMIT, "%d ports of the sandbox are exposed",
                         SILT_EXPOSED_PORTS_MAX);
    struct silt_port_row row = merge(s, former, o);
    bool same = former != NULL && strcmp(row.token, former->row.token) == 0
                && row.locked == former->row.locked;
    if (!same)
        row.route = silt_registry_number(s->registry);
    if (!fits_label(s->row.id, row.port, row.token) && need_alias(s, e) < 0)
        return -1;
    if (silt_store_put_port(s->registry->store, &row, e) < 0)
        return -1;
    if (same)
        former->row = row;
    else if (former != NULL)
        *ret_former = close_entrance(former);
    *ret = same ? former : add(s, &row);
    silt_recovery_on_sandbox(s);
    if (former == NULL)
        note_exposed(*ret);
    return 0;
}

int silt_exposed_port_unexpose(struct silt_exposed_port *x, uint64_t *ret_former,
                               struct silt_error *e)
{
    if (silt_store_remove_port(x->sandbox->registry->store, &x->row, e) < 0)
        return -1;
    struct silt_sandbox *s = x->sandbox;
    *ret_former = close_entrance(x);
    silt_recovery_on_sandbox(s);
    return 0;
}

/* Removes an unused one. */
static bool make_room(struct silt_sandbox *s)
{
    silt_list_each(it, &s->entrances)
    {
        struct silt_exposed_port *x = silt_outer(it, struct silt_exposed_port, link);
        if (is_exposed(x) || x->used || !silt_list_empty(&x->refused))
            continue;
        uint64_t number = close_entrance(x);
        if (number != 0)
            silt_preview_drop(s->registry->preview, number, NULL, NULL);
        return true;
    }
    return false;
}

struct silt_exposed_port *silt_exposed_port_direct(struct silt_sandbox *s, uint16_t port)
{
    struct silt_exposed_port *x = find(s, port, false);
    if (x != NULL)
        return x;
    if (count(s, false) >= SILT_EXPOSED_PORTS_DIRECT_MAX && !make_room(s))
        return NULL;
    struct silt_port_row row = {
        .slot = s->row.slot, .port = port, .route = silt_registry_number(s->registry)};
    return add(s, &row);
}

/* URLs */

static void add_text(struct silt_buf *b, const char *text)
{
    silt_buf_add(b, silt_slice_of(text));
}

static void add_scheme(const struct silt_exposed_port *x, struct silt_buf *b)
{
    add_text(b, x->sandbox->registry->settings.preview.https ? "https://" : "http://");
}

void silt_exposed_port_url(const struct silt_exposed_port *x, struct silt_buf *b)
{
    const struct silt_sandbox *s = x->sandbox;
    char port[8];
    (void)snprintf(port, sizeof(port), "%u-", x->row.port);
    add_scheme(x, b);
    add_text(b, port);
    add_text(b, fits_label(s->row.id, x->row.port, x->row.token) ? s->row.id : s->row.alias);
    add_text(b, "-");
    add_text(b, x->row.token);
    add_text(b, ".");
    add_text(b, s->registry->settings.preview.domain);
    add_text(b, "/");
}

void silt_exposed_port_path_url(const struct silt_exposed_port *x, struct silt_buf *b)
{
    const struct silt_sandbox *s = x->sandbox;
    char port[8];
    (void)snprintf(port, sizeof(port), "/%u/", x->row.port);
    add_scheme(x, b);
    add_text(b, s->registry->settings.preview.domain);
    add_text(b, "/preview/");
    add_text(b, s->row.id);
    add_text(b, port);
    add_text(b, x->row.token);
    add_text(b, "/");
}

void silt_exposed_port_signed_url(const struct silt_exposed_port *x, int64_t until_s,
                                  struct silt_buf *b)
{
    struct silt_signed_url proof = {.route = x->row.route, .until_s = until_s};
    char text[SILT_PREVIEW_PROOF];
    silt_signed_url_write(silt_preview_secret(x->sandbox->registry->preview), &proof, text);
    silt_exposed_port_url(x, b);
    add_text(b, "?" SILT_PREVIEW_PROOF_NAME "=");
    add_text(b, text);
}

static int load(struct silt_registry *r, struct silt_error *e)
{
    return silt_store_each_port(r->store, load_row, r, e);
}

const struct silt_facet silt_exposed_port_facet = {
    .load = load, .on_destroy = close_all, .forget = forget_all};
