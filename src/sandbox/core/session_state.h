/* SPDX-License-Identifier: Apache-2.0 */
/* session_state: what a session keeps when the processes of its sandbox end: its directory, its
 * timeout and its exported variables, as far as they differ from those that every session gets.
 * The functions here are pure; session.c owns the state and writes it to the store. */
#pragma once

#include "base/buf.h"

enum {
    SILT_SESSION_STATE_VERSION = 1,
    SILT_SESSION_ENV_MAX = 60 << 10, /* as much as fits a frame */
};

/* Parses what bash's `declare -px` prints (input of a guest) and adds NAME=value\0… Variables of
 * the shell itself, arrays and those without a value are left out. SILT_INVALID if it is not that.
 */
int silt_session_state_parse(silt_slice text, struct silt_buf *ret, struct silt_error *e);
/* Adds NAME=value\0 for each variable that differs from `base` and `former`, values that `base` had
 * earlier, and NAME\0 for each variable of `base` that is gone. */
void silt_session_state_diff(silt_slice now, silt_slice base, silt_slice former,
                             struct silt_buf *ret);
/* Applies such differences to an environment. */
void silt_session_state_apply(struct silt_buf *env, silt_slice kept);
