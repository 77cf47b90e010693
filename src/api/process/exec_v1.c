/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/…/exec: a command as one answer, or as events with `Accept: text/event-stream`. */
#include "api/process/command.h"
#include "base/base64.h"
#include "base/fd.h"
#include "http/field.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { ARGUMENTS_MAX = 65536, USER_MAX = 256, STDIN_MAX = 1 << 20 };

/* ---- fields that commands and processes of /v1 share ---- */

/* Arguments, each NUL-terminated; false: already answered with an error. */
static bool read_argv(struct silt_call *c, struct silt_exec_request *q)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("argv"));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_COMMAND_MAX);
    bool good = v->type == SILT_JSON_ARRAY && v->items.count > 0 && v->items.count <= ARGUMENTS_MAX
                && q->command.data == NULL;
    for (const struct silt_json *a = good ? v->items.first : NULL; a != NULL; a = a->next) {
        good = good && a->type == SILT_JSON_STRING && !silt_slice_has_byte(a->string, 0);
        silt_buf_add(&b, good ? a->string : SILT_LIT(""));
        silt_buf_add_byte(&b, 0);
    }
    char *copy = good && !b.broken && b.data[0] != 0
                     ? silt_arena_dup(c->request->arena, silt_buf_slice(&b))
                     : NULL;
    if (copy == NULL) {
        silt_api_refuse_field(
            c->request, "argv",
            "must be a list of strings that begins with a program, instead of command");
        return false;
    }
    q->command = (silt_slice){copy, b.len};
    q->flags |= SILT_START_ARGV;
    return true;
}

static bool is_id(silt_slice text)
{
    enum { ID_MAX = 65535 }; /* ids 0 to 65535 exist in a sandbox */
    struct silt_error e;
    uint64_t n;
    return silt_slice_to_u64(text, 0, ID_MAX, &n, &e) == 0;
}

bool silt_command_user_is_good(silt_slice user)
{
    silt_slice gid = user, uid;
    if (user.len > USER_MAX)
        return false;
    if (user.len > 0 && user.data[0] >= '0' && user.data[0] <= '9')
        return silt_slice_split(&gid, ':', &uid) && is_id(uid)
               && (uid.len == user.len || is_id(gid));
    for (size_t i = 0; i < user.len; i++) {
        char c = user.data[i];
        bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!letter && (i == 0 || !silt_is_any(c, ".-$")))
            return false;
    }
    return true;
}

bool silt_command_read_native(struct silt_call *c, struct silt_command *m)
{
    struct silt_exec_request *q = &m->request;
    if (!silt_body_string(c, "command", &q->command) || !read_argv(c, q)
        || !silt_body_string(c, "cwd", &q->cwd) || !silt_body_env(c, "env", SILT_ENV_MAX, &q->env)
        || !silt_body_string(c, "user", &q->user) || !silt_body_ms(c, "timeoutMs", &q->timeout_ms))
        return false;
    if (q->cwd.len >= PATH_MAX || q->user.len > USER_MAX || q->command.len > SILT_COMMAND_MAX) {
        silt_api_refuse_field(c->request,
                              q->cwd.len >= PATH_MAX   ? "cwd"
                              : q->user.len > USER_MAX ? "user"
                                                       : "command",
                              "is too long");
        return false;
    }
    if (!silt_command_user_is_good(q->user)) {
        silt_api_refuse_field(c->request, "user",
                              "must be a name, a number, or two numbers with a colon");
        return false;
    }
    m->native = true;
    m->blank = silt_is_blank(q->command);
    return true;
}

bool silt_session_name_read(struct silt_call *c, silt_slice *ret)
{
    if (!silt_body_string(c, "sessionId", ret))
        return false;
    if (ret->len <= SILT_SESSION_NAME_MAX && (ret->data == NULL || !silt_is_blank(*ret)))
        return true;
    silt_api_refuse_field(c->request, "sessionId", "is blank or longer than 256 bytes");
    return false;
}

/* ---- standard input ---- */

static bool refuse_stdin(struct silt_call *c, const char *why)
{
    silt_api_refuse_field(c->request, "stdin", why);
    return false;
}

static bool decode(struct silt_call *c, silt_slice text, silt_slice *ret)
{
    const char *wrong = silt_base64_check(text);
    if (wrong != NULL) {
        silt_api_refuse_value(c->request, "stdin", wrong, "INVALID_BASE64");
        return false;
    }
    size_t size = silt_base64_size(text);
    char *bytes = silt_arena_alloc(c->request->arena, size + 1);
    if (bytes == NULL)
        abort();
    *ret = (silt_slice){bytes, silt_base64_decode(&text, bytes, size)};
    return true;
}

static bool read_stdin(struct silt_call *c, struct silt_command *m)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("stdin"));
    silt_slice encoding = SILT_LIT("utf8");
    if (!silt_body_string(c, "stdinEncoding", &encoding))
        return false;
    bool base64 = silt_slice_eq(encoding, SILT_LIT("base64"));
    if (!base64 && !silt_slice_eq(encoding, SILT_LIT("utf8"))) {
        silt_api_refuse_field(c->request, "stdinEncoding", "must be utf8 or base64");
        return false;
    }
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (v->type != SILT_JSON_STRING)
        return refuse_stdin(c, "must be a string; POST …/processes takes a stream");
    m->input = v->string;
    if (base64 && !decode(c, v->string, &m->input))
        return false;
    if (m->input.len > STDIN_MAX)
        return refuse_stdin(c, "is longer than 1 MiB; POST …/processes takes a stream");
    m->has_input = true;
    return true;
}

int silt_command_feed(const struct silt_command *m, struct silt_exec_request *q, int *ret_fd,
                      struct silt_error *e)
{
    if (!m->has_input)
        return 0;
    silt_auto_fd fd = memfd_create("silt-stdin", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create a memory file");
    if (silt_fd_write_all(fd, m->input, e) < 0)
        return silt_because(e, "keep the standard input");
    if (lseek(fd, 0, SEEK_SET) < 0)
        return silt_fail_errno(e, "rewind the standard input");
    q->flags |= SILT_START_SECRET;
    q->secret = fd;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* The input comes as descriptor 3, whole: it needs nobody to write it, so a client that leaves
 * takes nothing away. */
static void take_from_fd(struct silt_call *c, struct silt_command *m)
{
    static const char shell[] = "bash\0-c\0exec \"$@\" <&3 3<&-\0bash";
    silt_slice command = m->request.command;
    m->request.record = command;
    silt_slice before = (m->request.flags & SILT_START_ARGV) != 0
                            ? (silt_slice){shell, sizeof(shell)}
                            : SILT_LIT("exec <&3 3<&-; ");
    char *both = silt_arena_alloc(c->request->arena, before.len + command.len + 1);
    if (both == NULL)
        abort();
    memcpy(both, before.data, before.len);
    memcpy(both + before.len, command.data, command.len);
    m->request.command = (silt_slice){both, before.len + command.len};
}

/* ---- the request ---- */

/* Without a name a plain command runs in the session `default`; what a shell cannot do, beside
 * all. */
static bool read_session(struct silt_call *c, struct silt_command *m)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("sessionId"));
    const char *alone = (m->request.flags & SILT_START_ARGV) != 0 ? "argv"
                        : m->request.user.len > 0                 ? "user"
                        : m->has_input                            ? "stdin"
                                                                  : NULL;
    silt_slice name = {NULL, 0};
    char why[96];
    if (!silt_session_name_read(c, &name))
        return false;
    if (name.data != NULL && alone != NULL) {
        (void)snprintf(why, sizeof(why), "is a shell, and %s needs none: send null", alone);
        silt_api_refuse_field(c->request, "sessionId", why);
        return false;
    }
    bool none = alone != NULL || (v != NULL && v->type == SILT_JSON_NULL);
    m->choice = (struct silt_session_choice){.name = name, .given = name.data != NULL};
    m->choice.plain = none;
    if (!none && name.data == NULL)
        m->choice.name = SILT_LIT("default");
    return true;
}

static const struct silt_call_kind stream_call = {.body = SILT_BODY_REQUIRED,
                                                  .native = true,
                                                  .choose = silt_command_choose,
                                                  .run = silt_command_stream};

static bool parse(struct silt_call *c)
{
    struct silt_command *m = silt_arena_alloc(c->request->arena, sizeof(*m));
    silt_slice accept = silt_http_field(c->request->head, SILT_LIT("accept"));
    if (m == NULL)
        abort();
    *m = (struct silt_command){0};
    c->own = m;
    if (!silt_command_read_native(c, m) || !read_stdin(c, m) || !read_session(c, m))
        return false;
    if (m->blank) {
        silt_api_refuse(c->request, SILT_API_INVALID_COMMAND, (silt_slice){NULL, 0},
                        "command: is required and must not be blank, or argv given instead");
        return false;
    }
    if (m->has_input)
        take_from_fd(c, m);
    if (silt_http_accepts(accept, SILT_LIT("text/event-stream"))) {
        m->bytes = true;
        c->kind = &stream_call;
    } else {
        m->foreground = true;
    }
    return true;
}

static const struct silt_call_kind exec_call = {.body = SILT_BODY_REQUIRED,
                                                .native = true,
                                                .parse = parse,
                                                .choose = silt_command_choose,
                                                .run = silt_command_collect};

SILT_HANDLER(silt_api_v1_exec)
{
    silt_call_begin(r, args, &exec_call);
}
