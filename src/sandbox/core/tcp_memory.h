/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_memory: siltd's view of the connections and processes that silt-priv ended because TCP
 * sockets used too much memory (wire/tcp_memory.h). */
#pragma once

#include "wire/tcp_memory.h"

#include <limits.h>
#include <stdbool.h>

struct silt_agent_end;
struct silt_sandbox;

struct silt_tcp_memory {
    char path[PATH_MAX]; /* <run>/tcp; "": no watcher, as in tests */
};

void silt_tcp_memory_init(struct silt_tcp_memory *m, const char *run_dir);
/* Zeros if no watcher has reported yet. */
void silt_tcp_memory_sums(const struct silt_tcp_memory *m, struct silt_tcp_sums *ret);
/* False: nothing has happened in this slot since `since_ms` (wall clock). */
bool silt_tcp_memory_look(const struct silt_tcp_memory *m, uint32_t slot, int64_t since_ms,
                          struct silt_tcp_record *ret);
/* To be called when a command has ended. silt-init only sees a SIGKILL: adds SILT_END_TCP if
 * silt-priv has just killed for TCP memory, and records that once as the sandbox's last death. */
void silt_tcp_memory_explain(struct silt_sandbox *s, struct silt_agent_end *end);
