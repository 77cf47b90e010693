/* SPDX-License-Identifier: Apache-2.0 */
/* undo: the last commands of a sandbox, and a rollback to before them. */
#include "api/sandbox/rollback.h"
#include "api/sandbox/view.h"
#include "sandbox/core/session.h"
#include "sandbox/process/process.h"

enum {
    ENTRY_MAX = 16 << 10, /* a command of control characters, and what else there is */
    ANSWER_MAX = SILT_HISTORY_MAX * ENTRY_MAX,
};

static void add_text(struct silt_buf *b, const char *key, const char *text)
{
    silt_json_key(b, silt_slice_of(key));
    if (text[0] != 0)
        silt_json_string(b, silt_slice_of(text));
    else
        silt_json_null(b);
}

static void add_entry(struct silt_buf *b, const struct silt_sandbox *s,
                      const struct silt_history *h)
{
    const struct silt_history_row *row = &h->row;
    silt_json_open(b, '{');
    silt_json_add_text(b, "command", row->command);
    silt_json_key(b, SILT_LIT("at"));
    silt_api_time(b, row->at_ms);
    add_text(b, "snapshotId", silt_history_image(s, h) != NULL ? row->snapshot : "");
    silt_json_key(b, SILT_LIT("exitCode"));
    if (row->ended && row->exit_code >= 0)
        silt_json_i64(b, row->exit_code);
    else
        silt_json_null(b);
    add_text(b, "problem", row->problem);
    silt_json_close(b, '}');
}

/* The newest last. `from` NULL: all. */
static void add_entries(struct silt_buf *b, const char *key, const struct silt_sandbox *s,
                        const struct silt_history *from)
{
    bool begun = from == NULL;
    silt_json_key(b, silt_slice_of(key));
    silt_json_open(b, '[');
    silt_list_each(it, &s->history)
    {
        const struct silt_history *h = silt_outer(it, struct silt_history, link);
        begun = begun || h == from;
        if (begun)
            add_entry(b, s, h);
    }
    silt_json_close(b, ']');
}

static void show(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    silt_json_open(&b, '{');
    add_entries(&b, "history", c->sandbox, NULL);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

/* ---- undo ---- */

/* What runs in it now. */
static void add_ended(struct silt_buf *b, const struct silt_sandbox *s)
{
    uint64_t terminals = 0, sessions = 0;
    silt_json_key(b, SILT_LIT("ended"));
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("processes"));
    silt_json_open(b, '[');
    silt_list_each(it, &s->processes)
    {
        const struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (silt_process_is_over(p))
            continue;
        if (silt_process_is_terminal(p))
            terminals++;
        else
            silt_json_string(b, silt_slice_of(p->row.id));
    }
    silt_json_close(b, ']');
    silt_list_each(it, &s->sessions) sessions +=
        silt_session_is_live(silt_outer(it, struct silt_session, link));
    silt_json_add_u64(b, "terminals", terminals);
    silt_json_add_u64(b, "sessions", sessions);
    silt_json_add_u64(b, "contexts", s->context_count);
    silt_json_close(b, '}');
}

static bool read_steps(struct silt_call *c, uint64_t *ret)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("steps"));
    *ret = 1;
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (v->type != SILT_JSON_INT || v->integer < 1 || v->integer > SILT_HISTORY_MAX) {
        silt_api_refuse_field(c->request, "steps", "must be 1 to 200");
        return false;
    }
    *ret = (uint64_t)v->integer;
    return true;
}

static void refuse(struct silt_call *c, uint64_t steps, const struct silt_history *h)
{
    if (h == NULL)
        silt_api_refuse(c->request, SILT_API_SNAPSHOT_NOT_FOUND, (silt_slice){NULL, 0},
                        "The history of '%s' has %u commands, not %llu", c->sandbox->row.id,
                        c->sandbox->history_count, (unsigned long long)steps);
    else
        silt_api_refuse(c->request, SILT_API_SNAPSHOT_NOT_FOUND, (silt_slice){NULL, 0},
                        "There is no snapshot from before that command");
}

static void undo(struct silt_call *c)
{
    struct silt_sandbox *s = c->sandbox;
    silt_auto_buf b;
    uint64_t steps;
    silt_buf_init(&b, ANSWER_MAX);
    if (s->state == SILT_SANDBOX_DESTROYING) {
        silt_api_refuse_missing(c->request, c->id);
        return;
    }
    if (!read_steps(c, &steps))
        return;
    const struct silt_history *h = silt_history_at(s, steps);
    struct silt_image *i = h != NULL ? silt_history_image(s, h) : NULL;
    if (i == NULL || !silt_rollback_fits(s, i)) {
        refuse(c, steps, h);
        return;
    }
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "id", s->row.id);
    silt_json_add_text(&b, "snapshotId", h->row.snapshot);
    add_entries(&b, "undone", s, h);
    add_ended(&b, s);
    silt_json_close(&b, '}');
    silt_rollback_run(c, i, h, silt_buf_slice(&b));
}

static const struct silt_call_kind show_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = show};
static const struct silt_call_kind undo_call = {
    .body = SILT_BODY_OPTIONAL, .sandbox = SILT_CALL_LOOKS, .native = true, .run = undo};

SILT_HANDLER(silt_api_sandbox_history)
{
    silt_call_begin(r, args, &show_call);
}

SILT_HANDLER(silt_api_sandbox_undo)
{
    silt_call_begin(r, args, &undo_call);
}
