/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/git/checkout: clones a repository, then answers. POST /v1/…/git/clone: the same, with
 * progress as server-sent events, unless the client accepts JSON only. git runs in the sandbox, in
 * a shell with the session's state; a client that disconnects does not stop it. */
#include "api/process/command.h"
#include "api/git/report.h"
#include "api/git/request.h"
#include "api/core/sse.h"
#include "http/field.h"
#include "base/clock.h"
#include "base/fd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    GRACE_MS = 5000,     /* for git to remove its partial clone */
    BACKSTOP_MS = 30000, /* beyond the timeout, in case no siltd is running to enforce it */
    RESULT_MAX = 4096,
    ANSWER_MAX = 6 * (2 * SILT_GIT_STDERR_MAX + 3 * SILT_GIT_URL_MAX + 4 * PATH_MAX),
    TIMED_OUT = 124,
    PROGRESS_MS = 100,
    SHOWN_MAX = 600, /* of git's text in a message, which has room for 1 KiB */
    URL_SHOWN_MAX = 300,
};

struct clone {
    struct silt_exec_sink sink;
    struct silt_exec *exec;
    struct silt_git_request ask;       /* its slices live as long as the request */
    struct silt_http_request *request; /* NULL: the client has disconnected */
    struct silt_sse sse;               /* native */
    struct silt_sandbox *sandbox;      /* borrowed, held */
    struct silt_loop *loop;            /* borrowed */
    struct silt_timer deadline;
    bool native, timed_out;
    bool whole; /* one answer instead of events */
    struct silt_git_report report;
    struct silt_buf result; /* branch and commit, one per line */
    int64_t told_ms;        /* when progress was last sent */
    char phase[48];         /* and its phase */
};

static void free_clone(struct clone *k)
{
    silt_loop_cancel(k->loop, &k->deadline);
    silt_git_url_fini(&k->ask.url);
    silt_git_report_fini(&k->report);
    silt_buf_fini(&k->result);
    silt_sandbox_release(k->sandbox);
    free(k);
}

/* The caller must answer the request at once. */
static struct silt_http_request *let_go(struct clone *k)
{
    return silt_sse_fini(&k->sse);
}

static void on_gone(struct silt_http_request *r)
{
    struct clone *k = r->owner;
    (void)silt_sse_fini(&k->sse);
    k->request = NULL;
    k->report.progress = NULL;
}

static void on_halved(struct silt_http_request *r)
{
    struct clone *k = r->owner;
    silt_sse_probe(&k->sse);
}

static void on_deadline(struct silt_timer *t)
{
    struct clone *k = silt_outer(t, struct clone, deadline);
    k->timed_out = true;
    silt_exec_kill(k->exec, SIGTERM, GRACE_MS);
}

static void on_started(struct silt_exec_sink *sink, int32_t pid)
{
    struct clone *k = silt_outer(sink, struct clone, sink);
    (void)pid;
    silt_loop_after(k->loop, &k->deadline, k->ask.timeout_ms);
    if (!k->whole && k->request != NULL)
        silt_sse_begin(&k->sse);
}

/* The first and last progress of each phase, and some in between. */
static bool is_worth_telling(struct clone *k, const struct silt_git_progress *p)
{
    bool same = silt_slice_eq(p->phase, silt_slice_of(k->phase));
    bool over = p->text.len > 5 && memcmp(p->text.data + p->text.len - 5, "done.", 5) == 0;
    int64_t now = silt_clock_ms();
    if (same && !over && now - k->told_ms < PROGRESS_MS)
        return false;
    k->told_ms = now;
    (void)snprintf(k->phase, sizeof(k->phase), "%.*s", (int)p->phase.len, p->phase.data);
    return true;
}

static void on_progress(struct silt_git_report *r, const struct silt_git_progress *p)
{
    struct clone *k = silt_outer(r, struct clone, report);
    if (!k->sse.begun || silt_http_pending(k->request) >= SILT_HTTP_MARK || !is_worth_telling(k, p))
        return; /* the next one repeats it and more */
    silt_auto_buf b;
    silt_buf_init(&b, SILT_GIT_LINE_MAX * 16);
    silt_sse_open(&b, "progress");
    silt_json_key(&b, SILT_LIT("phase"));
    silt_json_string(&b, p->phase);
    if (p->percent >= 0) {
        silt_json_key(&b, SILT_LIT("percent"));
        silt_json_i64(&b, p->percent);
    }
    silt_json_key(&b, SILT_LIT("text"));
    silt_json_string(&b, p->text);
    silt_api_timestamp(&b);
    silt_sse_send(&k->sse, &b);
}

static void on_output(struct silt_exec_sink *sink, int stream, silt_slice bytes)
{
    struct clone *k = silt_outer(sink, struct clone, sink);
    if (stream == 2)
        silt_git_report_add(&k->report, bytes);
    else
        silt_buf_add(&k->result, bytes);
    silt_exec_credit(k->exec, bytes.len);
}

/* ---- the end ---- */

static void add_context(struct clone *k, struct silt_buf *b, int code, silt_slice said)
{
    silt_json_open(b, '{');
    silt_json_add_slice(b, "repository", silt_buf_slice(&k->ask.url.shown));
    silt_json_add_slice(b, "targetDir", k->ask.target);
    if (k->native && k->ask.branch.len > 0)
        silt_json_add_slice(b, "branch", k->ask.branch);
    silt_json_key(b, SILT_LIT("exitCode"));
    silt_json_i64(b, code);
    silt_json_add_slice(b, "stderr", said);
    silt_json_close(b, '}');
}

/* git's last line that reports a failure, or its last line. */
static silt_slice reason(silt_slice said)
{
    silt_slice line, last = {NULL, 0}, fatal = {NULL, 0};
    while (silt_slice_split(&said, '\n', &line)) {
        if (line.len > 0)
            last = line;
        if (silt_slice_starts(line, SILT_LIT("fatal: ")))
            fatal = line;
    }
    return fatal.len > 0 ? fatal : last;
}

static void end_with_event(struct clone *k, enum silt_api_code code, silt_slice context,
                           const char *message)
{
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX + context.len);
    silt_sse_open(&b, "error");
    silt_json_add_slice(&b, "error", silt_slice_of(message));
    silt_json_add_slice(&b, "code", silt_slice_of(silt_api_code_name(code)));
    silt_json_key(&b, SILT_LIT("httpStatus"));
    silt_json_i64(&b, silt_api_status(code));
    silt_json_key(&b, SILT_LIT("context"));
    silt_json_raw(&b, context);
    silt_api_timestamp(&b);
    silt_sse_send(&k->sse, &b);
    silt_http_end(let_go(k));
}

static void tell_failure(struct clone *k, enum silt_api_code code, int exit_code,
                         const char *message)
{
    silt_auto_buf said, context;
    silt_buf_init(&said, SILT_GIT_STDERR_MAX * 4);
    silt_buf_init(&context, ANSWER_MAX);
    silt_git_redact(&said, &k->ask.url, silt_buf_slice(&k->report.lines));
    add_context(k, &context, exit_code, silt_buf_slice(&said));
    silt_slice told = context.broken ? SILT_LIT("{}") : silt_buf_slice(&context);
    if (k->sse.begun)
        end_with_event(k, code, told, message);
    else
        silt_api_refuse(let_go(k), code, told, "%s", message);
}

/* The official server repeats all of git's output; if it is long, the reason is enough. */
static silt_slice shown(struct clone *k)
{
    silt_slice said = silt_trim_blank(silt_buf_slice(&k->report.lines));
    return k->native || said.len > SHOWN_MAX ? reason(said) : said;
}

static void add_message(struct clone *k, struct silt_buf *b, int code)
{
    silt_auto_buf text;
    silt_slice url = silt_buf_slice(&k->ask.url.shown);
    silt_buf_init(&text, SILT_GIT_STDERR_MAX * 4);
    silt_git_redact(&text, &k->ask.url, shown(k));
    silt_buf_add(b, SILT_LIT("Failed to clone repository"));
    if (!k->native)
        silt_buf_addf(b, " '%.*s'", url.len < URL_SHOWN_MAX ? (int)url.len : URL_SHOWN_MAX,
                      url.data);
    if (code == TIMED_OUT)
        silt_buf_addf(b, ": not done within %u ms", k->ask.timeout_ms);
    else if (text.len > 0)
        silt_buf_addf(b, ": %.*s", text.len < SHOWN_MAX ? (int)text.len : SHOWN_MAX, text.data);
    else
        silt_buf_addf(b, ": exit code %d", code);
    silt_buf_add_byte(b, 0);
}

static void tell_ended(struct clone *k, const struct silt_agent_end *end)
{
    int code = k->timed_out || (end->flags & SILT_END_TIMEOUT) != 0 ? TIMED_OUT : end->code;
    silt_slice said = silt_buf_slice(&k->report.lines);
    silt_auto_buf message;
    silt_buf_init(&message, 1024);
    add_message(k, &message, code);
    tell_failure(k,
                 k->native ? silt_git_classify(code, said) : silt_git_classify_official(code, said),
                 code, message.data);
}

static void add_result(struct clone *k, struct silt_buf *b)
{
    silt_slice rest = silt_buf_slice(&k->result), branch = {NULL, 0}, commit = {NULL, 0};
    (void)silt_slice_split(&rest, '\n', &branch);
    (void)silt_slice_split(&rest, '\n', &commit);
    if (branch.len == 0)
        branch = k->ask.branch.len > 0 ? k->ask.branch : SILT_LIT("unknown");
    silt_json_add_slice(b, "branch", branch);
    silt_json_add_slice(b, "targetDir", k->ask.target);
    if (k->native && commit.len > 0)
        silt_json_add_slice(b, "commit", commit);
    if (!k->native || !k->whole)
        silt_api_timestamp(b);
}

static void tell_done(struct clone *k)
{
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    if (!k->whole) {
        silt_sse_begin(&k->sse);
        silt_sse_open(&b, "complete");
        add_result(k, &b);
        silt_sse_send(&k->sse, &b);
        silt_http_end(let_go(k));
        return;
    }
    silt_json_open(&b, '{');
    if (!k->native)
        silt_json_add_bool(&b, "success", true);
    silt_json_add_slice(&b, "repoUrl", k->native ? silt_buf_slice(&k->ask.url.shown) : k->ask.repo);
    add_result(k, &b);
    silt_json_close(&b, '}');
    silt_api_answer(let_go(k), 200, &b);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct clone *k = silt_outer(sink, struct clone, sink);
    silt_git_report_end(&k->report);
    k->exec = NULL;
    if (k->request == NULL) {
        free_clone(k);
        return;
    }
    if (end->flags & SILT_END_SHELL) { /* the session's shell had already ended */
        struct silt_command m = {.choice = k->ask.choice};
        silt_command_refuse_shell(let_go(k), &m, k->sandbox, end);
    } else if (end->code == 0 && !k->timed_out) {
        tell_done(k);
    } else {
        tell_ended(k, end);
    }
    free_clone(k);
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct clone *k = silt_outer(sink, struct clone, sink);
    enum silt_api_code code = silt_api_code_of(e);
    k->exec = NULL;
    if (k->request != NULL) {
        if (code == SILT_API_INTERNAL || code == SILT_API_TIMEOUT)
            code = SILT_API_GIT_OPERATION_FAILED;
        tell_failure(k, code, 1, e->text);
    }
    free_clone(k);
}

/* ---- starting ---- */

static int keep_secret(const struct silt_git_url *u, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fd = memfd_create("silt-git", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create a memory file");
    silt_auto_buf b;
    silt_buf_init(&b, SILT_GIT_URL_MAX * 2);
    silt_buf_add(&b, SILT_LIT("username="));
    silt_buf_add(&b, silt_buf_slice(&u->user));
    silt_buf_add(&b, SILT_LIT("\npassword="));
    silt_buf_add(&b, silt_buf_slice(&u->password));
    silt_buf_add_byte(&b, '\n');
    int written = silt_fd_write_all(fd, silt_buf_slice(&b), e);
    explicit_bzero(b.data, b.len);
    if (written < 0)
        return silt_because(e, "keep a secret");
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

static int start(struct clone *k, struct silt_call *c, struct silt_error *e)
{
    struct silt_session *session = NULL;
    struct silt_git_request *q = &k->ask;
    silt_auto_fd secret = -1;
    silt_auto_buf script;
    silt_buf_init(&script, 64 << 10);
    silt_git_request_script(q, k->native, &script);
    struct silt_exec_request x = {
        .mode = q->choice.plain ? SILT_EXEC_PLAIN : SILT_EXEC_BACKGROUND,
        .command = silt_buf_slice(&script),
        .env = silt_git_request_env(q),
        .timeout_ms = q->timeout_ms + GRACE_MS + BACKSTOP_MS,
    };
    if (script.broken)
        return silt_fail(e, SILT_LIMIT, "the command is too long");
    if (!q->choice.plain
        && (session = silt_session_choice_session(c, &q->choice, (silt_slice){NULL, 0}, e)) == NULL)
        return -1;
    if (q->url.has_secret && keep_secret(&q->url, &secret, e) < 0)
        return -1;
    if (secret >= 0) {
        x.flags = SILT_START_SECRET;
        x.secret = secret;
    }
    return silt_exec_start(k->sandbox, session, &x, &k->sink, &k->exec, e);
}

static bool wants_json(const struct silt_http_request *r)
{
    silt_slice accept = silt_http_field(r->head, SILT_LIT("accept"));
    return silt_http_accepts(accept, SILT_LIT("application/json"))
           && !silt_http_accepts(accept, SILT_LIT("text/event-stream"));
}

static struct clone *new_clone(struct silt_call *c)
{
    struct clone *k = calloc(1, sizeof(*k));
    if (k == NULL)
        abort();
    *k = (struct clone){
        .sink = {.started = on_started,
                 .output = on_output,
                 .ended = on_ended,
                 .failed = on_failed},
        .request = c->request,
        .sandbox = c->sandbox,
        .loop = c->api->loop,
        .deadline = {.on_time = on_deadline},
        .native = c->kind->native,
        .whole = !c->kind->native || wants_json(c->request),
    };
    silt_git_report_init(&k->report);
    k->report.progress = k->whole ? NULL : on_progress;
    silt_buf_init(&k->result, RESULT_MAX);
    silt_sse_init(&k->sse, k->loop, c->request);
    silt_sandbox_hold(k->sandbox);
    return k;
}

/* Cannot fail: the body was validated before. */
static void run(struct silt_call *c)
{
    struct silt_error e;
    struct clone *k = new_clone(c);
    if (!silt_git_request_read(c, &k->ask))
        abort();
    c->request->owner = k;
    c->request->on_gone = on_gone;
    c->request->on_halved = on_halved;
    if (k->ask.choice.blank) {
        (void)silt_fail(&e, SILT_INTERNAL, "a session id cannot be blank");
        on_failed(&k->sink, &e);
    } else if (start(k, c, &e) < 0) {
        on_failed(&k->sink, &e);
    } /* otherwise it may have ended already */
}

/* Only checks: what it reads holds memory, which run gives to an owner. */
static bool parse(struct silt_call *c)
{
    struct silt_git_request ask;
    if (!silt_git_request_read(c, &ask))
        return false;
    silt_git_url_fini(&ask.url);
    return true;
}

static const struct silt_call_kind checkout_call = {
    .body = SILT_BODY_REQUIRED, .parse = parse, .run = run};
static const struct silt_call_kind clone_call = {
    .body = SILT_BODY_REQUIRED, .native = true, .parse = parse, .run = run};

SILT_HANDLER(silt_api_git_checkout)
{
    silt_call_begin(r, args, &checkout_call);
}

SILT_HANDLER(silt_api_git_clone)
{
    silt_call_begin(r, args, &clone_call);
}
