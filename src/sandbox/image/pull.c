/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/image/pull.h"
#include "base/clock.h"
#include "sandbox/core/exec.h"
#include "sandbox/network/network.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/image/step_cache.h"
#include "sandbox/core/facet.h"
#include "sandbox/image/import.h"

#include <openssl/sha.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CAGE_MAX = 64 << 10,
    INPUT_MAX = SILT_AUTHORITIES_MAX + 2 * (SILT_PULL_USER_MAX + SILT_PULL_PASSWORD_MAX) + 4096,
    PIECE_MAX = 32 << 10,
    ERRORS_MAX = 400, /* per message */
    ID_SIZE = 40,
    LOOK_MS = 1000, /* how often the received bytes are checked */
    CPU_MILLI = 2000,
    PIDS = 256,
    MEMORY_BYTES = 1 << 30,
};

/* A request to silt-priv for the received bytes; it may outlive the pull. */
struct look {
    struct silt_pull *pull; /* NULL: finished */
};

enum state { PREPARING, STARTING, FETCHING, IMPORTING, OVER };

struct silt_pull {
    struct silt_link link;          /* in registry->pulls until finished */
    struct silt_registry *registry; /* borrowed */
    struct silt_pull_sink *sink;    /* borrowed; NULL: aborted */
    enum state state;
    struct silt_pull_source source;
    char name[SILT_IMAGE_NAME_SIZE];
    struct silt_timer begin; /* starts only after silt_pull_start has returned */
    struct silt_image *cage; /* held; NULL: not ready */
    char box[ID_SIZE];       /* the sandbox; empty: none */
    struct silt_waiter waiter;
    struct silt_exec *exec; /* NULL: nothing runs */
    struct silt_exec_sink exec_sink;
    struct silt_buf input; /* for stdin: credentials, wiped once sent */
    size_t sending;        /* bytes of it in flight */
    bool feeding;          /* its stdin is open */
    struct silt_timer silence;
    struct look *look;          /* NULL: no request; freed by its answer */
    uint64_t received;          /* bytes, at the last check */
    int64_t heard_ms;           /* when that number last changed */
    size_t uncredited;          /* output the sink had no room for */
    struct silt_buf errors;     /* tail of its stderr */
    struct silt_import *import; /* NULL: none, or finished */
    struct silt_import_sink import_sink;
    struct silt_grave grave;
};

/* Stdin: a line of credentials, then additional CAs. Both exist in memory only and are gone with
 * the sandbox. A password in the arguments would be readable by everybody on the machine. */
static const char fetch_text[] =
    "umask 077; mkdir -p /dev/shm/authorities || exit\n"
    "IFS= read -r auth; printf '%s\\n' \"$auth\" >/dev/shm/auth.json; unset auth\n"
    "cat >/dev/shm/authorities/more.crt; [ -s /dev/shm/authorities/more.crt ] || rm "
    "/dev/shm/authorities/more.crt\n"
    "command -v skopeo >/dev/null || { echo 'the program skopeo is not installed on this machine "
    "(Debian package skopeo)' >&2; exit 127; }\n"
    "exec skopeo --insecure-policy --override-os linux --override-arch amd64 copy --authfile "
    "/dev/shm/auth.json "
    "--src-cert-dir /dev/shm/authorities --src-tls-verify=\"$2\" \"docker://$1\" "
    "oci:/tmp/image:image\n";

/* Small files first, so that the reader knows at once what it gets. */
static const char pack_text[] =
    "exec tar -C /tmp/image --sort=name --owner=0 --group=0 -cf - oci-layout index.json blobs";

/* The machine's CAs and those its operator has added. */
static const char environment[] =
    "PATH=/usr/local/bin:/usr/bin:/bin\0HOME=/tmp\0TMPDIR=/tmp\0XDG_RUNTIME_DIR=/tmp\0"
    "SSL_CERT_DIR=/usr/share/ca-certificates/mozilla:/usr/local/share/ca-certificates";

/* ---- end ---- */

static void wipe(struct silt_buf *b)
{
    if (b->data != NULL)
        explicit_bzero(b->data, b->len);
    silt_buf_fini(b);
}

static void free_pull(struct silt_grave *g)
{
    struct silt_pull *p = silt_outer(g, struct silt_pull, grave);
    wipe(&p->input);
    silt_buf_fini(&p->errors);
    free(p);
}

static void drop_box(struct silt_pull *p)
{
    struct silt_sandbox *s =
        p->box[0] != 0 ? silt_registry_find(p->registry, silt_slice_of(p->box)) : NULL;
    p->box[0] = 0;
    if (s != NULL)
        silt_sandbox_destroy(s, NULL);
}

/* No callback follows. */
static void end(struct silt_pull *p)
{
    p->state = OVER;
    p->sink = NULL;
    silt_loop_cancel(p->registry->loop, &p->begin);
    silt_loop_cancel(p->registry->loop, &p->silence);
    if (p->look != NULL)
        p->look->pull = NULL;
    silt_waiter_leave(&p->waiter);
    if (p->exec != NULL)
        silt_exec_leave(p->exec);
    p->exec = NULL;
    if (p->import != NULL)
        silt_import_abort(p->import);
    p->import = NULL;
    drop_box(p);
    if (p->cage != NULL)
        silt_image_release(p->cage);
    p->cage = NULL;
    silt_list_remove(&p->link);
    p->registry->pull_count--;
    silt_loop_bury(p->registry->loop, &p->grave);
}

static void fail(struct silt_pull *p, const struct silt_error *e)
{
    struct silt_pull_sink *sink = p->sink;
    struct silt_error copy = *e;
    if (p->state == OVER)
        return;
    end(p);
    sink->failed(sink, &copy);
}

void silt_pull_abort(struct silt_pull *p)
{
    if (p->state != OVER)
        end(p);
}

/* ---- commands ---- */

static void keep_error(struct silt_pull *p, silt_slice bytes)
{
    if (bytes.len > ERRORS_MAX)
        bytes = (silt_slice){bytes.data + bytes.len - ERRORS_MAX, ERRORS_MAX};
    if (p->errors.len + bytes.len > ERRORS_MAX)
        silt_buf_drop(&p->errors, p->errors.len + bytes.len - ERRORS_MAX);
    silt_buf_add(&p->errors, bytes);
}

/* One piece at a time: the agent accepts the next only after it has acknowledged the last. */
static void feed_on(struct silt_pull *p)
{
    if (p->exec == NULL || !p->feeding || p->sending > 0)
        return;
    p->sending = p->input.len < PIECE_MAX ? p->input.len : PIECE_MAX;
    p->feeding = p->sending > 0;
    silt_exec_stdin(p->exec, (silt_slice){p->input.data, p->sending}, !p->feeding);
}

static void on_stdin_taken(struct silt_exec_sink *sink, uint64_t n, bool closed)
{
    struct silt_pull *p = silt_outer(sink, struct silt_pull, exec_sink);
    (void)n;
    if (p->input.data != NULL)
        explicit_bzero(p->input.data, p->sending);
    silt_buf_drop(&p->input, p->sending);
    p->sending = 0;
    p->feeding = p->feeding && !closed;
    feed_on(p);
}

static void credit(struct silt_pull *p)
{
    size_t n = p->uncredited;
    p->uncredited = 0;
    if (n > 0 && p->exec != NULL)
        silt_exec_credit(p->exec, n);
}

static void on_output(struct silt_exec_sink *sink, int stream, silt_slice bytes)
{
    struct silt_pull *p = silt_outer(sink, struct silt_pull, exec_sink);
    bool full = false;
    p->uncredited += bytes.len;
    if (stream == 2) {
        keep_error(p, bytes);
    } else if (p->state == FETCHING) {
        p->sink->output(p->sink, bytes);
        full = p->sink->full(p->sink);
    } else if (p->import != NULL) {
        full = !silt_import_feed(p->import, bytes);
    }
    /* Includes what was held back: no event follows if this call finds room. */
    if (!full)
        credit(p);
}

void silt_pull_resume(struct silt_pull *p)
{
    if (p->state == FETCHING)
        credit(p);
}

/* ---- skopeo's errors ---- */

/* `time="…" level=fatal msg="…"`: returns the text of the last msg, with its quotes and escapes. */
static silt_slice reason(struct silt_pull *p)
{
    silt_slice s = silt_buf_slice(&p->errors), mark = SILT_LIT("msg=\"");
    const char *at = NULL;
    while (s.len > 0 && (unsigned char)s.data[s.len - 1] <= ' ')
        s.len--;
    for (size_t i = 0; i + mark.len < s.len; i++)
        if (memcmp(s.data + i, mark.data, mark.len) == 0)
            at = s.data + i + mark.len;
    silt_error_show(p->errors.data, s.len);
    if (at == NULL)
        return s;
    size_t len = s.len - (size_t)(at - s.data);
    return (silt_slice){at, at[len - 1] == '"' ? len - 1 : len};
}

static bool says(silt_slice text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static enum silt_code code_for(silt_slice why)
{
    if (says(why, "no space left") || says(why, "disk quota exceeded"))
        return SILT_NO_SPACE;
    if (says(why, "unauthorized") || says(why, "authentication required")
        || says(why, "invalid username/password") || says(why, "denied"))
        return SILT_DENIED;
    if (says(why, "manifest unknown") || says(why, "name unknown") || says(why, "404 (Not Found)"))
        return SILT_NOT_FOUND;
    return SILT_INVALID;
}

static void command_failed(struct silt_pull *p, const struct silt_agent_end *by)
{
    struct silt_error e;
    silt_slice why = reason(p);
    const char *step = p->state == FETCHING ? "fetch" : "pack";
    if (by->flags & SILT_END_TIMEOUT)
        (void)silt_fail(&e, SILT_TIMEOUT,
                        "%s %s: not done after %u seconds (setting images.pull_timeout)", step,
                        p->source.address, p->registry->settings.pull_timeout_s);
    else if (by->flags & SILT_END_OOM)
        (void)silt_fail(&e, SILT_LIMIT, "%s %s: it needed more memory than %d MiB", step,
                        p->source.address, MEMORY_BYTES >> 20);
    else
        (void)silt_fail(&e, code_for(why), "%s %.100s: %.*s", step, p->source.address, (int)why.len,
                        why.len > 0 ? why.data : "");
    fail(p, &e);
}

/* ---- stalled registries ---- */

static void look_again(struct silt_pull *p)
{
    silt_loop_after(p->registry->loop, &p->silence, LOOK_MS);
}

/* The kernel limits its disk, but a client may also read data and discard it. */
static int judge(struct silt_pull *p, uint64_t received, struct silt_error *e)
{
    const struct silt_registry_settings *set = &p->registry->settings;
    int64_t now = silt_clock_ms();
    if (received != p->received || p->heard_ms == 0)
        p->heard_ms = now;
    p->received = received;
    if (received > set->pull_max + set->pull_max / 8) /* packet headers count, too */
        return silt_fail(e, SILT_LIMIT,
                         "fetch %s: more than %llu bytes came (setting images.pull_max)",
                         p->source.address, (unsigned long long)set->pull_max);
    if (now - p->heard_ms >= (int64_t)set->pull_silence_s * 1000)
        return silt_fail(
            e, SILT_TIMEOUT,
            "fetch %s: nothing came from the registry for %u seconds (setting images.pull_silence)",
            p->source.address, set->pull_silence_s);
    return 0;
}

static void on_counted(void *context, const struct silt_network_counts *counts,
                       const struct silt_error *why)
{
    struct look *look = context;
    struct silt_pull *p = look->pull;
    struct silt_error e;
    (void)why;
    free(look);
    if (p == NULL)
        return;
    p->look = NULL;
    if (p->state != FETCHING)
        return;
    if (judge(p, counts != NULL ? counts->link->received_bytes : p->received, &e) < 0)
        fail(p, &e);
    else
        look_again(p);
}

static void on_silence(struct silt_timer *t)
{
    struct silt_pull *p = silt_outer(t, struct silt_pull, silence);
    struct silt_sandbox *s = silt_registry_find(p->registry, silt_slice_of(p->box));
    if (p->state != FETCHING || s == NULL)
        return;
    p->look = calloc(1, sizeof(*p->look));
    if (p->look == NULL)
        abort();
    p->look->pull = p;
    silt_network_count(s, on_counted, p->look);
}

static void start_import(struct silt_pull *p);

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *by)
{
    struct silt_pull *p = silt_outer(sink, struct silt_pull, exec_sink);
    bool good = by->code == 0 && (by->flags & (SILT_END_TIMEOUT | SILT_END_NO_CWD)) == 0;
    p->exec = NULL;
    p->sending = p->uncredited = 0;
    if (!good)
        command_failed(p, by);
    else if (p->state == FETCHING)
        start_import(p);
    else if (p->import != NULL)
        silt_import_end(p->import); /* the sandbox is removed once everything is imported */
}

static void on_not_run(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct silt_pull *p = silt_outer(sink, struct silt_pull, exec_sink);
    p->exec = NULL;
    fail(p, e);
}

/* As user nobody: of the machine's /usr it sees what is world-readable. */
static void execute(struct silt_pull *p, const silt_slice *argv, size_t argc, bool input)
{
    struct silt_sandbox *s = silt_registry_find(p->registry, silt_slice_of(p->box));
    struct silt_error e;
    silt_auto_buf command;
    silt_buf_init(&command, SILT_COMMAND_MAX);
    for (size_t i = 0; i < argc; i++) {
        silt_buf_add(&command, argv[i]);
        silt_buf_add_byte(&command, 0);
    }
    p->exec_sink = (struct silt_exec_sink){.output = on_output,
                                           .stdin_taken = on_stdin_taken,
                                           .ended = on_ended,
                                           .failed = on_not_run};
    struct silt_exec_request q = {.mode = SILT_EXEC_PLAIN,
                                  .command = silt_buf_slice(&command),
                                  .cwd = SILT_LIT("/tmp"),
                                  .env = {environment, sizeof(environment)},
                                  .user = SILT_LIT("65534:65534"),
                                  .timeout_ms = p->registry->settings.pull_timeout_s * 1000,
                                  .flags = SILT_START_ARGV | (input ? SILT_START_STDIN : 0U)};
    bool good = s != NULL && s->state == SILT_SANDBOX_RUNNING && !command.broken;
    if (!good)
        (void)silt_fail(&e, SILT_GONE, "the sandbox of the pull has ended");
    p->feeding = input;
    silt_buf_clear(&p->errors);
    if (!good || silt_exec_start(s, NULL, &q, &p->exec_sink, &p->exec, &e) < 0)
        fail(p, &e);
}

/* ---- the image ---- */

static void on_drained(struct silt_import_sink *sink)
{
    credit(silt_outer(sink, struct silt_pull, import_sink));
}

static void on_imported(struct silt_import_sink *import_sink, const struct silt_image *image,
                        const char *name)
{
    struct silt_pull *p = silt_outer(import_sink, struct silt_pull, import_sink);
    struct silt_pull_sink *sink = p->sink;
    char copy[SILT_IMAGE_NAME_SIZE];
    p->import = NULL;
    (void)snprintf(copy, sizeof(copy), "%s", name);
    end(p);
    sink->done(sink, image, copy);
}

static void on_not_imported(struct silt_import_sink *sink, const struct silt_error *e)
{
    struct silt_pull *p = silt_outer(sink, struct silt_pull, import_sink);
    p->import = NULL;
    fail(p, e);
}

static void start_import(struct silt_pull *p)
{
    static const silt_slice argv[] = {
        {"/bin/sh", 7}, {"-c", 2}, {pack_text, sizeof(pack_text) - 1}};
    struct silt_import_options o = {.name = p->name, .format = SILT_FETCH_OCI};
    struct silt_error e;
    p->state = IMPORTING;
    p->sink->fetched(p->sink);
    p->import_sink = (struct silt_import_sink){
        .drained = on_drained, .done = on_imported, .failed = on_not_imported};
    if (silt_import_start(p->registry, &o, &p->import_sink, &p->import, &e) < 0)
        fail(p, &e);
    else
        execute(p, argv, SILT_COUNT(argv), false);
}

/* ---- the sandbox ---- */

static bool is_insecure(const struct silt_pull *p)
{
    silt_slice rest = silt_slice_of(p->registry->settings.insecure), one;
    while (rest.len > 0 && silt_slice_split(&rest, ',', &one))
        if (silt_slice_eq(silt_slice_trim(one), silt_slice_of(p->source.registry)))
            return true;
    return false;
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_pull *p = silt_outer(w, struct silt_pull, waiter);
    const silt_slice argv[] = {SILT_LIT("/bin/sh"),
                               SILT_LIT("-c"),
                               {fetch_text, sizeof(fetch_text) - 1},
                               SILT_LIT("silt"),
                               silt_slice_of(p->source.address),
                               is_insecure(p) ? SILT_LIT("false") : SILT_LIT("true")};
    if (s == NULL) {
        fail(p, e);
        return;
    }
    p->state = FETCHING;
    look_again(p);
    execute(p, argv, SILT_COUNT(argv), true);
    feed_on(p);
}

static void start_box(struct silt_pull *p)
{
    struct silt_registry *r = p->registry;
    struct silt_sandbox_options o = {.network = SILT_NET_PUBLIC,
                                     .labels = SILT_LIT("{\"silt.pull\":\"\"}")};
    char digest[8 + SILT_DIGEST_SIZE * 2] = "sha256:", random[17];
    struct silt_error e;
    p->state = STARTING;
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++)
        (void)snprintf(digest + 7 + i * 2, 3, "%02x", p->cage->row.digest[i]);
    o.image = silt_slice_of(digest);
    o.limits = (struct silt_priv_limits){.memory_bytes = MEMORY_BYTES,
                                         .disk_bytes = r->settings.pull_max,
                                         .cpu_milli = CPU_MILLI,
                                         .pids = PIDS};
    silt_id_random(random, 16);
    (void)snprintf(p->box, sizeof(p->box), "pull-%s", random);
    p->waiter.on_ready = on_ready;
    if (silt_registry_create(r, silt_slice_of(p->box), &o, &p->waiter, &e) == 0)
        return;
    p->box[0] = 0;
    fail(p, &e);
}

/* Cached like a build step: unlisted, and removed by `silt image prune`. */
static void on_cage(struct silt_import_sink *sink, const struct silt_image *image, const char *name)
{
    struct silt_pull *p = silt_outer(sink, struct silt_pull, import_sink);
    (void)name;
    p->import = NULL;
    p->cage = silt_image_by_digest(p->registry, image->row.digest);
    silt_image_hold(p->cage);
    silt_step_cache_put(p->registry, p->cage->row.digest, p->cage);
    start_box(p);
}

static void prepare(struct silt_timer *t)
{
    struct silt_pull *p = silt_outer(t, struct silt_pull, begin);
    struct silt_import_options o = {
        .unnamed = true, .format = SILT_FETCH_TAR, .host_usr = true, .config = "{}"};
    struct silt_error e;
    uint8_t digest[SILT_DIGEST_SIZE];
    silt_auto_buf tar;
    silt_buf_init(&tar, CAGE_MAX);
    silt_pull_cage(&tar);
    (void)SHA256((const unsigned char *)tar.data, tar.len, digest);
    struct silt_image *files = silt_image_by_digest(p->registry, digest);
    /* Use our own configuration, whatever image these files came with. */
    if (files != NULL && silt_image_derive(files, "{}", true, &p->cage, &e) < 0) {
        p->cage = NULL;
        fail(p, &e);
        return;
    }
    if (files != NULL) {
        silt_image_hold(p->cage);
        start_box(p);
        return;
    }
    p->import_sink = (struct silt_import_sink){
        .drained = on_drained, .done = on_cage, .failed = on_not_imported};
    if (silt_import_start(p->registry, &o, &p->import_sink, &p->import, &e) < 0) {
        fail(p, &e);
        return;
    }
    (void)silt_import_feed(p->import, silt_buf_slice(&tar));
    silt_import_end(p->import);
}

/* ---- start ---- */

static int check(const struct silt_registry *r, const struct silt_pull_options *o,
                 struct silt_error *e)
{
    if (r->pull_count >= SILT_PULLS_MAX)
        return silt_fail(e, SILT_LIMIT, "%d images are being pulled already", SILT_PULLS_MAX);
    if (r->without_network)
        return silt_fail(e, SILT_UNAVAILABLE,
                         "sandboxes of this machine have no network (setting network), so nothing "
                         "can be pulled");
    if (o->user.len > SILT_PULL_USER_MAX || o->password.len > SILT_PULL_PASSWORD_MAX
        || silt_slice_has_byte(o->user, ':'))
        return silt_fail(
            e, SILT_INVALID,
            "user name of more than %d bytes or with a colon, or password of more than %d",
            SILT_PULL_USER_MAX, SILT_PULL_PASSWORD_MAX);
    return 0;
}

int silt_pull_start(struct silt_registry *r, const struct silt_pull_options *o,
                    struct silt_pull_sink *sink, struct silt_pull **ret, struct silt_error *e)
{
    if (check(r, o, e) < 0)
        return -1;
    struct silt_pull *p = calloc(1, sizeof(*p));
    if (p == NULL)
        abort();
    *p = (struct silt_pull){.registry = r,
                            .sink = sink,
                            .source = *o->source,
                            .begin = {.on_time = prepare},
                            .silence = {.on_time = on_silence},
                            .grave = {.free = free_pull}};
    (void)snprintf(p->name, sizeof(p->name), "%s", o->name);
    silt_buf_init(&p->input, INPUT_MAX);
    silt_buf_init(&p->errors, 2 * ERRORS_MAX);
    silt_pull_credentials(&p->input, p->source.registry, o->user, o->password);
    silt_buf_add(&p->input, r->settings.authorities);
    silt_list_init(&p->waiter.link);
    silt_list_append(&r->pulls, &p->link);
    r->pull_count++;
    silt_loop_after(r->loop, &p->begin, 0);
    *ret = p;
    return 0;
}

static void sweep(struct silt_registry *r)
{
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        struct silt_sandbox *s = r->by_slot[i];
        if (s != NULL && strncmp(s->row.id, "pull-", 5) == 0 && s->row.labels != NULL
            && strcmp(s->row.labels, "{\"silt.pull\":\"\"}") == 0)
            silt_sandbox_destroy(s, NULL);
    }
}

const struct silt_facet silt_pull_facet = {.recovered = sweep};
