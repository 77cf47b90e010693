/* SPDX-License-Identifier: Apache-2.0 */
/* docker: the verbs of a docker command line that wrangler calls, on the engine socket. */
#pragma once

#include "cli/client.h"

int silt_docker_main(int argc, char **argv);
/* The engine socket: an option, WRANGLER_DOCKER_HOST, DOCKER_HOST, else what this machine's settings say. */
int silt_docker_find_socket(const char *option, char ret[SILT_CLIENT_ADDRESS_SIZE], struct silt_error *e);
int silt_cli_wrangler_env(int argc, char **argv);
