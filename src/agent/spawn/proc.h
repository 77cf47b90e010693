/* SPDX-License-Identifier: Apache-2.0 */
/* proc: reads /proc about a process of the guest. The process may be gone, or its pid reused, by
 * now. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool silt_proc_is_process(pid_t id); /* and not only a thread */
/* The number in a line like "PPid:" of /proc/<id>/status, or 0. */
uint64_t silt_proc_status(pid_t id, const char *key, unsigned base);
char silt_proc_activity(pid_t id); /* R, S, D, …; 0: unknown */
/* The same, with the CPU time of the process and its waited-for children. */
char silt_proc_work(pid_t id, int64_t *ret_ms);
/* Its parent and its start time on the boot clock. False: it is gone. */
bool silt_proc_origin(pid_t id, pid_t *ret_parent, int64_t *ret_started_ms);
/* Its command line, arguments separated by spaces; if empty, its name in brackets. Returns the
 * length. */
size_t silt_proc_title(pid_t id, char *text, size_t size);
