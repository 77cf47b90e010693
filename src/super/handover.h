/* SPDX-License-Identifier: Apache-2.0 */
/* handover: what silt-super keeps while it executes itself again (super/reload.h): descriptors and
 * the settings they were made with. It is written to a sealed memfd, whose number the new program
 * gets as --handover=FD. The reader trusts nothing in it: an unknown version or a damaged table is
 * SILT_PROTOCOL. */
#pragma once

#include "base/buf.h"
#include "engine/network/gateway.h"
#include "super/fd_store.h"
#include "super/instance_dirs.h"

/* Rises with the layout, and with anything else that a new silt-super could not continue: then the
 * reload is refused, and a restart is needed. */
enum { SILT_HANDOVER_VERSION = 1 };
enum { SILT_HANDOVER_MAX = 256 << 20, SILT_HANDOVER_SETTINGS_MAX = 64 };

struct silt_handover {
    int listen;
    int preview, engine; /* -1: none */
    int gate, gate_log;  /* -1: no gateway */
    int gate_sockets[SILT_GATEWAY_SOCKETS];
    uint32_t gate_socket_count;
    struct silt_instance_locks locks;
    struct silt_fd_store keep;
    char **settings; /* silt_config_fixed */
};

void silt_handover_write(const struct silt_handover *h, struct silt_buf *out);
/* Knows only numbers: whether they are open descriptors, silt_handover_mark tells. On failure
 * nothing is in *ret. */
int silt_handover_read(silt_slice bytes, struct silt_handover *ret, struct silt_error *e);
/* Frees the memory; closes nothing. */
void silt_handover_forget(struct silt_handover *h);

/* Sets the flags of all descriptors: 0: they survive execve; FD_CLOEXEC. Fails if one of them is
 * not open. */
int silt_handover_mark(const struct silt_handover *h, int flags, struct silt_error *e);

/* Maps and reads the memfd `fd`. */
int silt_handover_load(int fd, struct silt_handover *ret, struct silt_error *e);
