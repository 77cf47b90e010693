/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/start_frame.h"
#include "base/id.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int map_memfd(struct silt_start_frame *s, int fd, size_t len, struct silt_error *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "look at the request's memory");
    if (st.st_size < 0 || (size_t)st.st_size < len)
        return silt_fail(e, SILT_PROTOCOL, "request of %zu bytes in a memory of %lld", len,
                         (long long)st.st_size);
    void *map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return silt_fail_errno(e, "map the request's memory");
    s->map = map;
    s->map_len = len;
    return 0;
}

static silt_slice cut(const char **at, uint32_t len)
{
    silt_slice part = {*at, len};
    *at += len;
    return part;
}

static bool has_nul(silt_slice s)
{
    return silt_slice_has_byte(s, 0);
}

static int check_env(silt_slice env, bool names, struct silt_error *e)
{
    silt_slice variable;
    if (env.len == 0)
        return 0;
    if (env.data[env.len - 1] != 0)
        return silt_fail(e, SILT_PROTOCOL, "environment without an end");
    while (names && silt_slice_split(&env, 0, &variable)) {
        silt_slice name;
        if (variable.len > 0 && silt_slice_split(&variable, '=', &name)
            && !silt_id_is_env_name(name))
            return silt_fail(e, SILT_INVALID, "name of a variable in the environment");
    }
    return 0;
}

/* A program's name must not be empty; its arguments may. */
static int check_command(const struct silt_start_frame *s, struct silt_error *e)
{
    silt_slice c = s->command;
    bool is_argv = (s->head.flags & SILT_START_ARGV) != 0;
    if (c.len > SILT_COMMAND_MAX
        || (is_argv ? c.len < 2 || c.data[0] == 0 || c.data[c.len - 1] != 0 : has_nul(c)))
        return silt_fail(e, SILT_INVALID, "command");
    return 0;
}

/* What only some modes support. */
static int check_mode(const struct silt_start_frame *s, bool is_exec, struct silt_error *e)
{
    const struct silt_agent_start *h = &s->head;
    bool own_process = is_exec && h->mode != SILT_EXEC_FOREGROUND;
    uint32_t known = !is_exec       ? 0
                     : !own_process ? SILT_START_QUIET
                                    : SILT_START_LOG | SILT_START_HOLD | SILT_START_STDIN
                                          | SILT_START_ARGV | SILT_START_SECRET | SILT_START_PIPES
                                          | SILT_START_FIRST | SILT_START_WARM | SILT_START_FORK;
    bool plain = h->mode == SILT_EXEC_PLAIN;
    const uint32_t needed =
        SILT_START_STDIN | (plain ? SILT_START_ARGV : SILT_START_LOG); /* with a terminal */
    bool plain_only = (h->flags & (SILT_START_ARGV | SILT_START_PIPES)) != 0;
    const uint32_t forking = h->flags & (SILT_START_WARM | SILT_START_FORK);
    const uint32_t piped = SILT_START_PIPES | SILT_START_SECRET;
    if (is_exec && (h->mode < SILT_EXEC_FOREGROUND || h->mode > SILT_EXEC_PLAIN))
        return silt_fail(e, SILT_PROTOCOL, "mode %u", h->mode);
    if ((h->flags & ~known) != 0 || (is_exec && !own_process && h->user_len > 0)
        || (plain_only && h->mode != SILT_EXEC_PLAIN)
        || ((h->flags & SILT_START_PIPES) != 0
            && (h->flags & (SILT_START_LOG | SILT_START_ARGV)) != SILT_START_ARGV)
        || ((h->flags & SILT_START_FIRST) != 0 && (h->flags & SILT_START_ARGV) == 0)
        || (forking != 0
            && ((h->flags & piped) != piped || forking == (SILT_START_WARM | SILT_START_FORK)))
        || (h->terminal != 0
            && ((!plain && h->mode != SILT_EXEC_BACKGROUND) || (h->flags & needed) != needed)))
        return silt_fail(e, SILT_PROTOCOL, "flags %x in mode %u", h->flags, h->mode);
    return 0;
}

static int check(const struct silt_start_frame *s, bool is_exec, struct silt_error *e)
{
    bool in_shell = is_exec && s->head.mode != SILT_EXEC_PLAIN;
    if (s->note.len > SILT_SESSION_NOTE_MAX)
        return silt_fail(e, SILT_PROTOCOL, "note of %zu bytes", s->note.len);
    if (s->cwd.len >= PATH_MAX || has_nul(s->cwd))
        return silt_fail(e, SILT_INVALID, "working directory");
    if (s->user.len > SILT_USER_TEXT_MAX || has_nul(s->user))
        return silt_fail(e, SILT_INVALID, "user");
    if (check_mode(s, is_exec, e) < 0 || check_command(s, e) < 0)
        return -1;
    return check_env(s->env, in_shell, e);
}

/* The number of descriptors must match the request: their order identifies them. */
static int take_descriptors(struct silt_start_frame *s, const struct silt_frame *f,
                            struct silt_parcel *p, int *ret_memory, struct silt_error *e)
{
    bool has_pipes = (s->head.flags & SILT_START_PIPES) != 0;
    int *places[] = {ret_memory, &s->log, &s->secret, &s->out, &s->err, &s->lines};
    const bool wanted[] = {(f->flags & SILT_START_IN_MEMFD) != 0,
                           (s->head.flags & SILT_START_LOG) != 0,
                           (s->head.flags & SILT_START_SECRET) != 0,
                           has_pipes,
                           has_pipes,
                           has_pipes};
    int next = 0, count = 0;
    for (size_t i = 0; i < SILT_COUNT(wanted); i++)
        count += wanted[i];
    if (p->nfds != count)
        return silt_fail(e, SILT_PROTOCOL, "request with %d descriptors", p->nfds);
    for (size_t i = 0; i < SILT_COUNT(places); i++)
        if (wanted[i])
            *places[i] = silt_take_fd(&p->fds[next++]);
    return 0;
}

/* All parts are contiguous; the copy is NUL-terminated after the last. */
static int fetch(struct silt_start_frame *s, const struct silt_frame *f, size_t body_len,
                 int memory, struct silt_error *e)
{
    const struct silt_agent_start *h = &s->head;
    uint64_t sum = (uint64_t)h->note_len + h->cwd_len + h->env_len + h->user_len + h->command_len;
    if (sum > SILT_START_MAX)
        return silt_fail(e, SILT_LIMIT, "request of %llu bytes, at most %d",
                         (unsigned long long)sum, SILT_START_MAX);
    if (memory >= 0 ? sum == 0 : body_len - sizeof(*h) != sum)
        return silt_fail(e, SILT_PROTOCOL, "request whose parts do not add up");
    if (memory >= 0)
        return map_memfd(s, memory, (size_t)sum, e);
    s->copy = malloc((size_t)sum + 1);
    if (s->copy == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for a request");
    memcpy(s->copy, f->body + sizeof(*h), (size_t)sum);
    s->copy[sum] = 0;
    return 0;
}

static void cut_parts(struct silt_start_frame *s)
{
    const char *at = s->map != NULL ? s->map : s->copy;
    s->note = cut(&at, s->head.note_len);
    s->cwd = cut(&at, s->head.cwd_len);
    s->env = cut(&at, s->head.env_len);
    s->user = cut(&at, s->head.user_len);
    s->command = cut(&at, s->head.command_len);
}

static int parse(struct silt_start_frame *s, const struct silt_frame *f, size_t body_len,
                 struct silt_parcel *p, struct silt_error *e)
{
    silt_auto_fd memory = -1;
    if (body_len < sizeof(s->head))
        return silt_fail(e, SILT_PROTOCOL, "request of %zu bytes", body_len);
    memcpy(&s->head, f->body, sizeof(s->head));
    if (take_descriptors(s, f, p, &memory, e) < 0 || fetch(s, f, body_len, memory, e) < 0)
        return -1;
    cut_parts(s);
    return check(s, f->type == SILT_AGENT_EXEC, e);
}

int silt_start_frame_parse(struct silt_start_frame *s, const struct silt_frame *f, size_t body_len,
                           struct silt_parcel *p, struct silt_error *e)
{
    *s = (struct silt_start_frame){.log = -1, .secret = -1, .out = -1, .err = -1, .lines = -1};
    if (parse(s, f, body_len, p, e) == 0)
        return 0;
    silt_start_frame_fini(s);
    return -1;
}

struct silt_start_frame silt_start_frame_take(struct silt_start_frame *s)
{
    struct silt_start_frame taken = *s;
    *s = (struct silt_start_frame){.log = -1, .secret = -1, .out = -1, .err = -1, .lines = -1};
    return taken;
}

void silt_start_frame_fini(struct silt_start_frame *s)
{
    free(s->copy);
    if (s->map != NULL)
        (void)munmap(s->map, s->map_len);
    silt_close_fd(&s->log);
    silt_close_fd(&s->secret);
    silt_close_fd(&s->out);
    silt_close_fd(&s->err);
    silt_close_fd(&s->lines);
    *s = (struct silt_start_frame){
        .head = s->head, .log = -1, .secret = -1, .out = -1, .err = -1, .lines = -1};
}

static char *unconst(const char *p)
{
    union {
        const char *in;
        char *out;
    } u = {.in = p}; /* execve does not write to its arguments */
    return u.out;
}

static size_t count_strings(silt_slice all)
{
    size_t count = 0;
    const char *end = all.data + all.len;
    for (const char *at = all.data; at < end; at += strlen(at) + 1)
        count++;
    return count;
}

int silt_start_frame_envp(const struct silt_start_frame *s, char ***ret, struct silt_error *e)
{
    size_t count = count_strings(s->env);
    const char *end = s->env.data + s->env.len;
    if (count > SILT_START_FRAME_ENV_MAX)
        return silt_fail(e, SILT_LIMIT, "environment of %zu variables, at most %d", count,
                         SILT_START_FRAME_ENV_MAX);
    char **envp = malloc((count + 1) * sizeof(char *));
    if (envp == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for an environment");
    count = 0;
    for (const char *at = s->env.data; at < end; at += strlen(at) + 1)
        if (*at != 0)
            envp[count++] = unconst(at);
    envp[count] = NULL;
    *ret = envp;
    return 0;
}

int silt_start_frame_argv(const struct silt_start_frame *s, char ***ret, struct silt_error *e)
{
    size_t count = count_strings(s->command);
    const char *at = s->command.data;
    if (count > SILT_START_FRAME_ARGS_MAX)
        return silt_fail(e, SILT_LIMIT, "%zu arguments, at most %d", count,
                         SILT_START_FRAME_ARGS_MAX);
    char **argv = malloc((count + 1) * sizeof(char *));
    if (argv == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for arguments");
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        argv[i] = unconst(at);
    argv[count] = NULL;
    *ret = argv;
    return 0;
}

const char *silt_start_frame_getenv(const struct silt_start_frame *s, const char *name)
{
    size_t len = strlen(name);
    const char *end = s->env.data + s->env.len;
    for (const char *at = s->env.data; at < end; at += strlen(at) + 1)
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return at + len + 1;
    return NULL;
}
