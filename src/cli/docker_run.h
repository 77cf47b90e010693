/* SPDX-License-Identifier: Apache-2.0 */
/* docker_run: `silt-docker run` and `logs`: a container's program, and what it writes. */
#pragma once

#include "cli/client.h"

/* *ret_code: as the program ended, or 125 when it did not begin. */
int silt_docker_run(struct silt_client *c, int argc, char **argv, int *ret_code, struct silt_error *e);
int silt_docker_logs(struct silt_client *c, int argc, char **argv, struct silt_error *e);
