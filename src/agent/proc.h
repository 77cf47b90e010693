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
/* Its parent, and when it began on the boot clock. False: it is gone. */
bool silt_proc_origin(pid_t id, pid_t *ret_parent, int64_t *ret_started_ms);
/* Its command line, arguments divided by spaces; its name in brackets where there is none. Answers the length. */
size_t silt_proc_title(pid_t id, char *text, size_t size);
