/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile.h"
#include "engine/storage/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BLOCK = 512, PROGRAM_MAX = 4 << 20, DIRECTORIES = 12 };

static void add_header(char *at, const char *name, char type, size_t size)
{
    unsigned sum = 0;
    memset(at, 0, BLOCK);
    (void)snprintf(at, 100, "%s", name);
    (void)snprintf(at + 100, 8, "%07o", 0755U);
    (void)snprintf(at + 108, 8, "%07o", 0U);
    (void)snprintf(at + 116, 8, "%07o", 0U);
    (void)snprintf(at + 124, 12, "%011o", (unsigned)size & 0x3fffffff);
    (void)snprintf(at + 136, 12, "%011o", 0U);
    memset(at + 148, ' ', 8);
    at[156] = type;
    memcpy(at + 257,
           "ustar\0"
           "00",
           8);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)at[i];
    (void)snprintf(at + 148, 8, "%06o", sum);
}

static size_t add_program(char *at, const char *program)
{
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, at + BLOCK, PROGRAM_MAX);
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return 0;
    add_header(at, "usr/bin/python3", '0', (size_t)n);
    return BLOCK + ((size_t)n + BLOCK - 1) / BLOCK * BLOCK;
}

size_t hostile_tar(const char *program, char **ret)
{
    static const char *const directories[] = {"dev/", "proc/", "sys/",    "etc/",
                                              "tmp/", "usr/",  "usr/bin/"};
    char *tar = calloc(1, PROGRAM_MAX + DIRECTORIES * BLOCK), *at = tar;
    for (size_t i = 0; i < SILT_COUNT(directories); i++, at += BLOCK)
        add_header(at, directories[i], '5', 0);
    at += add_program(at, program);
    *ret = tar;
    return (size_t)(at - tar);
}

const char *hostile_image(struct world *w, const uint8_t digest[SILT_DIGEST_SIZE],
                          const char *suffix)
{
    static char path[512];
    char name[SILT_IMAGE_NAME_SIZE];
    silt_image_name(digest, name);
    (void)snprintf(path, sizeof(path), "%s/state/images/%s%s", w->directory, name, suffix);
    return path;
}

static const char end[2 * BLOCK]; /* of a tar */

void hostile_digest(const char *tar, size_t len, uint8_t ret[SILT_DIGEST_SIZE])
{
    EVP_MD_CTX *m = EVP_MD_CTX_new();
    (void)EVP_DigestInit_ex(m, EVP_sha256(), NULL);
    (void)EVP_DigestUpdate(m, tar, len);
    (void)EVP_DigestUpdate(m, end, sizeof(end));
    (void)EVP_DigestFinal_ex(m, ret, NULL);
    EVP_MD_CTX_free(m);
}

bool hostile_trust(struct world *w, const char *build, const char *tar, size_t len)
{
    char file[200], images[200], ids[64], program[512];
    struct silt_error e;
    (void)snprintf(file, sizeof(file), "%s/root.tar", w->directory);
    (void)snprintf(images, sizeof(images), "--images=%s/state/images", w->directory);
    (void)snprintf(ids, sizeof(ids), "--ids.images=%u", w->ids_images);
    (void)snprintf(program, sizeof(program), "%s/silt-trust", build);
    silt_auto_fd fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || silt_fd_write_all(fd, (silt_slice){tar, len}, &e) < 0
        || silt_fd_write_all(fd, (silt_slice){end, sizeof(end)}, &e) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl(program, program, "--config=", images, ids, file, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Of its parent; 0: it has none, or has ended. */
static pid_t parent_of(pid_t pid)
{
    char path[64], *text = NULL;
    size_t len;
    struct silt_error e;
    int parent = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (silt_fd_read_file(AT_FDCWD, path, 1024, &text, &len, &e) < 0)
        return 0;
    const char *name_end = strrchr(text, ')');
    if (name_end == NULL || sscanf(name_end, ") %*c %d", &parent) != 1)
        parent = 0;
    free(text);
    return parent;
}

/* Another test on this machine may have such a process of its own. */
static bool is_of_ours(pid_t pid)
{
    while (pid > 1 && pid != getpid())
        pid = parent_of(pid);
    return pid == getpid();
}

static bool is_evil(const char *pid)
{
    char path[300];
    char *comm = NULL;
    size_t len;
    struct stat st;
    struct silt_error e;
    (void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
    if (silt_fd_read_file(AT_FDCWD, path, 64, &comm, &len, &e) < 0)
        return false;
    bool named = strncmp(comm, EVIL, strlen(EVIL)) == 0;
    free(comm);
    (void)snprintf(path, sizeof(path), "/proc/%s", pid);
    return named && stat(path, &st) == 0 && st.st_uid == 0
           && is_of_ours((pid_t)strtol(pid, NULL, 10));
}

bool hostile_is_root(void)
{
    bool found = false;
    DIR *d = opendir("/proc");
    for (struct dirent *it = readdir(d); it != NULL && !found; it = readdir(d))
        found = it->d_name[0] >= '1' && it->d_name[0] <= '9' && is_evil(it->d_name);
    (void)closedir(d);
    return found;
}

static uint64_t sum;

static void mix(const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ ((const unsigned char *)data)[i]) * 0x100000001b3ULL;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
    char *text = NULL;
    size_t len = 0;
    struct silt_error e;
    (void)type;
    mix(path + at->base, strlen(path + at->base));
    mix(&st->st_mode, sizeof(st->st_mode));
    mix(&st->st_uid, sizeof(st->st_uid));
    mix(&st->st_ino, sizeof(st->st_ino));
    if (S_ISREG(st->st_mode)
        && silt_fd_read_file(AT_FDCWD, path, PROGRAM_MAX, &text, &len, &e) == 0)
        mix(text, len);
    free(text);
    return 0;
}

uint64_t hostile_hash(const char *directory)
{
    sum = 0xcbf29ce484222325ULL;
    return nftw(directory, visit, 16, FTW_PHYS) == 0 ? sum : 0;
}
