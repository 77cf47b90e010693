/* SPDX-License-Identifier: Apache-2.0 */
/* start_frame: builds the body of an OPEN or EXEC frame: inline if small, in a memfd if large. Also
 * environments: NAME=value\0 entries, each name once. */
#pragma once

#include "base/buf.h"
#include "sandbox/core/sandbox.h"

struct silt_start_frame {
    uint64_t session;
    uint32_t mode, timeout_ms, flags, terminal;
    silt_slice note, cwd, env, user, command;
    int log;             /* borrowed, with SILT_START_LOG */
    int secret;          /* borrowed, with SILT_START_SECRET */
    int out, err, lines; /* borrowed, with SILT_START_PIPES */
};

int silt_start_frame_send(struct silt_sandbox *s, uint32_t type, uint64_t id,
                          const struct silt_start_frame *p, struct silt_error *e);

/* PATH of commands for which neither image nor caller sets one. */
#define SILT_USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* The base environment of a command: Silt's, then the image's, then the sandbox's. For users other
 * than root the agent sets HOME, USER and LOGNAME, since it can read /etc/passwd. */
void silt_env_base(struct silt_buf *b, const struct silt_sandbox *s, bool is_root);
/* A variable's value in the sandbox, else in its image; data NULL: unset. */
silt_slice silt_env_given(const struct silt_sandbox *s, silt_slice name);
/* Adds each variable of `env`, replacing those of the same name. Each entry is NUL-terminated and
 * each name occurs once. */
void silt_env_merge(struct silt_buf *b, silt_slice env);
void silt_env_drop(struct silt_buf *b, silt_slice name);
/* A variable's value in `env`; data NULL: unset. */
silt_slice silt_env_find(silt_slice env, silt_slice name);
/* True if a variable's name in `env` starts with one of the prefixes (NULL-terminated array). */
bool silt_env_names(silt_slice env, const char *const *beginnings);
