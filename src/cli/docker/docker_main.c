/* SPDX-License-Identifier: Apache-2.0 */
/* silt-docker: replaces `docker` for wrangler. */
#include "cli/docker/docker.h"

int main(int argc, char **argv)
{
    return silt_docker_main(argc, argv);
}
