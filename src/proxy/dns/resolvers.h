/* SPDX-License-Identifier: Apache-2.0 */
/* resolvers: the DNS servers to query: those of the setting, or the machine's own, which are read
 * again when resolv.conf changes. */
#pragma once

#include "base/slice.h"

#include <sys/socket.h>
#include <sys/stat.h>

enum { SILT_RESOLVERS_MAX = 3, SILT_RESOLVERS_PORT = 53 };

struct silt_resolver {
    struct sockaddr_storage address;
    socklen_t len;
};

struct silt_resolvers {
    struct silt_resolver list[SILT_RESOLVERS_MAX];
    size_t count;
    bool fixed; /* by the setting */
    int64_t looked_ms;
    struct stat seen; /* the file when it was read */
};

/* `setting`: addresses with commas; "": those of /etc/resolv.conf. */
int silt_resolvers_init(struct silt_resolvers *r, const char *setting, struct silt_error *e);
/* Looks whether the file has changed, at most once a second. */
void silt_resolvers_refresh(struct silt_resolvers *r);
/* Of resolv.conf(5): the first three that are addresses. */
void silt_resolvers_parse(struct silt_resolvers *r, silt_slice text);
