/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/start_frame.h"
#include "base/fd.h"
#include "sandbox/core/image.h"

#include <sys/mman.h>

static silt_slice name_of(silt_slice variable)
{
    silt_slice name = {NULL, 0};
    (void)silt_slice_split(&variable, '=', &name);
    return name;
}

static void note_names(struct silt_map *names, silt_slice env)
{
    silt_slice variable;
    while (env.len > 0 && silt_slice_split(&env, 0, &variable)) {
        silt_slice name = name_of(variable);
        if (silt_map_find(names, name) == NULL)
            silt_map_put(names, name, names); /* any value will do */
    }
}

static void drop_names(struct silt_buf *b, const struct silt_map *names)
{
    size_t kept = 0;
    for (size_t at = 0; at < b->len;) {
        size_t len = strlen(b->data + at) + 1;
        if (silt_map_find(names, name_of((silt_slice){b->data + at, len - 1})) == NULL) {
            memmove(b->data + kept, b->data + at, len);
            kept += len;
        }
        at += len;
    }
    b->len = kept;
}

/* One pass over each: a caller may send thousands. */
void silt_env_merge(struct silt_buf *b, silt_slice env)
{
    if (env.len == 0 || b->broken)
        return;
    if (b->len > 0) {
        struct silt_map names;
        silt_map_init(&names);
        note_names(&names, env);
        drop_names(b, &names);
        silt_map_fini(&names);
    }
    silt_buf_add(b, env);
}

void silt_env_drop(struct silt_buf *b, silt_slice name)
{
    struct silt_map names;
    silt_map_init(&names);
    silt_map_put(&names, name, &names);
    drop_names(b, &names);
    silt_map_fini(&names);
}

bool silt_env_names(silt_slice env, const char *const *beginnings)
{
    silt_slice variable;
    while (env.len > 0 && silt_slice_split(&env, 0, &variable))
        for (const char *const *b = beginnings; *b != NULL; b++)
            if (silt_slice_starts(variable, silt_slice_of(*b)))
                return true;
    return false;
}

silt_slice silt_env_find(silt_slice env, silt_slice name)
{
    silt_slice one, key, found = {NULL, 0};
    while (env.len > 0 && silt_slice_split(&env, 0, &one))
        if (silt_slice_split(&one, '=', &key) && silt_slice_eq(key, name) && one.data != NULL)
            found = one;
    return found;
}

silt_slice silt_env_given(const struct silt_sandbox *s, silt_slice name)
{
    const struct silt_image *image = silt_image_of(s);
    silt_slice found = silt_env_find((silt_slice){s->row.env, s->row.env_len}, name);
    return found.data == NULL && image != NULL ? silt_env_find(image->config.env, name) : found;
}

void silt_env_base(struct silt_buf *b, const struct silt_sandbox *s, bool is_root)
{
    silt_env_merge(b, SILT_LIT("PATH=" SILT_USUAL_PATH "\0"));
    if (is_root)
        silt_env_merge(b, SILT_LIT("HOME=/root\0USER=root\0LOGNAME=root\0"));
    silt_env_merge(b, SILT_LIT("SHELL=/bin/bash\0SANDBOX_VERSION=" SILT_VERSION "\0"));
    const struct silt_image *image = silt_image_of(s);
    if (image != NULL)
        silt_env_merge(b, image->config.env);
    silt_env_merge(b, (silt_slice){s->row.env, s->row.env_len});
}

static int in_memfd(const struct silt_start_frame *p, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fd = memfd_create("silt-start", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create memfd");
    if (silt_fd_write_all(fd, p->note, e) < 0 || silt_fd_write_all(fd, p->cwd, e) < 0
        || silt_fd_write_all(fd, p->env, e) < 0 || silt_fd_write_all(fd, p->user, e) < 0
        || silt_fd_write_all(fd, p->command, e) < 0)
        return -1;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_start_frame_send(struct silt_sandbox *s, uint32_t type, uint64_t id,
                          const struct silt_start_frame *p, struct silt_error *e)
{
    struct silt_agent_start head = {
        .session = p->session,
        .mode = p->mode,
        .timeout_ms = p->timeout_ms,
        .note_len = (uint32_t)p->note.len,
        .cwd_len = (uint32_t)p->cwd.len,
        .env_len = (uint32_t)p->env.len,
        .user_len = (uint32_t)p->user.len,
        .command_len = (uint32_t)p->command.len,
        .flags = p->flags,
        .terminal = p->terminal,
    };
    size_t parts = p->note.len + p->cwd.len + p->env.len + p->user.len + p->command.len;
    int fds[6];
    struct silt_frame_out f = {
        .type = type, .id = id, .head = {(const char *)&head, sizeof(head)}, .fds = fds};
    if (parts > SILT_START_MAX)
        return silt_fail(e, SILT_LIMIT, "command and environment of %zu bytes, at most %d", parts,
                         SILT_START_MAX);
    silt_auto_fd fd = -1;
    silt_auto_buf body;
    silt_buf_init(&body, SILT_FRAME_BODY_MAX - sizeof(head));
    if (parts > body.max) {
        if (in_memfd(p, &fd, e) < 0)
            return silt_because(e, "hand over a large command");
        f.flags = SILT_START_IN_MEMFD;
        fds[f.nfds++] = fd;
    } else {
        silt_buf_add(&body, p->note);
        silt_buf_add(&body, p->cwd);
        silt_buf_add(&body, p->env);
        silt_buf_add(&body, p->user);
        silt_buf_add(&body, p->command);
        f.body = silt_buf_slice(&body);
    }
    if (p->flags & SILT_START_LOG)
        fds[f.nfds++] = p->log;
    if (p->flags & SILT_START_SECRET)
        fds[f.nfds++] = p->secret;
    if (p->flags & SILT_START_PIPES) {
        fds[f.nfds++] = p->out;
        fds[f.nfds++] = p->err;
        fds[f.nfds++] = p->lines;
    }
    silt_channel_send(s, &f);
    return 0;
}
