/* SPDX-License-Identifier: Apache-2.0 */
/* silt-trust [--SETTING=VALUE...] IMAGE.tar: marks an image as trusted. A Python of such an image
 * is kept warm with the rights of the machine's root (engine/storage/trust.h), so root itself must
 * create its files: this program, run as root, unpacks the tar with its own silt-fetch in a jail,
 * publishes the tree under its digest and writes the mark. siltd is not involved; it imports the
 * same tar before or afterwards to learn the image's names. */
#include "base/fd.h"
#include "base/own.h"
#include "base/test_switch.h"
#include "config/config.h"
#include "engine/launch/fetch_jail.h"
#include "engine/storage/image.h"
#include "engine/launch/mount_stage.h"
#include "engine/storage/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BLOCK = 1 << 20 };

struct job {
    int tar, fetch;
    int images;
    uint32_t ids; /* of images */
    uint8_t digest[SILT_DIGEST_SIZE];
};

static ssize_t read_block(int fd, char *block)
{
    ssize_t n;
    do
        n = read(fd, block, BLOCK);
    while (n < 0 && errno == EINTR);
    return n;
}

static int hash(int tar, char *block, uint8_t ret[SILT_DIGEST_SIZE], struct silt_error *e)
{
    EVP_MD_CTX *m = EVP_MD_CTX_new();
    bool good = m != NULL && EVP_DigestInit_ex(m, EVP_sha256(), NULL) == 1;
    ssize_t n = 0;
    while (good && (n = read_block(tar, block)) > 0)
        good = EVP_DigestUpdate(m, block, (size_t)n) == 1;
    good = good && n == 0 && EVP_DigestFinal_ex(m, ret, NULL) == 1;
    EVP_MD_CTX_free(m);
    if (!good)
        return silt_fail_errno(e, "hash the image");
    return lseek(tar, 0, SEEK_SET) < 0 ? silt_fail_errno(e, "read the image again") : 0;
}

/* If silt-fetch stops reading, it will report why. */
static int feed(int tar, int to, char *block, struct silt_error *e)
{
    struct silt_fetch_order order = {.kind = SILT_FETCH_UNPACK, .format = SILT_FETCH_TAR};
    ssize_t n;
    if (silt_fd_write_all(to, (silt_slice){(const char *)&order, sizeof(order)}, e) < 0)
        return e->sys == EPIPE ? 0 : -1;
    while ((n = read_block(tar, block)) > 0)
        if (silt_fd_write_all(to, (silt_slice){block, (size_t)n}, e) < 0)
            return e->sys == EPIPE ? 0 : -1;
    return n < 0 ? silt_fail_errno(e, "read the image") : 0;
}

static int hear(int from, struct silt_fetch_result *ret, struct silt_error *e)
{
    size_t len = 0;
    while (len < sizeof(*ret)) {
        ssize_t n = read(from, (char *)ret + len, sizeof(*ret) - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return silt_fail(e, SILT_INTERNAL, "silt-fetch ended without a result");
        len += (size_t)n;
    }
    ret->error.text[sizeof(ret->error.text) - 1] = 0;
    if (!ret->ok)
        *e = ret->error;
    return ret->ok ? 0 : -1;
}

/* It is PID 1 of its own pid namespace: once it has ended, so have its children. */
static void end(int process)
{
    siginfo_t info;
    (void)pidfd_send_signal(process, SIGKILL, NULL, 0);
    while (waitid(P_PIDFD, (id_t)process, &info, WEXITED) < 0 && errno == EINTR)
        ;
}

static int start(const struct job *j, int directory, int input, int result, int *ret_process,
                 struct silt_error *e)
{
    struct silt_seccomp filter;
    if (silt_seccomp_compile(&filter, false, e) < 0)
        return -1;
    struct silt_fetch_jail cage = {.ids = j->ids,
                                   .directory = directory,
                                   .input = input,
                                   .result = result,
                                   .program = j->fetch,
                                   .seccomp = &filter};
    return silt_fetch_jail_start(&cage, ret_process, e);
}

static int unpack(const struct job *j, int directory, char *block, struct silt_error *e)
{
    struct silt_fetch_result result;
    int input[2], said[2], process;
    if (pipe2(input, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "make pipes");
    silt_auto_fd reads = input[0], feeds = input[1], hears = said[0], tells = said[1];
    (void)fcntl(feeds, F_SETPIPE_SZ, BLOCK);
    if (start(j, directory, reads, tells, &process, e) < 0)
        return -1;
    silt_close_fd(&reads);
    silt_close_fd(&tells);
    int done = feed(j->tar, feeds, block, e);
    silt_close_fd(&feeds);
    if (done == 0)
        done = hear(hears, &result, e);
    end(process);
    if (done == 0 && memcmp(result.digest, j->digest, sizeof(j->digest)) != 0)
        return silt_fail(e, SILT_CONFLICT, "the file changed while it was read");
    return done;
}

static int make_tree(const struct job *j, char *block, int *ret_tree, struct silt_error *e)
{
    silt_auto_fd directory = -1;
    if (silt_without("trust_unpack")) /* use what siltd has published */
        return silt_image_open(j->images, j->digest, ret_tree, e);
    if (silt_image_begin(j->images, j->ids, &directory, e) < 0)
        return -1;
    if (unpack(j, directory, block, e) < 0
        || silt_image_publish(j->images, directory, j->digest, e) < 0) {
        struct silt_error ignored;
        (void)silt_images_drop_begun(j->images, &ignored);
        return -1;
    }
    *ret_tree = silt_take_fd(&directory);
    return 0;
}

/* One at a time: leftovers of another run then have no owner. */
static int vouch(struct job *j, struct silt_error *e)
{
    static char block[BLOCK];
    silt_auto_fd tree = -1;
    if (flock(j->images, LOCK_EX) < 0)
        return silt_fail_errno(e, "lock the images");
    if (hash(j->tar, block, j->digest, e) < 0)
        return -1;
    struct silt_error ignored;
    if (silt_trust_open(j->images, j->digest, &tree, &ignored) == 0)
        return 0;
    if (silt_images_drop_begun(j->images, e) < 0 || make_tree(j, block, &tree, e) < 0)
        return -1;
    return silt_trust_mark(j->images, j->digest, tree, e);
}

static int open_fetch(int *ret, struct silt_error *e)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("silt-fetch"));
    if (n <= 0)
        return silt_fail_errno(e, "find our own program");
    path[n] = 0;
    char *slash = strrchr(path, '/');
    memcpy(slash != NULL ? slash + 1 : path, "silt-fetch", sizeof("silt-fetch"));
    *ret = open(path, O_PATH | O_CLOEXEC);
    return *ret < 0 ? silt_fail_errno(e, "open %s", path) : 0;
}

/* Uses silt-priv's mount_stage, without a pool. */
static int run(const struct silt_config *c, const char *tar, struct silt_error *e)
{
    struct silt_mount_stage stage = {.pool = c->images, .images = c->images, .resolver = ""};
    struct job j = {.tar = open(tar, O_RDONLY | O_CLOEXEC), .ids = c->ids_images};
    if (j.tar < 0)
        return silt_fail_errno(e, "open %s", tar);
    if (open_fetch(&j.fetch, e) < 0 || silt_mount_stage_enter(&stage, e) < 0)
        return -1;
    j.images = open(SILT_MOUNT_STAGE_IMAGES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j.images < 0)
        return silt_fail_errno(e, "open the images directory");
    return vouch(&j, e) < 0 ? silt_because(e, "vouch for %s", tar) : 0;
}

int main(int argc, char **argv)
{
    static struct silt_config config;
    struct silt_error e = {0};
    const char *tar = argc > 1 ? argv[argc - 1] : "-";
    if (tar[0] == '-') {
        (void)fprintf(stderr, "usage: silt-trust [--SETTING=VALUE...] IMAGE.tar\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(022);
    if (geteuid() != 0)
        (void)silt_fail(&e, SILT_DENIED, "must run as root");
    else if (silt_config_load(argc - 1, argv, &config, &e) == 0 && run(&config, tar, &e) == 0)
        return 0;
    (void)fprintf(stderr, "silt-trust: %s\n", e.text);
    return 1;
}
