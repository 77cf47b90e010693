/* SPDX-License-Identifier: Apache-2.0 */
/* silt-super: the program that starts an instance. Prepares directories, locks, token, pool and
 * listening sockets, then keeps silt-priv and siltd running. Runs as root with one thread. */
#include "base/own.h"
#include "engine/network/gateway.h"
#include "engine/storage/pool.h"
#include "super/certificate.h"
#include "super/handover.h"
#include "super/listen.h"
#include "super/mounts.h"
#include "super/instance_dirs.h"
#include "super/reload.h"
#include "super/super.h"
#include "super/token.h"
#include "super/test_switch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* siltd and silt-proxy inherit the limit. Without CAP_SYS_RESOURCE (in a container) the hard limit
 * cannot be raised, and if it is too low no program starts: reported here, once. */
static int raise_files(const struct silt_config *c, struct silt_error *e)
{
    struct rlimit files;
    rlim_t most = silt_config_files_most(c), least = silt_config_files_least(c);
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return silt_fail_errno(e, "read the limit of open files");
    struct rlimit more = {.rlim_cur = most, .rlim_max = most};
    if (files.rlim_max < most && setrlimit(RLIMIT_NOFILE, &more) == 0)
        return 0;
    if (files.rlim_max < least)
        return silt_fail(e, SILT_LIMIT,
                         "at most %llu open files, at least %llu are needed: raise LimitNOFILE= in "
                         "the service unit, or `ulimit -Hn` before the start",
                         (unsigned long long)files.rlim_max, (unsigned long long)least);
    if (files.rlim_max < most)
        silt_log(SILT_LOG_WARN, "super.files", "open_files=%llu wanted=%llu",
                 (unsigned long long)files.rlim_max, (unsigned long long)most);
    files.rlim_cur = files.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &files) < 0
               ? silt_fail_errno(e, "raise the limit of open files")
               : 0;
}

static int hold_signals(struct silt_error *e)
{
    sigset_t set;
    struct sigaction hup;
    /* if our parent ignored it, the kernel would reap our children unseen */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGUSR2);
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN) /* nohup(1) */
        (void)sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return silt_fail_errno(e, "block signals");
    return 0;
}

/* Everything a dead silt-priv leaves behind becomes our child, is reaped, and dies with us. */
static int adopt(struct silt_error *e)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return silt_fail_errno(e, "become subreaper");
    return 0;
}

/* What an instance is made of before its programs start. */
struct instance {
    struct silt_config *config; /* borrowed */
    struct silt_exec_helper starter;
    struct silt_instance_locks locks;
    struct silt_gateway gate;
    int listen, preview, engine; /* -1: none */
    char address[SILT_LISTEN_TEXT], preview_address[SILT_LISTEN_TEXT];
};

static int find_users(struct instance *i, struct silt_error *e)
{
    return silt_instance_dirs_user(i->config, &i->starter.uid, &i->starter.gid, e) < 0
               ? -1
               : silt_instance_dirs_proxy_user(i->config, i->starter.uid, &i->starter.proxy, e);
}

static int prepare(struct instance *i, struct silt_error *e)
{
    const struct silt_config *c = i->config;
    if (raise_files(c, e) < 0 || find_users(i, e) < 0
        || silt_instance_dirs_directories(c, i->starter.uid, i->starter.gid, e) < 0
        || silt_instance_dirs_lock(c, &i->locks, e) < 0 || silt_token_prepare(c->token_file, e) < 0
        || silt_certificate_check(c, e) < 0)
        return -1;
    silt_instance_dirs_untell(c, "pool");
    silt_instance_dirs_untell(c, "address"); /* left by an instance that was killed */
    silt_instance_dirs_untell(c, "preview-address");
    silt_instance_dirs_untell(c, "preview-certificate");
    return silt_mounts_leave(c, e) < 0 ? -1 : silt_pool_mount(c->state, c->disk_pool, e);
}

static struct silt_gateway_config gate_config(const struct silt_config *c)
{
    return (struct silt_gateway_config){.instance = c->instance,
                                        .pool4 = c->network_ipv4,
                                        .pool6 = c->network_ipv6,
                                        .open = c->network_open,
                                        .run = c->run,
                                        .block = c->ids_base / SILT_CONFIG_BLOCK_IDS,
                                        .connections = c->network_connections,
                                        .connections_all = c->network_connections_all};
}

/* Without it sandboxes still run, with loopback only. */
static void open_gate(const struct silt_config *c, struct silt_gateway *gate)
{
    struct silt_gateway_config config = gate_config(c);
    struct silt_error e;
    if (strcmp(c->network, "off") == 0)
        silt_uplink_clear_old(c->instance, config.block, c->run);
    else if (silt_gateway_open(gate, &config, &e) < 0)
        silt_log(SILT_LOG_WARN, "super.no_network", "error=\"%s\"", e.text);
}

/* The programs get the domain that clients really see. */
static void name_previews(struct silt_config *c, const char *address)
{
    if (c->preview_domain[0] == 0)
        (void)snprintf(c->preview_domain, sizeof(c->preview_domain), "%slocalhost%s",
                       c->preview_certificate[0] != 0 ? "silt." : "", strrchr(address, ':'));
}

static int listen_for_previews(struct instance *i, struct silt_error *e)
{
    struct silt_config *c = i->config;
    if (strcmp(c->preview_listen, "off") == 0)
        return 0;
    if (silt_listen_open(c->preview_listen, c->preview_certificate[0] != 0, &i->preview,
                         i->preview_address, e)
        < 0)
        return silt_because(e, "setting preview.listen");
    name_previews(c, i->preview_address);
    return 0;
}

static int listen_for_engine(struct silt_config *c, int *ret_fd, struct silt_error *e)
{
    if (strcmp(c->engine_socket, "off") == 0)
        return 0;
    if (c->engine_socket[0] == 0
        && snprintf(c->engine_socket, sizeof(c->engine_socket), "%s/engine.sock", c->run)
               >= (int)sizeof(c->engine_socket))
        return silt_fail(e, SILT_INVALID, "setting run: too long for the engine socket below it");
    return silt_listen_unix(c->engine_socket, strcmp(c->engine_mode, "0660") == 0 ? 0660 : 0600,
                            c->engine_group, ret_fd, e);
}

/* A start. */
static int make(struct instance *i, struct silt_error *e)
{
    if (prepare(i, e) < 0)
        return -1;
    open_gate(i->config, &i->gate);
    if (listen_for_previews(i, e) < 0 || listen_for_engine(i->config, &i->engine, e) < 0
        || silt_listen_open(i->config->listen, false, &i->listen, i->address, e) < 0)
        return -1;
    silt_reload_offer(i->config);
    return 0;
}

/* A reload. */

static int fix_settings(struct silt_config *c, char **flags, struct silt_error *e)
{
    for (; *flags != NULL; flags++) {
        bool other;
        if (silt_config_fix(c, *flags, &other, e) < 0)
            return -1;
        if (other)
            silt_log(SILT_LOG_WARN, "reload.setting", "kept=\"%s\" until a restart", *flags + 2);
    }
    return 0;
}

/* What can be said before the programs of the running silt-super end. */
static int check(struct instance *i, struct silt_handover *h, struct silt_error *e)
{
    if (silt_handover_load(i->config->handover, h, e) < 0
        || fix_settings(i->config, h->settings, e) < 0)
        return -1;
    if (h->keep.count != i->config->ids_count)
        return silt_fail(e, SILT_PROTOCOL, "handover: %u slots, not %u", h->keep.count,
                         i->config->ids_count);
    return raise_files(i->config, e) < 0 || find_users(i, e) < 0
                   || silt_token_prepare(i->config->token_file, e) < 0
                   || silt_certificate_check(i->config, e) < 0
               ? -1
               : 0;
}

static int resume(struct instance *i, struct silt_handover *h, struct silt_error *e)
{
    struct silt_gateway_config config;
    if (check(i, h, e) < 0 || silt_handover_mark(h, FD_CLOEXEC, e) < 0)
        return -1;
    (void)close(i->config->handover);
    config = gate_config(i->config);
    i->gate.ns = h->gate;
    i->gate.log = h->gate_log;
    i->gate.nsockets = (int)h->gate_socket_count;
    memcpy(i->gate.sockets, h->gate_sockets, sizeof(h->gate_sockets));
    i->locks = h->locks;
    i->listen = h->listen;
    i->preview = h->preview;
    i->engine = h->engine;
    if ((i->gate.ns >= 0 && silt_gateway_resume(&i->gate, &config, e) < 0)
        || silt_listen_text(i->listen, false, i->address, e) < 0)
        return -1;
    if (i->preview < 0)
        return 0;
    if (silt_listen_text(i->preview, i->config->preview_certificate[0] != 0, i->preview_address, e)
        < 0)
        return -1;
    name_previews(i->config, i->preview_address);
    return 0;
}

/* Without its descriptors nothing of the earlier program can be continued: the sandboxes are ended
 * by the first silt-priv (--fresh), and keep their files. */
static int start_clean(struct instance *i, const struct silt_error *why, struct silt_error *e)
{
    char error[sizeof(why->text) + 64];
    (void)syscall(SYS_close_range, 3, ~0U, 0);
    i->gate = (struct silt_gateway){.ns = -1, .log = -1};
    i->listen = i->preview = i->engine = -1;
    (void)snprintf(error, sizeof(error), "started anew, without the running sandboxes: %s",
                   why->text);
    int made = make(i, e);
    silt_reload_tell(i->config, error);
    return made;
}

static int run(struct instance *i, struct silt_fd_store *kept, int *ret_status,
               struct silt_error *e)
{
    char pid[16];
    if (hold_signals(e) < 0 || adopt(e) < 0 || silt_exec_helper_open(&i->starter, e) < 0)
        return -1;
    (void)snprintf(pid, sizeof(pid), "%d\n", getpid());
    if (silt_instance_dirs_tell(i->config, "pid", pid, e) < 0)
        return -1;
    struct silt_super_birth birth = {.config = i->config,
                                     .starter = &i->starter,
                                     .listen = i->listen,
                                     .address = i->address,
                                     .preview = i->preview,
                                     .preview_address = i->preview_address,
                                     .engine = i->engine,
                                     .gate = &i->gate,
                                     .locks = &i->locks,
                                     .kept = kept};
    int got = silt_super_run(&birth, ret_status, e);
    silt_instance_dirs_untell(i->config, "address");
    silt_instance_dirs_untell(i->config, "preview-address");
    silt_instance_dirs_untell(i->config, "pid");
    silt_instance_dirs_untell(i->config, "reload");
    if (i->engine >= 0)
        (void)unlink(i->config->engine_socket);
    silt_instance_dirs_unlock(i->config);
    return got;
}

static int start_or_resume(struct instance *i, int *ret_status, struct silt_error *e)
{
    struct silt_handover h;
    struct silt_error why;
    if (geteuid() != 0)
        return silt_fail(e, SILT_DENIED, "silt-super must be started as root");
    (void)umask(0022);
    if (silt_without_check(e) < 0)
        return -1;
    if (i->config->check) {
        *ret_status = EXIT_SUCCESS;
        return check(i, &h, e) < 0 ? -1 : silt_exec_helper_find(e);
    }
    if (i->config->handover == 0)
        return make(i, e) < 0 ? -1 : run(i, NULL, ret_status, e);
    if (resume(i, &h, &why) == 0)
        return run(i, &h.keep, ret_status, e);
    return start_clean(i, &why, e) < 0 ? -1 : run(i, NULL, ret_status, e);
}

/* Errors that a retry would not fix; the unit has RestartPreventExitStatus= for it. What the kernel
 * refuses now, for example for lack of memory, may succeed later. */
enum { EXIT_SETTINGS = 2 };

static int exit_status(const struct silt_error *e)
{
    if (e->sys != 0)
        return EXIT_FAILURE;
    return e->code == SILT_INVALID || e->code == SILT_LIMIT ? EXIT_SETTINGS : EXIT_FAILURE;
}

static int ask_for_reload(const struct silt_config *c)
{
    struct silt_error e;
    if (silt_reload_request(c, &e) == 0)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "silt-super: reload: %s\n", e.text);
    return EXIT_FAILURE;
}

static bool prints(const struct silt_config *c)
{
    if (c->help)
        (void)puts("silt-super [--name=value...]: runs an instance of Silt in the foreground.\n"
                   "silt-super --reload: makes the running one continue with the programs that are "
                   "on the disk now.\n");
    if (c->help)
        silt_config_help(stdout);
    if (c->reference)
        silt_config_reference(stdout);
    if (c->manual)
        silt_config_manual(stdout);
    if (c->version)
        (void)puts("silt-super " SILT_VERSION);
    return c->help || c->reference || c->manual || c->version;
}

int main(int argc, char **argv)
{
    static struct silt_config config;
    static struct instance instance = {.config = &config,
                                       .starter = {.config = &config, .channel = -1},
                                       .gate = {.ns = -1, .log = -1},
                                       .listen = -1,
                                       .preview = -1,
                                       .engine = -1};
    struct silt_error e;
    int status = EXIT_FAILURE;
    if (silt_config_load(argc, argv, &config, &e) < 0) {
        (void)fprintf(stderr, "silt-super: %s\n", e.text);
        return EXIT_SETTINGS;
    }
    if (prints(&config))
        return EXIT_SUCCESS;
    if (config.reload)
        return ask_for_reload(&config);
    silt_log_open("silt-super", config.log_level);
    instance.starter.argv = argv;
    if (start_or_resume(&instance, &status, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "super.failed", "error=\"%s\"", e.text);
        status = exit_status(&e);
    }
    if (config.check)
        return status;
    silt_gateway_close(&instance.gate);
    /* last: it shares our mount namespace, which ends with the two of us */
    silt_exec_helper_close(&instance.starter);
    return status;
}
