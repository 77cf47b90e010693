/* SPDX-License-Identifier: Apache-2.0 */
/* Images: hostile trees, imports. */
#include "engine_tests.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IMAGE_TRICKY = 0x20, IMAGE_BARE = 0x30, IMPORT_MAX_MS = 20000 };

static const char *needs_fetch(struct world *w)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/silt-fetch", w->programs);
    return access(path, X_OK) == 0 ? NULL : "silt-fetch is not built";
}

/* A3: each of these directories, as a symlink to another of the image and to one of the machine. */
static bool refuses_symlinks(struct world *w)
{
    static const char *const names[] = {"dev", "proc", "sys"};
    struct box b;
    char outside[128];
    (void)snprintf(outside, sizeof(outside), "%s/outside", w->directory);
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

static bool makes_missing_directories(struct world *w)
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

static int tar_of(const char *directory)
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
        (void)execlp("tar", "tar", "-C", directory, "--numeric-owner", "--owner=0", "--group=0",
                     "-cf", "-", ".", (char *)NULL);
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

static int garbage(void)
{
    static char some[4096];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0 || getrandom(some, sizeof(some), 0) < 0
        || write(ends[1], some, sizeof(some)) < 0)
        return -1;
    (void)close(ends[1]);
    return ends[0];
}

static bool refuses_garbage(struct world *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_DISCARD, .body.import.staging = 2};
    struct silt_fetch_result result;
    struct silt_priv_answer a;
    struct silt_parcel fds;
    char path[200];
    silt_auto_fd input = garbage();
    CHECK(input >= 0 && import(w, 2, input, &result));
    CHECK(!result.ok && result.error.code != SILT_OK);
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(a.ok);
    (void)snprintf(path, sizeof(path), "%s/state/images/.staging-%u", w->directory,
                   world_staging(w, 2));
    CHECK(access(path, F_OK) < 0);
    q.body.import.staging = SILT_STAGINGS_MAX;
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(!a.ok && a.body.error.code == SILT_INVALID);
    return true;
}

/* Starts one that waits for an archive which does not come. */
static bool start_endless(struct world *w, uint32_t staging, int *ret_input, int *ret_result,
                          int *ret_pidfd)
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

static bool commit_or_discard(struct world *w, enum silt_priv_op op, uint32_t staging)
{
    struct silt_priv_request q = {.op = op, .body.import.staging = staging};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    memset(q.body.import.digest, 0x45, SILT_DIGEST_SIZE);
    ask(w, &q, NULL, 0, &a, &fds);
    silt_parcel_close(&fds);
    return a.ok != 0;
}

/* siltd says nothing of the process, and it is dead all the same before anything is answered. */
static bool ends_by(struct world *w, enum silt_priv_op op)
{
    silt_auto_fd process = -1, input = -1, result = -1;
    CHECK(start_endless(w, 5, &input, &result, &process));
    struct pollfd death = {.fd = process, .events = POLLIN};
    CHECK(poll(&death, 1, 0) == 0);
    CHECK(commit_or_discard(w, op, 5));
    CHECK(poll(&death, 1, 0) == 1);
    CHECK(commit_or_discard(w, op, 5)
          == (op == SILT_PRIV_DISCARD)); /* there is nothing to publish any more */
    return true;
}

static bool forget(struct world *w)
{
    return commit_or_discard(w, SILT_PRIV_FORGET, 0);
}

static bool ends_with_its_staging(struct world *w)
{
    CHECK(ends_by(w, SILT_PRIV_DISCARD));
    CHECK(ends_by(w, SILT_PRIV_COMMIT));
    CHECK(forget(w));
    return true;
}

static bool ends_with_the_next_of_its_number(struct world *w)
{
    silt_auto_fd one = -1, input = -1, result = -1, two = -1, input_two = -1, result_two = -1;
    CHECK(start_endless(w, 5, &input, &result, &one));
    CHECK(start_endless(w, 5, &input_two, &result_two, &two));
    struct pollfd death = {.fd = one, .events = POLLIN}, other = {.fd = two, .events = POLLIN};
    CHECK(poll(&death, 1, 0) == 1 && poll(&other, 1, 0) == 0);
    CHECK(commit_or_discard(w, SILT_PRIV_DISCARD, 5));
    CHECK(poll(&other, 1, 0) == 1);
    return true;
}

/* Nothing that is published has a process which could write to it, whichever worker does what
 * first. */
static bool is_never_published_alive(struct world *w)
{
    enum { ROUNDS = 40 };
    for (int i = 0; i < ROUNDS; i++) {
        struct silt_priv_request import = {.op = SILT_PRIV_IMPORT,
                                           .body.import.staging = 6,
                                           .seq = 1ULL << 40},
                                 commit = {.op = SILT_PRIV_COMMIT,
                                           .body.import.staging = 6,
                                           .seq = 2ULL << 40};
        struct silt_priv_answer a;
        silt_auto_fd process = -1, input = -1, result = -1, fetch = -1;
        int tar[2], said[2];
        memset(commit.body.import.digest, 0x45, SILT_DIGEST_SIZE);
        CHECK(start_endless(w, 6, &input, &result, &process));
        CHECK(pipe2(tar, O_CLOEXEC) == 0 && pipe2(said, O_CLOEXEC) == 0);
        struct silt_parcel first = {.data = &commit, .len = sizeof(commit)},
                           second = {.data = &import,
                                     .len = sizeof(import),
                                     .fds = {tar[0], said[1]},
                                     .nfds = 2};
        struct silt_error e;
        CHECK(silt_fd_send(w->siltd, i % 2 == 0 ? &first : &second, &e) == 0
              && silt_fd_send(w->siltd, i % 2 == 0 ? &second : &first, &e) == 0);
        (void)close(tar[0]);
        (void)close(said[1]);
        bool published = false;
        for (int k = 0; k < 2; k++) {
            struct silt_parcel in = {.data = &a, .len = sizeof(a)};
            CHECK(silt_fd_recv(w->siltd, &in, &e) == 1);
            if (a.seq == commit.seq)
                published = a.ok != 0;
            if (in.nfds == 1)
                fetch = silt_take_fd(&in.fds[0]);
            silt_parcel_close(&in);
        }
        char path[200];
        struct stat staging;
        (void)snprintf(path, sizeof(path), "%s/state/images/.staging-%u", w->directory,
                       world_staging(w, 6));
        bool staged = stat(path, &staging) == 0;
        struct pollfd alive = {.fd = fetch, .events = POLLIN};
        (void)close(tar[1]);
        CHECK(fetch >= 0 && published);
        CHECK(staged
              == (poll(&alive, 1, 0) == 0)); /* it lives, and then its directory is not the image */
        (void)close(said[0]);
        CHECK(commit_or_discard(w, SILT_PRIV_DISCARD, 6) && forget(w));
    }
    return true;
}

const struct test image_tests[] = {
    {"an image whose /dev, /proc or /sys is a symlink is refused", refuses_symlinks, NULL},
    {"directories that an image lacks are made in the layer", makes_missing_directories, NULL},
    {"a sandbox needs an image that exists", needs_an_image, NULL},
    {"a tar becomes an image, and is forgotten again", imports, needs_fetch},
    {"garbage does not become an image", refuses_garbage, needs_fetch},
    {"silt-fetch ends before its directory is published or goes", ends_with_its_staging,
     needs_fetch},
    {"silt-fetch ends before another one unpacks in the directory of its number",
     ends_with_the_next_of_its_number, needs_fetch},
    {"no image is published while something can write to it, also when all is asked at once",
     is_never_published_alive, needs_fetch},
    {NULL, NULL, NULL},
};
