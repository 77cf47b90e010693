/* SPDX-License-Identifier: Apache-2.0 */
/* An archive of an image, or a layer on a small tree, when it begins with L as it is, with G or Z
 * packed here by gzip or zstd (whose checksums a fuzzer does not guess): whatever it is, nothing
 * beside the directory that it is unpacked into changes. */
#include "base/fd.h"
#include "fetch/archive.h"
#include "fetch/hash.h"
#include "fetch/layer.h"
#include "fetch/entry_path.h"
#include "fuzz/fuzz.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const struct silt_archive_limits limits = {
    .bytes = 1 << 20, .entries = 1000, .stream = 1 << 20, .ratio = 250, .free = 1 << 20};
static char directory[] = "/tmp/silt-fuzz-XXXXXX";
static int home = -1, top = -1; /* a fuzzer reads its corpus from where it was started */

static void put(const char *name, const char *text)
{
    silt_auto_fd fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    demand(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void remove_directory(void)
{
    struct silt_error e;
    demand(fchdir(top) == 0 && silt_entry_path_empty("", &e) == 0 && rmdir(directory) == 0);
}

static void start(void)
{
    home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    demand(home >= 0 && mkdtemp(directory) != NULL);
    top = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    demand(top >= 0 && fchdir(top) == 0 && mkdir("out", 0755) == 0);
    put("secret", "mine");
    (void)atexit(remove_directory);
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

/* The digest that the layer must have: of what it unpacks to. */
static void hash_content(silt_slice bytes, uint8_t ret[SILT_DIGEST_SIZE])
{
    static char block[64 << 10];
    struct silt_error e;
    struct archive_entry *entry;
    struct archive *a = archive_read_new();
    EVP_MD_CTX *h = silt_hash_new();
    demand(a != NULL && h != NULL && archive_read_support_filter_gzip(a) == ARCHIVE_OK
           && archive_read_support_filter_zstd(a) == ARCHIVE_OK
           && archive_read_support_filter_xz(a) == ARCHIVE_OK
           && archive_read_support_format_raw(a) == ARCHIVE_OK);
    la_ssize_t n = 0;
    uint64_t all = 0;
    if (archive_read_open_memory(a, bytes.data, bytes.len) == ARCHIVE_OK
        && archive_read_next_header(a, &entry) == ARCHIVE_OK)
        while (all < 2 * limits.bytes && (n = archive_read_data(a, block, sizeof(block))) > 0) {
            all += (uint64_t)n;
            demand(silt_hash_add(h, (silt_slice){block, (size_t)n}, &e) == 0);
        }
    demand(silt_hash_end(h, ret, &e) == 0);
    EVP_MD_CTX_free(h);
    (void)archive_read_free(a);
}

static void apply(silt_slice bytes)
{
    struct silt_spool spool = {.size = bytes.len, .fd = memfd_create("layer", MFD_CLOEXEC)};
    struct silt_spooled file = {.name = "layer", .size = bytes.len};
    struct silt_fetch_result result = {0};
    struct silt_error e;
    uint8_t diff[SILT_DIGEST_SIZE];
    hash_content(bytes, diff);
    demand(spool.fd >= 0 && silt_fd_write_all(spool.fd, bytes, &e) == 0);
    struct silt_layer layer = {.spool = &spool, .file = &file, .diff = diff};
    grow();
    (void)silt_layer_apply(&layer, &limits, &result, &e);
    silt_close_fd(&spool.fd);
}

static void apply_packed(silt_slice bytes, int (*add_filter)(struct archive *))
{
    static char packed[64 << 10];
    size_t size = 0;
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_pathname(entry, "layer");
    archive_entry_set_size(entry, (la_int64_t)bytes.len);
    bool good = add_filter(a) == ARCHIVE_OK && archive_write_set_format_raw(a) == ARCHIVE_OK
                && archive_write_open_memory(a, packed, sizeof(packed), &size) == ARCHIVE_OK
                && archive_write_header(a, entry) == ARCHIVE_OK
                && archive_write_data(a, bytes.data, bytes.len) == (la_ssize_t)bytes.len
                && archive_write_close(a) == ARCHIVE_OK;
    archive_entry_free(entry);
    (void)archive_write_free(a);
    if (good)
        apply((silt_slice){packed, size});
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
    silt_slice rest = {bytes.data + (size > 0), size - (size > 0)};
    if (size > 0 && data[0] == 'L')
        apply(rest);
    else if (size > 1 && data[0] == 'G')
        apply_packed(rest, archive_write_add_filter_gzip);
    else if (size > 1 && data[0] == 'Z')
        apply_packed(rest, archive_write_add_filter_zstd);
    else
        unpack(bytes);
    check();
    demand(fchdir(top) == 0 && chdir("out") == 0 && silt_entry_path_empty("", &e) == 0
           && fchdir(home) == 0);
    return 0;
}
