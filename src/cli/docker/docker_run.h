/* SPDX-License-Identifier: Apache-2.0 */
/* docker_run: `silt-docker run` and `logs`: starts a container and prints its output. */
#pragma once

#include "cli/core/client.h"

/* *ret_code: exit status of the program, or 125 if it did not start. */
int silt_docker_run(struct silt_client *c, int argc, char **argv, int *ret_code,
                    struct silt_error *e);
int silt_docker_logs(struct silt_client *c, int argc, char **argv, struct silt_error *e);
