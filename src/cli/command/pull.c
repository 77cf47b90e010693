/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/pull.h"
#include "base/own.h"
#include "cli/core/sse.h"

#include <errno.h>
#include <stdlib.h>

enum { PASSWORD_MAX = 16 << 10, BODY_MAX = 8 * PASSWORD_MAX, SILENCE_MS = 120 * 1000 };

/* Standard input without its final newline. */
static int read_password(struct silt_buf *b, struct silt_error *e)
{
    for (;;) {
        char *room = silt_buf_room(b, 1024);
        if (room == NULL)
            return silt_fail(e, SILT_LIMIT, "a password of more than %d bytes", PASSWORD_MAX);
        ssize_t n = read(STDIN_FILENO, room, 1024);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "read the password");
        if (n == 0)
            break;
        b->len += (size_t)n;
    }
    while (b->len > 0 && (b->data[b->len - 1] == '\n' || b->data[b->len - 1] == '\r'))
        b->len--;
    return b->len > 0 ? 0 : silt_fail(e, SILT_INVALID, "standard input has no password");
}

static void add(struct silt_buf *b, const char *key, silt_slice value)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, value);
}

static int write_body(const struct silt_cli_pull *x, struct silt_buf *b, struct silt_error *e)
{
    silt_auto_buf password;
    silt_buf_init(&password, PASSWORD_MAX);
    if (x->password != (x->user != NULL))
        return silt_fail(e, SILT_INVALID,
                         "--user NAME and --password-stdin go together: a password among the words "
                         "of a command is seen by everybody");
    if (x->password && read_password(&password, e) < 0)
        return -1;
    silt_json_open(b, '{');
    add(b, "reference", silt_slice_of(x->reference));
    if (x->name != NULL)
        add(b, "name", silt_slice_of(x->name));
    if (x->user != NULL) {
        add(b, "username", silt_slice_of(x->user));
        add(b, "password", silt_buf_slice(&password));
    }
    silt_json_close(b, '}');
    if (password.data != NULL)
        explicit_bzero(password.data, password.len);
    return b->broken ? silt_fail(e, SILT_LIMIT, "the name is too long") : 0;
}

/* skopeo's output may come from the registry: control characters must not reach the terminal. */
static void show(silt_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        (void)fputc(c == '\n' || (unsigned char)c >= 0xa0 || (c >= ' ' && c <= '~') ? c : '?',
                    stderr);
    }
}

static int on_event(const struct silt_json *v, bool *ret_done, struct silt_error *e)
{
    silt_slice type = silt_cli_text(v, "type");
    if (silt_slice_eq(type, SILT_LIT("error"))) {
        silt_slice text = silt_cli_text(v, "message");
        return silt_fail(e, SILT_INVALID, "%.*s", (int)(text.len < 450 ? text.len : 450),
                         text.data);
    }
    if (silt_slice_eq(type, SILT_LIT("output")))
        show(silt_cli_text(v, "data"));
    if (silt_slice_eq(type, SILT_LIT("unpacking")))
        (void)fputs("Unpacking\n", stderr);
    if (!silt_slice_eq(type, SILT_LIT("done")))
        return 0;
    *ret_done = true;
    silt_cli_print(silt_cli_text(v, "name"));
    (void)putchar(' ');
    silt_cli_print(silt_cli_text(v, "id"));
    (void)putchar('\n');
    return 0;
}

static int follow(struct silt_client *c, struct silt_error *e)
{
    struct silt_sse sse;
    silt_slice piece, data;
    bool done = false;
    int got, result = 0;
    silt_sse_init(&sse);
    while (result == 0 && (got = silt_client_read(c, &piece, e)) != 0) {
        result = got < 0 ? -1 : 0;
        while (result == 0 && (got = silt_sse_next(&sse, &piece, &data, e)) != 0) {
            silt_auto_arena a = {0};
            const struct silt_json *v;
            silt_arena_init(&a, SILT_CLI_ARENA_MAX);
            result = got < 0 || silt_json_read(&a, data, &v, e) < 0 ? -1 : on_event(v, &done, e);
        }
    }
    silt_sse_fini(&sse);
    if (result == 0 && !done)
        return silt_fail(e, SILT_GONE, "the daemon broke the pull off");
    return result;
}

int silt_cli_pull(const struct silt_cli_pull *x, struct silt_client *c, struct silt_error *e)
{
    silt_auto_buf body;
    silt_buf_init(&body, BODY_MAX);
    if (write_body(x, &body, e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post("/v1/images/pull", silt_buf_slice(&body));
    c->timeout_ms = SILENCE_MS;
    int asked = silt_client_ask(c, &q, e);
    if (body.data != NULL)
        explicit_bzero(body.data, body.len);
    if (asked < 0)
        return -1;
    return c->head.status / 100 == 2 ? follow(c, e) : silt_client_fail(c, e);
}
