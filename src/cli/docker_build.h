/* SPDX-License-Identifier: Apache-2.0 */
/* docker_build: `silt-docker build`: the words of docker, the context of the folder, the progress of the daemon. */
#pragma once

#include "cli/client.h"

/* `c` is at the engine socket. */
int silt_docker_build(struct silt_client *c, int argc, char **argv, struct silt_error *e);
