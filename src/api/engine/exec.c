/* SPDX-License-Identifier: Apache-2.0 */
/* Execs: commands in running containers: create, start (when attached, the connection carries the
 * streams from then on), inspect, resize.
 *
 *   MADE --start--> STARTING --started--> RUNNING --ended--> DONE
 *                        \-------failed----------------------^ */
#include "api/engine/engine.h"
#include "json/json.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/process/terminal.h"
#include "sandbox/file/worker_pool.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    EXECS_MAX = 2048,
    ARENA_MAX = 4 << 20,
    STDIN_PIECE = 32 << 10,
    STDIN_MAX = 1 << 20, /* input the command has not read; the client is held back long before */
    STDIN_MARK = 256 << 10,
    KEEP_MS = 300000,
    PID_MS = 200, /* how long the pid is withheld while its file is missing */
    PID_LOOK_MS = 10,
    NOT_RUNNABLE = 126,
    NOT_FOUND = 127,
    KILLED = 128 + SIGKILL,
};

enum state { MADE, STARTING, RUNNING, DONE };

struct silt_engine_exec {
    struct silt_engine *engine; /* borrowed */
    struct silt_link link;
    enum state state;
    char id[SILT_CONTAINER_ID_SIZE], container[SILT_CONTAINER_ID_SIZE];
    char sandbox[SILT_ID_MAX + 1];
    struct silt_arena arena; /* holds the fields below */
    struct silt_words cmd;
    silt_slice env, cwd, user;
    silt_slice pid_file; /* written by the command's wrapper; empty: none */
    bool tty, has_stdin, attached;
    uint32_t size; /* of its terminal */
    int32_t pid, code;
    bool pid_shown;
    struct silt_exec_sink sink;
    struct silt_exec *exec;
    struct silt_http_request *request; /* attached client; NULL: none */
    size_t uncredited;                 /* output the client has not read */
    struct silt_buf in;
    bool in_owed, in_over, in_closed;
    struct silt_work_sink look_sink;
    struct silt_work *look;
    struct silt_timer pid_timer, keep_timer;
    int64_t pid_by_ms;
    struct silt_grave grave;
};

static struct silt_loop *loop_of(const struct silt_engine_exec *x)
{
    return x->engine->api->loop;
}

static struct silt_engine_exec *find(struct silt_engine *g, silt_slice id)
{
    silt_list_each(it, &g->execs)
    {
        struct silt_engine_exec *x = silt_outer(it, struct silt_engine_exec, link);
        if (silt_slice_eq(silt_slice_of(x->id), id))
            return x;
    }
    return NULL;
}

static void free_exec(struct silt_grave *g)
{
    struct silt_engine_exec *x = silt_outer(g, struct silt_engine_exec, grave);
    silt_arena_fini(&x->arena);
    silt_buf_fini(&x->in);
    free(x);
}

static void forget(struct silt_engine_exec *x)
{
    if (x->look != NULL)
        silt_work_leave(x->look);
    if (x->exec != NULL)
        silt_exec_leave(x->exec);
    silt_loop_cancel(loop_of(x), &x->pid_timer);
    silt_loop_cancel(loop_of(x), &x->keep_timer);
    silt_list_remove(&x->link);
    x->engine->exec_count--;
    silt_loop_bury(loop_of(x), &x->grave);
}

static void on_keep_over(struct silt_timer *t)
{
    struct silt_engine_exec *x = silt_outer(t, struct silt_engine_exec, keep_timer);
    if (x->request == NULL)
        forget(x);
    else
        silt_loop_after(loop_of(x), t, KEEP_MS);
}

/* Reports the pid only once the wrapper has written its file: a client that sees the pid may kill
 * by that file. */

static void show_pid(struct silt_engine_exec *x)
{
    x->pid_shown = true;
    silt_loop_cancel(loop_of(x), &x->pid_timer);
}

static void on_looked(struct silt_work_sink *s, enum silt_worker_say type, silt_slice body,
                      bool last)
{
    struct silt_engine_exec *x = silt_outer(s, struct silt_engine_exec, look_sink);
    (void)type;
    (void)body;
    if (!last)
        return;
    x->look = NULL;
    show_pid(x);
}

static void on_not_there(struct silt_work_sink *s, const struct silt_error *e)
{
    struct silt_engine_exec *x = silt_outer(s, struct silt_engine_exec, look_sink);
    (void)e;
    x->look = NULL;
    if (loop_of(x)->now_ms >= x->pid_by_ms)
        show_pid(x);
    else
        silt_loop_after(loop_of(x), &x->pid_timer, PID_LOOK_MS);
}

static void look_for_pid_file(struct silt_engine_exec *x)
{
    struct silt_sandbox *s =
        silt_registry_find(x->engine->api->registry, silt_slice_of(x->sandbox));
    struct silt_work_request q = {
        .op = SILT_WORKER_STAT, .path = x->pid_file, .patience_ms = SILT_WORK_PATIENCE_MS};
    struct silt_error e;
    x->look_sink = (struct silt_work_sink){.said = on_looked, .failed = on_not_there};
    if (s == NULL || s->state != SILT_SANDBOX_RUNNING
        || silt_work_start(s, &q, &x->look_sink, &x->look, &e) < 0)
        show_pid(x);
}

static void on_pid_time(struct silt_timer *t)
{
    look_for_pid_file(silt_outer(t, struct silt_engine_exec, pid_timer));
}

/* ["/bin/sh","-c","echo $$ > FILE; exec \"$@\"",…] */
static silt_slice pid_file_of(const struct silt_words *cmd)
{
    silt_slice before = SILT_LIT("echo $$ > "), text, file;
    if (cmd->count < 3 || !silt_slice_starts(cmd->items[2], before))
        return (silt_slice){NULL, 0};
    text = (silt_slice){cmd->items[2].data + before.len, cmd->items[2].len - before.len};
    return silt_slice_split(&text, ';', &file) && file.len > 1 && file.data[0] == '/'
                   && file.len < SILT_WORKER_PATH_MAX
               ? file
               : (silt_slice){NULL, 0};
}

/* Output */

static void write_frame(struct silt_engine_exec *x, int stream, silt_slice bytes)
{
    unsigned char head[8] = {(unsigned char)stream,
                             0,
                             0,
                             0,
                             (unsigned char)(bytes.len >> 24),
                             (unsigned char)(bytes.len >> 16),
                             (unsigned char)(bytes.len >> 8),
                             (unsigned char)bytes.len};
    if (!x->tty)
        silt_http_write(x->request, (silt_slice){(char *)head, sizeof(head)});
    silt_http_write(x->request, bytes);
}

static void credit(struct silt_engine_exec *x)
{
    size_t n = x->uncredited;
    x->uncredited = 0;
    if (n > 0 && x->exec != NULL)
        silt_exec_credit(x->exec, n);
}

static void on_output(struct silt_exec_sink *s, int stream, silt_slice bytes)
{
    struct silt_engine_exec *x = silt_outer(s, struct silt_engine_exec, sink);
    x->uncredited += bytes.len;
    if (x->request != NULL)
        write_frame(x, stream, bytes);
    if (x->request == NULL || silt_http_pending(x->request) < SILT_HTTP_MARK)
        credit(x);
}

static void on_drain(struct silt_http_request *r)
{
    struct silt_engine_exec *x = r->owner;
    credit(x);
}

/* Input */

static void push(struct silt_engine_exec *x)
{
    if (x->exec == NULL || x->state != RUNNING || !x->has_stdin || x->in_owed || x->in_closed)
        return;
    size_t n = x->in.len < STDIN_PIECE ? x->in.len : STDIN_PIECE;
    if (n == 0 && (!x->in_over || x->tty))
        return; /* half-closing the connection does not hang up a terminal */
    x->in_owed = true;
    x->in_closed = n == 0;
    silt_exec_stdin(x->exec, (silt_slice){x->in.data, n}, n == 0);
    silt_buf_drop(&x->in, n);
}

static void on_taken(struct silt_exec_sink *s, uint64_t n, bool closed)
{
    struct silt_engine_exec *x = silt_outer(s, struct silt_engine_exec, sink);
    (void)n;
    x->in_owed = false;
    x->in_closed = x->in_closed || closed;
    if (closed)
        silt_buf_clear(&x->in);
    push(x);
    if (x->request != NULL && !x->in_over && x->in.len < STDIN_MARK)
        silt_http_pause(x->request, false);
}

static void on_piece(struct silt_http_request *r, silt_slice piece, bool end)
{
    struct silt_engine_exec *x = r->owner;
    x->in_over = x->in_over || end;
    if (x->has_stdin && !x->in_closed)
        silt_buf_add(&x->in, piece);
    push(x);
    if (!x->in_over && x->in.len >= STDIN_MARK)
        silt_http_pause(r, true);
}

/* Life of an exec */

static void leave_client(struct silt_engine_exec *x)
{
    struct silt_http_request *r = x->request;
    x->request = NULL;
    if (r == NULL)
        return;
    r->on_gone = NULL;
    r->on_drain = NULL;
    silt_http_end(r);
}

static void is_done(struct silt_engine_exec *x, int32_t code)
{
    x->state = DONE;
    x->code = code;
    x->exec = NULL;
    show_pid(x);
    leave_client(x);
    silt_loop_after(loop_of(x), &x->keep_timer, KEEP_MS);
}

static void on_started(struct silt_exec_sink *s, int32_t pid)
{
    struct silt_engine_exec *x = silt_outer(s, struct silt_engine_exec, sink);
    x->state = RUNNING;
    x->pid = pid;
    if (x->pid_file.len > 0) {
        x->pid_by_ms = loop_of(x)->now_ms + PID_MS;
        look_for_pid_file(x);
    } else {
        show_pid(x);
    }
    if (!x->attached)
        silt_exec_detach(x->exec);
    push(x);
}

static void on_ended(struct silt_exec_sink *s, const struct silt_agent_end *end)
{
    struct silt_engine_exec *x = silt_outer(s, struct silt_engine_exec, sink);
    is_done(x, end->code >= 0 && end->code <= 255 ? end->code : KILLED);
}

static void on_failed(struct silt_exec_sink *s, const struct silt_error *e)
{
    struct silt_engine_exec *x = silt_outer(s, struct silt_engine_exec, sink);
    bool ran = x->state == RUNNING;
    if (!ran && x->request != NULL) {
        write_frame(x, 2, silt_slice_of(e->text));
        write_frame(x, 2, SILT_LIT("\n"));
    }
    is_done(x, ran ? KILLED : e->code == SILT_NOT_FOUND ? NOT_FOUND : NOT_RUNNABLE);
}

static const struct silt_exec_sink sink_of_an_exec = {.started = on_started,
                                                      .output = on_output,
                                                      .stdin_taken = on_taken,
                                                      .ended = on_ended,
                                                      .failed = on_failed};

static void on_gone(struct silt_http_request *r)
{
    struct silt_engine_exec *x = r->owner;
    x->request = NULL;
    x->in_over = true;
    push(x);
    credit(x);
    if (x->exec != NULL && x->state == RUNNING)
        silt_exec_detach(x->exec);
}

static int run(struct silt_engine_exec *x, struct silt_error *e)
{
    struct silt_sandbox *s =
        silt_registry_find(x->engine->api->registry, silt_slice_of(x->sandbox));
    const struct silt_container *c =
        silt_container_find(x->engine->all, silt_slice_of(x->container));
    silt_auto_buf argv;
    silt_buf_init(&argv, SILT_COMMAND_MAX);
    for (size_t i = 0; i < x->cmd.count; i++) {
        silt_buf_add(&argv, x->cmd.items[i]);
        silt_buf_add_byte(&argv, 0);
    }
    bool in = x->has_stdin || x->tty;
    struct silt_exec_request q = {.mode = SILT_EXEC_PLAIN,
                                  .command = silt_buf_slice(&argv),
                                  .env = x->env,
                                  .cwd = x->cwd,
                                  .user = x->user,
                                  .flags = SILT_START_ARGV | (in ? SILT_START_STDIN : 0U),
                                  .terminal = x->tty ? x->size : 0};
    /* Another container of this name may be running in the same sandbox by now. */
    if (c == NULL || !silt_container_is_up(c) || s == NULL || s->state != SILT_SANDBOX_RUNNING)
        return silt_fail(e, SILT_CONFLICT, "container %s is not running", x->container);
    x->sink = sink_of_an_exec;
    x->has_stdin = in;
    x->state = STARTING;
    silt_loop_cancel(loop_of(x), &x->keep_timer);
    return silt_exec_start(s, NULL, &q, &x->sink, &x->exec, e);
}

/* Requests */

static bool read_bool(const struct silt_json *o, const char *name, bool *ret)
{
    const struct silt_json *v = silt_json_get(o, silt_slice_of(name));
    *ret = v != NULL && v->type == SILT_JSON_BOOL && v->boolean;
    return v == NULL || v->type == SILT_JSON_BOOL || v->type == SILT_JSON_NULL;
}

static int read_size(const struct silt_json *o, uint32_t *ret)
{
    const struct silt_json *v = silt_json_get(o, SILT_LIT("ConsoleSize")), *rows, *columns;
    if (v == NULL || v->type == SILT_JSON_NULL)
        return 0;
    if (v->type != SILT_JSON_ARRAY || v->items.count != 2)
        return -1;
    rows = v->items.first;
    columns = rows->next;
    if (rows->type != SILT_JSON_INT || columns->type != SILT_JSON_INT || rows->integer < 0
        || rows->integer > 10000 || columns->integer < 0 || columns->integer > 10000)
        return -1;
    if (rows->integer > 0 && columns->integer > 0)
        *ret = silt_terminal_size((uint16_t)columns->integer, (uint16_t)rows->integer);
    return 0;
}

/* The fields shared by containers and execs are read by the same code; an exec needs no image. */
static int read_exec(struct silt_engine_exec *x, silt_slice body, struct silt_error *e)
{
    const struct silt_json *o;
    struct silt_container_spec spec;
    bool privileged, out, err;
    char *copy = silt_arena_dup(&x->arena, body);
    if (copy == NULL || silt_json_read(&x->arena, (silt_slice){copy, body.len}, &o, e) < 0)
        return copy == NULL ? silt_fail(e, SILT_LIMIT, "the request is too large") : -1;
    if (o->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_INVALID, "the request must be a JSON object");
    if (silt_container_spec_read_command(&x->arena, o, &spec, e) < 0)
        return -1;
    if (!read_bool(o, "Tty", &x->tty) || !read_bool(o, "AttachStdin", &x->has_stdin)
        || !read_bool(o, "Privileged", &privileged) || !read_bool(o, "AttachStdout", &out)
        || !read_bool(o, "AttachStderr", &err) || read_size(o, &x->size) < 0)
        return silt_fail(
            e, SILT_INVALID,
            "Tty, Attach… and Privileged must be true or false, ConsoleSize two numbers");
    if (privileged)
        return silt_fail(e, SILT_DENIED, "Privileged is not available");
    if (spec.cmd.count == 0)
        return silt_fail(e, SILT_INVALID, "No exec command specified");
    x->cmd = spec.cmd;
    x->env = spec.env;
    x->cwd = spec.workdir;
    x->user = spec.user;
    x->attached = out || err || x->has_stdin;
    x->pid_file = pid_file_of(&x->cmd);
    return 0;
}

static bool make_room(struct silt_engine *g)
{
    silt_list_each(it, &g->execs)
    {
        struct silt_engine_exec *x = silt_outer(it, struct silt_engine_exec, link);
        if (g->exec_count < EXECS_MAX)
            return true;
        if ((x->state == DONE || x->state == MADE) && x->request == NULL)
            forget(x);
    }
    return g->exec_count < EXECS_MAX;
}

static struct silt_engine_exec *new_exec(struct silt_engine *g, const struct silt_container *c)
{
    struct silt_engine_exec *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct silt_engine_exec){.engine = g,
                                   .size = silt_terminal_size(80, 24),
                                   .pid_timer = {.on_time = on_pid_time},
                                   .keep_timer = {.on_time = on_keep_over},
                                   .grave = {.free = free_exec}};
    silt_arena_init(&x->arena, ARENA_MAX);
    silt_buf_init(&x->in, STDIN_MAX);
    silt_id_random_hex(x->id);
    memcpy(x->container, c->row.id, sizeof(x->container));
    memcpy(x->sandbox, c->sandbox, sizeof(x->sandbox));
    silt_list_init(&x->link);
    return x;
}

SILT_HANDLER(silt_engine_exec_create)
{
    struct silt_container *c = silt_engine_container(r, args[0]);
    struct silt_error e;
    if (c == NULL)
        return;
    struct silt_engine *g = silt_engine_of(r);
    if (!silt_container_is_up(c) || c->spec.kind != SILT_CONTAINER_APP) {
        silt_engine_refuse(r, 409, "container %s is not running", c->row.id);
        return;
    }
    if (!make_room(g)) {
        silt_engine_refuse(r, 500, "%d commands run already", EXECS_MAX);
        return;
    }
    struct silt_engine_exec *x = new_exec(g, c);
    if (read_exec(x, r->body, &e) < 0) {
        free_exec(&x->grave);
        silt_engine_refuse_error(r, &e);
        return;
    }
    if (x->user.len == 0 && c->spec.user.len > 0) {
        const char *user = silt_arena_dup(&x->arena, c->spec.user);
        if (user == NULL) {
            free_exec(&x->grave);
            silt_engine_refuse(r, 400, "the request is too large");
            return;
        }
        x->user = (silt_slice){user, c->spec.user.len};
    }
    silt_list_append(&g->execs, &x->link);
    g->exec_count++;
    silt_loop_after(loop_of(x), &x->keep_timer, KEEP_MS); /* waiting for its start */
    silt_auto_buf b;
    silt_buf_init(&b, 256);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("Id"));
    silt_json_string(&b, silt_slice_of(x->id));
    silt_json_close(&b, '}');
    silt_engine_answer(r, 201, &b);
}

static struct silt_engine_exec *known(struct silt_http_request *r, silt_slice id)
{
    struct silt_engine_exec *x = find(silt_engine_of(r), id);
    if (x == NULL)
        silt_engine_refuse(r, 404, "No such exec instance: %.*s",
                           (int)(id.len < 100 ? id.len : 100), id.data);
    return x;
}

static bool attach(struct silt_engine_exec *x, struct silt_http_request *r)
{
    silt_slice type = x->tty ? SILT_LIT("application/vnd.docker.raw-stream")
                             : SILT_LIT("application/vnd.docker.multiplexed-stream");
    char fields[192];
    (void)snprintf(fields, sizeof(fields),
                   "Content-Type: %.*s\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n", (int)type.len,
                   type.data);
    if (r->head->upgrade && !silt_http_may_upgrade_late(r)) {
        silt_engine_refuse(r, 503, "the daemon is stopping");
        return false;
    }
    x->request = r;
    bool upgrades = r->head->upgrade;
    r->owner = x;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
    r->halves = upgrades;
    if (upgrades)
        silt_http_upgrade_late(r, silt_slice_of(fields), on_piece);
    else
        silt_http_begin(r, 200, type, (silt_slice){NULL, 0});
    x->in_over = !upgrades;
    return true;
}

SILT_HANDLER(silt_engine_exec_start)
{
    struct silt_engine_exec *x = known(r, args[0]);
    const struct silt_json *o = NULL;
    struct silt_error e;
    bool detach = false, tty = false;
    if (x == NULL)
        return;
    if (r->body.len > 0
        && (silt_json_read(r->arena, r->body, &o, &e) < 0 || o->type != SILT_JSON_OBJECT
            || !read_bool(o, "Detach", &detach) || !read_bool(o, "Tty", &tty)
            || read_size(o, &x->size) < 0)) {
        silt_engine_refuse(r, 400,
                           "the request must be an object with Detach, Tty and ConsoleSize");
        return;
    }
    if (x->state != MADE) {
        silt_engine_refuse(r, 409, "exec %s has been started already", x->id);
        return;
    }
    x->attached = !detach;
    if (detach) {
        if (run(x, &e) < 0) {
            x->state = MADE;
            silt_loop_after(loop_of(x), &x->keep_timer, KEEP_MS);
            silt_engine_refuse_error(r, &e);
            return;
        }
        silt_engine_empty(r, 200);
        return;
    }
    if (attach(x, r) && run(x, &e) < 0)
        on_failed(&x->sink, &e);
}

SILT_HANDLER(silt_engine_exec_inspect)
{
    const struct silt_engine_exec *x = known(r, args[0]);
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    if (x == NULL)
        return;
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("ID"));
    silt_json_string(&b, silt_slice_of(x->id));
    silt_json_key(&b, SILT_LIT("ContainerID"));
    silt_json_string(&b, silt_slice_of(x->container));
    silt_json_key(&b, SILT_LIT("Running"));
    silt_json_bool(&b, x->state == STARTING || x->state == RUNNING);
    silt_json_key(&b, SILT_LIT("ExitCode"));
    if (x->state == DONE)
        silt_json_i64(&b, x->code);
    else
        silt_json_null(&b);
    silt_json_key(&b, SILT_LIT("Pid"));
    silt_json_i64(&b, x->pid_shown ? x->pid : 0);
    silt_json_key(&b, SILT_LIT("OpenStdin"));
    silt_json_bool(&b, x->has_stdin);
    silt_json_close(&b, '}');
    silt_engine_answer(r, 200, &b);
}

SILT_HANDLER(silt_engine_exec_resize)
{
    struct silt_engine_exec *x = known(r, args[0]);
    uint64_t rows, columns;
    struct silt_error e;
    if (x == NULL)
        return;
    if (silt_slice_to_u64(silt_engine_query(r, "h"), 1, 10000, &rows, &e) < 0
        || silt_slice_to_u64(silt_engine_query(r, "w"), 1, 10000, &columns, &e) < 0) {
        silt_engine_refuse(r, 400, "h and w must be numbers");
        return;
    }
    x->size = silt_terminal_size((uint16_t)columns, (uint16_t)rows);
    if (x->tty && x->exec != NULL)
        silt_exec_resize(x->exec, x->size);
    silt_engine_empty(r, 200);
}

void silt_engine_execs_free(struct silt_engine *g)
{
    silt_list_each(it, &g->execs)
    {
        struct silt_engine_exec *x = silt_outer(it, struct silt_engine_exec, link);
        if (x->request != NULL)
            x->request->on_gone = NULL;
        forget(x);
    }
}
