/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of silt. A new one is a row here, a function, and a section of docs/man/silt.1:
 * parser, help and completion read this table. */
#include "cli/core/cli.h"
#include "base/own.h"
#include "cli/core/table.h"
#include "cli/docker/docker.h"

#define OPTIONS(...)                                                                               \
    (const struct silt_table_option[])                                                             \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

#define JSON                                                                                       \
    {                                                                                              \
        "json", 0, 0, NULL, "print JSON"                                                           \
    }
#define SESSION                                                                                    \
    {                                                                                              \
        "session", 0, 0, "NAME", "session to run in, created on first use (default: default)"      \
    }
#define CWD                                                                                        \
    {                                                                                              \
        "cwd", 'w', 0, "DIR", "working directory (default: the session's)"                         \
    }
#define ENV                                                                                        \
    {                                                                                              \
        "env", 'e', 1, "NAME=VALUE", "set a variable"                                              \
    }
#define USER                                                                                       \
    {                                                                                              \
        "user", 'u', 0, "USER", "user of the image, by name or uid[:gid] (default: the image's)"   \
    }
#define TIMEOUT                                                                                    \
    {                                                                                              \
        "timeout", 0, 0, "TIME", "end it after 500ms, 5s, 2m or 1h (default: never)"               \
    }
#define LABEL                                                                                      \
    {                                                                                              \
        "label", 0, 1, "KEY=VALUE", "give it a label"                                              \
    }
#define NETWORK                                                                                    \
    {                                                                                              \
        "network", 0, 0, "none|public|allow",                                                      \
            "what it may reach (default: the setting network.mode)"                                \
    }
#define ALLOW                                                                                      \
    {                                                                                              \
        "allow", 0, 1, "RULE",                                                                     \
            "let it reach example.com, *.example.com:443 or 203.0.114.0/24:5432 only"              \
    }
#define SLEEP_AFTER                                                                                \
    {                                                                                              \
        "sleep-after", 0, 0, "TIME",                                                               \
            "pause it when idle for this long (default: the setting sleep_after_s)"                \
    }
#define STOP_AFTER                                                                                 \
    {                                                                                              \
        "stop-after", 0, 0, "TIME",                                                                \
            "stop it when paused for this long (default: the setting stop_after_s)"                \
    }
#define CPU                                                                                        \
    {                                                                                              \
        "cpu", 0, 0, "CORES", "processor cores, such as 0.5"                                       \
    }
#define MEMORY                                                                                     \
    {                                                                                              \
        "memory", 0, 0, "SIZE", "memory in MiB, or such as 512M or 2G"                             \
    }
#define DISK                                                                                       \
    {                                                                                              \
        "disk", 0, 0, "SIZE", "disk in MiB, or such as 512M or 8G"                                 \
    }
#define PIDS                                                                                       \
    {                                                                                              \
        "pids", 0, 0, "N", "largest number of processes"                                           \
    }

#define TEMPLATES                                                                                  \
    "minimal|code-interpreter|ai-code-executor|data-analysis|code-review-bot|test-pipeline|agent"

const struct silt_table_option silt_table_common[] = {
    {"server", 0, 0, "ADDRESS",
     "the daemon, as HOST:PORT or https://HOST (default: SILT_SERVER, the context, this "
     "machine's)"},
    {"context", 0, 0, "CONTEXT", "a daemon that silt login has stored (default: SILT_CONTEXT)"},
    {"token-file", 0, 0, "FILE",
     "file with the API token (default: SILT_TOKEN, the context's, /etc/silt/token)"},
    {"help", 'h', 0, NULL, "print this help"},
    {0},
};

const struct silt_table_row silt_table[] = {
    {"exec", SILT_TABLE_RUN, "ID [OPTION...] [--] COMMAND [ARGUMENT...]",
     "Runs a command in a sandbox and exits with its status. A new id creates the sandbox.",
     "silt exec box -e CI=1 -- make test",
     OPTIONS({"interactive", 'i', 0, NULL,
              "pass standard input on (default: unless it is a terminal or /dev/null)"},
             {"tty", 't', 0, NULL, "run it in a terminal; Ctrl-] detaches"}, SESSION, CWD, ENV,
             USER, TIMEOUT, {"no-session", 0, 0, NULL, "use a fresh shell that shares nothing"},
             {"keep", 0, 0, NULL, "run in the session's shell itself: cd and variables stay"},
             {"rm", 0, 0, NULL, "create the sandbox and destroy it when the command has ended"}),
     "sandbox", NULL, 1, silt_cli_exec},
    {"run", SILT_TABLE_RUN, "ID [OPTION...] [--] COMMAND [ARGUMENT...]",
     "Starts a process with a log and streams its output; Ctrl-C ends it.",
     "silt run -d box --name web -- python3 -m http.server",
     OPTIONS({"detach", 'd', 0, NULL, "print its id and leave it running"},
             {"name", 0, 0, "PROCESS", "id of the process (default: a new one)"}, SESSION, CWD, ENV,
             USER, TIMEOUT),
     "sandbox", NULL, 1, silt_cli_run},
    {"shell", SILT_TABLE_RUN, "ID [OPTION...]",
     "Opens a terminal in a sandbox. Ctrl-] detaches; the same command reattaches.",
     "silt shell box",
     OPTIONS(SESSION, {"shell", 0, 0, "PROGRAM", "what a new terminal runs (default: bash)"}),
     "sandbox", "attach sh ssh", 0, silt_cli_shell},
    {"ps", SILT_TABLE_RUN, "ID [OPTION...]", "Lists running processes, also leftovers of commands.",
     "silt ps box --all", OPTIONS({"all", 'a', 0, NULL, "also those that have ended"}, JSON),
     "sandbox", "top", 0, silt_cli_ps},
    {"logs", SILT_TABLE_RUN, "ID PROCESS [OPTION...]", "Prints the output of a process.",
     "silt logs -f box web",
     OPTIONS({"follow", 'f', 0, NULL, "follow it to its end and exit with its status"},
             {"stdout", 0, 0, NULL, "standard output only"},
             {"stderr", 0, 0, NULL, "standard error only"}),
     "sandbox process", NULL, 0, silt_cli_logs},
    {"kill", SILT_TABLE_RUN, "ID PROCESS... [-s SIGNAL] | ID --all",
     "Ends processes and everything they started: SIGTERM, after 5 s SIGKILL.", "silt kill box web",
     OPTIONS(
         {"signal", 's', 0, "TERM|KILL|INT|HUP|QUIT|USR1|USR2|STOP|CONT", "send just this signal"},
         {"all", 'a', 0, NULL, "end everything but idle shells and interpreters"}),
     "sandbox process*", NULL, 0, silt_cli_kill},

    {"create", SILT_TABLE_LIFE, "[ID] [OPTION...]",
     "Creates a sandbox and prints its id. Needed only for other than default settings.",
     "silt create box --image base --type basic --network none",
     OPTIONS(
         {"image", 0, 0, "IMAGE", "image (default: the setting image)"},
         {"from", 0, 0, "SOURCE", "begin with the files of a snapshot or sandbox, and be like it"},
         {"type", 0, 0, "lite|basic|standard-1|standard-2|standard-3|standard-4",
          "size (default: the setting type)"},
         CPU, MEMORY, DISK, PIDS, NETWORK, ALLOW, ENV, LABEL, SLEEP_AFTER, STOP_AFTER,
         {"ttl", 0, 0, "TIME", "destroy it after this time (default: never)"},
         {"keep-alive", 0, 0, NULL, "never pause it for being idle"},
         {"ephemeral", 0, 0, NULL, "do not wait for the disk: fast, lost with the power"}, JSON),
     NULL, NULL, 0, silt_cli_create},
    {"ls", SILT_TABLE_LIFE, "[OPTION...]", "Lists the sandboxes.", "silt ls --label team=web",
     OPTIONS({"label", 0, 1, "KEY=VALUE", "only those with this label"},
             {"quiet", 'q', 0, NULL, "print ids only"},
             {"all", 'a', 0, NULL, "in every state (the default, as in docker)"}, JSON),
     NULL, "list", 0, silt_cli_ls},
    {"info", SILT_TABLE_LIFE, "ID [OPTION...]",
     "Shows one sandbox: state, limits, usage, last death.", "silt info box", OPTIONS(JSON),
     "sandbox", "inspect show", 0, silt_cli_info},
    {"events", SILT_TABLE_LIFE, "[OPTION...]",
     "Prints what happened to the sandboxes, as far as it is kept.",
     "silt events -f --types died,denied",
     OPTIONS({"follow", 'f', 0, NULL, "print what happens from now on, until Ctrl-C"},
             {"sandbox", 0, 0, "ID", "only of this sandbox"},
             {"types", 0, 0, "TYPE,...", "only these types, such as started,died"},
             {"cursor", 0, 0, "CURSOR", "begin behind this event of an earlier --json"}, JSON),
     NULL, NULL, 0, silt_cli_events},
    {"stats", SILT_TABLE_LIFE, "[ID...] [OPTION...]",
     "Shows processor, memory, processes and disk of sandboxes, again every second.", "silt stats",
     OPTIONS({"no-stream", 0, 0, NULL, "once (default: unless standard output is a terminal)"},
             JSON),
     "sandbox*", NULL, 0, silt_cli_stats},
    {"df", SILT_TABLE_LIFE, "[OPTION...]", "Shows what sandboxes and images take of the disk.",
     "silt df", OPTIONS(JSON), NULL, NULL, 0, silt_cli_df},
    {"update", SILT_TABLE_LIFE, "ID [OPTION...]",
     "Changes limits, variables, labels, network and lifetime of a sandbox.",
     "silt update box --memory 2G --sleep-after 1h",
     OPTIONS(CPU, MEMORY, DISK, PIDS, ENV, LABEL, NETWORK, ALLOW, SLEEP_AFTER, STOP_AFTER,
             {"ttl", 0, 0, "TIME", "destroy it after this time; off: never"},
             {"keep-alive", 0, 0, "on|off", "never pause it for being idle"},
             {"keep-processes", 0, 0, "on|off", "start its processes again after a stop"},
             {"remove-after-stop", 0, 0, "on|off", "destroy it when it stops"},
             {"auto-snapshot", 0, 0, "command|off", "keep a snapshot before each command"}, JSON),
     "sandbox", NULL, 0, silt_cli_update},
    {"stop", SILT_TABLE_LIFE, "ID... [OPTION...]",
     "Ends the processes of sandboxes and keeps their files.", "silt stop box", OPTIONS(JSON),
     "sandbox*", NULL, 0, silt_cli_stop},
    {"start", SILT_TABLE_LIFE, "ID... [OPTION...]",
     "Starts sandboxes that are stopped, resumes those that are paused.", "silt start box",
     OPTIONS(JSON), "sandbox*", NULL, 0, silt_cli_start},
    {"restart", SILT_TABLE_LIFE, "ID... [OPTION...]", "Stops and starts sandboxes.",
     "silt restart box", OPTIONS(JSON), "sandbox*", NULL, 0, silt_cli_restart},
    {"pause", SILT_TABLE_LIFE, "ID... [OPTION...]",
     "Freezes the processes of sandboxes; their next use resumes them.", "silt pause box",
     OPTIONS(JSON), "sandbox*", NULL, 0, silt_cli_pause},
    {"resume", SILT_TABLE_LIFE, "ID... [OPTION...]", "The same as start.", "silt resume box",
     OPTIONS(JSON), "sandbox*", "unpause", 0, silt_cli_resume},
    {"snapshot take", SILT_TABLE_LIFE, "ID [OPTION...]",
     "Keeps the files of a sandbox as they are now, and prints the id of the snapshot.",
     "silt snapshot take box --name before",
     OPTIONS({"name", 0, 0, "NAME", "a name for lists"},
             {"ttl", 0, 0, "TIME", "delete it after this time (default: never)"}, JSON),
     "sandbox", NULL, 0, silt_cli_snapshot},
    {"snapshot ls", SILT_TABLE_LIFE, "[ID] [OPTION...]",
     "Lists the snapshots of one sandbox, or of all.", "silt snapshot ls box", OPTIONS(JSON),
     "sandbox", NULL, 0, silt_cli_snapshot},
    {"snapshot rm", SILT_TABLE_LIFE, "SNAPSHOT...", "Deletes snapshots and prints each id.",
     "silt snapshot rm snap_7k2m5xq4wz3ab6cd", NULL, "snapshot*", NULL, 0, silt_cli_snapshot},
    {"rollback", SILT_TABLE_LIFE, "ID SNAPSHOT [OPTION...]",
     "Ends the processes of a sandbox and gives it the files of a snapshot.",
     "silt rollback box snap_7k2m5xq4wz3ab6cd", OPTIONS(JSON), "sandbox snapshot", NULL, 0,
     silt_cli_rollback},
    {"history", SILT_TABLE_LIFE, "ID [OPTION...]",
     "Lists the last commands of a sandbox and the snapshots from before them.", "silt history box",
     OPTIONS(JSON), "sandbox", NULL, 0, silt_cli_history},
    {"undo", SILT_TABLE_LIFE, "ID [N] [OPTION...]",
     "Gives a sandbox the files from before its last N commands and says what that ended.",
     "silt undo box 3", OPTIONS(JSON), "sandbox", NULL, 0, silt_cli_undo},
    {"fork", SILT_TABLE_LIFE, "ID NEW... | ID --count N [OPTION...]",
     "Makes stopped sandboxes with the files and settings of another one, all or none.",
     "silt fork box try-1 try-2",
     OPTIONS({"count", 0, 0, "N", "make ID-1 to ID-N instead of naming them"}, JSON), "sandbox",
     NULL, 0, silt_cli_fork},
    {"rm", SILT_TABLE_LIFE, "ID... [-f] | --all [-f]",
     "Destroys sandboxes and their files, and prints each id.", "silt rm box",
     OPTIONS({"force", 'f', 0, NULL, "do not ask, and let an unknown id be"},
             {"all", 0, 0, NULL, "destroy every sandbox"}),
     "sandbox*", "remove delete destroy", 0, silt_cli_rm},

    {"cp", SILT_TABLE_FILES, "FROM TO",
     "Copies a file or directory. ID:PATH is in a sandbox, - is standard input or output.",
     "silt cp ./site box:/srv",
     OPTIONS({"recursive", 'r', 0, NULL, "copy directories (the default, as in cp)"}),
     "place place", NULL, 0, silt_cli_cp},
    {"git-clone", SILT_TABLE_FILES, "ID URL [DIR] [OPTION...]",
     "Clones a repository into a sandbox and prints the directory.",
     "silt git-clone box https://example.com/app.git",
     OPTIONS({"branch", 'b', 0, "BRANCH", "branch or tag (default: the repository's)"},
             {"depth", 0, 0, "N", "fetch only the last N commits (default: all)"}, TIMEOUT, JSON),
     "sandbox", NULL, 0, silt_cli_git_clone},
    {"watch", SILT_TABLE_FILES, "ID PATH [OPTION...]", "Prints changes of files until Ctrl-C.",
     "silt watch box /srv --include '*.html'",
     OPTIONS({"include", 0, 1, "GLOB", "only these files"},
             {"exclude", 0, 1, "GLOB", "not these files (default: .git, node_modules, .DS_Store)"},
             {"event", 0, 1, "create|modify|delete|move_from|move_to|attrib", "only these events"},
             {"flat", 0, 0, NULL, "not the directories below"}, JSON),
     "sandbox", NULL, 0, silt_cli_watch},

    {"net", SILT_TABLE_NETWORK, "ID [OPTION...]",
     "Shows or changes what a sandbox may reach, its traffic and denials.",
     "silt net box --allow example.com",
     OPTIONS({"mode", 0, 0, "none|public|allow", "change the mode"}, ALLOW, JSON), "sandbox",
     "network", 0, silt_cli_net},
    {"expose", SILT_TABLE_NETWORK, "ID PORT [OPTION...]", "Gives a port a URL and prints it.",
     "silt expose box 8000",
     OPTIONS({"name", 0, 0, "NAME", "a name for lists"},
             {"token", 0, 0, "TOKEN",
              "secret part of the URL, 8 to 16 of a-z and 0-9 (default: random)"},
             {"private", 0, 0, NULL, "only signed URLs work"}, JSON),
     "sandbox", NULL, 0, silt_cli_expose},
    {"unexpose", SILT_TABLE_NETWORK, "ID PORT [OPTION...]", "Removes the URL of a port.",
     "silt unexpose box 8000", OPTIONS(JSON), "sandbox", NULL, 0, silt_cli_unexpose},
    {"ports", SILT_TABLE_NETWORK, "ID [OPTION...]", "Lists the ports that have a URL.",
     "silt ports box", OPTIONS(JSON), "sandbox", "port", 0, silt_cli_ports},
    {"open", SILT_TABLE_NETWORK, "ID PORT [OPTION...]",
     "Exposes a port, prints its URL, and opens it in a browser if there is one.",
     "silt open box 8000", OPTIONS(JSON), "sandbox", NULL, 0, silt_cli_open},

    {"image ls", SILT_TABLE_IMAGES, "[OPTION...]", "Lists the images.", "silt image ls",
     OPTIONS(JSON), NULL, "images", 0, silt_cli_image},
    {"image build", SILT_TABLE_IMAGES, "-t NAME [OPTION...] DIR | base|host [--refresh]",
     "Builds an image from a Dockerfile; base or host from its recipe, as root.",
     "silt image build -t app .",
     OPTIONS(
         {"tag", 't', 1, "NAME", "name of the image"},
         {"file", 'f', 0, "FILE", "the Dockerfile, - for standard input (default: DIR/Dockerfile)"},
         {"build-arg", 0, 1, "NAME=VALUE", "value of an ARG"},
         {"target", 0, 0, "STAGE", "stage to build (default: the last)"},
         {"network", 0, 0, "public|none", "what RUN may reach (default: public)"},
         {"no-cache", 0, 0, NULL, "run every step again"},
         {"refresh", 0, 0, NULL, "of a recipe: do not use a tar from an earlier build"}),
     "directory", "build", 0, silt_cli_image},
    {"image import", SILT_TABLE_IMAGES, "[NAME] PATH|- [OPTION...]",
     "Makes an image of an OCI layout, a docker-save archive or a tar of a root.",
     "silt image import app ./app.tar",
     OPTIONS({"image", 0, 0, "REF", "which image of the archive (default: the first)"},
             {"format", 0, 0, "auto|tar|oci|docker", "kind of the archive (default: auto)"}),
     "file*", "load", 0, silt_cli_image},
    {"image export", SILT_TABLE_IMAGES, "NAME [OPTION...]",
     "Writes an image as an archive to standard output or a file.",
     "silt image export app -o app.tar",
     OPTIONS({"output", 'o', 0, "FILE", "where to (default: standard output)"},
             {"format", 0, 0, "oci|docker|tar", "kind of the archive (default: oci)"}),
     "image", "save", 0, silt_cli_image},
    {"image pull", SILT_TABLE_IMAGES, "REF [OPTION...]", "Fetches an image from a registry.",
     "silt image pull registry.example.com/team/app:1",
     OPTIONS({"name", 0, 0, "NAME", "name of the image (default: REF)"},
             {"user", 0, 0, "USER", "user of the registry"},
             {"password-stdin", 0, 0, NULL, "read the password from standard input"}),
     NULL, "pull", 0, silt_cli_image},
    {"image tag", SILT_TABLE_IMAGES, "NAME OTHER", "Gives an image another name.",
     "silt image tag app app:1", NULL, "image", "tag", 0, silt_cli_image},
    {"image commit", SILT_TABLE_IMAGES, "ID NAME",
     "Makes an image of a sandbox with what it has written; the sandbox goes on.",
     "silt image commit box app", NULL, "sandbox image", "commit", 0, silt_cli_image},
    {"image prune", SILT_TABLE_IMAGES, "", "Empties the build cache.", "silt image prune", NULL,
     NULL, NULL, 0, silt_cli_image},
    {"image rm", SILT_TABLE_IMAGES, "NAME...",
     "Removes names of images; an image goes with its last name.", "silt image rm app", NULL,
     "image*", "rmi", 0, silt_cli_image},

    {"tls dev", SILT_TABLE_MACHINE, "[OPTION...]",
     "Makes a certificate for this machine, names it in the settings, says how to trust it (as "
     "root).",
     "sudo silt tls dev",
     OPTIONS({"directory", 0, 0, "DIR", "where the files go (default: tls beside the settings)"},
             {"folder", 0, 0, "DIR", NULL},
             {"print-ca", 0, 0, NULL, "print the authority's certificate"}),
     NULL, NULL, 0, silt_cli_tls},
    {"new", SILT_TABLE_MACHINE, "DIR [OPTION...]",
     "Makes a directory with an app for wrangler that runs on Silt.", "silt new app -t agent",
     OPTIONS({"template", 't', 0, TEMPLATES, "what to start from (default: minimal)"}), "directory",
     "init", 0, silt_cli_new},
    {"wrangler-env", SILT_TABLE_MACHINE, "[OPTION...]",
     "Prints the variables that make wrangler use Silt.", "eval \"$(silt wrangler-env)\"",
     OPTIONS({"no-account", 0, 0, NULL, "also those that need no account at Cloudflare"}), NULL,
     NULL, 0, silt_cli_wrangler_env},
    {"login", SILT_TABLE_MACHINE, "URL [OPTION...]",
     "Stores the address and token of a daemon, and sends commands there from now on.",
     "ssh server sudo silt token | silt login https://silt.example.com",
     OPTIONS({"name", 0, 0, "NAME", "name of the context (default: the host)"},
             {"ca", 0, 0, "FILE", "its certificate authority (default: those of this machine)"}),
     NULL, NULL, 0, silt_cli_login},
    {"context ls", SILT_TABLE_MACHINE, "", "Lists the daemons that login has stored.",
     "silt context ls", NULL, NULL, NULL, 0, silt_cli_context},
    {"context use", SILT_TABLE_MACHINE, "NAME",
     "Sends commands to that daemon; local is this machine's.", "silt context use prod", NULL,
     "context", NULL, 0, silt_cli_context},
    {"context rm", SILT_TABLE_MACHINE, "NAME", "Forgets a daemon and its token.",
     "silt context rm prod", NULL, "context", "logout", 0, silt_cli_context},
    {"token", SILT_TABLE_MACHINE, "", "Prints the API token.", "sudo silt token", NULL, NULL, NULL,
     0, silt_cli_token},
    {"doctor", SILT_TABLE_MACHINE, "", "Checks this machine and says what is missing.",
     "silt doctor", NULL, NULL, NULL, 0, silt_cli_doctor},
    {"completion", SILT_TABLE_MACHINE, "bash|zsh|fish",
     "Prints a script that completes silt's words.", "source <(silt completion bash)", NULL,
     "bash|zsh|fish", NULL, 0, silt_cli_completion},
    {"version", SILT_TABLE_MACHINE, "", "Prints the version.", "silt version", NULL, NULL, NULL, 0,
     silt_cli_version},
    {"help", SILT_TABLE_MACHINE, "[COMMAND]", "Prints help, on a command with its options.",
     "silt help exec", NULL, "command", NULL, 0, silt_cli_help},
};
const size_t silt_table_count = SILT_COUNT(silt_table);

/* Words of docker that are not an alias because silt does it another way. */
static const struct {
    const char *word, *hint;
} hints[] = {
    {"push", "silt image export NAME writes an archive that skopeo copies to a registry."},
    {"rename", "A sandbox keeps its id; silt image commit ID NAME keeps its files as an image."},
    {"wait", "silt logs -f ID PROCESS waits for a process and exits with its status."},
    {"container", "A sandbox has no own word: silt ls, silt rm ID, silt exec ID -- COMMAND."},
    {"system", "silt doctor looks at this machine, silt image prune empties the build cache."},
    {"compose", "One sandbox runs all programs: silt run -d ID -- COMMAND for each."},
    {"volume", "The files of a sandbox stay until silt rm; silt cp copies them."},
};

const char *silt_table_hint(const char *word)
{
    for (size_t i = 0; i < SILT_COUNT(hints); i++)
        if (strcmp(hints[i].word, word) == 0)
            return hints[i].hint;
    return NULL;
}
