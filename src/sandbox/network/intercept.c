/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/intercept.h"
#include "base/fd.h"
#include "base/log.h"
#include "http/mint.h"
#include "sandbox/network/network.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    /* Enough for silt-proxy to restart and answer; callers give up after two seconds. */
    CA_MS = 1500
};

struct capture {
    struct silt_intercepts *all; /* borrowed */
    struct silt_capture_row row;
    struct silt_egress_authority authority; /* certificate_len 0: not known yet */
    struct silt_link asks;                  /* waiting for it */
    struct silt_timer late;
    struct silt_grave grave;
};

/* One silt_intercept_set and its parts, one per sandbox. */
struct silt_intercept_setting {
    struct silt_link link;
    struct silt_intercept_ask *ask; /* borrowed; NULL: has left */
    unsigned left;                  /* unfinished parts, plus one while they are started */
    struct silt_error failure;      /* the first one; code 0: none */
    struct silt_link parts;
};

struct part {
    struct silt_link link;
    struct silt_intercept_setting *of; /* borrowed */
    struct silt_network_change change;
};

static silt_slice key_of(const uint64_t *number)
{
    return (silt_slice){(const char *)number, sizeof(*number)};
}

static struct capture *find(const struct silt_intercepts *all, uint64_t number)
{
    return silt_map_find(&all->map, key_of(&number));
}

/* Authorities */

static void answer_ca(struct capture *c, const struct silt_error *e)
{
    struct silt_link asks;
    silt_list_init(&asks);
    silt_loop_cancel(c->all->registry->loop, &c->late);
    while (!silt_list_empty(&c->asks)) {
        struct silt_link *it = c->asks.next;
        silt_list_remove(it);
        silt_list_append(&asks, it);
    }
    while (!silt_list_empty(&asks)) {
        struct silt_intercept_ask *a = silt_list_first(&asks, struct silt_intercept_ask, link);
        silt_slice pem = {c->authority.certificate, c->authority.certificate_len};
        silt_list_remove(&a->link);
        a->on_done(a, e == NULL ? pem : (silt_slice){NULL, 0}, e);
    }
}

static bool is_same(const struct silt_egress_authority *a, const struct silt_egress_authority *b)
{
    return silt_slice_eq((silt_slice){a->certificate, a->certificate_len},
                         (silt_slice){b->certificate, b->certificate_len});
}

static char *copy_of(const char *text, size_t len)
{
    char *copy = strndup(text, len);
    if (copy == NULL)
        abort();
    return copy;
}

/* Clients trust it for longer than we run. */
static void keep_authority(struct capture *c)
{
    const struct silt_egress_authority *a = &c->authority;
    struct silt_error e;
    free(c->row.certificate);
    free(c->row.key);
    c->row.certificate = copy_of(a->certificate, a->certificate_len);
    c->row.key = copy_of(a->key, a->key_len);
    if (silt_store_put_capture(c->all->registry->store, &c->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.put", "capture=%" PRIu64 " error=\"%s\"", c->row.number,
                 e.text);
}

static void take_authority(struct capture *c)
{
    struct silt_egress_authority *a = &c->authority;
    size_t certificate = c->row.certificate != NULL ? strlen(c->row.certificate) : 0;
    size_t key = c->row.key != NULL ? strlen(c->row.key) : 0;
    if (certificate == 0 || certificate > sizeof(a->certificate) || key == 0
        || key > sizeof(a->key))
        return;
    memcpy(a->certificate, c->row.certificate, certificate);
    memcpy(a->key, c->row.key, key);
    a->certificate_len = (uint32_t)certificate;
    a->key_len = (uint32_t)key;
}

/* Without a silt-proxy nothing is signed, but starting a container needs a certificate. A
 * silt-proxy that connects later gets it. */
static void make_authority(struct capture *c)
{
    struct silt_error e;
    int made = silt_mint_authority(&c->authority, &e);
    if (made == 0)
        keep_authority(c);
    answer_ca(c, made == 0 ? NULL : &e);
}

static void on_late(struct silt_timer *t)
{
    make_authority(silt_outer(t, struct capture, late));
}

void silt_intercepts_on_authority(struct silt_intercepts *all, uint64_t number,
                                  const struct silt_egress_authority *authority)
{
    struct capture *c = find(all, number);
    struct silt_error e;
    if (c == NULL)
        return;
    bool good = authority != NULL && authority->certificate_len > 0
                && authority->certificate_len <= SILT_EGRESS_PEM_MAX && authority->key_len > 0
                && authority->key_len <= SILT_EGRESS_PEM_MAX;
    if (good && !is_same(&c->authority, authority)) {
        c->authority = *authority;
        keep_authority(c);
    }
    if (!good)
        (void)silt_fail(&e, SILT_INTERNAL, "silt-proxy has no certificate authority");
    answer_ca(c, good ? NULL : &e);
}

int silt_intercepts_authority(struct silt_intercepts *all, uint64_t number, int *ret_fd)
{
    const struct capture *c = find(all, number);
    struct silt_error e;
    silt_auto_fd fd = -1;
    if (c == NULL || c->authority.certificate_len == 0)
        return -1;
    fd = memfd_create("silt-authority", MFD_CLOEXEC);
    silt_slice bytes = {(const char *)&c->authority, sizeof(c->authority)};
    if (fd < 0 || silt_fd_write_all(fd, bytes, &e) < 0)
        return -1;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

void silt_intercepts_introduce(struct silt_intercepts *all)
{
    size_t at = 0;
    for (struct capture *c; (c = silt_map_next(&all->map, &at)) != NULL;)
        silt_egress_authority(all->registry->egress, c->row.number, true);
}

/* Intercepts */

static void free_capture(struct silt_grave *g)
{
    struct capture *c = silt_outer(g, struct capture, grave);
    silt_capture_row_fini(&c->row);
    free(c);
}

static struct capture *add(struct silt_intercepts *all, const struct silt_capture_row *row)
{
    struct capture *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    *c = (struct capture){
        .all = all, .row = *row, .late = {.on_time = on_late}, .grave = {.free = free_capture}};
    silt_list_init(&c->asks);
    silt_map_put(&all->map, key_of(&c->row.number), c);
    return c;
}

static void load(void *context, struct silt_capture_row *row)
{
    take_authority(add(context, row));
}

static int open_all(struct silt_registry *r, struct silt_error *e)
{
    r->captures = calloc(1, sizeof(*r->captures));
    if (r->captures == NULL)
        abort();
    r->captures->registry = r;
    silt_map_init(&r->captures->map);
    silt_list_init(&r->captures->settings);
    return silt_store_each_capture(r->store, load, r->captures, e);
}

static void end_setting(struct silt_intercept_setting *s)
{
    silt_list_each(it, &s->parts)
    {
        silt_list_remove(it);
        free(silt_outer(it, struct part, link));
    }
    silt_list_remove(&s->link);
    free(s);
}

static void free_all(struct silt_registry *r)
{
    struct silt_intercepts *all = r->captures;
    if (all == NULL)
        return;
    size_t at = 0;
    for (struct capture *c; (c = silt_map_next(&all->map, &at)) != NULL;) {
        silt_loop_cancel(all->registry->loop, &c->late);
        free_capture(&c->grave);
    }
    silt_list_each(it, &all->settings)
    {
        end_setting(silt_outer(it, struct silt_intercept_setting, link));
    }
    silt_map_fini(&all->map);
    free(all);
}

/* Requests its authority at once: silt-proxy must not hold the only copy, lost when it dies. */
static struct capture *find_or_add(struct silt_intercepts *all, uint64_t number)
{
    struct capture *c = find(all, number);
    struct silt_error e;
    if (c != NULL)
        return c;
    struct silt_capture_row row = {.number = number, .internet = true, .hostnames = strdup("*\n")};
    c = add(all, &row);
    if (silt_store_put_capture(all->registry->store, &c->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.put", "capture=%" PRIu64 " error=\"%s\"", number, e.text);
    silt_egress_authority(all->registry->egress, number, false);
    return c;
}

void silt_intercept_ca(struct silt_registry *r, uint64_t number, struct silt_intercept_ask *a)
{
    struct capture *c = find_or_add(r->captures, number);
    silt_list_init(&a->link);
    a->setting = NULL;
    if (c->authority.certificate_len > 0) {
        a->on_done(a, (silt_slice){c->authority.certificate, c->authority.certificate_len}, NULL);
        return;
    }
    if (silt_list_empty(&c->asks)) {
        silt_loop_after(r->loop, &c->late, CA_MS);
        silt_egress_authority(r->egress, number, false);
    }
    silt_list_append(&c->asks, &a->link);
    if (r->without_network)
        make_authority(c);
}

void silt_intercept_remove(struct silt_registry *r, uint64_t number)
{
    struct capture *c = find(r->captures, number);
    struct silt_error e;
    if (c == NULL)
        return;
    (void)silt_map_remove(&r->captures->map, key_of(&c->row.number));
    if (silt_store_remove_capture(r->store, number, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "capture=%" PRIu64 " error=\"%s\"", number,
                 e.text);
    silt_egress_untrust(r->egress, number);
    (void)silt_fail(&e, SILT_GONE, "the sidecar is gone");
    answer_ca(c, &e);
    silt_loop_bury(r->loop, &c->grave);
}

uint16_t silt_intercept_port(const struct silt_registry *r, uint64_t number)
{
    const struct capture *c = find(r->captures, number);
    return c != NULL ? c->row.port : 0;
}

int silt_intercepts_describe(struct silt_intercepts *all, const char *number,
                             struct silt_egress_request *q, int *ret_fd, struct silt_error *e)
{
    struct silt_error none;
    uint64_t n = 0;
    silt_auto_fd fd = -1;
    (void)silt_slice_to_u64(silt_slice_of(number != NULL ? number : ""), 1, UINT64_MAX, &n, &none);
    const struct capture *c = find(all, n);
    const char *globs = c != NULL && c->row.hostnames != NULL ? c->row.hostnames : "";
    fd = memfd_create("silt-globs", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create memfd");
    if (silt_fd_write_all(fd, silt_slice_of(globs), e) < 0)
        return -1;
    q->authority = n;
    q->capture =
        (struct silt_egress_capture){.port = c != NULL ? c->row.port : 0,
                                     .internet = c != NULL && c->row.internet,
                                     .globs_len = (uint32_t)strlen(globs),
                                     .uid = all->owner != NULL ? all->owner(all->registry, n) : 0};
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* Settings */

static void part_done(struct silt_intercept_setting *s)
{
    if (--s->left > 0)
        return;
    struct silt_intercept_ask *a = s->ask;
    struct silt_error e = s->failure;
    end_setting(s);
    if (a == NULL)
        return;
    a->setting = NULL;
    a->on_done(a, (silt_slice){NULL, 0}, e.code != SILT_OK ? &e : NULL);
}

static void on_changed(struct silt_network_change *change, const struct silt_error *e)
{
    struct part *p = silt_outer(change, struct part, change);
    struct silt_intercept_setting *s = p->of;
    /* A sandbox that is gone needs no settings. */
    if (e != NULL && e->code != SILT_GONE && s->failure.code == SILT_OK)
        s->failure = *e;
    silt_list_remove(&p->link);
    free(p);
    part_done(s);
}

static void change_sandbox(struct silt_intercept_setting *s, struct silt_sandbox *sandbox)
{
    struct part *p = calloc(1, sizeof(*p));
    if (p == NULL)
        abort();
    *p = (struct part){.of = s,
                       .change = {.mode = SILT_NET_CAPTIVE,
                                  .allow = strdup(sandbox->row.allow),
                                  .on_done = on_changed}};
    silt_list_append(&s->parts, &p->link);
    s->left++;
    silt_network_change(sandbox, &p->change);
}

static void change_all(struct silt_registry *r, struct silt_intercept_setting *s, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRIu64, number);
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        struct silt_sandbox *one = r->by_slot[i];
        if (one != NULL && one->row.network == SILT_NET_CAPTIVE && one->row.allow != NULL
            && strcmp(one->row.allow, text) == 0)
            change_sandbox(s, one);
    }
}

static int write_down(struct capture *c, const struct silt_intercept_change *change,
                      struct silt_error *e)
{
    struct silt_capture_row next = c->row;
    if (change->has_port)
        next.port = change->port;
    if (change->has_internet)
        next.internet = change->internet;
    if (change->has_hostnames)
        next.hostnames = strndup(change->hostnames.data != NULL ? change->hostnames.data : "",
                                 change->hostnames.len);
    if (silt_store_put_capture(c->all->registry->store, &next, e) < 0) {
        if (next.hostnames != c->row.hostnames)
            free(next.hostnames);
        return -1;
    }
    if (next.hostnames != c->row.hostnames)
        free(c->row.hostnames);
    c->row = next;
    return 0;
}

void silt_intercept_set(struct silt_registry *r, uint64_t number,
                        const struct silt_intercept_change *c, struct silt_intercept_ask *a)
{
    struct capture *capture = find_or_add(r->captures, number);
    struct silt_error e;
    silt_list_init(&a->link);
    a->setting = NULL;
    if (write_down(capture, c, &e) < 0) {
        a->on_done(a, (silt_slice){NULL, 0}, &e);
        return;
    }
    struct silt_intercept_setting *s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    *s = (struct silt_intercept_setting){.ask = a, .left = 1};
    silt_list_init(&s->link);
    silt_list_init(&s->parts);
    silt_list_append(&r->captures->settings, &s->link);
    a->setting = s;
    change_all(r, s, number);
    part_done(s);
}

void silt_intercept_leave(struct silt_intercept_ask *a)
{
    if (a->setting != NULL)
        a->setting->ask = NULL;
    a->setting = NULL;
    if (a->link.next != NULL)
        silt_list_remove(&a->link);
}

const struct silt_facet silt_intercept_facet = {.load = open_all, .free = free_all};
