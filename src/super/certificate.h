/* SPDX-License-Identifier: Apache-2.0 */
/* certificate: the files that previews are encrypted with. silt-super reads neither: it opens both, which silt-proxy may not, hands
 * them to silt-preview, looks every second whether they have changed, and writes to `<run>/preview-certificate` what became of them. */
#pragma once

#include "config/config.h"
#include "event/loop.h"
#include "wire/super.h"

#include <sys/types.h>
#include <time.h>

enum { SILT_CERTIFICATE_FILES = 2 }; /* the certificate, its key */

/* Tells one state of a file from another. */
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
    bool due;       /* silt-preview is to be told */
    unsigned asked; /* how often it may say what became of them */
    char used[320], refused[320];
};

/* Opens and checks both; the descriptors are the caller's. */
int silt_certificate_files(const struct silt_config *config, int ret_fds[SILT_CERTIFICATE_FILES], struct silt_error *e);
/* As the name says; does nothing where no certificate is set. */
int silt_certificate_check(const struct silt_config *config, struct silt_error *e);

void silt_certificate_open(struct silt_certificate *c); /* loop, config and on_due are set */
void silt_certificate_close(struct silt_certificate *c);
/* There is a new silt-preview. */
void silt_certificate_renew(struct silt_certificate *c);
/* What is due: both files; false: they cannot be opened, which is noted. */
bool silt_certificate_take(struct silt_certificate *c, int ret_fds[SILT_CERTIFICATE_FILES]);
/* silt-preview says; it faces strangers. */
void silt_certificate_told(struct silt_certificate *c, const struct silt_super_told *told);
