/* SPDX-License-Identifier: Apache-2.0 */
/* certificate: the certificate and key files of TLS for previews. silt-super opens them, which
 * silt-proxy may not, and passes the descriptors to silt-preview without reading them. It checks
 * every second whether the files changed, and writes the result to `<run>/preview-certificate`. */
#pragma once

#include "config/config.h"
#include "event/loop.h"
#include "wire/super.h"

#include <sys/types.h>
#include <time.h>

enum { SILT_CERTIFICATE_FILES = 2 }; /* the certificate, its key */

/* Identifies a version of a file. */
struct silt_certificate_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec written, changed;
};

struct silt_certificate {
    struct silt_loop *loop;           /* borrowed */
    const struct silt_config *config; /* borrowed */
    void (*on_due)(struct silt_certificate *c);
    struct silt_timer look;
    struct silt_certificate_stamp seen[SILT_CERTIFICATE_FILES], told[SILT_CERTIFICATE_FILES];
    bool due;       /* silt-preview needs the files */
    unsigned asked; /* how many results it may still report */
    char used[320], refused[320];
};

/* Opens and checks both files; the caller owns the descriptors. */
int silt_certificate_files(const struct silt_config *config, int ret_fds[SILT_CERTIFICATE_FILES],
                           struct silt_error *e);
/* Does nothing if no certificate is configured. */
int silt_certificate_check(const struct silt_config *config, struct silt_error *e);

void silt_certificate_open(struct silt_certificate *c); /* loop, config and on_due must be set */
void silt_certificate_close(struct silt_certificate *c);
/* A new silt-preview has started. */
void silt_certificate_renew(struct silt_certificate *c);
/* Opens both files if they are due; false: they cannot be opened, which is recorded. */
bool silt_certificate_take(struct silt_certificate *c, int ret_fds[SILT_CERTIFICATE_FILES]);
/* Result reported by silt-preview, which faces the network: not trusted. */
void silt_certificate_told(struct silt_certificate *c, const struct silt_super_told *told);
