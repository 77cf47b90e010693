/* SPDX-License-Identifier: Apache-2.0 */
/* silt shell: connects this terminal to a shell in a sandbox. The shell keeps running after a
 * detach, and the next call finds it again. */
#include "base/clock.h"
#include "base/id.h"
#include "base/own.h"
#include "cli/command/shell.h"
#include "cli/core/box.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"
#include "cli/command/socket.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum {
    DETACH = 0x1d,       /* Ctrl-] */
    INTERRUPT = 3,       /* Ctrl-C */
    TYPED_MAX = 1 << 20, /* typed bytes to send; above it the keyboard is not read */
    END_MS = 500,        /* between two Ctrl-D */
    TRIES = 8,           /* to reconnect, 1 s, 2 s, 4 s, ... apart */
    PATH_SIZE = 4096,
};

/*   ATTACHED --Ctrl-]--> DETACHED
 *            --exit----> ENDED
 *            --error---> FAILED
 *            --broken--> LOST (comes back) */
enum state { ATTACHED, DETACHED, ENDED, FAILED, LOST };

struct shell {
    struct silt_cli cli;
    const char *session, *program;
    struct silt_client client;
    struct silt_cli_socket socket;
    int signals;
    bool raw, typed_all, catches;
    enum state state;
    int status;
    struct silt_error why;
};

static struct termios before;
static bool is_changed;

static void restore(void)
{
    if (is_changed)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_changed = false;
}

static void make_raw(struct shell *s)
{
    struct termios t;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before) < 0)
        return;
    t = before;
    cfmakeraw(&t);
    (void)atexit(restore);
    is_changed = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
    s->raw = is_changed;
}

static struct winsize size_now(void)
{
    struct winsize w = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col == 0 || w.ws_row == 0)
        w = (struct winsize){.ws_col = 80, .ws_row = 24};
    return w;
}

static void send_size(struct shell *s)
{
    char text[64];
    struct winsize w = size_now();
    int n = snprintf(text, sizeof(text), "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}", w.ws_col,
                     w.ws_row);
    silt_cli_socket_send(&s->socket, SILT_WS_TEXT, (silt_slice){text, (size_t)n});
}

/* ---- output ---- */

static bool show(silt_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes.data, bytes.len);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
            (void)poll(&p, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return false;
        }
        bytes.data += n > 0 ? n : 0;
        bytes.len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void on_text(struct shell *s, silt_slice text)
{
    const struct silt_json *m;
    silt_auto_arena arena;
    silt_arena_init(&arena, 1 << 20);
    if (silt_json_read(&arena, text, &m, &s->why) < 0)
        return;
    silt_slice type = silt_cli_text(m, "type"), message = silt_cli_text(m, "message");
    if (silt_slice_eq(type, SILT_LIT("ready"))) {
        send_size(s);
    } else if (silt_slice_eq(type, SILT_LIT("exit"))) {
        s->state = ENDED;
        s->status = (int)(silt_cli_number(m, "code") & 0xff);
    } else if (silt_slice_eq(type, SILT_LIT("error"))) {
        s->state = FAILED;
        (void)silt_fail(&s->why, SILT_GONE, "%.*s", (int)message.len, message.data);
    }
}

static void take_messages(struct shell *s)
{
    silt_slice bytes;
    int got;
    while ((got = silt_cli_socket_next(&s->socket, &bytes)) > 0) {
        if (s->socket.reader.type == SILT_WS_TEXT)
            on_text(s, bytes);
        else if (!show(bytes))
            s->state = DETACHED; /* standard output is closed */
    }
    if (got < 0 && s->state == ATTACHED)
        s->state = LOST;
}

/* ---- input ---- */

static void detach(struct shell *s)
{
    silt_cli_socket_send(&s->socket, SILT_WS_CLOSE, SILT_LIT("detached"));
    (void)silt_cli_socket_move(&s->socket, POLLOUT);
    s->state = DETACHED;
}

/* The end of piped input ends the shell. A key is lost while the terminal changes its mode, so
 * Ctrl-D is repeated until the shell reacts. */
static void type_end(struct shell *s)
{
    silt_cli_socket_send(&s->socket, SILT_WS_BINARY, SILT_LIT("\x04"));
}

static void on_typed(struct shell *s)
{
    char bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        s->typed_all = true;
        type_end(s);
        return;
    }
    const char *key = s->raw ? memchr(bytes, DETACH, (size_t)n) : NULL;
    size_t len = key != NULL ? (size_t)(key - bytes) : (size_t)n;
    if (len > 0)
        silt_cli_socket_send(&s->socket, SILT_WS_BINARY, (silt_slice){bytes, len});
    if (key != NULL)
        detach(s);
}

static void on_signal(struct shell *s)
{
    struct signalfd_siginfo told;
    if (read(s->signals, &told, sizeof(told)) != (ssize_t)sizeof(told))
        return;
    if (told.ssi_signo == SIGWINCH)
        send_size(s);
    else
        detach(s);
}

static void converse(struct shell *s)
{
    take_messages(s); /* some may have arrived with the handshake */
    while (s->state == ATTACHED) {
        bool reads = !s->typed_all && s->socket.out.len < TYPED_MAX;
        struct pollfd p[] = {{.fd = s->client.fd, .events = silt_cli_socket_wants(&s->socket)},
                             {.fd = s->signals, .events = POLLIN},
                             {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};
        int n = poll(p, 3, s->typed_all ? END_MS : -1);
        if (n == 0)
            type_end(s);
        if (n <= 0)
            continue;
        if (p[0].revents != 0 && silt_cli_socket_move(&s->socket, p[0].revents) < 0)
            s->state = LOST;
        else if (p[0].revents != 0)
            take_messages(s);
        if (p[1].revents != 0 && s->state == ATTACHED)
            on_signal(s);
        if (p[2].revents != 0 && s->state == ATTACHED)
            on_typed(s);
    }
}

/* ---- connecting ---- */

static void add_escaped(struct silt_buf *b, const char *name, const char *value)
{
    silt_buf_addf(b, "&%s=", name);
    for (; *value != 0; value++)
        silt_buf_addf(b, "%%%02X", (unsigned)(unsigned char)*value);
}

static int attach(struct shell *s, struct silt_error *e)
{
    char path[PATH_SIZE];
    struct winsize w = size_now();
    silt_auto_buf query;
    silt_buf_init(&query, PATH_SIZE / 2);
    silt_buf_addf(&query, "/ws/pty?cols=%u&rows=%u", w.ws_col, w.ws_row);
    add_escaped(&query, "sessionId", s->session);
    if (s->program != NULL)
        add_escaped(&query, "shell", s->program);
    silt_buf_add_byte(&query, 0);
    if (query.broken)
        return silt_fail(e, SILT_LIMIT, "name of a session or shell that is too long");
    if (silt_cli_path(path, sizeof(path), "/sandboxes/", s->cli.plain.items[0], query.data, e) < 0)
        return -1;
    return silt_cli_socket_open(&s->socket, &s->client, path, e);
}

static int catch_signals(struct shell *s, struct silt_error *e)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGWINCH);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    if (s->catches)
        (void)sigaddset(&set, SIGINT);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return silt_fail_errno(e, "catch signals");
    return 0;
}

/* False: Ctrl-] or Ctrl-C was typed, or standard input has ended. Other keys are discarded. */
static bool wait_ms(int64_t ms)
{
    int64_t until_ms = silt_clock_ms() + ms, left_ms;
    while ((left_ms = until_ms - silt_clock_ms()) > 0) {
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        char key = 0;
        if (poll(&p, 1, (int)left_ms) <= 0)
            continue;
        ssize_t n = read(STDIN_FILENO, &key, 1);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN) || key == DETACH
            || key == INTERRUPT)
            return false;
    }
    return true;
}

/* 0: reconnected; -1: all attempts failed, or the user left. */
static int come_back(struct shell *s)
{
    for (int i = 0; i < TRIES; i++) {
        (void)fprintf(stderr,
                      "\r\nsilt: the connection broke; trying again in %d s (Ctrl-] leaves)\r\n",
                      1 << i);
        if (!wait_ms(1000 << i))
            return silt_fail(&s->why, SILT_INTERRUPTED, "left while the connection was broken");
        if (attach(s, &s->why) == 0) {
            (void)show(SILT_LIT("\x1b[H\x1b[2J")); /* the daemon sends the screen again */
            return 0;
        }
        silt_close_fd(&s->client.fd);
        if (s->why.code == SILT_DENIED)
            break;
    }
    return -1;
}

static int finish(struct shell *s)
{
    const char *id = s->cli.plain.items[0];
    restore();
    switch (s->state) {
    case ENDED:
        return s->status;
    case DETACHED:
        if (s->raw && !s->catches)
            (void)fprintf(stderr, "\r\nsilt: detached; `silt shell %s%s%s` comes back\n", id,
                          strcmp(s->session, "default") == 0 ? "" : " --session ",
                          strcmp(s->session, "default") == 0 ? "" : s->session);
        return EXIT_SUCCESS;
    case ATTACHED:
    case FAILED:
    case LOST:
        break;
    }
    if (s->raw)
        (void)fputs("\r\n", stderr);
    return silt_cli_fail(&s->why);
}

static int use(struct shell *s)
{
    make_raw(s);
    for (;;) {
        s->state = ATTACHED;
        converse(s);
        silt_cli_socket_fini(&s->socket);
        if (s->state != LOST)
            return finish(s);
        (void)silt_fail(&s->why, SILT_GONE, "the connection to %s broke", s->client.address);
        if (!s->raw || come_back(s) < 0)
            return finish(s);
    }
}

int silt_cli_shell(int argc, char **argv)
{
    static struct shell s = {.session = "default"};
    struct silt_error e;
    const struct silt_option own[] = {{.name = "session", .value = &s.session},
                                      {.name = "shell", .value = &s.program}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&s.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (s.cli.plain.count != 1)
        return silt_cli_usage();
    if (silt_id_check(silt_slice_of(s.cli.plain.items[0]), &e) < 0
        || silt_client_init(&s.client, s.cli.server, s.cli.token_file, &e) < 0
        || silt_box_make(&s.client, s.cli.plain.items[0], &e) < 0 || catch_signals(&s, &e) < 0
        || attach(&s, &e) < 0)
        return silt_cli_fail(&e);
    int status = use(&s);
    silt_client_fini(&s.client);
    return status;
}

/* ---- one command ---- */

enum { NAME_SIZE = 24, RANDOM = 12, SCRIPT_MAX = SILT_CLI_COMMAND_MAX + (1 << 20) };

static void add_line(struct silt_buf *b, const struct silt_words *words)
{
    silt_command_join(words, b);
    silt_buf_add_byte(b, '\n');
}

/* A terminal starts a program without arguments: a script that removes itself and becomes the
 * command. */
static int write_script(const struct silt_shell_order *o, struct silt_buf *b, struct silt_error *e)
{
    const struct silt_words *command = &o->cli->rest;
    silt_buf_add(b, SILT_LIT("#!/usr/bin/env bash\nrm -f -- \"$0\"\nunset PROMPT_COMMAND\n"));
    for (size_t i = 0; i < o->env->count; i++) {
        silt_slice name;
        const char *value;
        if (silt_command_variable(o->env->items[i], &name, &value, e) < 0)
            return -1;
        silt_buf_addf(b, "export %.*s=", (int)name.len, name.data);
        silt_command_add_quoted(b, value);
        silt_buf_add_byte(b, '\n');
    }
    if (o->cwd != NULL)
        add_line(b, &(struct silt_words){{"cd", "--", o->cwd}, 3});
    if (command->count > 1)
        silt_buf_add(b, SILT_LIT("exec "));
    add_line(b, command);
    return b->broken ? silt_fail(e, SILT_LIMIT, "the command is too long") : 0;
}

static int call(struct silt_client *c, const struct silt_client_request *q, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    return silt_client_call(c, q, &a, &answer, e);
}

static int put_script(const struct silt_shell_order *o, const char *name, struct silt_client *c,
                      struct silt_error *e)
{
    char path[PATH_SIZE], query[128];
    silt_auto_buf script;
    silt_buf_init(&script, SCRIPT_MAX);
    (void)snprintf(query, sizeof(query), "/files?path=/tmp/.%s&mode=0700", name);
    if (write_script(o, &script, e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", o->cli->plain.items[0], query, e)
               < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&script));
    q.method = "PUT";
    q.content_type = "application/octet-stream";
    return call(c, &q, e);
}

static int end_session(const char *id, const char *name, struct silt_client *c,
                       struct silt_error *e)
{
    char path[PATH_SIZE];
    silt_auto_buf body;
    silt_buf_init(&body, 1024);
    silt_json_open(&body, '{');
    silt_command_add_text(&body, "sessionId", name);
    silt_json_close(&body, '}');
    if (silt_cli_path(path, sizeof(path), "/sandboxes/", id, "/api/session/delete", e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    return call(c, &q, e);
}

int silt_shell_run(const struct silt_shell_order *o, struct silt_client *c, int *ret_status,
                   struct silt_error *e)
{
    static struct shell s;
    char name[NAME_SIZE], program[NAME_SIZE + 8], word[RANDOM + 1];
    silt_id_random(word, RANDOM);
    (void)snprintf(name, sizeof(name), "exec-%s", word);
    (void)snprintf(program, sizeof(program), "/tmp/.%s", name);
    s = (struct shell){.cli = *o->cli, .session = name, .program = program, .catches = o->catches};
    if (put_script(o, name, c, e) < 0
        || silt_client_init(&s.client, s.cli.server, s.cli.token_file, e) < 0
        || catch_signals(&s, e) < 0 || attach(&s, e) < 0)
        return -1;
    *ret_status = use(&s);
    silt_client_fini(&s.client);
    return s.state == ENDED ? end_session(o->cli->plain.items[0], name, c, e) : 0;
}
