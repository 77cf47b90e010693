/* SPDX-License-Identifier: Apache-2.0 */
/* flush: asks the agent to write all of a process's pending output into its log. One request is in
 * flight at a time; all callers that arrive meanwhile share the next one. A request that times out
 * counts as answered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct silt_process;

struct silt_flush {
    uint64_t asked;    /* number of the last request */
    uint64_t answered; /* number of the last one answered */
    uint64_t wanted;   /* number of the last one waited for: asked, or asked + 1 */
};

/* The number to wait for; 0: nothing to flush, the process is not running. */
uint64_t silt_flush_want(struct silt_process *p);
bool silt_flush_is_done(const struct silt_process *p, uint64_t number);
void silt_flush_on_answer(struct silt_process *p);
void silt_flush_give_up(struct silt_process *p, uint64_t number); /* timed out */
