/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "wire/super.h"
#include "engine/storage/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BLOCK_IDS = 1 << 24, FIRST_BLOCK = 0x60, LAST_BLOCK = 0x7e };

static struct silt_error error;

const char *last_error(void)
{
    return error.text;
}

enum silt_code last_code(void)
{
    return error.code;
}

static _Noreturn void give_up(const char *why)
{
    printf("Bail out! %s: %s\n", why, strerror(errno));
    exit(1);
}

/* A run of commands of our own; no shell and no input of others. */
static int run(const char *const *args)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execvp(args[0], (char **)(uintptr_t)args);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* The locks are silt-super's own: no other instance of this machine has our ids. */
static uint32_t lock_ids(void)
{
    (void)mkdir("/run/silt-locks", 0755);
    for (uint32_t block = FIRST_BLOCK; block <= LAST_BLOCK; block++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/run/silt-locks/ids-%02x", block);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            return block * BLOCK_IDS;
        if (fd >= 0)
            (void)close(fd);
    }
    give_up("find free ids");
}

static void install(const struct world *w, const char *build, const char *from, const char *to)
{
    char source[512], target[512];
    (void)snprintf(source, sizeof(source), "%s/%s", build, from);
    (void)snprintf(target, sizeof(target), "%s/%s", w->programs, to);
    if (access(source, X_OK) == 0 && run((const char *[]){"cp", source, target, NULL}) != 0)
        give_up(source);
}

static void open_network(struct world *w)
{
    static char run_directory[128];
    (void)snprintf(run_directory, sizeof(run_directory), "%s/run", w->directory);
    struct silt_gateway_config c = {.instance = w->instance,
                                    .pool4 = "10.210.0.0/16",
                                    .pool6 = "fd73:696c:7400::/64",
                                    .open = "10.77.0.0/24, fd77::/64",
                                    .run = run_directory,
                                    .block = w->ids_base / BLOCK_IDS,
                                    .connections = CONNECTIONS};
    if (!internet_open(&w->internet))
        give_up("make an internet");
    if (silt_gateway_open(&w->gate, &c, &error) < 0 && error.code != SILT_UNAVAILABLE) {
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
}

void world_open(struct world *w, const char *build)
{
    char path[512];
    *w = (struct world){.super = -1, .siltd = -1, .zygotes = 2, .cgroup = "/sys/fs/cgroup"};
    (void)snprintf(w->directory, sizeof(w->directory), "/var/tmp/silt-engine-XXXXXX");
    if (mkdtemp(w->directory) == NULL)
        give_up("make a directory");
    (void)chmod(w->directory, 0755);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        give_up("make a mount namespace (are you root?)");
    w->ids_base = lock_ids();
    w->ids_images = 0x0ff00000;
    (void)snprintf(w->instance, sizeof(w->instance), "t%05d", getpid() % 100000);
    (void)snprintf(w->programs, sizeof(w->programs), "%s/programs", w->directory);
    static const char *const directories[] = {"programs", "state", "state/images", "run"};
    for (size_t i = 0; i < SILT_COUNT(directories); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", w->directory, directories[i]);
        if (mkdir(path, 0755) < 0)
            give_up(path);
    }
    open_network(w);
    install(w, build, "silt-priv", "silt-priv");
    install(w, build, "silt-fetch", "silt-fetch");
    install(w, build, "silt-proxy", "silt-proxy");
    install(w, build, "tests/unit/engine/puppet", "silt-init");
    (void)snprintf(path, sizeof(path), "%s/state", w->directory);
    if (silt_pool_mount(path, 1ULL << 30, &error) < 0) {
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    (void)world_image(w, IMAGE_PLAIN);
}

unsigned world_staging(const struct world *w, unsigned staging)
{
    return w->ids_base / BLOCK_IDS * SILT_STAGINGS_MAX + staging;
}

const char *world_image(struct world *w, unsigned number)
{
    static const char *const directories[] = {"",     "/dev", "/proc", "/sys",
                                              "/etc", "/tmp", "/usr",  "/usr/share"};
    static char path[512];
    char digest[65], sub[600];
    for (int i = 0; i < 32; i++)
        (void)snprintf(digest + 2 * i, 3, "%02x", number & 0xff);
    (void)snprintf(path, sizeof(path), "%s/state/images/%s", w->directory, digest);
    for (size_t i = 0; i < SILT_COUNT(directories); i++) {
        (void)snprintf(sub, sizeof(sub), "%s%s", path, directories[i]);
        if (mkdir(sub, 0755) < 0 || chown(sub, w->ids_images, w->ids_images) < 0)
            give_up(sub);
    }
    return path;
}

static void be_priv(const struct world *w, bool fresh, int super, int siltd)
{
    char program[128], state[128], run_dir[128], instance[64], base[64], count[64], images[64],
        cgroup[300], zygotes[64];
    (void)snprintf(program, sizeof(program), "%s/silt-priv", w->programs);
    (void)snprintf(state, sizeof(state), "--state=%s/state", w->directory);
    (void)snprintf(run_dir, sizeof(run_dir), "--run=%s/run", w->directory);
    (void)snprintf(instance, sizeof(instance), "--instance=%s", w->instance);
    (void)snprintf(base, sizeof(base), "--ids.base=%u", w->ids_base);
    (void)snprintf(count, sizeof(count), "--ids.count=%u", SLOTS);
    (void)snprintf(images, sizeof(images), "--ids.images=%u", w->ids_images);
    (void)snprintf(cgroup, sizeof(cgroup), "--cgroup=%s", w->cgroup);
    (void)snprintf(zygotes, sizeof(zygotes), "--interpreter.zygotes=%u", w->zygotes);
    const char *args[] = {program,
                          "--config=",
                          state,
                          run_dir,
                          instance,
                          base,
                          count,
                          images,
                          cgroup,
                          zygotes,
                          "--log.level=error",
                          fresh ? "--fresh" : NULL,
                          NULL};
    int a = fcntl(super, F_DUPFD, 10), b = fcntl(siltd, F_DUPFD, 10);
    int gate = w->gate.ns >= 0 ? fcntl(w->gate.ns, F_DUPFD, 10) : -1;
    if (a < 0 || b < 0 || dup2(a, 3) < 0 || dup2(b, 4) < 0 || (gate >= 0 && dup2(gate, 5) < 0))
        _exit(126);
    (void)close_range(gate >= 0 ? 6 : 5, ~0U, 0);
    (void)execv(program, (char **)(uintptr_t)args);
    _exit(127);
}

void world_start_priv(struct world *w, bool fresh)
{
    int super[2], siltd[2];
    if (silt_fd_pair(SOCK_SEQPACKET, super, &error) < 0
        || silt_fd_pair(SOCK_SEQPACKET, siltd, &error) < 0)
        give_up("make channels");
    w->priv = fork();
    if (w->priv == 0)
        be_priv(w, fresh, super[1], siltd[1]);
    (void)close(super[1]);
    (void)close(siltd[1]);
    silt_close_fd(&w->super);
    silt_close_fd(&w->siltd);
    w->super = super[0];
    w->siltd = siltd[0];
}

void world_end_priv(struct world *w)
{
    int status = 0;
    if (w->priv <= 0)
        return;
    (void)kill(w->priv, SIGTERM);
    (void)waitpid(w->priv, &status, 0);
    if (status != 0)
        printf("# silt-priv ended with status 0x%x\n", status);
    w->priv = 0;
}

void world_crash_priv(struct world *w)
{
    (void)kill(w->priv, SIGKILL);
    (void)waitpid(w->priv, NULL, 0);
    w->priv = 0;
    silt_close_fd(&w->super);
    silt_close_fd(&w->siltd);
}

void world_kill_workers(struct world *w)
{
    char path[64];
    char *list = NULL;
    size_t len;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", w->priv, w->priv);
    if (silt_fd_read_file(AT_FDCWD, path, 4096, &list, &len, &error) < 0)
        return;
    for (char *at = list; *at != 0;) {
        (void)kill((pid_t)strtol(at, &at, 10), SIGKILL);
        at += *at == ' ';
    }
    free(list);
}

void world_new_siltd(struct world *w)
{
    int siltd[2];
    struct silt_super_note note = {.type = SILT_SUPER_PEER};
    if (silt_fd_pair(SOCK_SEQPACKET, siltd, &error) < 0)
        give_up("make a channel");
    silt_close_fd(&w->siltd);
    struct silt_parcel p = {.data = &note, .len = sizeof(note), .fds = {siltd[1]}, .nfds = 1};
    if (silt_fd_send(w->super, &p, &error) < 0)
        give_up("tell of a new siltd");
    (void)close(siltd[1]);
    w->siltd = siltd[0];
}

void world_close(struct world *w)
{
    char path[128];
    world_end_priv(w);
    silt_close_fd(&w->super);
    silt_close_fd(&w->siltd);
    silt_gateway_close(&w->gate);
    internet_close(&w->internet);
    (void)snprintf(path, sizeof(path), "%s/state/pool", w->directory);
    (void)umount2(path, MNT_DETACH);
    if (run((const char *[]){"rm", "-rf", "--one-file-system", w->directory, NULL}) != 0)
        printf("# cannot delete %s\n", w->directory);
}

/* False: *ret tells why. */
static bool receive(struct world *w, struct silt_priv_answer *ret, struct silt_parcel *ret_fds)
{
    struct pollfd p = {.fd = w->siltd, .events = POLLIN};
    struct silt_error e;
    *ret = (struct silt_priv_answer){0};
    if (poll(&p, 1, 30000) <= 0) {
        (void)silt_fail(&ret->body.error, SILT_TIMEOUT, "no answer");
        return false;
    }
    if (silt_fd_recv(w->siltd, ret_fds, &e) <= 0) {
        *ret = (struct silt_priv_answer){0};
        (void)silt_fail(&ret->body.error, SILT_GONE, "silt-priv hung up");
        return false;
    }
    return true;
}

void ask(struct world *w, struct silt_priv_request *q, const int *fds, int nfds,
         struct silt_priv_answer *ret, struct silt_parcel *ret_fds)
{
    struct silt_parcel out = {.data = q, .len = sizeof(*q), .nfds = nfds};
    q->seq = ++w->seq;
    for (int i = 0; i < nfds; i++)
        out.fds[i] = fds[i];
    *ret = (struct silt_priv_answer){0};
    *ret_fds = (struct silt_parcel){.data = ret, .len = sizeof(*ret)};
    if (silt_fd_send(w->siltd, &out, &ret->body.error) < 0)
        return;
    while (receive(w, ret, ret_fds)
           && ret->seq != q->seq) { /* of a worker that died while sending */
        silt_parcel_close(ret_fds);
        *ret_fds = (struct silt_parcel){.data = ret, .len = sizeof(*ret)};
    }
}

bool tell(struct world *w, enum silt_priv_op op, uint32_t slot)
{
    struct silt_priv_request q = {.op = op, .slot = slot};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    ask(w, &q, NULL, 0, &a, &fds);
    silt_parcel_close(&fds);
    if (!a.ok)
        error = a.body.error;
    return a.ok;
}

const struct silt_priv_limits ordinary_limits = {
    .memory_bytes = 256 << 20, .disk_bytes = 64 << 20, .cpu_milli = 1000, .pids = 64};

struct silt_priv_request create_request(uint32_t slot, unsigned image, uint32_t flags)
{
    struct silt_priv_request q = {
        .op = SILT_PRIV_CREATE,
        .slot = slot,
        .body.create = {
            .limits = ordinary_limits, .flags = flags, .handles = 4, .hostname = "puppet"}};
    memset(q.body.create.digest, (int)image, SILT_DIGEST_SIZE);
    return q;
}

bool box_create_by(struct world *w, struct silt_priv_request *q, struct box *ret)
{
    int pair[2];
    struct silt_priv_answer a;
    struct silt_parcel fds;
    if (silt_fd_pair(SOCK_SEQPACKET, pair, &error) < 0)
        give_up("make a channel");
    ask(w, q, &pair[1], 1, &a, &fds);
    (void)close(pair[1]);
    if (a.ok && fds.nfds == 1) {
        *ret = (struct box){.slot = q->slot, .channel = pair[0], .pidfd = fds.fds[0]};
        return true;
    }
    error = a.body.error;
    (void)close(pair[0]);
    silt_parcel_close(&fds);
    return false;
}

bool box_create(struct world *w, uint32_t slot, uint32_t flags, struct box *ret)
{
    struct silt_priv_request q = create_request(slot, IMAGE_PLAIN, flags);
    return box_create_by(w, &q, ret);
}

const char *box_say(struct box *b, const char *format, ...)
{
    static char text[40000];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (send(b->channel, text, (size_t)n, MSG_NOSIGNAL) < 0)
        return "";
    struct pollfd p = {.fd = b->channel, .events = POLLIN};
    ssize_t got = poll(&p, 1, 20000) > 0 ? recv(b->channel, text, sizeof(text) - 1, 0) : -1;
    text[got > 0 ? got : 0] = 0;
    return text;
}

void box_close(struct box *b)
{
    silt_close_fd(&b->channel);
    silt_close_fd(&b->pidfd);
}

bool box_is_dead(const struct box *b)
{
    struct pollfd p = {.fd = b->pidfd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}
