/* SPDX-License-Identifier: Apache-2.0 */
/* list: GET /v1/sandboxes, a page of sandboxes in the order of their ids. Before it answers, it has
 * silt-priv measure those of the page whose usage is not known or old, a few at a time. */
#include "api/sandbox/options.h"
#include "api/sandbox/view.h"
#include "sandbox/core/sandbox.h"

#include <stdlib.h>

enum {
    PAGE_DEFAULT = 50,
    PAGE_MAX = 1000,
    PAGE_BYTES_MAX = 16 << 20, /* a page of sandboxes with many labels ends early */
    AT_ONCE = 16,              /* questions of one list to silt-priv */
};

struct filter {
    size_t count;
    silt_slice keys[SILT_LABELS_MAX], values[SILT_LABELS_MAX];
};

static bool read_filter(struct silt_http_request *r, struct filter *f)
{
    silt_slice rest = r->head->query, pair, name, label;
    while (rest.len > 0 && silt_slice_split(&rest, '&', &pair)) {
        if (!silt_slice_split(&pair, '=', &name) || !silt_slice_eq(name, SILT_LIT("label")))
            continue;
        if (f->count == SILT_LABELS_MAX || !silt_query_decode(r, pair, &label)
            || !silt_slice_split(&label, '=', &f->keys[f->count]) || label.data == NULL) {
            silt_api_refuse_field(r, "label", "must be key=value, at most 64 times");
            return false;
        }
        f->values[f->count++] = label;
    }
    return true;
}

static bool labels_fit(const struct silt_sandbox *s, const struct filter *f)
{
    const struct silt_json *labels = NULL;
    struct silt_error e;
    silt_auto_arena a;
    silt_arena_init(&a, 1 << 20);
    if (f->count == 0)
        return true;
    if (s->row.labels == NULL || silt_json_read(&a, silt_slice_of(s->row.labels), &labels, &e) < 0)
        return false;
    for (size_t i = 0; i < f->count; i++) {
        const struct silt_json *v = silt_json_get(labels, f->keys[i]);
        if (v == NULL || v->type != SILT_JSON_STRING || !silt_slice_eq(v->string, f->values[i]))
            return false;
    }
    return true;
}

/*   MEASURING --all are known, or the client has left--> (answer) */
struct list {
    struct silt_api *api;
    struct silt_http_request *request; /* NULL: the client has left */
    uint64_t limit;
    char after[SILT_ID_MAX + 1];
    struct filter filter;
    uint32_t slots[PAGE_MAX]; /* of sandboxes to measure */
    size_t count, next, pending;
    bool asking;
};

static bool belongs(const struct list *l, const struct silt_sandbox *s)
{
    return strcmp(s->row.id, l->after) > 0 && s->state != SILT_SANDBOX_DESTROYING
           && labels_fit(s, &l->filter);
}

static void answer(const struct list *l)
{
    struct silt_http_request *r = l->request;
    size_t count = 0, shown = 0;
    struct silt_sandbox **all = silt_registry_sorted(l->api->registry, r->arena, &count);
    const char *last = NULL;
    bool more = false;
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 20);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("sandboxes"));
    silt_json_open(&b, '[');
    for (size_t i = 0; all != NULL && i < count && !more; i++) {
        if (!belongs(l, all[i]))
            continue;
        more = shown == l->limit || b.len > PAGE_BYTES_MAX;
        if (more)
            break;
        silt_api_add_sandbox(&b, all[i], &all[i]->usage);
        last = all[i]->row.id;
        shown++;
    }
    silt_json_close(&b, ']');
    if (more) {
        silt_json_key(&b, SILT_LIT("next"));
        silt_json_string(&b, silt_slice_of(last));
    }
    silt_json_close(&b, '}');
    r->on_gone = NULL;
    silt_api_answer(r, 200, &b);
}

static void choose(struct list *l)
{
    size_t count = 0, shown = 0;
    struct silt_sandbox **all = silt_registry_sorted(l->api->registry, l->request->arena, &count);
    for (size_t i = 0; all != NULL && i < count && shown < l->limit; i++) {
        if (!belongs(l, all[i]))
            continue;
        shown++;
        if (!silt_sandbox_usage_is_fresh(all[i]))
            l->slots[l->count++] = all[i]->row.slot;
    }
}

static void on_stat(void *context, const struct silt_priv_stat *stat);

static void go_on(struct list *l)
{
    if (l->asking)
        return;
    l->asking = true;
    while (l->request != NULL && l->next < l->count && l->pending < AT_ONCE) {
        struct silt_sandbox *s = l->api->registry->by_slot[l->slots[l->next++]];
        if (s == NULL)
            continue;
        l->pending++;
        silt_sandbox_stat(s, on_stat, l);
    }
    l->asking = false;
    if (l->pending > 0)
        return;
    if (l->request != NULL)
        answer(l);
    free(l);
}

/* The sandbox keeps the numbers. */
static void on_stat(void *context, const struct silt_priv_stat *stat)
{
    struct list *l = context;
    (void)stat;
    l->pending--;
    go_on(l);
}

static void on_gone(struct silt_http_request *r)
{
    struct list *l = r->owner;
    l->request = NULL;
}

SILT_HANDLER(silt_api_sandbox_list)
{
    struct silt_error e;
    uint64_t limit = PAGE_DEFAULT;
    silt_slice text = silt_query(r, SILT_LIT("limit")), after = silt_query(r, SILT_LIT("after"));
    struct filter filter = {0};
    (void)args;
    if (!read_filter(r, &filter))
        return;
    if (text.data != NULL && silt_slice_to_u64(text, 1, PAGE_MAX, &limit, &e) < 0) {
        silt_api_refuse_field(r, "limit", e.text);
        return;
    }
    if (after.len > 0 && silt_id_check(after, &e) < 0) {
        silt_api_refuse_field(r, "after", e.text);
        return;
    }
    struct list *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    l->api = silt_api_of(r);
    l->request = r;
    l->limit = limit;
    l->filter = filter;
    if (after.len > 0)
        memcpy(l->after, after.data, after.len);
    choose(l);
    r->owner = l;
    r->on_gone = on_gone;
    go_on(l);
}
