/* SPDX-License-Identifier: Apache-2.0 */
#include "super/token.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/random.h>
#include <sys/stat.h>

enum {
    TOKEN_MIN = 16,
    TOKEN_MAX = 512,
    RANDOM_BYTES = 32,
    RANDOM_TEXT = 43, /* 32 bytes in base64url without padding */
};

static void make_text(char out[RANDOM_TEXT + 2])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[RANDOM_BYTES + 1] = {0};
    if (getrandom(bytes, RANDOM_BYTES, 0) != RANDOM_BYTES)
        abort(); /* Linux returns up to 256 bytes in one piece */
    for (unsigned i = 0; i < RANDOM_TEXT; i++) {
        unsigned bit = i * 6, pair = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
        out[i] = alphabet[pair >> (10 - bit % 8) & 63];
    }
    out[RANDOM_TEXT] = '\n';
    out[RANDOM_TEXT + 1] = 0;
}

/* Atomic. */
static int make_file(const char *path, struct silt_error *e)
{
    char text[RANDOM_TEXT + 2], directory[PATH_MAX], fresh[PATH_MAX + 8];
    if (silt_slice_to_path(silt_slice_of(path), directory, e) < 0)
        return -1;
    if (mkdir(dirname(directory), 0755) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make directory %s", directory);
    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    silt_auto_fd fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return silt_fail_errno(e, "make token file %s", fresh);
    make_text(text);
    if (silt_fd_write_all(fd, silt_slice_of(text), e) < 0)
        return silt_because(e, "token file %s", fresh);
    if (fchmod(fd, 0600) < 0 || fsync(fd) < 0 || rename(fresh, path) < 0)
        return silt_fail_errno(e, "make token file %s", path);
    return 0;
}

static bool is_placeholder(silt_slice token)
{
    static const char *const words[] = {"change", "replace",  "example", "placeholder", "your",
                                        "secret", "password", "token",   "insert",      "todo"};
    size_t same = 1;
    for (size_t i = 0; i < SILT_COUNT(words); i++) {
        silt_slice word = silt_slice_of(words[i]);
        if (token.len >= word.len && silt_slice_ieq((silt_slice){token.data, word.len}, word))
            return true;
    }
    while (same < token.len && token.data[same] == token.data[0])
        same++;
    return same == token.len;
}

static int check_text(silt_slice token, struct silt_error *e)
{
    while (token.len > 0 && silt_is_any(token.data[token.len - 1], " \t\r\n"))
        token.len--;
    if (token.len < TOKEN_MIN)
        return silt_fail(e, SILT_INVALID, "token of %zu characters, at least %d", token.len,
                         TOKEN_MIN);
    for (size_t i = 0; i < token.len; i++)
        if (token.data[i] <= ' ' || token.data[i] > '~')
            return silt_fail(e, SILT_INVALID, "token is not one line of visible ASCII");
    if (is_placeholder(token))
        return silt_fail(e, SILT_INVALID, "token looks like a placeholder");
    return 0;
}

static int check_file(int fd, struct silt_error *e)
{
    char text[TOKEN_MAX + 1];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "stat");
    if (!S_ISREG(st.st_mode))
        return silt_fail(e, SILT_INVALID, "not a plain file");
    if ((st.st_mode & 0077) != 0)
        return silt_fail(e, SILT_DENIED, "others can read it: chmod 600");
    ssize_t n = pread(fd, text, sizeof(text), 0);
    if (n < 0)
        return silt_fail_errno(e, "read");
    if (n > TOKEN_MAX)
        return silt_fail(e, SILT_INVALID, "longer than %d bytes", TOKEN_MAX);
    return check_text((silt_slice){text, (size_t)n}, e);
}

int silt_token_open(const char *path, int *ret_fd, struct silt_error *e)
{
    /* an open must not block on a FIFO */
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return silt_fail_errno(e, "open token file %s", path);
    if (check_file(fd, e) < 0)
        return silt_because(e, "token file %s", path);
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_token_prepare(const char *path, struct silt_error *e)
{
    if (access(path, F_OK) < 0 && errno == ENOENT && make_file(path, e) < 0)
        return -1;
    silt_auto_fd fd = -1;
    return silt_token_open(path, &fd, e);
}
