/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/recovery.h"
#include "engine/storage/image.h"
#include "engine/storage/recovery.h"

_Static_assert((int)SILT_RECOVERY_NAME_SIZE >= (int)SILT_IMAGE_NAME_SIZE, "a digest fits");

static int read_name(const struct silt_priv_job *job, char name[SILT_RECOVERY_NAME_SIZE],
                     struct silt_error *e)
{
    const struct silt_priv_recovery *q = &job->request.body.recovery;
    if (q->kind >= SILT_RECOVERY_KIND_MAX)
        return silt_fail(e, SILT_PROTOCOL, "recovery record of kind %u", q->kind);
    if (q->kind == SILT_RECOVERY_IMAGE)
        silt_image_name(q->digest, name);
    else
        silt_recovery_slot_name(job->request.slot, name);
    return 0;
}

int silt_priv_run_record(struct silt_priv_helper *u, struct silt_priv_job *job,
                         struct silt_error *e)
{
    char name[SILT_RECOVERY_NAME_SIZE];
    bool image = job->request.body.recovery.kind == SILT_RECOVERY_IMAGE;
    if (read_name(job, name, e) < 0)
        return -1;
    if (job->in.nfds == 0)
        return silt_recovery_remove(&u->volumes, name, e);
    return silt_recovery_put(&u->volumes, name, job->in.fds[0],
                             image ? SILT_RECOVERY_IMAGE_MAX : SILT_RECOVERY_MAX, e);
}

int silt_priv_run_records(struct silt_priv_helper *u, struct silt_priv_job *job,
                          struct silt_error *e)
{
    if (silt_recovery_list(&u->volumes, u->images, u->slots, &job->out.fds[0], e) < 0)
        return -1;
    job->out.nfds = 1;
    return 0;
}

int silt_priv_run_read_record(struct silt_priv_helper *u, struct silt_priv_job *job,
                              struct silt_error *e)
{
    char name[SILT_RECOVERY_NAME_SIZE];
    if (read_name(job, name, e) < 0
        || silt_recovery_open(&u->volumes, name, &job->out.fds[0], e) < 0)
        return -1;
    job->out.nfds = 1;
    return 0;
}

int silt_priv_put_record(struct silt_priv_helper *u, const struct silt_priv_job *job, int at,
                         struct silt_error *e)
{
    char name[SILT_RECOVERY_NAME_SIZE];
    if (job->in.nfds <= at)
        return 0;
    silt_recovery_slot_name(job->request.slot, name);
    return silt_recovery_put(&u->volumes, name, job->in.fds[at], SILT_RECOVERY_MAX, e);
}
