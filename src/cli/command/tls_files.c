/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/tls_files.h"
#include "base/fd.h"
#include "http/dev_certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* Appears whole or not at all. */
static int write_file(int directory, const char *name, mode_t mode, silt_slice text,
                      struct silt_error *e)
{
    char fresh[64];
    (void)snprintf(fresh, sizeof(fresh), "%s.new", name);
    (void)unlinkat(directory, fresh, 0);
    silt_auto_fd fd =
        openat(directory, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return silt_fail_errno(e, "make %s", fresh);
    if (silt_fd_write_all(fd, text, e) < 0)
        return silt_because(e, "%s", fresh);
    if (fchmod(fd, mode) < 0 || fsync(fd) < 0 || renameat(directory, fresh, directory, name) < 0)
        return silt_fail_errno(e, "make %s", name);
    return 0;
}

static int read_file(int directory, const char *name, struct silt_buf *out, struct silt_error *e)
{
    char *text = NULL;
    size_t len;
    if (silt_fd_read_file(directory, name, SILT_PEM_MAX, &text, &len, e) < 0)
        return -1;
    silt_buf_add(out, (silt_slice){text, len});
    explicit_bzero(text, len);
    free(text);
    return 0;
}

/* The key first: a certificate without its key would be trusted for nothing. */
static int write_pair(int directory, const char *name, const struct silt_pem_pair *p,
                      struct silt_error *e)
{
    char file[32];
    (void)snprintf(file, sizeof(file), "%s.key", name);
    if (write_file(directory, file, 0600, silt_buf_slice(&p->key), e) < 0)
        return -1;
    (void)snprintf(file, sizeof(file), "%s.pem", name);
    return write_file(directory, file, 0644, silt_buf_slice(&p->certificate), e);
}

static int find_authority(int directory, const char *domain, struct silt_pem_pair *ret,
                          struct silt_error *e)
{
    if (faccessat(directory, "ca.pem", F_OK, 0) < 0 && errno == ENOENT) {
        if (silt_dev_certificate_authority(domain, ret, e) < 0)
            return -1;
        return write_pair(directory, "ca", ret, e);
    }
    return read_file(directory, "ca.pem", &ret->certificate, e) < 0
               ? -1
               : read_file(directory, "ca.key", &ret->key, e);
}

int silt_tls_files_make(const char *path, const char *domain, struct silt_error *e)
{
    silt_auto_pem_pair authority = {0}, server = {0};
    silt_pem_pair_init(&authority);
    silt_pem_pair_init(&server);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make directory %s", path);
    silt_auto_fd directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return silt_fail_errno(e, "open %s", path);
    if (find_authority(directory, domain, &authority, e) < 0)
        return silt_because(e, "%s/ca", path);
    if (silt_dev_certificate_server(&authority, domain, &server, e) < 0) {
        if (e->code == SILT_CONFLICT)
            (void)silt_because(e,
                               "%s/ca.pem was made for another domain or is too old; remove it, "
                               "run this again, trust the new one",
                               path);
        return -1;
    }
    return write_pair(directory, "preview", &server, e);
}
