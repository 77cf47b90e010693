/* SPDX-License-Identifier: Apache-2.0 */
/* start: the body of an OPEN or EXEC frame: small ones inline, large ones in a memfd. And environments:
 * NAME=value\0 one after the other, each name once. */
#pragma once

#include "base/buf.h"
#include "sandbox/sandbox.h"

struct silt_start {
    uint64_t session;
    uint32_t mode, timeout_ms, flags, terminal;
    silt_slice note, cwd, env, user, command;
    int log;    /* borrowed, with SILT_START_LOG */
    int secret; /* borrowed, with SILT_START_SECRET */
    int out, err, lines; /* borrowed, with SILT_START_PIPES */
};

int silt_start_send(struct silt_sandbox *s, uint32_t type, uint64_t id, const struct silt_start *p,
                    struct silt_error *e);

/* Of commands for which neither their image nor their caller names one. */
#define SILT_USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* What every command sees: ours, then the image's, then the sandbox's own. Whoever is not root gets HOME, USER and LOGNAME
 * from the agent, who can read /etc/passwd. */
void silt_env_base(struct silt_buf *b, const struct silt_sandbox *s, bool is_root);
/* What the sandbox, else its image, gives a variable; data NULL: nothing. */
silt_slice silt_env_given(const struct silt_sandbox *s, silt_slice name);
/* Adds each variable of `env`, in place of one of the same name. Each has its terminator; a name is in it
 * once. */
void silt_env_merge(struct silt_buf *b, silt_slice env);
void silt_env_drop(struct silt_buf *b, silt_slice name);
/* The value of a variable in `env`; data NULL: it has none. */
silt_slice silt_env_find(silt_slice env, silt_slice name);
/* Whether a variable of `env` begins with one of these, the last of which is NULL. */
bool silt_env_names(silt_slice env, const char *const *beginnings);
