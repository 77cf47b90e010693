/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/command.h"
#include "agent/spawn/script.h"
#include "agent/shell/shell.h"
#include "agent/shell/state.h"
#include "agent/exec/terminal.h"
#include "agent/spawn/proctitle.h"
#include "agent/exec/inner_zygote.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

enum { ARG_MAX_BYTES = 128 << 10 }; /* one argument with its NUL: the kernel's MAX_ARG_STRLEN */

/* Indexes of the extra descriptors, which start at number 3. */
enum { PLAIN_SECRET = 0, PLAIN_TEXT = 1, PLAIN_LINES = 1, PLAIN_CONTROL = 2 };
enum { LOADER_STATE = 0, LOADER_ERRORS = 1, LOADER_INPUT = 2, LOADER_SECRET = 3 };

int silt_command_pipe(int *ret_ours, int *ret_theirs, struct silt_error *e)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create a pipe");
    *ret_ours = pair[0];
    *ret_theirs = pair[1];
    return fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : silt_fail_errno(e, "prepare a pipe");
}

static int make_memory(silt_slice bytes, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fd = memfd_create("silt", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create a memory file");
    if (silt_fd_write_all(fd, bytes, e) < 0)
        return silt_because(e, "put down a command");
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* Where the command's streams go: a shell that loads a state uses these numbers itself. */
struct places {
    int *in, *err, *secret;
};

/* Unless siltd has made the pipes and reads the output itself. */
static int make_pipes(struct silt_exec *x, int *ret_out, int *ret_err, struct silt_error *e)
{
    if ((x->start.head.flags & SILT_START_PIPES) != 0) {
        *ret_out = silt_take_fd(&x->start.out);
        *ret_err = silt_take_fd(&x->start.err);
        return 0;
    }
    return silt_command_pipe(&x->out, ret_out, e) < 0 ? -1 : silt_command_pipe(&x->err, ret_err, e);
}

static int make_streams(struct silt_exec *x, int *ret_out, int *ret_err, int *ret_in,
                        struct silt_error *e)
{
    return make_pipes(x, ret_out, ret_err, e) < 0                         ? -1
           : x->input.wanted && silt_input_open(&x->input, ret_in, e) < 0 ? -1
                                                                          : 0;
}

static int dup_of(int fd, int *ret, struct silt_error *e)
{
    *ret = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return *ret >= 0 ? 0 : silt_fail_errno(e, "duplicate a terminal");
}

/* One for all three streams; input is written where output is read. */
static int make_terminal(struct silt_exec *x, int *ret_out, int *ret_err, int *ret_in,
                         struct silt_error *e)
{
    int typed;
    if (silt_terminal_open(x->start.head.terminal, &x->out, ret_out, e) < 0
        || dup_of(*ret_out, ret_err, e) < 0 || dup_of(*ret_out, ret_in, e) < 0
        || dup_of(x->out, &typed, e) < 0)
        return -1;
    silt_input_use(&x->input, typed);
    return 0;
}

static int launch(struct silt_exec *x, struct silt_spawn *s, const struct places *p,
                  struct silt_error *e)
{
    char user[SILT_USER_TEXT_MAX + 1];
    silt_auto_fd out = -1, err = -1, in = -1;
    s->terminal = x->start.head.terminal != 0;
    if ((s->terminal ? make_terminal(x, &out, &err, &in, e) : make_streams(x, &out, &err, &in, e))
            < 0
        || silt_slice_to_cstr(x->start.user, user, sizeof(user), e) < 0)
        return -1;
    s->out = out;
    *p->err = err;
    *p->in = in >= 0 ? in : *p->in;
    *p->secret = x->start.secret;
    s->user = x->start.user.len > 0 ? user : x->as[0] != 0 ? x->as : NULL;
    s->handle = x->handle;
    s->joins = &x->agent->joins;
    return silt_launch_start(&x->launch, s, e);
}

/* ---- without a session ---- */

static int launch_plain(struct silt_exec *x, struct silt_spawn *s, struct silt_error *e)
{
    char cwd[PATH_MAX];
    silt_auto_free char **envp = NULL;
    const struct places places = {&s->in, &s->err, &s->extra[PLAIN_SECRET]};
    if (silt_slice_to_cstr(x->start.cwd, cwd, sizeof(cwd), e) < 0
        || silt_start_frame_envp(&x->start, &envp, e) < 0)
        return -1;
    s->envp = envp;
    s->dirs[0] = x->start.cwd.len > 0 ? cwd : SILT_WORKSPACE;
    return launch(x, s, &places, e);
}

static int launch_shell(struct silt_exec *x, struct silt_error *e)
{
    static char name[] = SILT_SHELL_PATH;
    static char option[] = "-c";
    static char long_text[] = "\\command eval \"$(</proc/self/fd/4)\" 4<&-";
    silt_slice text = x->start.command;
    silt_auto_free char *copy = NULL;
    silt_auto_fd memory = -1;
    bool is_long = text.len >= ARG_MAX_BYTES;
    if (is_long && make_memory(text, &memory, e) < 0)
        return -1;
    if (!is_long && (copy = strndup(text.data, text.len)) == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a command");
    char *const argv[] = {name, option, is_long ? long_text : copy, NULL};
    struct silt_spawn s = {
        .path = SILT_SHELL_PATH, .argv = argv, .in = -1, .extra = SILT_SPAWN_NO_EXTRA};
    s.extra[PLAIN_TEXT] = memory;
    return launch_plain(x, &s, e);
}

static int launch_program(struct silt_exec *x, struct silt_error *e)
{
    silt_auto_free char **argv = NULL;
    silt_auto_fd control = -1;
    if (silt_start_frame_argv(&x->start, &argv, e) < 0)
        return -1;
    if ((x->start.head.flags & SILT_START_WARM) != 0 && silt_inner_zygote_open(x, &control, e) < 0)
        return -1;
    struct silt_spawn s = {.argv = argv, .in = -1, .extra = SILT_SPAWN_NO_EXTRA};
    s.extra[PLAIN_LINES] = x->start.lines;
    s.extra[PLAIN_CONTROL] = control;
    if ((x->start.head.flags & SILT_START_FIRST) != 0)
        silt_proctitle_set(x->start.command); /* the program may read it at once */
    return launch_plain(x, &s, e);
}

/* ---- with the state of a session ---- */

/* The shell's errors go to /dev/null until the command begins. */
void silt_command_load(struct silt_script *s, const struct silt_exec *x)
{
    char seconds[64];
    (void)snprintf(seconds, sizeof(seconds), "; SECONDS=$((SECONDS+%lld))",
                   (long long)x->state_age_s);
    silt_script_add_c(s, "\\command . /proc/self/fd/3");
    silt_script_add_c(s, x->state_age_s > 0 ? seconds : "");
    silt_script_add_c(s, "\n");
}

/* With /dev/null as its input the shell exits after this command, with its status; from any other
 * input it would read on, so it is told to exit. */
static void add_background(struct silt_script *s, const struct silt_start_frame *start)
{
    bool has_input = (start->head.flags & SILT_START_STDIN) != 0;
    silt_script_add_c(s, SILT_SHELL_GO_TO_PWD "\n\\command eval ");
    silt_script_open_quote(s);
    silt_script_add_c(s, "\\command exec 2>&4 4>&-");
    silt_script_add_c(s, has_input ? " <&5 5<&-" : " </dev/null");
    silt_script_add_c(s, start->secret >= 0 ? " 3<&6 6<&-\n" : " 3<&-\n");
    if (start->cwd.len > 0) {
        silt_script_add_c(s, "\\command cd -- ");
        silt_shell_add_dir(s, start->cwd);
        silt_script_add_c(s, " || \\command exit 1\n");
    }
    if (start->env.len > 0) {
        silt_script_add_c(s, "\\command export ");
        silt_script_add_env(s, start->env);
        silt_script_add_c(s, "|| \\command exit 1\n");
    }
    silt_script_add(s, start->command);
    silt_script_close_quote(s);
    silt_script_add_c(s, has_input ? "; \\command exit\n" : "\n");
}

static int given_file(void *arg)
{
    return *(int *)arg;
}

static int put_down(struct silt_script *s, int file, struct silt_error *e)
{
    bool in_file = silt_script_flush(s);
    (void)silt_take_fd(&s->file); /* now the caller's */
    if (s->broken)
        return silt_fail(e, SILT_LIMIT, "put down a command");
    if (!in_file && silt_fd_write_all(file, (silt_slice){s->text, s->len}, e) < 0)
        return silt_because(e, "put down a command");
    return lseek(file, 0, SEEK_SET) == 0 ? 0 : silt_fail_errno(e, "rewind a command");
}

static struct silt_script script; /* shared: finished before the next one begins */

int silt_command_write(const struct silt_exec *x, int file, struct silt_error *e)
{
    silt_script_init(&script, given_file, &file);
    silt_shell_expect(&script, &x->start);
    add_background(&script, &x->start);
    return put_down(&script, file, e);
}

static int write_loader(const struct silt_exec *x, int file, struct silt_error *e)
{
    silt_script_init(&script, given_file, &file);
    silt_shell_expect(&script, &x->start);
    silt_command_load(&script, x);
    add_background(&script, &x->start);
    return put_down(&script, file, e);
}

static int launch_loader(struct silt_exec *x, struct silt_error *e)
{
    char cwd[PATH_MAX];
    silt_auto_fd lines = memfd_create("silt", MFD_CLOEXEC);
    if (lines < 0)
        return silt_fail_errno(e, "create a memory file");
    if (silt_slice_to_cstr(x->start.cwd, cwd, sizeof(cwd), e) < 0 || write_loader(x, lines, e) < 0)
        return -1;
    struct silt_spawn s = {
        .path = SILT_SHELL_PATH,
        .argv = silt_shell_argv(),
        .envp = silt_state_env(),
        .in = lines,
        .err = -1,
        .extra = SILT_SPAWN_NO_EXTRA,
        .loads_state = x->start.user.len > 0,
        .like = x->like,
        /* we may not learn the directory of another user's shell; its state sets it */
        .dirs = {x->as[0] != 0 ? "/" : NULL},
        .limits = x->limits.known != 0 ? &x->limits : NULL,
        .probe = x->start.cwd.len > 0 ? cwd : NULL,
        .background = x->start.head.terminal == 0,
    };
    const struct places places = {&s.extra[LOADER_INPUT], &s.extra[LOADER_ERRORS],
                                  &s.extra[LOADER_SECRET]};
    s.extra[LOADER_STATE] = x->state_file;
    return launch(x, &s, &places, e);
}

int silt_command_launch(struct silt_exec *x, struct silt_error *e)
{
    if (x->start.head.mode == SILT_EXEC_BACKGROUND)
        return launch_loader(x, e);
    return (x->start.head.flags & SILT_START_ARGV) != 0 ? launch_program(x, e) : launch_shell(x, e);
}
