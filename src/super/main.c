/* SPDX-License-Identifier: Apache-2.0 */
/* silt-super: the program that starts an instance. Prepares directories, locks, token, pool and
 * listening sockets, then keeps silt-priv and siltd running. Runs as root with one thread. */
#include "base/own.h"
#include "engine/network/gateway.h"
#include "engine/storage/pool.h"
#include "super/certificate.h"
#include "super/listen.h"
#include "super/mounts.h"
#include "super/instance_dirs.h"
#include "super/super.h"
#include "super/token.h"
#include "super/test_switch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static int prepare(const struct silt_config *c, struct silt_exec_helper *starter,
                   struct silt_error *e)
{
    if (geteuid() != 0)
        return silt_fail(e, SILT_DENIED, "silt-super must be started as root");
    (void)umask(0022);
    if (silt_without_check(e) < 0 || raise_files(c, e) < 0
        || silt_instance_dirs_user(c, &starter->uid, &starter->gid, e) < 0
        || silt_instance_dirs_proxy_user(c, starter->uid, &starter->proxy, e) < 0
        || silt_instance_dirs_directories(c, starter->uid, starter->gid, e) < 0
        || silt_instance_dirs_lock(c, e) < 0 || silt_token_prepare(c->token_file, e) < 0
        || silt_certificate_check(c, e) < 0)
        return -1;
    silt_instance_dirs_untell(c, "pool");
    silt_instance_dirs_untell(c, "address"); /* left by an instance that was killed */
    silt_instance_dirs_untell(c, "preview-address");
    silt_instance_dirs_untell(c, "preview-certificate");
    return silt_mounts_leave(c, e) < 0 ? -1 : silt_pool_mount(c->state, c->disk_pool, e);
}

/* Without it sandboxes still run, with loopback only. */
static void open_gate(const struct silt_config *c, struct silt_gateway *gate)
{
    struct silt_gateway_config config = {.instance = c->instance,
                                         .pool4 = c->network_ipv4,
                                         .pool6 = c->network_ipv6,
                                         .open = c->network_open,
                                         .run = c->run,
                                         .block = c->ids_base / SILT_CONFIG_BLOCK_IDS,
                                         .connections = c->network_connections,
                                         .connections_all = c->network_connections_all};
    struct silt_error e;
    *gate = (struct silt_gateway){.ns = -1, .log = -1};
    if (strcmp(c->network, "off") == 0)
        silt_uplink_clear_old(c->instance, config.block, c->run);
    else if (silt_gateway_open(gate, &config, &e) < 0)
        silt_log(SILT_LOG_WARN, "super.no_network", "error=\"%s\"", e.text);
}

/* The programs get the domain that clients really see, so this comes before they are started. */
static int listen_for_previews(struct silt_config *c, int *ret_fd, char ret_text[SILT_LISTEN_TEXT],
                               struct silt_error *e)
{
    *ret_text = 0;
    if (strcmp(c->preview_listen, "off") == 0)
        return 0;
    if (silt_listen_open(c->preview_listen, c->preview_certificate[0] != 0, ret_fd, ret_text, e)
        < 0)
        return silt_because(e, "setting preview.listen");
    if (c->preview_domain[0] == 0)
        (void)snprintf(c->preview_domain, sizeof(c->preview_domain), "%slocalhost%s",
                       c->preview_certificate[0] != 0 ? "silt." : "", strrchr(ret_text, ':'));
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

static int run(struct silt_config *c, struct silt_exec_helper *starter, struct silt_gateway *gate,
               int *ret_status, struct silt_error *e)
{
    char address[SILT_LISTEN_TEXT], preview_address[SILT_LISTEN_TEXT], pid[16];
    silt_auto_fd listen = -1, preview = -1, engine = -1;
    if (hold_signals(e) < 0 || adopt(e) < 0
        || listen_for_previews(c, &preview, preview_address, e) < 0
        || listen_for_engine(c, &engine, e) < 0 || silt_exec_helper_open(starter, e) < 0
        || silt_listen_open(c->listen, false, &listen, address, e) < 0)
        return -1;
    (void)snprintf(pid, sizeof(pid), "%d\n", getpid());
    if (silt_instance_dirs_tell(c, "pid", pid, e) < 0)
        return -1;
    struct silt_super_birth birth = {.config = c,
                                     .starter = starter,
                                     .listen = listen,
                                     .address = address,
                                     .preview = preview,
                                     .preview_address = preview_address,
                                     .engine = engine,
                                     .gate = gate};
    int got = silt_super_run(&birth, ret_status, e);
    silt_instance_dirs_untell(c, "address");
    silt_instance_dirs_untell(c, "preview-address");
    silt_instance_dirs_untell(c, "pid");
    if (engine >= 0)
        (void)unlink(c->engine_socket);
    silt_instance_dirs_unlock(c);
    return got;
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

int main(int argc, char **argv)
{
    static struct silt_config config;
    static struct silt_gateway gate = {.ns = -1, .log = -1};
    struct silt_exec_helper starter = {.config = &config, .channel = -1};
    struct silt_error e;
    int status = EXIT_FAILURE;
    if (silt_config_load(argc, argv, &config, &e) < 0) {
        (void)fprintf(stderr, "silt-super: %s\n", e.text);
        return EXIT_SETTINGS;
    }
    if (config.help)
        (void)puts("silt-super [--name=value...]: runs an instance of Silt in the foreground.\n");
    if (config.help)
        silt_config_help(stdout);
    if (config.reference)
        silt_config_reference(stdout);
    if (config.version)
        (void)puts("silt-super " SILT_VERSION);
    if (config.help || config.reference || config.version)
        return EXIT_SUCCESS;
    silt_log_open("silt-super", config.log_level);
    int done = prepare(&config, &starter, &e);
    if (done == 0) {
        open_gate(&config, &gate);
        done = run(&config, &starter, &gate, &status, &e);
    }
    if (done < 0) {
        silt_log(SILT_LOG_ERROR, "super.failed", "error=\"%s\"", e.text);
        status = exit_status(&e);
    }
    silt_gateway_close(&gate);
    /* last: it shares our mount namespace, which ends with the two of us */
    silt_exec_helper_close(&starter);
    return status;
}
