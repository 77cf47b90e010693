/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/sandboxes/{id}/image: commits the files of a sandbox, running or stopped, as an
 * image. */
#include "api/image/image.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/image/seal.h"

#include <stdlib.h>

struct sealing {
    struct silt_http_request *request; /* NULL: the client has disconnected */
    char name[SILT_IMAGE_NAME_SIZE];
};

static void on_sealed(void *context, struct silt_image *image, const struct silt_error *e)
{
    struct sealing *s = context;
    struct silt_http_request *r = s->request;
    if (r != NULL)
        r->on_gone = NULL;
    if (r != NULL && image != NULL)
        silt_api_answer_image(r, 201, image, s->name);
    else if (r != NULL)
        silt_api_refuse_error(r, e);
    free(s);
}

static void on_gone(struct silt_http_request *r)
{
    struct sealing *s = r->owner;
    s->request = NULL;
}

/* Normalized, in the request's arena; NULL if absent. False: already answered with an error. */
static bool read_config(struct silt_call *c, const char **ret)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("config"));
    struct silt_image_config config;
    struct silt_error e;
    silt_auto_buf text, spelled;
    silt_buf_init(&text, SILT_IMAGE_CONFIG_MAX);
    silt_buf_init(&spelled, SILT_IMAGE_CONFIG_MAX);
    *ret = NULL;
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    silt_json_value(&text, v);
    if (silt_image_config_read(c->request->arena, silt_buf_slice(&text), &config, &e) < 0) {
        silt_api_refuse_field(c->request, "config", e.text);
        return false;
    }
    silt_image_config_write(&spelled, &config);
    if (!text.broken && !spelled.broken)
        *ret = silt_arena_dup(c->request->arena, silt_buf_slice(&spelled));
    if (*ret == NULL)
        silt_api_refuse_field(c->request, "config", "is too large");
    return *ret != NULL;
}

static void seal(struct silt_call *c)
{
    struct silt_http_request *r = c->request;
    struct sealing *s = calloc(1, sizeof(*s));
    const char *config;
    silt_slice name = {NULL, 0};
    struct silt_error e;
    if (s == NULL)
        abort();
    bool good = silt_body_string(c, "name", &name) && read_config(c, &config);
    if (good && silt_reference_read(name, s->name, &e) < 0) {
        silt_api_refuse_field(r, "name", e.text);
        good = false;
    }
    const char *names[] = {s->name};
    struct silt_seal_options o = {.config = good ? config : NULL, .names = names, .name_count = 1};
    if (good && silt_image_seal(c->sandbox, &o, on_sealed, s, NULL, &e) < 0) {
        silt_api_refuse_error(r, &e);
        good = false;
    }
    if (!good) {
        free(s);
        return;
    }
    s->request = r;
    r->owner = s;
    r->on_gone = on_gone;
}

static const struct silt_call_kind seal_call = {
    .body = SILT_BODY_REQUIRED, .sandbox = SILT_CALL_LOOKS, .native = true, .run = seal};

SILT_HANDLER(silt_api_image_seal)
{
    silt_call_begin(r, args, &seal_call);
}
