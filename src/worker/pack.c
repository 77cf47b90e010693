/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pack.h"

static char room[SILT_FRAME_BODY_MAX]; /* a worker packs only one thing at a time */

bool silt_pack_flush(struct silt_pack *p)
{
    size_t len = p->len;
    p->len = 0;
    return len == 0
           || silt_task_say(p->task, p->say, 0, (silt_slice){room, len}, (silt_slice){NULL, 0});
}

static void put(struct silt_pack *p, silt_slice bytes)
{
    if (bytes.len > 0)
        memcpy(room + p->len, bytes.data, bytes.len);
    p->len += bytes.len;
}

bool silt_pack_add(struct silt_pack *p, silt_slice head, silt_slice a, silt_slice b)
{
    static const char zeros[8];
    size_t len = head.len + a.len + b.len, padding = -len & 7;
    if (len + padding > sizeof(room))
        return false;
    if (p->len + len + padding > sizeof(room) && !silt_pack_flush(p))
        return false;
    put(p, head);
    put(p, a);
    put(p, b);
    put(p, (silt_slice){zeros, padding});
    return true;
}
