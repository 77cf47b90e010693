/* SPDX-License-Identifier: Apache-2.0 */
/* silt: the command line. An HTTP client of the daemon and nothing more, except `image build`,
 * which runs a recipe as root first, and `tls dev`, which makes files of this machine. */
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/docker/docker.h"
#include "cli/core/find.h"

static int run_token(int argc, char **argv)
{
    static struct silt_cli cli;
    const struct silt_config *config;
    char token[SILT_CLIENT_TOKEN_SIZE];
    struct silt_error e;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0 || silt_find_config(&config, &e) < 0
        || silt_find_token(cli.token_file, token, &e) < 0)
        return silt_cli_fail(&e);
    if (token[0] == 0) {
        (void)silt_fail(&e, SILT_DENIED, "no token: %s cannot be read\nTry: sudo silt token",
                        config->token_file);
        return silt_cli_fail(&e);
    }
    (void)puts(token);
    return EXIT_SUCCESS;
}

static int run_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)puts("silt " SILT_VERSION);
    return EXIT_SUCCESS;
}

static int run_help(int argc, char **argv);

static const struct command {
    const char *name;
    const char *words;
    const char *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"exec",
     "ID [--session S | --no-session] [--keep] [--cwd DIR] [--env K=V]... [--timeout 5s] -- "
     "COMMAND",
     "run a command in a sandbox, created on first use; streams its output, exits with its status",
     silt_cli_exec},
    {"run",
     "[-d] ID [--name PROCESS] [--session S] [--cwd DIR] [--env K=V]... [--user U] [--timeout 5s] "
     "-- COMMAND",
     "start a process with a log and stream its output; Ctrl-C ends it; -d leaves it running",
     silt_cli_run},
    {"create",
     "[ID] [--image NAME] [--type TYPE] [--network none|public|allow] [--allow RULE]... [--env "
     "K=V]... [--label K=V]... [--sleep-after 5m] [--stop-after "
     "24h] [--ttl 2h] [--keep-alive] [--ephemeral] [--json]",
     "create a sandbox with another image, size or network and print its id; otherwise the first "
     "use of an id creates it",
     silt_cli_create},
    {"shell", "ID [--session S] [--shell PROGRAM]",
     "open a terminal in a sandbox; Ctrl-] detaches, the same command reattaches", silt_cli_shell},
    {"ps", "ID [--all] [--json]",
     "list running processes, also leftovers of commands; --all: ended ones too", silt_cli_ps},
    {"logs", "[-f] [--stdout | --stderr] ID PROCESS",
     "print the output of a process; -f follows it and exits with its status", silt_cli_logs},
    {"kill", "ID PROCESS... [-s SIGNAL] | ID --all",
     "end processes and their children; --all: everything but idle shells and interpreters",
     silt_cli_kill},
    {"cp", "FROM TO",
     "copy a file or directory; ID:PATH is a path in a sandbox, - is standard input or output",
     silt_cli_cp},
    {"git-clone", "ID URL [DIR] [--branch B] [--depth N] [--timeout 5m]",
     "clone a repository into a sandbox", silt_cli_git_clone},
    {"watch", "ID PATH [--include GLOB]... [--exclude GLOB]... [--event TYPE]... [--flat] [--json]",
     "print changes of files until Ctrl-C", silt_cli_watch},
    {"ls", "[--label K=V]... [--json]", "list the sandboxes", silt_cli_ls},
    {"info", "ID [--json]", "show one sandbox: state, limits, usage, last death", silt_cli_info},
    {"net", "ID [--mode none|public|allow] [--allow RULE]... [--json]",
     "show or change a sandbox's network: mode, rules, traffic, denials", silt_cli_net},
    {"expose", "ID PORT [--name NAME] [--token TOKEN] [--private] [--json]",
     "give a port a URL and print it; --private: only signed URLs work", silt_cli_expose},
    {"unexpose", "ID PORT [--json]", "remove the URL of a port", silt_cli_unexpose},
    {"ports", "ID [--json]", "list the ports that have a URL", silt_cli_ports},
    {"open", "ID PORT [--json]",
     "expose a port, print its URL, and open it in a browser if there is one", silt_cli_open},
    {"stop", "ID... [--json]", "end the processes of sandboxes and keep their files",
     silt_cli_stop},
    {"start", "ID... [--json]", "start sandboxes that are stopped, resume those that are paused",
     silt_cli_start},
    {"restart", "ID... [--json]", "stop and start sandboxes", silt_cli_restart},
    {"pause", "ID... [--json]", "freeze the processes of sandboxes; their next use resumes them",
     silt_cli_pause},
    {"resume", "ID... [--json]", "resume sandboxes that are paused, start those that are stopped",
     silt_cli_resume},
    {"update",
     "ID [--cpu CORES] [--memory MIB] [--disk MIB] [--pids N] [--env K=V]... [--label K=V]... "
     "[--network none|public|allow] [--allow RULE]... [--sleep-after 5m] [--stop-after 24h] "
     "[--ttl 2h|off] [--keep-alive on|off] [--keep-processes on|off] [--remove-after-stop on|off] "
     "[--json]",
     "change limits, variables, labels, network and lifetime of a sandbox", silt_cli_update},
    {"rm", "ID...", "destroy sandboxes and their files", silt_cli_rm},
    {"image",
     "ls [--json] | build -t NAME [-f FILE] [--build-arg K=V]... [--target STAGE] [--network "
     "public|none] [--no-cache] DIR"
     " | build base|host [--refresh] | import [--image REF] [--format auto|tar|oci|docker] [NAME] "
     "PATH|- | export [-o FILE] [--format oci|docker|tar] NAME | pull REF [--name NAME] [--user U "
     "--password-stdin] | tag NAME OTHER | commit ID NAME | prune | rm NAME...",
     "manage images; build makes one from a Dockerfile, or base or host from its recipe (as root); "
     "pull fetches one from a registry; import reads an OCI layout, a docker-save archive or a "
     "tar of a root, export writes one",
     silt_cli_image},
    {"tls", "dev [--directory DIR] [--print-ca]",
     "make a certificate for previews on this machine, name it in the settings, and print how to "
     "trust it (as root)",
     silt_cli_tls},
    {"new", "DIR [--template NAME]",
     "make a directory with an app for wrangler that runs on Silt, from the template minimal or "
     "another example",
     silt_cli_new},
    {"wrangler-env", "[--no-account]",
     "print the variables that make wrangler use Silt; in a shell: eval \"$(silt wrangler-env)\"",
     silt_cli_wrangler_env},
    {"token", "", "print the API token", run_token},
    {"doctor", "", "check this machine and say what is missing", silt_cli_doctor},
    {"version", "", "print the version", run_version},
    {"help", "", "print this help", run_help},
};

/* Prints one line for each form of the command: `|` outside brackets separates them. */
static void print_ways(const struct command *c, const char *margin)
{
    int depth = 0;
    (void)printf("%ssilt %s%s", margin, c->name, c->words[0] != 0 ? " " : "");
    for (const char *p = c->words; *p != 0; p++) {
        depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        if (depth == 0 && strncmp(p, " | ", 3) == 0) {
            (void)printf("\n%ssilt %s ", margin, c->name);
            p += 2;
        } else {
            (void)putchar(*p);
        }
    }
    (void)putchar('\n');
}

static int run_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)puts("silt: isolated Linux computers by id\n");
    for (size_t i = 0; i < SILT_COUNT(commands); i++) {
        print_ways(&commands[i], "  ");
        (void)printf("      %s\n", commands[i].help);
    }
    (void)puts("\nEvery command takes: --server HOST:PORT (or SILT_SERVER), --token-file FILE (or "
               "SILT_TOKEN).\n"
               "Exit status 125: silt itself failed, not the command. More: man silt");
    return EXIT_SUCCESS;
}

static const struct command *find_command(const char *name)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < SILT_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* `silt --server HOST:PORT ls` is `silt ls --server HOST:PORT`. */
static void bring_command_first(int argc, char **argv)
{
    int at = 1;
    while (at < argc
           && (strncmp(argv[at], "--server", 8) == 0 || strncmp(argv[at], "--token-file", 12) == 0))
        at += strchr(argv[at], '=') != NULL ? 1 : 2;
    if (at >= argc)
        return;
    char *command = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
    argv[1] = command;
}

/* `silt exec --help`, but not `silt exec ID -- ls --help`. */
static bool wants_help(int argc, char **argv)
{
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    struct silt_error e;
    if (argc < 2)
        return run_help(argc, argv);
    bring_command_first(argc, argv);
    const struct command *c = find_command(argv[1]);
    if (c == NULL) {
        (void)silt_fail(&e, SILT_INVALID, "no command %s\nTry: silt help", argv[1]);
        return silt_cli_fail(&e);
    }
    if (wants_help(argc, argv)) {
        print_ways(c, "");
        (void)printf("    %s\n", c->help);
        return EXIT_SUCCESS;
    }
    return c->run(argc - 2, argv + 2);
}
