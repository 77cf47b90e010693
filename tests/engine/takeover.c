/* SPDX-License-Identifier: Apache-2.0 */
/* takeover: a siltd that has been taken over tries to become root. It imports root's own tar,
 * publishes the tree under the right digest while its silt-fetch still waits for the end of the
 * tar, lets root vouch for it, and then sends one more file: another python3, which the next warm
 * Python would be. Prints `succeeded yes` or `succeeded no`. Needs root. */
#include "hostile.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STAGING = 3, PATIENCE_MS = 20000, STARTED_MS = 4000 };

static bool await(bool (*is)(struct world *w, const void *what), struct world *w, const void *what,
                  int ms)
{
    int64_t until = silt_clock_ms() + ms;
    while (!is(w, what)) {
        if (silt_clock_ms() > until)
            return false;
        (void)poll(NULL, 0, 5);
    }
    return true;
}

static bool is_large(struct world *w, const void *size)
{
    char path[300];
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/state/images/.staging-%u/usr/bin/python3", w->directory,
                   world_staging(w, STAGING));
    return stat(path, &st) == 0 && st.st_size >= *(const off_t *)size;
}

struct look {
    const uint8_t *digest;
    uint64_t hash;
};

static bool has_changed(struct world *w, const void *look)
{
    const struct look *l = look;
    return hostile_hash(hostile_image(w, l->digest, "")) != l->hash;
}

static bool evil_runs(struct world *w, const void *nothing)
{
    (void)w;
    (void)nothing;
    return hostile_is_root();
}

/* The tar without its end: silt-fetch waits for more. */
static int import(struct world *w, const char *tar, size_t len)
{
    struct silt_priv_request q = {.op = SILT_PRIV_IMPORT, .body.import.staging = STAGING};
    struct silt_fetch_order order = {.format = SILT_FETCH_TAR};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct silt_error e;
    int input[2], result[2];
    if (pipe(input) < 0 || pipe(result) < 0)
        return -1;
    ask(w, &q, (int[]){input[0], result[1]}, 2, &a, &fds);
    (void)close(input[0]);
    if (!a.ok
        || silt_fd_write_all(input[1], (silt_slice){(const char *)&order, sizeof(order)}, &e) < 0
        || silt_fd_write_all(input[1], (silt_slice){tar, len}, &e) < 0)
        return -1;
    return input[1]; /* the other ends stay open as long as we live */
}

static bool commit(struct world *w, const uint8_t digest[SILT_DIGEST_SIZE])
{
    struct silt_priv_request q = {.op = SILT_PRIV_COMMIT, .body.import.staging = STAGING};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    memcpy(q.body.import.digest, digest, SILT_DIGEST_SIZE);
    ask(w, &q, NULL, 0, &a, &fds);
    return a.ok != 0;
}

static void attack(struct world *w, const char *build)
{
    char good[512], evil[512], *tar, *more;
    uint8_t digest[SILT_DIGEST_SIZE];
    struct silt_error e;
    (void)snprintf(good, sizeof(good), "%s/tests/unit/engine/puppet", build);
    (void)snprintf(evil, sizeof(evil), "%s/tests/unit/engine/evil", build);
    size_t len = hostile_tar(good, &tar), more_len = hostile_tar(evil, &more);
    struct stat st = {0};
    (void)stat(good, &st);
    int feed = import(w, tar, len);
    printf("imported %s\n",
           feed >= 0 && await(is_large, w, &st.st_size, PATIENCE_MS) ? "yes" : "no");
    hostile_digest(tar, len, digest);
    printf("published %s\n", commit(w, digest) ? "yes" : "no");
    printf("vouched %s\n", hostile_trust(w, build, tar, len) ? "yes" : "no");
    struct look look = {.digest = digest, .hash = hostile_hash(hostile_image(w, digest, ""))};
    (void)silt_fd_write_all(feed, (silt_slice){more, more_len}, &e);
    printf("changed %s\n", await(has_changed, w, &look, STARTED_MS / 2) ? "yes" : "no");
    printf("trusted %s\n", access(hostile_image(w, digest, ".trusted"), F_OK) == 0 ? "yes" : "no");
    world_end_priv(w);
    w->zygotes = 1;
    world_start_priv(w, false);
    printf("succeeded %s\n", await(evil_runs, w, NULL, STARTED_MS) ? "yes" : "no");
    free(tar);
    free(more);
}

int main(int argc, char **argv)
{
    struct world w;
    if (argc != 2) {
        printf("usage: takeover BUILD-DIRECTORY\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    world_open(&w, argv[1]);
    w.zygotes = 0;
    world_start_priv(&w, true);
    attack(&w, argv[1]);
    world_close(&w);
    return 0;
}
