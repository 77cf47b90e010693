/* SPDX-License-Identifier: Apache-2.0 */
/* siltd: faces the network and has no privileges. Everything it may touch came as a descriptor from
 * silt-super. If it dies, nothing is lost: the next siltd takes over every sandbox. */
#include "api/core/api.h"
#include "api/engine/engine.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"
#include "daemon/confine.h"
#include "sandbox/context/context.h"
#include "sandbox/facets.h"
#include "sandbox/network/network.h"
#include "sandbox/preview/preview_channel.h"
#include "wire/super.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { DRAIN_MS = 4000, WORKERS = 2, PARSERS = 2, WRITE_TIMEOUT_MS = 60000 };

struct daemon {
    struct silt_config config;
    struct silt_loop loop;
    struct silt_registry registry;
    struct silt_api api;
    struct silt_engine engine;
    struct silt_watch super;
    struct silt_watch signals;
    struct silt_super_pulse *pulse; /* shared with silt-super */
    struct silt_timer beat;
    bool stopping;
    char token[SILT_TOKEN_MAX + 1];
};

static int read_token(struct daemon *d, struct silt_error *e)
{
    ssize_t n = pread(SILT_SUPER_FD_TOKEN, d->token, SILT_TOKEN_MAX, 0);
    if (n < 0)
        return silt_fail_errno(e, "read the token file");
    d->token[n] = 0;
    d->token[strcspn(d->token, "\r\n")] = 0;
    if (strlen(d->token) < 16)
        return silt_fail(e, SILT_INVALID, "the token is shorter than 16 characters");
    (void)close(SILT_SUPER_FD_TOKEN);
    d->api.token = silt_slice_of(d->token);
    return 0;
}

static int serve(struct daemon *d, struct silt_error *e)
{
    struct silt_http_limits limits = {
        .connections = d->config.http_connections,
        .body_max =
            (uint64_t)64 << 30, /* for images; every other route accepts SILT_BODY_MAX at most */
        .head_timeout_ms = d->config.http_head_timeout_ms,
        .body_timeout_ms = d->config.http_body_timeout_ms,
        .idle_timeout_ms = d->config.http_idle_timeout_ms,
        .write_timeout_ms = WRITE_TIMEOUT_MS,
    };
    struct silt_http_hooks hooks = {
        .on_request = silt_api_on_request,
        .on_refusal = silt_api_on_refusal,
        .on_answered = silt_api_on_answered,
        .context = &d->api,
    };
    if (silt_http_server_open(&d->loop, SILT_SUPER_FD_LISTEN, &limits, &hooks, &d->api.server, e)
        < 0)
        return -1;
    if (d->engine.all != NULL && silt_engine_open(&d->engine, SILT_SUPER_FD_ENGINE, &limits, e) < 0)
        return -1;
    struct silt_super_note note = {.type = SILT_SUPER_READY};
    struct silt_parcel p = {.data = &note, .len = sizeof(note)};
    size_t images = 0;
    silt_list_each(it, &d->registry.images) images++;
    silt_log(SILT_LOG_INFO, "serving", "sandboxes=%zu images=%zu", d->registry.by_id.used, images);
    return silt_fd_send(d->super.fd, &p, e);
}

static void give_up(struct daemon *d, const struct silt_error *e)
{
    silt_log(SILT_LOG_ERROR, "end", "error=%s", e->text);
    silt_loop_stop(&d->loop);
}

static void on_note(struct daemon *d, const struct silt_super_note *note, struct silt_parcel *p)
{
    struct silt_error e;
    if (note->type == SILT_SUPER_KEPT && note->number == 0 && p->nfds == 2) {
        silt_registry_adopt(&d->registry, note->key, p->fds[0], p->fds[1]);
        p->nfds = 0;
    } else if (note->type == SILT_SUPER_KEPT && note->number != 0
               && p->nfds == SILT_SUPER_CONTEXT_FDS) {
        silt_contexts_adopt(&d->registry, note->key, note->number, p->fds);
        p->nfds = 0;
    } else if (note->type == SILT_SUPER_KEPT && note->number != 0) {
        silt_contexts_outlive(&d->registry, note->key, note->number);
    } else if (note->type == SILT_SUPER_KEPT_ALL && d->registry.recovering) {
        silt_registry_adopted_all(&d->registry);
        if (!d->stopping && serve(d, &e) < 0)
            give_up(d, &e);
    } else if (note->type == SILT_SUPER_LISTENER && d->engine.all != NULL) {
        silt_containers_on_listener(d->engine.all, note->number, note->key,
                                    p->nfds == 1 ? p->fds[0] : -1);
        p->nfds = p->nfds == 1 ? 0 : p->nfds;
    } else if (note->type == SILT_SUPER_PEER && note->key == SILT_SUPER_PAIR_PRIV && p->nfds == 1) {
        silt_priv_ask_replace(d->registry.priv, p->fds[0]);
        p->nfds = 0;
    } else if (note->type == SILT_SUPER_PEER && note->key == SILT_SUPER_PAIR_EGRESS
               && p->nfds == 1) {
        silt_egress_connect(d->registry.egress, p->fds[0]);
        p->nfds = 0;
    } else if (note->type == SILT_SUPER_PEER && note->key == SILT_SUPER_PAIR_PREVIEW
               && p->nfds == 1) {
        silt_preview_connect(d->registry.preview, p->fds[0]);
        p->nfds = 0;
    }
    silt_parcel_close(p);
}

static void on_super(struct silt_watch *w, uint32_t events)
{
    struct daemon *d = silt_outer(w, struct daemon, super);
    struct silt_super_note note;
    struct silt_error e;
    (void)events;
    for (;;) {
        struct silt_parcel p = {.data = &note, .len = sizeof(note)};
        int got = silt_fd_recv(w->fd, &p, &e);
        if (got < 0 && e.sys == EAGAIN)
            return;
        if (got == 0)
            (void)silt_fail(&e, SILT_GONE, "silt-super is gone");
        if (got > 0 && p.len != sizeof(note))
            got = silt_fail(&e, SILT_PROTOCOL, "silt-super sent %zu bytes", p.len);
        if (got <= 0) {
            give_up(d, &e);
            return;
        }
        on_note(d, &note, &p);
    }
}

static void on_drained(void *context)
{
    struct daemon *d = context;
    silt_idempotency_fini(&d->api);
    silt_loop_stop(&d->loop);
}

#ifdef SILT_UNSAFE_TESTS
/* For tests of the watchdog: SIGUSR1 makes the loop block on a byte that never comes, SIGUSR2 makes
 * it spin. */
static void stand_still(uint32_t signo)
{
    int ends[2];
    char byte;
    if (signo == SIGUSR1 && pipe2(ends, O_CLOEXEC) == 0)
        (void)!read(ends[0], &byte, 1);
    for (volatile bool stands = signo == SIGUSR2; stands;)
        ;
}
#else
static void stand_still(uint32_t signo)
{
    (void)signo;
}
#endif

static void on_signal(struct silt_watch *w, uint32_t events)
{
    struct daemon *d = silt_outer(w, struct daemon, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(w->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    stand_still(info.ssi_signo);
    if (d->stopping)
        return; /* a second signal: silt-super's timeout comes first */
    d->stopping = true;
    silt_log(SILT_LOG_INFO, "stopping", "signal=%u", info.ssi_signo);
    silt_api_stop_watches(&d->api);
    silt_api_stop_followers(&d->api);
    silt_api_part_with_guests(&d->api);
    silt_engine_drain(&d->engine, DRAIN_MS);
    if (d->api.server != NULL)
        silt_http_server_drain(d->api.server, DRAIN_MS, on_drained, d);
    else
        silt_loop_stop(&d->loop);
}

/* The heartbeat by which silt-super sees that the loop is turning. */
static void on_beat(struct silt_timer *t)
{
    struct daemon *d = silt_outer(t, struct daemon, beat);
    (void)atomic_fetch_add(&d->pulse->count, 1);
    silt_loop_after(&d->loop, &d->beat, SILT_SUPER_PULSE_MS);
}

static int start_pulse(struct daemon *d, struct silt_error *e)
{
    void *map =
        mmap(NULL, sizeof(*d->pulse), PROT_READ | PROT_WRITE, MAP_SHARED, SILT_SUPER_FD_PULSE, 0);
    if (map == MAP_FAILED)
        return silt_fail_errno(e, "map the pulse");
    (void)close(SILT_SUPER_FD_PULSE);
    d->pulse = map;
    d->api.watchdog_aborts = d->pulse->aborts;
    d->beat.on_time = on_beat;
    silt_loop_after(&d->loop, &d->beat, 0);
    return 0;
}

static int watch_signals(struct daemon *d, struct silt_error *e)
{
    sigset_t set;
    (void)sigemptyset(&set);
#ifdef SILT_UNSAFE_TESTS
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGUSR2);
#endif
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    d->signals = (struct silt_watch){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                                     .on_ready = on_signal};
    if (d->signals.fd < 0)
        return silt_fail_errno(e, "create signalfd");
    silt_loop_watch(&d->loop, &d->signals, EPOLLIN);
    return 0;
}

static bool is_on(const char *setting)
{
    return strcmp(setting, "on") == 0;
}

static void set_previews(struct silt_preview_settings *s, const struct silt_config *c)
{
    *s = (struct silt_preview_settings){.domain = c->preview_domain,
                                        .https = silt_config_previews_https(c),
                                        .short_tokens = is_on(c->preview_short_tokens),
                                        .old_form = is_on(c->preview_old_form),
                                        .paths = is_on(c->preview_paths),
                                        .localhost_host = is_on(c->preview_localhost_host)};
}

/* Must run before silt_confine, which forbids netlink sockets. */
static int set_engine(struct daemon *d, struct silt_error *e)
{
    struct silt_registry *r = &d->registry;
    if (strcmp(d->config.engine_socket, "off") == 0 || fcntl(SILT_SUPER_FD_ENGINE, F_GETFD) < 0)
        return 0;
    r->containers = silt_containers_new(r);
    r->containers->exit_delay_ms = d->config.engine_exit_delay_ms;
    r->containers->stop_after_ms = d->config.engine_stop_after_ms;
    r->containers->keep_s = d->config.engine_keep_s;
    r->containers->hold_ms = d->config.engine_hold_ms;
    r->containers->max_instances = is_on(d->config.engine_max_instances);
    silt_engine_init(&d->engine, &d->api, r->containers);
    return silt_sock_diag_open(&r->containers->diag, e);
}

/* Must run before siltd serves: reading a file may block. */
static int read_authorities(struct daemon *d, struct silt_error *e)
{
    static char text[SILT_AUTHORITIES_MAX];
    const char *path = d->config.images_authorities;
    silt_auto_fd fd = path[0] != 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    size_t len = 0;
    if (path[0] == 0)
        return 0;
    while (fd >= 0 && len < sizeof(text)) {
        ssize_t n = read(fd, text + len, sizeof(text) - len);
        if (n < 0)
            break;
        if (n == 0) {
            d->registry.settings.authorities = (silt_slice){text, len};
            return 0;
        }
        len += (size_t)n;
    }
    if (len == sizeof(text))
        return silt_fail(e, SILT_LIMIT, "setting images.authorities: more than %d bytes",
                         SILT_AUTHORITIES_MAX - 1);
    return silt_fail_errno(e, "setting images.authorities: read %.300s", path);
}

static int build(struct daemon *d, struct silt_error *e)
{
    struct silt_registry *r = &d->registry;
    char store_path[sizeof(d->config.state) + 16];
    (void)snprintf(store_path, sizeof(store_path), "%s/db/silt.db", d->config.state);
    (void)snprintf(r->settings.image, sizeof(r->settings.image), "%s", d->config.image);
    r->settings.image_map = d->config.images_map;
    r->settings.pull_timeout_s = d->config.images_pull_timeout;
    r->settings.pull_silence_s = d->config.images_pull_silence;
    r->settings.pull_max = d->config.images_pull_max;
    r->settings.insecure = d->config.images_insecure;
    r->settings.build_steps = d->config.build_cache;
    r->settings.build_timeout_s = d->config.build_step_timeout;
    r->settings.build_context_max = d->config.build_context_max;
    (void)snprintf(r->settings.type, sizeof(r->settings.type), "%s", d->config.type);
    r->settings.slots = d->config.ids_count;
    r->settings.sleep_after_s = d->config.sleep_after_s;
    r->settings.stop_after_s = d->config.stop_after_s;
    r->settings.ready = d->config.pool_sandboxes;
    r->settings.output_max = d->config.interpreter_output_max;
    r->settings.spares = d->config.interpreter_spares;
    r->facets = &silt_facets;
    r->settings.spare_idle_ms = (int64_t)d->config.interpreter_spare_idle * 1000;
    r->settings.zygotes = d->config.interpreter_zygotes;
    r->settings.agent_deadline_ms = d->config.agent_deadline_ms;
    set_previews(&r->settings.preview, &d->config);
    silt_disk_pool_init(&r->pool, d->config.run);
    silt_tcp_memory_init(&r->tcp_memory, d->config.run);
    r->loop = &d->loop;
    r->super = SILT_SUPER_FD_CHANNEL;
    d->api.registry = r;
    d->api.loop = &d->loop;
    d->api.cors_origins = d->config.cors_origins;
    d->api.git_local_remotes = strcmp(d->config.git_local_remotes, "on") == 0;
    d->api.sandbox_metrics = strcmp(d->config.metrics_sandboxes, "on") == 0;
    silt_api_init(&d->api);
    struct silt_network_settings network = {.mode = d->config.network_mode,
                                            .allow = d->config.network_allow,
                                            .open = d->config.network_open};
    r->without_network = strcmp(d->config.network, "off") == 0;
    if (silt_network_read_settings(&r->settings, &network, e) < 0 || silt_loop_open(&d->loop, e) < 0
        || watch_signals(d, e) < 0 || start_pulse(d, e) < 0 || read_token(d, e) < 0
        || set_engine(d, e) < 0 || read_authorities(d, e) < 0
        || silt_store_open(store_path, &r->store, e) < 0
        || silt_registry_restore(r, SILT_SUPER_FD_PRIV, e) < 0
        || silt_worker_open(&d->loop, WORKERS, &r->worker, e) < 0
        || silt_worker_open(&d->loop, PARSERS, &r->parsers, e) < 0
        || silt_priv_ask_open(&d->loop, SILT_SUPER_FD_PRIV, &r->priv, e) < 0
        || silt_registry_open(r, e) < 0 || silt_confine(e) < 0)
        return -1;
    d->super = (struct silt_watch){.fd = SILT_SUPER_FD_CHANNEL, .on_ready = on_super};
    if (silt_fd_nonblock(d->super.fd, e) < 0)
        return -1;
    silt_loop_watch(&d->loop, &d->super, EPOLLIN);
    return 0;
}

int main(int argc, char **argv)
{
    static struct daemon d;
    struct silt_error e = {0};
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0,
                0); /* tokens and keys of authorities must not end up in a core file */
    if (silt_config_load(argc, argv, &d.config, &e) < 0) {
        (void)fprintf(stderr, "siltd: %s\n", e.text);
        return 2;
    }
    silt_log_open("siltd", d.config.log_level);
    if (build(&d, &e) < 0 || silt_loop_run(&d.loop, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "end", "error=%s", e.text);
        return 1;
    }
    silt_log_flush();
    silt_engine_free(&d.engine);
    silt_registry_close(&d.registry);
    silt_worker_close(d.registry.worker);
    silt_worker_close(d.registry.parsers);
    silt_store_close(d.registry.store);
    return 0;
}
