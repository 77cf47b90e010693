/* SPDX-License-Identifier: Apache-2.0 */
/* An archive of an image, or (when it begins with L) a layer on a small tree: whatever it is, nothing beside the folder that it
 * is unpacked into changes. */
#include "base/fd.h"
#include "fetch/archive.h"
#include "fetch/hash.h"
#include "fetch/layer.h"
#include "fetch/place.h"
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const struct silt_archive_limits limits = {
    .bytes = 1 << 20, .entries = 1000, .stream = 1 << 20, .ratio = 250, .free = 1 << 20};
static char folder[] = "/tmp/silt-fuzz-XXXXXX";
static int home = -1, top = -1; /* a fuzzer reads its corpus from where it was started */

static void put(const char *name, const char *text)
{
    silt_auto_fd fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    demand(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void remove_folder(void)
{
    struct silt_error e;
    demand(fchdir(top) == 0 && silt_place_empty("", &e) == 0 && rmdir(folder) == 0);
}

static void start(void)
{
    home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    demand(home >= 0 && mkdtemp(folder) != NULL);
    top = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    demand(top >= 0 && fchdir(top) == 0 && mkdir("out", 0755) == 0);
    put("secret", "mine");
    (void)atexit(remove_folder);
}

/* What lies below when a layer comes. */
static void grow(void)
{
    demand(mkdir("dir", 0755) == 0 && symlink("dir", "link") == 0 && symlink("../..", "up") == 0);
    put("dir/file", "text");
    put("file", "text");
}

static void check(void)
{
    struct stat st;
    char text[8] = {0};
    int names = 0;
    demand(fchdir(top) == 0);
    silt_auto_fd fd = open("secret", O_RDONLY | O_CLOEXEC);
    demand(fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 1 && read(fd, text, sizeof(text)) == 4
           && strcmp(text, "mine") == 0);
    DIR *dir = opendir(".");
    demand(dir != NULL);
    while (readdir(dir) != NULL)
        names++;
    (void)closedir(dir);
    demand(names == 4); /* ., .., out, secret */
}

static void apply(silt_slice bytes)
{
    struct silt_spool spool = {.size = bytes.len, .fd = memfd_create("layer", MFD_CLOEXEC)};
    struct silt_spooled file = {.name = "layer", .size = bytes.len};
    struct silt_fetch_result result = {0};
    struct silt_error e;
    uint8_t diff[SILT_DIGEST_SIZE];
    EVP_MD_CTX *h = silt_hash_new();
    demand(h != NULL && silt_hash_add(h, bytes, &e) == 0 && silt_hash_end(h, diff, &e) == 0);
    EVP_MD_CTX_free(h);
    demand(spool.fd >= 0 && silt_fd_write_all(spool.fd, bytes, &e) == 0);
    struct silt_layer layer = {.spool = &spool, .file = &file, .diff = diff};
    grow();
    (void)silt_layer_apply(&layer, &limits, &result, &e);
    silt_close_fd(&spool.fd);
}

static void unpack(silt_slice bytes)
{
    struct silt_fetch_order order = {.format = SILT_FETCH_AUTO};
    struct silt_fetch_result result = {0};
    struct silt_error e;
    silt_auto_buf said;
    silt_buf_init(&said, 1 << 20);
    silt_auto_fd fd = memfd_create("archive", MFD_CLOEXEC);
    demand(fd >= 0 && silt_fd_write_all(fd, bytes, &e) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    if (silt_archive_unpack(fd, &order, &limits, &result, &said, &e) == 0)
        demand(said.len == (size_t)result.config_size + result.names_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_error e;
    silt_slice bytes = {(const char *)data, size};
    if (top < 0)
        start();
    demand(fchdir(top) == 0 && chdir("out") == 0);
    if (size > 0 && data[0] == 'L')
        apply((silt_slice){bytes.data + 1, size - 1});
    else
        unpack(bytes);
    check();
    demand(fchdir(top) == 0 && chdir("out") == 0 && silt_place_empty("", &e) == 0 && fchdir(home) == 0);
    return 0;
}
