/* SPDX-License-Identifier: Apache-2.0 */
/* docker_build: `silt-docker build`: parses docker's arguments, sends the context, shows the
 * daemon's progress. */
#pragma once

#include "cli/core/client.h"

/* `c` is connected to the engine socket. */
int silt_docker_build(struct silt_client *c, int argc, char **argv, struct silt_error *e);
