/* SPDX-License-Identifier: Apache-2.0 */
/* silt-docker: stands in for `docker` where wrangler calls it. */
#include "cli/docker.h"

int main(int argc, char **argv)
{
    return silt_docker_main(argc, argv);
}
