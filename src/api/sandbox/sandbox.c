/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: create with options, show and destroy sandboxes, below /v1/sandboxes. */
#include "sandbox/core/sandbox.h"
#include "api/sandbox/fork.h"
#include "api/sandbox/network.h"
#include "api/sandbox/options.h"
#include "api/sandbox/view.h"
#include "base/reference.h"
#include "sandbox/core/image.h"

#include <stdlib.h>

SILT_HANDLER(silt_api_sandbox_get)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    if (silt_id_check(args[0], &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return;
    }
    struct silt_sandbox *s = silt_registry_find(api->registry, args[0]);
    if (s == NULL || s->state == SILT_SANDBOX_DESTROYING)
        silt_api_refuse_missing(r, args[0]);
    else
        silt_api_show_sandbox(api, r, s, 200);
}

/* Create. */

struct creation {
    struct silt_sandbox_options options;
    char id[SILT_ID_MAX + 1];
};

static bool read_id(struct silt_call *c, struct creation *q)
{
    silt_slice id = c->id; /* of a PUT */
    struct silt_error e;
    if (id.data == NULL && !silt_body_string(c, "id", &id))
        return false;
    if (id.data == NULL) {
        memcpy(q->id, "sb-", 3);
        silt_id_random(q->id + 3, 16);
        return true;
    }
    if (silt_id_check(id, &e) < 0) {
        silt_api_refuse_field(c->request, "id", e.text);
        return false;
    }
    memcpy(q->id, id.data, id.len);
    q->id[id.len] = 0;
    return true;
}

static void refuse_creation(struct silt_call *c, const struct silt_error *e)
{
    const struct creation *q = c->own;
    if (e->code == SILT_UNAVAILABLE && q->options.network != SILT_NET_DEFAULT)
        silt_api_network_refuse(c->request, e);
    else
        silt_api_refuse_error(c->request, e);
}

static void on_created(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_call *c = silt_outer(w, struct silt_call, waiter);
    if (s == NULL)
        refuse_creation(c, e);
    else
        silt_api_show_sandbox(c->api, c->request, s, 201);
}

static bool parse_create(struct silt_call *c)
{
    struct creation *q = silt_arena_alloc(c->request->arena, sizeof(*q));
    struct silt_api_network network = {.mode = SILT_NET_DEFAULT};
    struct silt_error e;
    if (q == NULL)
        abort();
    *q = (struct creation){
        .options.life = {.sleep_after_s = c->api->registry->settings.sleep_after_s,
                         .stop_after_s = c->api->registry->settings.stop_after_s}};
    c->own = q;
    if (!read_id(c, q) || !silt_body_string(c, "image", &q->options.image)
        || !silt_api_read_type(c, &q->options) || !silt_api_read_limits(c, &q->options)
        || !silt_body_env(c, "env", SILT_SANDBOX_ENV_MAX, &q->options.env)
        || !silt_api_read_labels(c, (silt_slice){NULL, 0}, &q->options.labels)
        || !silt_api_read_lifetime(c, &q->options.life)
        || !silt_body_bool(c, "ephemeral", &q->options.ephemeral)
        || !silt_api_network_read(c, silt_json_get(c->body, SILT_LIT("network")), "network.allow",
                                  &network))
        return false;
    q->options.network = network.mode;
    q->options.allow = network.allow;
    char spelled[SILT_REFERENCE_SIZE];
    if (q->options.image.data == NULL || silt_reference_read(q->options.image, spelled, &e) == 0)
        return true;
    silt_api_refuse_field(c->request, "image", e.text);
    return false;
}

static void create(struct silt_call *c)
{
    const struct creation *q = c->own;
    struct silt_error e;
    if (silt_json_get(c->body, SILT_LIT("from")) != NULL) {
        silt_api_create_from(c, q->id);
        return;
    }
    c->waiter.on_ready = on_created;
    if (silt_registry_create(c->api->registry, silt_slice_of(q->id), &q->options, &c->waiter, &e)
        < 0)
        refuse_creation(c, &e);
}

static const struct silt_call_kind create_call = {.body = SILT_BODY_REQUIRED,
                                                  .sandbox = SILT_CALL_NO_SANDBOX,
                                                  .parse = parse_create,
                                                  .run = create};

SILT_HANDLER(silt_api_sandbox_create)
{
    silt_call_begin(r, args, &create_call);
}

/* Put: creates or updates. */

static bool has_image(struct silt_call *c, silt_slice reference)
{
    const struct silt_sandbox_row *row = &c->sandbox->row;
    const struct silt_image *image = silt_image_find(c->api->registry, reference, NULL);
    char spelled[SILT_REFERENCE_SIZE];
    struct silt_error e;
    return (silt_reference_read(reference, spelled, &e) == 0 && strcmp(spelled, row->image) == 0)
           || (image != NULL && memcmp(image->row.digest, row->digest, sizeof(row->digest)) == 0);
}

/* A sandbox keeps what was decided when it was made. */
static bool keeps(struct silt_call *c, const struct creation *q)
{
    const struct silt_json *ephemeral = silt_json_get(c->body, SILT_LIT("ephemeral"));
    const char *other = NULL;
    if (q->options.image.data != NULL && !has_image(c, q->options.image))
        other = "image";
    else if (ephemeral != NULL && ephemeral->type == SILT_JSON_BOOL
             && ephemeral->boolean != c->sandbox->row.ephemeral)
        other = "ephemeral";
    if (other != NULL)
        silt_api_refuse(c->request, SILT_API_SANDBOX_EXISTS, (silt_slice){NULL, 0},
                        "Sandbox '%s' exists with another value of %s, which stays as it is",
                        c->sandbox->row.id, other);
    return other == NULL;
}

static void put(struct silt_call *c)
{
    if (c->sandbox == NULL)
        create(c);
    else if (keeps(c, c->own))
        silt_api_update_sandbox(c);
}

static const struct silt_call_kind put_call = {
    .body = SILT_BODY_REQUIRED, .sandbox = SILT_CALL_LOOKS, .parse = parse_create, .run = put};

SILT_HANDLER(silt_api_sandbox_put)
{
    silt_call_begin(r, args, &put_call);
}

/* Destroy. */

struct destruction {
    struct silt_waiter waiter;
    struct silt_http_request
        *request; /* NULL: the client has disconnected; the sandbox is destroyed all the same */
    char id[SILT_ID_MAX + 1];
};

static void answer_destroyed(struct silt_http_request *r, silt_slice id, bool destroyed)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, id);
    silt_json_key(&b, SILT_LIT("destroyed"));
    silt_json_bool(&b, destroyed);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void on_destroyed(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct destruction *d = silt_outer(w, struct destruction, waiter);
    (void)s;
    if (d->request != NULL) {
        d->request->on_gone = NULL;
        if (e != NULL)
            silt_api_refuse_error(d->request, e);
        else
            answer_destroyed(d->request, silt_slice_of(d->id), true);
    }
    free(d);
}

static void on_destroyer_gone(struct silt_http_request *r)
{
    struct destruction *d = r->owner;
    d->request = NULL;
}

SILT_HANDLER(silt_api_sandbox_destroy)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    if (silt_id_check(args[0], &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return;
    }
    struct silt_sandbox *s = silt_registry_find(api->registry, args[0]);
    if (s == NULL) {
        answer_destroyed(r, args[0], false);
        return;
    }
    struct destruction *d = calloc(1, sizeof(*d));
    if (d == NULL)
        abort();
    d->waiter.on_ready = on_destroyed;
    d->request = r;
    memcpy(d->id, args[0].data, args[0].len);
    r->owner = d;
    r->on_gone = on_destroyer_gone;
    silt_sandbox_destroy(s, &d->waiter);
}
