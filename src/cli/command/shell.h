/* SPDX-License-Identifier: Apache-2.0 */
/* shell: one command in a terminal of its own, for `silt exec -t`. */
#pragma once

#include "cli/core/cli.h"

struct silt_shell_order {
    const struct silt_cli *cli; /* of the command line: its first argument is the sandbox */
    const char *cwd;            /* NULL: that of a new session */
    const struct silt_words *env;
    bool catches; /* the caller destroys the sandbox afterwards: SIGINT detaches, too */
};

/* Runs cli->rest until it ends or the user detaches. `c` is for requests beside the terminal's. */
int silt_shell_run(const struct silt_shell_order *o, struct silt_client *c, int *ret_status,
                   struct silt_error *e);
