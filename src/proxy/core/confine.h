/* SPDX-License-Identifier: Apache-2.0 */
/* confine: the seccomp filters of silt-proxy. Each role allows only what it needs: to talk on
 * sockets, wait, read a file and exit. Fails if the kernel refuses a filter. */
#pragma once

#include "base/error.h"

int silt_proxy_confine(struct silt_error *e);
int silt_preview_confine(struct silt_error *e); /* no socket of its own making */
int silt_dial_confine(
    struct silt_error *e); /* in its second role: to make sockets and pass them on */
