/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/file/source.h"
#include "base/own.h"
#include "cli/core/wait.h"

#include <errno.h>
#include <poll.h>

static int end_tar(struct silt_tar **tar, struct silt_error *e)
{
    struct silt_tar *t = *tar;
    *tar = NULL;
    return t != NULL ? silt_tar_end(t, e) : 0;
}

static int next_of_fd(struct silt_client_source *source, silt_slice *ret, struct silt_error *e)
{
    struct silt_source_fd *s = silt_outer(source, struct silt_source_fd, source);
    short ready;
    ssize_t n;
    do {
        if (silt_wait_for(s->fd, POLLIN, -1, &ready, e) < 0)
            return -1;
        n = read(s->fd, s->piece, sizeof(s->piece));
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        return silt_fail_errno(e, "read what is to be sent");
    if (n == 0)
        return end_tar(&s->tar, e);
    *ret = (silt_slice){s->piece, (size_t)n};
    return 1;
}

void silt_source_from_fd(struct silt_source_fd *s, int fd, struct silt_tar *tar)
{
    s->source = (struct silt_client_source){next_of_fd, -1};
    s->fd = fd;
    s->tar = tar;
}

static int next_of_answer(struct silt_client_source *source, silt_slice *ret, struct silt_error *e)
{
    struct silt_source_answer *s = silt_outer(source, struct silt_source_answer, source);
    return silt_client_read(s->client, ret, e);
}

void silt_source_from_answer(struct silt_source_answer *s, struct silt_client *client)
{
    bool known =
        !client->head.chunked && client->head.has_length && client->head.length < INT64_MAX;
    s->source =
        (struct silt_client_source){next_of_answer, known ? (int64_t)client->head.length : -1};
    s->client = client;
}
