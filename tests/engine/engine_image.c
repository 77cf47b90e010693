/* SPDX-License-Identifier: Apache-2.0 */
/* Images: hostile trees, imports. */
#include "engine_tests.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IMAGE_TRICKY = 0x20, IMAGE_BARE = 0x30, IMPORT_MAX_MS = 20000 };

static const char *needs_fetch(struct world *w)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/silt-fetch", w->programs);
    return access(path, X_OK) == 0 ? NULL : "silt-fetch is not built";
}

/* A3: each of these folders, as a symlink to another of the image and to one of the machine. */
static bool refuses_symlinks(struct world *w)
{
    static const char *const names[] = {"dev", "proc", "sys"};
    struct box b;
    char outside[128];
    (void)snprintf(outside, sizeof(outside), "%s/outside", w->folder);
    CHECK(mkdir(outside, 0777) == 0);
    for (unsigned i = 0; i < SILT_COUNT(names) * 2; i++) {
        const char *image = world_image(w, IMAGE_TRICKY + i);
        char path[600];
        (void)snprintf(path, sizeof(path), "%s/%s", image, names[i / 2]);
        CHECK(rmdir(path) == 0 && symlink(i % 2 == 0 ? "etc" : outside, path) == 0);
        struct silt_priv_request q = create_request(9, IMAGE_TRICKY + i, SILT_CREATE_FRESH);
        CHECK(!box_create_by(w, &q, &b));
        CHECK(last_code() == SILT_INVALID);
        (void)snprintf(path, sizeof(path), "%s/etc/null", image);
        CHECK(access(path, F_OK) < 0);
    }
    CHECK(rmdir(outside) == 0); /* empty */
    return true;
}

static bool makes_missing_folders(struct world *w)
{
    struct box b;
    char path[600];
    const char *image = world_image(w, IMAGE_BARE);
    static const char *const names[] = {"dev", "proc", "sys"};
    for (size_t i = 0; i < SILT_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", image, names[i]);
        CHECK(rmdir(path) == 0);
    }
    struct silt_priv_request q = create_request(9, IMAGE_BARE, SILT_CREATE_FRESH);
    CHECK(box_create_by(w, &q, &b));
    CHECK_SAYS(&b, "write /dev/null x", "ok");
    CHECK(tell(w, SILT_PRIV_DESTROY, 9));
    CHECK(access(path, F_OK) < 0); /* in the layer, not in the image */
    box_close(&b);
    return true;
}

static bool needs_an_image(struct world *w)
{
    struct silt_priv_request q = create_request(9, 0xee, SILT_CREATE_FRESH);
    struct box b;
    CHECK(!box_create_by(w, &q, &b));
    CHECK(last_code() == SILT_NOT_FOUND);
    return true;
}

/* Starts an import that reads `input`, and waits for its result. */
static bool import(struct world *w, uint32_t staging, int input, struct silt_fetch_result *ret)
{
    struct silt_priv_request q = {.op = SILT_PRIV_IMPORT, .body.import.staging = staging};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    int result[2];
    CHECK(pipe2(result, O_CLOEXEC) == 0);
    ask(w, &q, (int[]){input, result[1]}, 2, &a, &fds);
    (void)close(result[1]);
    silt_auto_fd reads = result[0];
    if (!a.ok)
        *ret = (struct silt_fetch_result){.error = a.body.error};
    CHECK(a.ok && fds.nfds == 1);
    struct pollfd p = {.fd = reads, .events = POLLIN};
    CHECK(poll(&p, 1, IMPORT_MAX_MS) == 1);
    CHECK(read(reads, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret));
    struct pollfd dead = {.fd = fds.fds[0], .events = POLLIN};
    CHECK(poll(&dead, 1, IMPORT_MAX_MS) == 1);
    silt_parcel_close(&fds);
    return true;
}

static int tar_of(const char *folder)
{
    int ends[2];
    struct silt_fetch_order order = {.format = SILT_FETCH_TAR};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    if (write(ends[1], &order, sizeof(order)) != (ssize_t)sizeof(order))
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execlp("tar", "tar", "-C", folder, "--numeric-owner", "--owner=0", "--group=0", "-cf",
                     "-", ".", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    return ends[0];
}

static bool imports(struct world *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_COMMIT, .body.import.staging = 3};
    struct silt_fetch_result result;
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct box b;
    silt_auto_fd input = tar_of(world_image(w, 0x40));
    CHECK(import(w, 3, input, &result));
    CHECK(result.ok && result.entries >= 7);
    memset(q.body.import.digest, 0x41, SILT_DIGEST_SIZE);
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(a.ok);
    struct silt_priv_request create = create_request(9, 0x41, SILT_CREATE_FRESH);
    CHECK(box_create_by(w, &create, &b));
    CHECK_SAYS(&b, "stat /etc", "40755 0:0");
    CHECK(tell(w, SILT_PRIV_DESTROY, 9));
    box_close(&b);
    q.op = SILT_PRIV_FORGET;
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(a.ok);
    CHECK(!box_create_by(w, &create, &b) && last_code() == SILT_NOT_FOUND);
    return true;
}

static bool refuses_garbage(struct world *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_DISCARD, .body.import.staging = 2};
    struct silt_fetch_result result;
    struct silt_priv_answer a;
    struct silt_parcel fds;
    char path[200];
    silt_auto_fd input = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    CHECK(import(w, 2, input, &result));
    CHECK(!result.ok && result.error.code != SILT_OK);
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(a.ok);
    (void)snprintf(path, sizeof(path), "%s/state/images/.staging-2", w->folder);
    CHECK(access(path, F_OK) < 0);
    q.body.import.staging = SILT_STAGINGS_MAX;
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(!a.ok && a.body.error.code == SILT_INVALID);
    return true;
}

/* Starts one that waits for an archive which does not come. */
static bool start_endless(struct world *w, uint32_t staging, int *ret_input, int *ret_result, int *ret_pidfd)
{
    struct silt_priv_request q = {.op = SILT_PRIV_IMPORT, .body.import.staging = staging};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    int input[2], result[2];
    CHECK(pipe2(input, O_CLOEXEC) == 0 && pipe2(result, O_CLOEXEC) == 0);
    ask(w, &q, (int[]){input[0], result[1]}, 2, &a, &fds);
    (void)close(input[0]);
    (void)close(result[1]);
    *ret_input = input[1];
    *ret_result = result[0];
    CHECK(a.ok && fds.nfds == 1);
    *ret_pidfd = fds.fds[0];
    return true;
}

static bool ends_by(struct world *w, enum silt_priv_op op)
{
    struct silt_priv_request q = {.op = op, .body.import.staging = 5};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    silt_auto_fd process = -1, input = -1, result = -1;
    CHECK(start_endless(w, 5, &input, &result, &process));
    struct pollfd death = {.fd = process, .events = POLLIN};
    CHECK(poll(&death, 1, 0) == 0);
    memset(q.body.import.digest, 0x45, SILT_DIGEST_SIZE);
    ask(w, &q, &process, 1, &a, &fds);
    CHECK(a.ok);
    CHECK(poll(&death, 1, op == SILT_PRIV_COMMIT ? 0 : IMPORT_MAX_MS) == 1); /* published: dead before */
    ask(w, &q, &process, 1, &a, &fds); /* it has ended: fine, or there is nothing to publish */
    CHECK(a.ok == (op == SILT_PRIV_DISCARD));
    return true;
}

static bool ends_with_its_staging(struct world *w)
{
    struct silt_priv_request forget = {.op = SILT_PRIV_FORGET};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    CHECK(ends_by(w, SILT_PRIV_DISCARD));
    CHECK(ends_by(w, SILT_PRIV_COMMIT));
    memset(forget.body.import.digest, 0x45, SILT_DIGEST_SIZE);
    ask(w, &forget, NULL, 0, &a, &fds);
    CHECK(a.ok);
    return true;
}

static bool ends_no_others(struct world *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_DISCARD, .body.import.staging = 5};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    silt_auto_fd process = pidfd_open(pid, 0), file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct pollfd death = {.fd = process, .events = POLLIN};
    ask(w, &q, &process, 1, &a, &fds);
    bool refused = !a.ok && a.body.error.code == SILT_INVALID, lives = poll(&death, 1, 0) == 0;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    CHECK(refused && lives);
    ask(w, &q, &file, 1, &a, &fds);
    CHECK(!a.ok && a.body.error.code == SILT_INVALID);
    ask(w, &q, (int[]){process, file}, 2, &a, &fds);
    CHECK(!a.ok && a.body.error.code == SILT_PROTOCOL);
    return true;
}

const struct test image_tests[] = {
    {"an image whose /dev, /proc or /sys is a symlink is refused", refuses_symlinks, NULL},
    {"folders that an image lacks are made in the layer", makes_missing_folders, NULL},
    {"a sandbox needs an image that exists", needs_an_image, NULL},
    {"a tar becomes an image, and is forgotten again", imports, needs_fetch},
    {"garbage does not become an image", refuses_garbage, needs_fetch},
    {"silt-fetch ends before its folder is published or goes", ends_with_its_staging, needs_fetch},
    {"who gives up an import can end no process but silt-fetch", ends_no_others, needs_fetch},
    {NULL, NULL, NULL},
};
