/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/exported.h"
#include "agent/shell/dev_silt.h"
#include "base/fd.h"

#include <stdio.h>
#include <unistd.h>

enum {
    LOOK_MS = 10,
    LOOK_SOON_MS = 1, /* while siltd waits */
    LOOKS_MAX = 100,  /* then the shell has been stopped, or does not write them */
};

int silt_exported_begin(struct silt_session *s, struct silt_error *e)
{
    char name[SILT_DEV_SILT_NAME_SIZE];
    silt_shell_name(s->slot, SILT_SHELL_EXPORTED, name);
    return silt_dev_silt_create(s->agent->directory, name, s->owner, &s->exported.file, e);
}

static bool is_awaited(const struct silt_session *s)
{
    return s->exported.look.place != 0;
}

static void answer_ping(struct silt_agent *a)
{
    struct silt_say say = {.type = SILT_AGENT_PONG, .id = a->exported_ping};
    silt_list_each(it, &a->sessions)
    {
        if (is_awaited(silt_outer(it, struct silt_session, link)))
            return;
    }
    if (a->exported_ping != 0)
        silt_channel_say(&a->channel, &say);
    a->exported_ping = 0;
}

/* FNV-1a: tells siltd only what has changed. */
static uint64_t hash_of(silt_slice text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * 0x100000001b3;
    return hash | 1; /* 0: nothing was reported */
}

static void report(struct silt_session *s, silt_slice text)
{
    uint64_t hash = hash_of(text);
    struct silt_say say = {.type = SILT_AGENT_EXPORTED, .id = s->id, .head = text};
    if (hash == s->exported.hash)
        return;
    s->exported.hash = hash;
    silt_channel_say(&s->agent->channel, &say);
}

/* False: the shell has not written all of it yet. More than fits a frame is not reported. */
static bool look(struct silt_session *s)
{
    static char text[SILT_FRAME_BODY_MAX + 1];
    char mark[SILT_MARK_SIZE + 2];
    size_t mark_len = (size_t)snprintf(mark, sizeof(mark), "#%u", s->exported.mark);
    ssize_t len = pread(s->exported.file, text, sizeof(text), 0);
    if (len == (ssize_t)sizeof(text))
        return true;
    if (len < (ssize_t)mark_len || memcmp(text + len - mark_len, mark, mark_len) != 0)
        return false;
    report(s, (silt_slice){text, (size_t)len - mark_len});
    return true;
}

static void look_later(struct silt_session *s)
{
    bool urgent = s->agent->exported_ping != 0;
    silt_loop_after(&s->agent->loop, &s->exported.look, urgent ? LOOK_SOON_MS : LOOK_MS);
}

static void on_look(struct silt_timer *t)
{
    struct silt_session *s = silt_outer(t, struct silt_session, exported.look);
    if (!look(s) && ++s->exported.looks < LOOKS_MAX)
        look_later(s);
    else
        answer_ping(s->agent);
}

void silt_exported_await(struct silt_session *s)
{
    s->exported.mark = s->mark;
    s->exported.looks = 0;
    s->exported.look.on_time = on_look;
    if (!is_awaited(s))
        look_later(s);
}

void silt_exported_flush(struct silt_agent *a, uint64_t ping)
{
    a->exported_ping = ping;
    silt_list_each(it, &a->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (is_awaited(s))
            silt_loop_after(&a->loop, &s->exported.look, 0);
    }
    answer_ping(a);
}

void silt_exported_renew(struct silt_agent *a)
{
    a->exported_ping = 0;
    silt_list_each(it, &a->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        s->exported.hash = 0;
        s->exported.looks = 0;
        if (s->exported.mark != 0)
            look_later(s);
    }
}

void silt_exported_fini(struct silt_session *s)
{
    silt_loop_cancel(&s->agent->loop, &s->exported.look);
    silt_close_fd(&s->exported.file);
    answer_ping(s->agent);
}
