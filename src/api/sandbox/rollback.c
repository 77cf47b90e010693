/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/sandboxes/{id}/rollback: ends the processes of a sandbox and gives it the files it had
 * at a snapshot. A client that leaves does not undo it. */
#include "api/sandbox/rollback.h"
#include "api/sandbox/view.h"
#include "sandbox/core/journal.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/image/snapshot.h"

#include <stdlib.h>
#include <string.h>

/*   STOPPING --stopped--> REPLACING --other files--> (answer)
 *
 * The snapshot's image and the sandbox are held. */
struct rollback {
    struct silt_waiter waiter;
    struct silt_api *api;
    struct silt_http_request *request; /* NULL: the client has left */
    struct silt_sandbox *sandbox;
    struct silt_image *image;
    char snapshot[SILT_SNAPSHOT_ID_SIZE];
    uint64_t undone;        /* the first of the commands to forget; 0: none */
    struct silt_buf answer; /* empty: the sandbox */
};

static void on_gone(struct silt_http_request *r)
{
    struct rollback *b = r->owner;
    b->request = NULL;
}

static void finish(struct rollback *b, const struct silt_error *e)
{
    struct silt_http_request *r = b->request;
    if (r != NULL) {
        r->on_gone = NULL;
        if (e != NULL)
            silt_api_refuse_error(r, e);
        else if (b->answer.len > 0)
            silt_api_answer(r, 200, &b->answer);
        else
            silt_api_show_sandbox(b->api, r, b->sandbox, 200);
    }
    silt_image_release(b->image);
    silt_sandbox_release(b->sandbox);
    silt_buf_fini(&b->answer);
    free(b);
}

static void report(const struct rollback *b)
{
    silt_auto_buf text;
    silt_buf_init(&text, 256);
    silt_json_open(&text, '{');
    silt_json_add_text(&text, "snapshot", b->snapshot);
    silt_json_close(&text, '}');
    silt_journal_add(b->api->registry, b->sandbox->row.id, SILT_EVENT_ROLLED_BACK,
                     silt_buf_slice(&text));
}

static void on_replaced(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct rollback *b = silt_outer(w, struct rollback, waiter);
    if (s != NULL) {
        report(b);
        silt_history_cut(s, b->undone);
    }
    silt_sandbox_end_making(b->sandbox); /* also when its files are as they were */
    finish(b, s != NULL ? NULL : e);
}

static void on_stopped(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct rollback *b = silt_outer(w, struct rollback, waiter);
    struct silt_error why;
    if (s != NULL && s->state == SILT_SANDBOX_STOPPED) {
        b->waiter.on_ready = on_replaced;
        silt_sandbox_roll_back(s, b->image->row.digest, &b->waiter);
        return;
    }
    if (s != NULL) { /* another request was faster */
        (void)silt_fail(&why, SILT_INTERRUPTED, "sandbox '%s' was started again", s->row.id);
        e = &why;
    }
    finish(b, e);
}

/* A copy in the same place needs the same layers below it. */
bool silt_rollback_fits(const struct silt_sandbox *s, const struct silt_image *i)
{
    const struct silt_image *now = silt_image_of(s);
    return strcmp(i->snapshot->sandbox, s->row.id) == 0 && now != NULL && i->parent != NULL
           && memcmp(silt_image_files(i->parent), silt_image_files(now), SILT_DIGEST_SIZE) == 0;
}

/* NULL: refused. */
static struct silt_image *find_image(struct silt_call *c, silt_slice id)
{
    struct silt_image *i = silt_snapshot_find(c->api->registry, id);
    if (i == NULL) {
        silt_api_refuse(c->request, SILT_API_SNAPSHOT_NOT_FOUND, (silt_slice){NULL, 0},
                        "Snapshot '%.*s' does not exist", (int)(id.len < 64 ? id.len : 64),
                        id.data);
        return NULL;
    }
    if (silt_rollback_fits(c->sandbox, i))
        return i;
    silt_api_refuse_field(c->request, "snapshot",
                          "is of another sandbox; make a new one of it with from");
    return NULL;
}

void silt_rollback_run(struct silt_call *c, struct silt_image *i, const struct silt_history *undone,
                       silt_slice text)
{
    struct silt_sandbox *s = c->sandbox;
    struct rollback *b = calloc(1, sizeof(*b));
    if (b == NULL)
        abort();
    *b = (struct rollback){.api = c->api,
                           .request = c->request,
                           .sandbox = s,
                           .image = i,
                           .undone = undone != NULL ? undone->row.number : 0};
    silt_buf_init(&b->answer, text.len + 1);
    silt_buf_add(&b->answer, text);
    memcpy(b->snapshot, i->snapshot->id, sizeof(b->snapshot));
    b->waiter.on_ready = on_stopped;
    c->request->owner = b;
    c->request->on_gone = on_gone;
    silt_image_hold(i);
    silt_sandbox_hold(s);
    silt_sandbox_halt_as(s, &b->waiter, "rolledBack", "the sandbox was rolled back to a snapshot");
}

static void roll_back(struct silt_call *c)
{
    struct silt_sandbox *s = c->sandbox;
    silt_slice id = {NULL, 0};
    if (s->state == SILT_SANDBOX_DESTROYING) {
        silt_api_refuse_missing(c->request, c->id);
        return;
    }
    if (!silt_body_string(c, "snapshot", &id))
        return;
    if (id.data == NULL) {
        silt_api_refuse_field(c->request, "snapshot", "is missing");
        return;
    }
    struct silt_image *i = find_image(c, id);
    if (i != NULL)
        silt_rollback_run(c, i, NULL, (silt_slice){NULL, 0});
}

static const struct silt_call_kind rollback_call = {
    .body = SILT_BODY_REQUIRED, .sandbox = SILT_CALL_LOOKS, .native = true, .run = roll_back};

SILT_HANDLER(silt_api_sandbox_rollback)
{
    silt_call_begin(r, args, &rollback_call);
}
