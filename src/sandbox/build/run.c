/* SPDX-License-Identifier: Apache-2.0 */
/* run: sandboxes of a build, the commands in them, and the seals of their files. */
#include "sandbox/build/internal.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/start_frame.h"
#include "sandbox/image/step_cache.h"
#include "sandbox/image/seal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SAID_MAX = SILT_DOCKERFILE_MAX + 1,
    ERRORS_MAX = 400, /* bytes of stderr kept */
    TOLD_MAX = 320,   /* of these, in a message */
    PIECE_MAX = 32 << 10,
    CPU_MILLI_MIN = 2000,
};

static const silt_slice nothing = {NULL, 0};

/* ---- cache key of a step ---- */

static void add(EVP_MD_CTX *c, silt_slice s)
{
    uint64_t len = s.len;
    if (EVP_DigestUpdate(c, &len, sizeof(len)) != 1
        || (s.len > 0 && EVP_DigestUpdate(c, s.data, s.len) != 1))
        abort();
}

void silt_build_hash(struct silt_build *b, const char *what, const silt_slice *parts, size_t count)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    const char *config = silt_build_config_text(b);
    unsigned size = 0;
    if (c == NULL || EVP_DigestInit_ex(c, EVP_sha256(), NULL) != 1)
        abort();
    add(c, SILT_LIT("silt build 1"));
    add(c, (silt_slice){(const char *)b->key, sizeof(b->key)});
    add(c, silt_slice_of(what));
    add(c, config != NULL ? silt_slice_of(config) : nothing);
    for (size_t i = 0; i < count; i++)
        add(c, parts[i]);
    if (EVP_DigestFinal_ex(c, b->step_key, &size) != 1 || size != sizeof(b->step_key))
        abort();
    EVP_MD_CTX_free(c);
}

static void tell_step(struct silt_build *b, bool cached)
{
    const struct silt_docker_step *s = silt_build_step_of(b);
    struct silt_build_step told = {.number = b->number,
                                   .total = b->total,
                                   .stage = b->file.stages[b->stage].name,
                                   .text = s->text,
                                   .cached = cached};
    b->sink->step(b->sink, &told);
}

static void take_image(struct silt_build *b, struct silt_image *i)
{
    struct silt_image *before = b->image;
    silt_image_hold(i);
    b->image = i;
    if (before != NULL)
        silt_image_release(before);
    memcpy(b->key, b->step_key, sizeof(b->key));
}

bool silt_build_hit(struct silt_build *b)
{
    struct silt_image *i =
        b->options.no_cache ? NULL : silt_step_cache_find(b->registry, b->step_key);
    tell_step(b, i != NULL);
    if (i == NULL)
        return false;
    silt_build_drop(b, &b->work); /* it has other files */
    take_image(b, i);
    silt_build_next_step(b);
    return true;
}

/* ---- sandboxes ---- */

void silt_build_drop(struct silt_build *b, struct silt_build_box *box)
{
    struct silt_sandbox *s =
        box->id[0] != 0 ? silt_registry_find(b->registry, silt_slice_of(box->id)) : NULL;
    box->id[0] = 0;
    if (s != NULL)
        silt_sandbox_destroy(s, NULL);
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_build *b = silt_outer(w, struct silt_build, waiter);
    if (s == NULL)
        silt_build_fail(b, e);
    else
        b->next(b);
}

static int create(struct silt_build *b, struct silt_build_box *box, const struct silt_image *image,
                  enum silt_net_mode network, struct silt_error *e)
{
    struct silt_registry *r = b->registry;
    struct silt_sandbox_options o = {.limits = r->default_limits,
                                     .network = network,
                                     .labels = SILT_LIT("{\"silt.build\":\"\"}")};
    char digest[8 + SILT_DIGEST_SIZE * 2] = "sha256:";
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++)
        (void)snprintf(digest + 7 + i * 2, 3, "%02x", image->row.digest[i]);
    if (o.limits.cpu_milli < CPU_MILLI_MIN)
        o.limits.cpu_milli = CPU_MILLI_MIN; /* a client waits for the whole build */
    else
        memcpy(o.type, r->settings.type, sizeof(o.type));
    o.image = silt_slice_of(digest);
    (void)snprintf(box->id, sizeof(box->id), "%s-%u", b->name, b->boxes++);
    memcpy(box->digest, image->row.digest, sizeof(box->digest));
    if (silt_registry_create(r, silt_slice_of(box->id), &o, &b->waiter, e) == 0)
        return 0;
    box->id[0] = 0;
    return -1;
}

void silt_build_need(struct silt_build *b, struct silt_build_box *box,
                     const struct silt_image *image, enum silt_net_mode network,
                     silt_build_next *next)
{
    struct silt_error e;
    b->next = next;
    b->waiter.on_ready = on_ready;
    if (box->id[0] == 0) {
        if (create(b, box, image, network, &e) < 0)
            silt_build_fail(b, &e);
        return;
    }
    struct silt_sandbox *s = silt_registry_find(b->registry, silt_slice_of(box->id));
    if (s == NULL || s->state == SILT_SANDBOX_DESTROYING
        || memcmp(s->row.digest, box->digest, SILT_DIGEST_SIZE) != 0) {
        (void)silt_fail(&e, SILT_GONE, "a sandbox of the build was destroyed by somebody else");
        silt_build_fail(b, &e);
        return;
    }
    silt_sandbox_wait(s, &b->waiter);
}

/* ---- commands ---- */

static void keep_error(struct silt_build *b, silt_slice bytes)
{
    if (bytes.len > ERRORS_MAX)
        bytes = (silt_slice){bytes.data + bytes.len - ERRORS_MAX, ERRORS_MAX};
    if (b->errors.len + bytes.len > ERRORS_MAX)
        silt_buf_drop(&b->errors, b->errors.len + bytes.len - ERRORS_MAX);
    silt_buf_add(&b->errors, bytes);
}

static void show(struct silt_build *b, struct silt_build_run *run, silt_slice bytes)
{
    b->sink->output(b->sink, bytes);
    if (b->sink->full(b->sink))
        b->uncredited += bytes.len; /* credited by silt_build_resume */
    else
        silt_exec_credit(run->exec, bytes.len);
}

/* One piece at a time: the agent accepts the next only after it has acknowledged the last. */
void silt_build_feed_on(struct silt_build *b)
{
    bool piped = b->other.build != NULL;
    if (b->run.exec == NULL || !b->run.input || b->sending > 0)
        return;
    if (b->waiting.len > 0) {
        b->sending = b->waiting.len < PIECE_MAX ? b->waiting.len : PIECE_MAX;
        silt_exec_stdin(b->run.exec, (silt_slice){b->waiting.data, b->sending}, false);
    } else if (piped ? b->other.exec == NULL : b->ended) {
        b->run.input = false;
        silt_exec_stdin(b->run.exec, nothing, true);
    }
}

static void on_output(struct silt_exec_sink *sink, int stream, silt_slice bytes)
{
    struct silt_build_run *run = silt_outer(sink, struct silt_build_run, sink);
    struct silt_build *b = run->build;
    if (stream == 2)
        keep_error(b, bytes);
    if (stream == 1 && run->to_pipe) {
        silt_buf_add(&b->waiting, bytes); /* credited when it is accepted */
        silt_build_feed_on(b);
        return;
    }
    if (!run->to_text && !run->to_pipe) {
        show(b, run, bytes);
        return;
    }
    bool was_broken = b->said.broken;
    if (stream == 1)
        silt_buf_add(&b->said, bytes);
    if (b->said.broken && !was_broken) /* too long; reported at its end */
        silt_exec_kill(run->exec, SIGKILL, 0);
    silt_exec_credit(run->exec, bytes.len);
}

static void on_stdin_taken(struct silt_exec_sink *sink, uint64_t n, bool closed)
{
    struct silt_build_run *run = silt_outer(sink, struct silt_build_run, sink);
    struct silt_build *b = run->build;
    size_t taken =
        closed ? b->waiting.len : b->sending; /* stdin is closed: it will exit soon and say why */
    (void)n;
    silt_buf_drop(&b->waiting, taken);
    b->sending = 0;
    if (b->other.exec != NULL)
        silt_exec_credit(b->other.exec, taken);
    else if (b->other.build == NULL && !b->ended && b->waiting.len < SILT_BUILD_WAITING_MAX / 8)
        b->sink->room(b->sink);
    silt_build_feed_on(b);
}

static void is_over(struct silt_build_run *run, int code)
{
    struct silt_build *b = run->build;
    run->exec = NULL;
    run->code = code;
    if (run == &b->other)
        silt_build_feed_on(b);
    else
        b->sending = 0;
    if (run == &b->run && b->other.exec != NULL) { /* its output has no reader any more */
        silt_exec_kill(b->other.exec, SIGKILL, 0);
        return;
    }
    if (b->run.exec == NULL && b->other.exec == NULL) {
        b->uncredited = 0;
        silt_buf_clear(&b->waiting);
        b->next(b);
    }
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct silt_build_run *run = silt_outer(sink, struct silt_build_run, sink);
    if (end->flags & SILT_END_TIMEOUT)
        keep_error(run->build, SILT_LIT("\nit took too long (setting build.step_timeout)"));
    if (end->flags & SILT_END_OOM)
        keep_error(run->build, SILT_LIT("\nthe sandbox ran out of memory"));
    if (end->flags & SILT_END_NO_CWD)
        keep_error(run->build, SILT_LIT("\nthe working directory cannot be entered"));
    is_over(run, end->code == 0 && (end->flags & (SILT_END_TIMEOUT | SILT_END_NO_CWD)) != 0
                     ? 1
                     : end->code);
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct silt_build_run *run = silt_outer(sink, struct silt_build_run, sink);
    keep_error(run->build, silt_slice_of(e->text));
    is_over(run, 127);
}

static bool needs_root(const struct silt_build *b, const struct silt_build_command *c)
{
    const struct silt_image *i = silt_image_by_digest(b->registry, c->box->digest);
    return c->user.len == 0 && i != NULL && i->config.user.len > 0;
}

bool silt_build_execute(struct silt_build *b, struct silt_build_run *run,
                        const struct silt_build_command *c)
{
    struct silt_sandbox *s = silt_registry_find(b->registry, silt_slice_of(c->box->id));
    struct silt_error e;
    silt_auto_buf command;
    silt_buf_init(&command, SILT_COMMAND_MAX);
    for (size_t i = 0; i < c->argc; i++) {
        silt_buf_add(&command, c->argv[i]);
        silt_buf_add_byte(&command, 0);
    }
    *run = (struct silt_build_run){
        .build = b, .to_pipe = c->to_pipe, .to_text = c->to_text, .input = c->input};
    run->sink = (struct silt_exec_sink){
        .output = on_output, .stdin_taken = on_stdin_taken, .ended = on_ended, .failed = on_failed};
    struct silt_exec_request q = {.mode = SILT_EXEC_PLAIN,
                                  .command = silt_buf_slice(&command),
                                  .cwd = c->cwd.len > 0 ? c->cwd : SILT_LIT("/"),
                                  .env = c->env,
                                  .user = needs_root(b, c) ? SILT_LIT("0") : c->user,
                                  .timeout_ms = b->registry->settings.build_timeout_s * 1000,
                                  .flags = SILT_START_ARGV | (c->input ? SILT_START_STDIN : 0U)};
    bool good = s != NULL && s->state == SILT_SANDBOX_RUNNING && !command.broken;
    if (!good)
        (void)silt_fail(&e, SILT_GONE,
                        "a sandbox of the build has ended, or a command is too long");
    if (!good || silt_exec_start(s, NULL, &q, &run->sink, &run->exec, &e) < 0) {
        run->build = NULL;
        silt_build_fail(b, &e);
        return false;
    }
    return true;
}

void silt_build_leave_runs(struct silt_build *b)
{
    struct silt_build_run *runs[] = {&b->run, &b->other};
    for (size_t i = 0; i < SILT_COUNT(runs); i++)
        if (runs[i]->exec != NULL) {
            silt_exec_leave(runs[i]->exec);
            runs[i]->exec = NULL;
        }
}

static silt_slice trim_lines(silt_slice s)
{
    while (s.len > 0 && (unsigned char)s.data[s.len - 1] <= ' ')
        s.len--;
    while (s.len > 0 && (unsigned char)s.data[0] <= ' ')
        s = (silt_slice){s.data + 1, s.len - 1};
    return s;
}

/* An error has little room and its end says most: returns the last whole lines. */
static silt_slice last_lines(silt_slice s)
{
    if (s.len <= TOLD_MAX)
        return s;
    silt_slice end = {s.data + s.len - TOLD_MAX, TOLD_MAX};
    const char *line = memchr(end.data, '\n', end.len);
    return line != NULL ? (silt_slice){line + 1, (size_t)(end.data + end.len - line - 1)} : end;
}

void silt_build_say_failed(struct silt_build *b, const char *what, int code)
{
    struct silt_error e;
    silt_slice why = last_lines(trim_lines(silt_buf_slice(&b->errors)));
    (void)silt_fail(&e, SILT_INVALID, "%s ended with code %d%s%.*s", what, code,
                    why.len > 0 ? ": " : "", (int)why.len, why.len > 0 ? why.data : "");
    silt_build_fail(b, &e);
}

/* ---- seals ---- */

static void on_sealed(void *context, struct silt_image *i, const struct silt_error *e)
{
    struct silt_build *b = context;
    b->seal = NULL;
    if (i == NULL) {
        silt_build_fail(b, e);
        return;
    }
    silt_step_cache_put(b->registry, b->step_key, i);
    take_image(b, i);
    silt_build_next_step(b);
}

void silt_build_seal(struct silt_build *b)
{
    struct silt_sandbox *s = silt_registry_find(b->registry, silt_slice_of(b->work.id));
    struct silt_seal_options o = {.config = silt_build_config_text(b)};
    struct silt_error e;
    if (o.config == NULL)
        return;
    if (s == NULL)
        (void)silt_fail(&e, SILT_GONE, "a sandbox of the build was destroyed by somebody else");
    if (s == NULL || silt_image_seal(s, &o, on_sealed, b, &b->seal, &e) < 0)
        silt_build_fail(b, &e);
}

/* ---- RUN and WORKDIR ---- */

static void unmount(struct silt_build *b)
{
    silt_build_unmount(b, silt_build_seal);
}

/* If processes are left all the same, the sandbox is restarted. */
static void on_swept(struct silt_sweep *w, const struct silt_agent_swept *swept,
                     const struct silt_error *e)
{
    struct silt_build *b = silt_outer(w, struct silt_build, sweep);
    struct silt_sandbox *s = silt_registry_find(b->registry, silt_slice_of(b->work.id));
    (void)e;
    if (swept != NULL && swept->left == 0) {
        unmount(b);
        return;
    }
    if (s != NULL)
        silt_sandbox_stop(s, "exit", "a step of a build is over");
    silt_build_need(b, &b->work, b->image, silt_build_network(b), unmount);
}

static void on_found(struct silt_sweep *w, const struct silt_found *f)
{
    (void)w;
    (void)f;
}

/* Ends processes that the command left running: they would run on in the next step and write while
 * files are sealed. Uses no program of the image, because the command may have replaced it. */
static void end_leftovers(struct silt_build *b)
{
    const struct silt_agent_sweep all = {.signal = SIGKILL};
    struct silt_sandbox *s = silt_registry_find(b->registry, silt_slice_of(b->work.id));
    b->sweep = (struct silt_sweep){.on_found = on_found, .on_done = on_swept};
    if (s == NULL || !silt_sweep_start(s, &all, &b->sweep))
        on_swept(&b->sweep, NULL, NULL);
}

static void on_run(struct silt_build *b)
{
    if (b->run.code == 0) {
        end_leftovers(b);
        return;
    }
    if (b->registry->without_network)
        silt_build_notice(
            b, "Commands of builds have no network on this machine; silt doctor says why");
    silt_build_say_failed(b, "the command", b->run.code);
}

/* In the arena: ARG variables, overridden by those of ENV. */
static silt_slice variables(struct silt_build *b)
{
    silt_auto_buf env;
    silt_buf_init(&env, SILT_IMAGE_CONFIG_MAX * 2);
    silt_env_merge(&env, b->args);
    silt_env_merge(&env, b->config.env);
    char *copy = silt_build_dup(b, silt_buf_slice(&env));
    return (silt_slice){copy, copy != NULL ? env.len : 0};
}

struct words {
    silt_slice items[SILT_BUILD_WORDS_MAX];
    size_t count;
};

/* The whole step is one heredoc. */
static bool is_script(const struct silt_docker_step *s)
{
    return s->heredoc_count == 1 && silt_slice_starts(s->rest, SILT_LIT("<<"))
           && s->rest.len <= s->heredocs[0].name.len + 5;
}

/* That heredoc, or the text followed by its heredocs, as a shell expects them. */
static silt_slice shell_text(struct silt_build *b, const struct silt_docker_step *s)
{
    silt_auto_buf text;
    silt_buf_init(&text, SILT_DOCKERFILE_MAX * 2);
    if (is_script(s))
        return s->heredocs[0].body;
    silt_buf_add(&text, s->rest);
    for (size_t i = 0; i < s->heredoc_count; i++) {
        silt_buf_add_byte(&text, '\n');
        silt_buf_add(&text, s->heredocs[i].body);
        silt_buf_add(&text, s->heredocs[i].name);
    }
    char *copy = silt_build_dup(b, silt_buf_slice(&text));
    return (silt_slice){copy, copy != NULL ? text.len : 0};
}

/* A script with a shebang becomes a file for this one command, outside the image. */
static void script_words(silt_slice body, struct words *w)
{
    static const char run[] =
        "f=$(mktemp -p /dev/shm) && printf %s \"$1\" > \"$f\" && chmod 755 -- \"$f\" || exit\n"
        "\"$f\"; code=$?; rm -f -- \"$f\"; exit $code\n";
    const silt_slice items[] = {SILT_LIT("/bin/sh"), SILT_LIT("-c"), silt_slice_of(run),
                                SILT_LIT("silt-run"), body};
    memcpy(w->items, items, sizeof(items));
    w->count = SILT_COUNT(items);
}

static bool run_words(struct silt_build *b, const struct silt_docker_step *s, struct words *w)
{
    static const silt_slice shell[] = {{"/bin/sh", 7}, {"-c", 2}};
    bool own = b->config.shell.count > 0;
    const silt_slice *items = s->json ? s->words : own ? b->config.shell.items : shell;
    size_t count = s->json ? s->word_count : own ? b->config.shell.count : SILT_COUNT(shell);
    struct silt_error e;
    if (is_script(s) && silt_slice_starts(s->heredocs[0].body, SILT_LIT("#!"))) {
        script_words(s->heredocs[0].body, w);
        return true;
    }
    if (count == 0 || count >= SILT_BUILD_WORDS_MAX) {
        (void)silt_fail(&e, SILT_LIMIT, "Dockerfile line %u: RUN with %zu words, 1 to %d", s->line,
                        count, SILT_BUILD_WORDS_MAX - 1);
        silt_build_fail(b, &e);
        return false;
    }
    memcpy(w->items, items, count * sizeof(silt_slice));
    w->count = count;
    if (!s->json)
        w->items[w->count++] = shell_text(b, s);
    return w->items[w->count - 1].data != NULL;
}

static void start_run(struct silt_build *b)
{
    const struct silt_docker_step *s = silt_build_step_of(b);
    struct words w;
    if (!run_words(b, s, &w))
        return;
    struct silt_build_command c = {.box = &b->work,
                                   .argv = w.items,
                                   .argc = w.count,
                                   .env = variables(b),
                                   .cwd = b->config.workdir,
                                   .user = b->config.user};
    b->next = on_run;
    (void)silt_build_execute(b, &b->run, &c);
}

enum silt_net_mode silt_build_network(const struct silt_build *b)
{
    if (b->options.network != SILT_NET_DEFAULT)
        return b->options.network;
    return b->registry->without_network ? SILT_NET_DEFAULT : SILT_NET_PUBLIC;
}

/* For this RUN. */
static enum silt_net_mode step_network(const struct silt_build *b)
{
    bool none = silt_slice_eq(silt_docker_flag(silt_build_step_of(b), SILT_LIT("network")),
                              SILT_LIT("none"));
    return none ? SILT_NET_NONE : silt_build_network(b);
}

static bool check_flags(struct silt_build *b, const struct silt_docker_step *s)
{
    struct silt_error e;
    for (size_t i = 0; i < s->flag_count; i++) {
        const struct silt_docker_flag *f = &s->flags[i];
        bool network = silt_slice_eq(f->name, SILT_LIT("network"));
        if (silt_slice_eq(f->name, SILT_LIT("mount"))
            || (network
                && (silt_slice_eq(f->value, SILT_LIT("default"))
                    || silt_slice_eq(f->value, SILT_LIT("none")))))
            continue;
        if (network)
            (void)silt_fail(&e, SILT_INVALID,
                            "Dockerfile line %u: RUN --network is none or default: this machine's "
                            "own is for no command of a build",
                            s->line);
        else
            (void)silt_fail(&e, SILT_INVALID, "Dockerfile line %u: RUN --%.*s is not supported",
                            s->line, f->name.len > 80 ? 80 : (int)f->name.len, f->name.data);
        silt_build_fail(b, &e);
        return false;
    }
    return true;
}

static void on_turned(struct silt_network_change *c, const struct silt_error *e)
{
    struct silt_build *b = silt_outer(c, struct silt_build, turning);
    if (e != NULL)
        silt_build_fail(b, e);
    else
        start_run(b);
}

/* The stage's sandbox may be in another mode, from an earlier RUN or from its start. Without a
 * network there is nothing to switch. */
static void turn_network(struct silt_build *b)
{
    struct silt_sandbox *s = silt_registry_find(b->registry, silt_slice_of(b->work.id));
    enum silt_net_mode mode = step_network(b);
    if (s == NULL || s->row.network == mode
        || (b->registry->without_network && s->row.network != SILT_NET_PUBLIC)) {
        start_run(b);
        return;
    }
    b->turning = (struct silt_network_change){.mode = mode, .on_done = on_turned};
    silt_network_change(s, &b->turning);
}

static void mount_and_run(struct silt_build *b)
{
    silt_build_mount(b, turn_network);
}

static void look_up(struct silt_build *b)
{
    struct words w;
    silt_slice parts[SILT_BUILD_WORDS_MAX + 1 + SILT_BUILD_MOUNT_PARTS_MAX];
    if (!run_words(b, silt_build_step_of(b), &w))
        return;
    memcpy(parts, w.items, w.count * sizeof(silt_slice));
    parts[w.count++] = b->args;
    w.count += silt_build_mount_parts(b, parts + w.count);
    silt_build_hash(b, step_network(b) == SILT_NET_NONE ? "run alone" : "run", parts, w.count);
    if (!b->over && !silt_build_hit(b))
        silt_build_need(b, &b->work, b->image, silt_build_network(b), mount_and_run);
}

void silt_build_run_step(struct silt_build *b, const struct silt_docker_step *s)
{
    if (check_flags(b, s) && silt_build_read_mounts(b, s))
        silt_build_hash_mounts(b, look_up);
}

static void on_made(struct silt_build *b)
{
    if (b->run.code != 0)
        silt_build_say_failed(b, "WORKDIR", b->run.code);
    else
        silt_build_seal(b);
}

/* Directories it creates belong to the USER; existing ones stay unchanged. */
static const char workdir_script[] =
    "p=$1 new=; while [ ! -e \"$p\" ]; do new=$p p=$(dirname -- \"$p\"); done; mkdir -p -- \"$1\" "
    "|| exit; [ -n \"$new\" ] || exit 0\n"
    "u=${2%%:*}; case $2 in *:*) g=${2#*:};; *[!0-9]*) g=$(id -g -- \"$u\") || exit;; *) g=$u;; "
    "esac\n"
    "chown -R -- \"$u:$g\" \"$new\"\n";

static void make_workdir(struct silt_build *b)
{
    const silt_slice plain[] = {SILT_LIT("mkdir"), SILT_LIT("-p"), SILT_LIT("--"),
                                b->config.workdir};
    const silt_slice owned[] = {
        SILT_LIT("/bin/sh"), SILT_LIT("-c"),    silt_slice_of(workdir_script),
        SILT_LIT("silt"),    b->config.workdir, b->config.user};
    bool own = b->config.user.len > 0;
    struct silt_build_command c = {.box = &b->work,
                                   .argv = own ? owned : plain,
                                   .argc = own ? SILT_COUNT(owned) : SILT_COUNT(plain)};
    b->next = on_made;
    (void)silt_build_execute(b, &b->run, &c);
}

void silt_build_workdir(struct silt_build *b, const struct silt_docker_step *s)
{
    silt_slice path = silt_build_expand(b, s->rest);
    if (path.data != NULL)
        path = silt_build_path(b, path);
    if (path.data == NULL)
        return;
    b->config.workdir = path;
    silt_build_hash(b, b->config.user.len > 0 ? "workdir of" : "workdir", &path, 1);
    if (!b->over && !silt_build_hit(b))
        silt_build_need(b, &b->work, b->image, silt_build_network(b), make_workdir);
}
