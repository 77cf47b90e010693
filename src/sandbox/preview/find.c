/* SPDX-License-Identifier: Apache-2.0 */
/* find: resolves a preview URL to an exposed port. Unknown and wrong names take the same path, and
 * no sandbox is woken. */
#include "base/clock.h"
#include "sandbox/preview/preview_channel.h"
#include "sandbox/preview/signed_url.h"
#include "sandbox/core/sandbox.h"

enum {
    WRONG_MAX = 1000, /* wrong guesses at one name before it has to wait ... */
    WRONG_MS = 10,    /* ... this long for each further one */
};

/* The parts of a name, not looked up yet. */
struct named {
    silt_slice id, port, token; /* old form: no token */
};

/* Wrong guesses. Unknown names are counted in the same way, so that they cannot be told apart. */

static uint32_t *bucket_of(struct silt_preview *p, silt_slice id, int64_t now_ms)
{
    uint64_t h = p->seed;
    for (size_t i = 0; i < id.len; i++)
        h = (h ^ (unsigned char)id.data[i]) * 0x9e3779b97f4a7c15ULL;
    size_t at = (h >> 32) % SILT_PREVIEW_BUCKETS;
    uint64_t passed = (uint64_t)(now_ms - p->buckets[at].at_ms) / WRONG_MS;
    uint32_t *wrong = &p->buckets[at].wrong;
    *wrong = passed >= *wrong ? 0 : *wrong - (uint32_t)passed;
    p->buckets[at].at_ms += (int64_t)passed * WRONG_MS;
    return wrong;
}

/* Formats */

static bool cut_last(silt_slice *text, char byte, silt_slice *ret_tail)
{
    for (size_t i = text->len; i > 0; i--) {
        if (text->data[i - 1] != byte)
            continue;
        *ret_tail = (silt_slice){text->data + i, text->len - i};
        text->len = i - 1;
        return true;
    }
    return false;
}

/* "8000-my-id-token" */
static bool read_host(silt_slice text, struct named *ret)
{
    if (!silt_slice_split(&text, '-', &ret->port) || text.data == NULL
        || !cut_last(&text, '-', &ret->token))
        return false;
    ret->id = text;
    return true;
}

/* "my-id-8000" */
static bool read_old_host(silt_slice text, struct named *ret)
{
    if (!cut_last(&text, '-', &ret->port))
        return false;
    ret->id = text;
    ret->token = (silt_slice){NULL, 0};
    return true;
}

static bool read_path(silt_slice text, struct named *ret)
{
    silt_slice *parts[] = {&ret->id, &ret->port, &ret->token};
    for (size_t i = 0; i < SILT_COUNT(parts); i++)
        if (!silt_slice_split(&text, '/', parts[i]))
            return false;
    return text.data == NULL;
}

/* Lookups */

static struct silt_exposed_port *look_up(struct silt_preview *p, const struct named *n)
{
    struct silt_error e;
    uint64_t port = 0;
    struct silt_sandbox *s = silt_registry_find(p->registry, n->id);
    if (s == NULL)
        s = silt_map_find(&p->by_alias, n->id);
    if (silt_slice_to_u64(n->port, 1, UINT16_MAX, &port, &e) < 0 || s == NULL)
        return NULL;
    return silt_exposed_port_find(s, (uint16_t)port);
}

static struct silt_exposed_port *find_by_token(struct silt_preview *p, const struct named *n)
{
    static const char nobody[] = "................"; /* matches no token */
    struct silt_exposed_port *x = look_up(p, n);
    silt_slice token = x != NULL ? silt_slice_of(x->row.token) : silt_slice_of(nobody);
    return silt_slice_eq_secret(n->token, token) ? x : NULL;
}

static struct silt_exposed_port *find(struct silt_preview *p, enum silt_preview_form form,
                                      silt_slice text, silt_slice *ret_id)
{
    const struct silt_preview_settings *set = &p->registry->settings.preview;
    struct named n = {0}, old = {0};
    bool host = form == SILT_PREVIEW_HOST;
    struct silt_exposed_port *x = NULL;
    *ret_id = text;
    if (host ? read_host(text, &n) : set->paths && read_path(text, &n)) {
        *ret_id = n.id;
        x = find_by_token(p, &n);
    }
    return x == NULL && host && set->old_form && read_old_host(text, &old) ? look_up(p, &old) : x;
}

static void answer(struct silt_preview *p, struct silt_exposed_port *x,
                   const struct silt_preview_find *f, struct silt_preview_answer *ret)
{
    silt_slice proof = {f->proof, strnlen(f->proof, sizeof(f->proof))};
    int64_t now_s = silt_clock_wall_ms() / 1000;
    int64_t lasts_s =
        x->row.locked ? silt_signed_url_check(silt_preview_secret(p), x->row.route, proof, now_s)
                      : 0;
    if (x->row.locked && lasts_s == 0) {
        ret->type = SILT_PREVIEW_LOCKED;
        return;
    }
    x->told = x->found = true;
    ret->type = SILT_PREVIEW_ROUTE;
    ret->route = x->row.route;
    ret->body.route = (struct silt_preview_route){
        .flags = (p->registry->settings.preview.localhost_host ? SILT_PREVIEW_LOCALHOST : 0U)
                 | (x->row.locked ? SILT_PREVIEW_PRIVATE : 0U),
        .sandbox = x->sandbox->row.slot,
        .port = x->row.port,
        .lasts_s = (uint32_t)(lasts_s < UINT32_MAX ? lasts_s : UINT32_MAX)};
}

void silt_preview_find(struct silt_preview *p, const struct silt_preview_find *f,
                       struct silt_preview_answer *ret)
{
    silt_slice text = {f->name, strnlen(f->name, sizeof(f->name))}, id;
    ret->type = SILT_PREVIEW_UNKNOWN;
    if (f->form != SILT_PREVIEW_HOST && f->form != SILT_PREVIEW_PATH)
        return;
    struct silt_exposed_port *x = find(p, (enum silt_preview_form)f->form, text, &id);
    uint32_t *wrong = bucket_of(p, id, silt_clock_ms());
    if (*wrong >= WRONG_MAX)
        ret->type = SILT_PREVIEW_BUSY;
    else if (x != NULL)
        answer(p, x, f, ret);
    else
        (*wrong)++;
}
