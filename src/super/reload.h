/* SPDX-License-Identifier: Apache-2.0 */
/* reload: silt-super executes itself again, with new programs from the disk, while the sandboxes
 * run on. Asked for by SIGUSR2: the new silt-super is started once to say whether it can continue
 * (--check); then siltd drains, all programs end, and execve keeps the process, its children, its
 * namespaces and the descriptors of super/handover.h. Until execve a failure leaves the instance as
 * it was. <run>/reload has the number of the last reload and its result. Private to this
 * directory. */
#pragma once

#include "super/child.h"

/* SIGUSR2. While a reload is under way, another one follows it. */
void silt_reload_ask(struct silt_super *s);
/* The instance serves: answers for a reload that led here, or begins one that had to wait. */
void silt_reload_on_serving(struct silt_super *s);
/* A child that is none of the programs; false: nor is it the check. */
bool silt_reload_on_exit(struct silt_super *s, pid_t pid, int status);
/* All programs have ended. Returns only if the kernel refused. */
void silt_reload_exec(struct silt_super *s);
/* In super.c: the check has passed. */
void silt_super_hand_over(struct silt_super *s);

/* Writes the result of a reload; `error` NULL: it was done. */
void silt_reload_tell(const struct silt_config *c, const char *error);
/* At the start of an instance: says that it can reload. */
void silt_reload_offer(const struct silt_config *c);
/* silt-super --reload: asks the running silt-super, and waits for the result. */
int silt_reload_request(const struct silt_config *c, struct silt_error *e);
