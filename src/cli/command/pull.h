/* SPDX-License-Identifier: Apache-2.0 */
/* pull: silt image pull. */
#pragma once

#include "cli/core/cli.h"

struct silt_cli_pull {
    const char *reference, *name, *user; /* name, user: may be NULL */
    bool password;                       /* read the password from standard input */
};

int silt_cli_pull(const struct silt_cli_pull *x, struct silt_client *c, struct silt_error *e);
