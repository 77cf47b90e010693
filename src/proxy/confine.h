/* SPDX-License-Identifier: Apache-2.0 */
/* confine: what silt-proxy may ask of the kernel: to talk, to wait, to read a file, and to end. */
#pragma once

#include "base/error.h"

int silt_proxy_confine(struct silt_error *e);
int silt_preview_confine(struct silt_error *e); /* no socket of its own making */
int silt_dial_confine(
    struct silt_error *e); /* in its second role: to make sockets and pass them on */
