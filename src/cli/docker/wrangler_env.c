/* SPDX-License-Identifier: Apache-2.0 */
/* silt wrangler-env: prints the environment variables with which wrangler finds Silt, for a shell
 * to evaluate. */
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/docker/docker.h"
#include "cli/docker/wrangler.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Before docker pulls an image, wrangler dev asks Cloudflare for the registry's credentials, which
 * needs an account; without a response it goes on without them. So it gets an account that does not
 * exist, at an address without a listener (port 9, the old discard service). */
static const char no_account[] = "export CLOUDFLARE_API_TOKEN='none'\n"
                                 "export CLOUDFLARE_ACCOUNT_ID='00000000000000000000000000000000'\n"
                                 "export CLOUDFLARE_API_BASE_URL='http://127.0.0.1:9/client/v4'\n";

/* Beside this program, even if nothing is installed. */
static void find_program(char ret[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = 0;
    char *name = strrchr(self, '/');
    int len =
        name == NULL ? -1 : snprintf(ret, PATH_MAX, "%.*s/silt-docker", (int)(name - self), self);
    if (len < 0 || len >= PATH_MAX || strchr(ret, '\'') != NULL || access(ret, X_OK) < 0)
        (void)snprintf(ret, PATH_MAX, "silt-docker");
}

static void advise(const char *socket, bool without_account)
{
    silt_auto_arena a;
    silt_slice image;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (access(socket, R_OK | W_OK) < 0)
        (void)fprintf(
            stderr, "silt: %s %s\n", socket,
            errno == EACCES || errno == EPERM
                ? "cannot be opened by this user; see the settings engine.mode and engine.group"
                : "is not there: is the daemon running?");
    if (!without_account && getenv("CLOUDFLARE_API_TOKEN") == NULL
        && silt_wrangler_pulls(&a, &image))
        (void)fprintf(stderr,
                      "silt: the image %.*s is a registry's, for which wrangler wants you to be "
                      "logged in to Cloudflare. Without an account: eval \"$(silt "
                      "wrangler-env --no-account)\", or a Dockerfile that says FROM %.*s\n",
                      (int)image.len, image.data, (int)image.len, image.data);
}

int silt_cli_wrangler_env(int argc, char **argv)
{
    static struct silt_cli cli;
    bool without_account = false;
    char program[PATH_MAX];
    char socket[SILT_CLIENT_ADDRESS_SIZE];
    struct silt_error e;
    const struct silt_option table[] = {{.name = "no-account", .flag = &without_account}};
    struct silt_options options = {.table = table, .count = SILT_COUNT(table)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0
        || silt_docker_find_socket(NULL, socket, &e) < 0)
        return silt_cli_fail(&e);
    if (strchr(socket, '\'') != NULL) { /* a shell evaluates the output */
        (void)silt_fail(&e, SILT_INVALID, "the socket %s has a quote in its path", socket);
        return silt_cli_fail(&e);
    }
    find_program(program);
    (void)printf("export WRANGLER_DOCKER_BIN='%s'\nexport WRANGLER_DOCKER_HOST='unix://%s'\nexport "
                 "DOCKER_HOST='unix://%s'\n",
                 program, socket, socket);
    if (without_account)
        (void)fputs(no_account, stdout);
    advise(socket, without_account);
    return EXIT_SUCCESS;
}
