/* SPDX-License-Identifier: Apache-2.0 */
/* docker: the docker commands that wrangler uses, as requests to the engine socket. */
#pragma once

#include "cli/core/client.h"

int silt_docker_main(int argc, char **argv);
/* Finds the engine socket: an option, WRANGLER_DOCKER_HOST, DOCKER_HOST or the settings of this
 * machine. */
int silt_docker_find_socket(const char *option, char ret[SILT_CLIENT_ADDRESS_SIZE],
                            struct silt_error *e);
int silt_cli_wrangler_env(int argc, char **argv);
