/* SPDX-License-Identifier: Apache-2.0 */
#include "super/certificate.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct silt_config config;
static struct silt_certificate certificate;

static void write_file(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("pem", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static bool tells(const char *text)
{
    struct silt_super_told told = {.type = SILT_SUPER_CERTIFICATE, .used = 1, .until_s = 7};
    char path[sizeof(config.run) + 32];
    (void)snprintf(told.text, sizeof(told.text), "%s", text);
    (void)snprintf(path, sizeof(path), "%s/preview-certificate", config.run);
    silt_certificate_told(&certificate, &told);
    return unlink(path) == 0;
}

TEST(what_silt_preview_says_counts_once_for_each_time_it_was_asked)
{
    char directory[] = "/tmp/silt-certificate-XXXXXX";
    int fds[SILT_CERTIFICATE_FILES];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(config.run, sizeof(config.run), "%s", directory);
    (void)snprintf(config.preview_certificate, sizeof(config.preview_certificate), "%s/pem",
                   directory);
    (void)snprintf(config.preview_key, sizeof(config.preview_key), "%s/key", directory);
    write_file(config.preview_certificate);
    write_file(config.preview_key);
    certificate = (struct silt_certificate){.config = &config};
    assert_false(tells("nobody asked"));
    assert_true(silt_certificate_take(&certificate, fds));
    assert_true(tells("example.com"));
    assert_false(tells("example.com"));
    silt_certificate_renew(&certificate);
    assert_false(tells("one that was not asked yet"));
    for (int i = 0; i < SILT_CERTIFICATE_FILES; i++)
        silt_close_fd(&fds[i]);
    (void)unlink(config.preview_certificate);
    (void)unlink(config.preview_key);
    assert_int_equal(rmdir(directory), 0);
}
