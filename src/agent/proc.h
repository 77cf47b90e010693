/* SPDX-License-Identifier: Apache-2.0 */
/* proc: what the kernel tells about a process of the guest. It may be gone or another one by now.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool silt_proc_is_process(pid_t id); /* and not just a thread of one */
/* The number of a line like "PPid:" in /proc/<id>/status, or 0. */
uint64_t silt_proc_status(pid_t id, const char *key, unsigned base);
char silt_proc_activity(pid_t id); /* R, S, D, …; 0: unknown */
