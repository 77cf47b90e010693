/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/warm.h"
#include "base/own.h"
#include "sandbox/image.h"
#include "sandbox/registry.h"
#include "sandbox/start.h"

#include <stdlib.h>

struct silt_warm_question {
    struct silt_warm *warm; /* borrowed; NULL: nobody wants to know */
};

/* What Python, and what it has loaded, look at when they start. */
static const char *const start_names[] = {"LD_", "LC_",       "LANG", "MALLOC_", "GLIBC_",
                                          "MPL", "OPENBLAS_", "OMP_", "MKL_",    NULL};

bool silt_warm_suits(const struct silt_sandbox *s, silt_slice env)
{
    const struct silt_image *image = silt_image_of(s);
    return silt_image_user(s).len == 0 && !silt_env_names(env, start_names)
           && (image == NULL || !silt_env_names(image->config.env, start_names))
           && !silt_env_names((silt_slice){s->row.env, s->row.env_len}, start_names);
}

static struct silt_warm *end_question(struct silt_warm_question *q)
{
    struct silt_warm *w = q->warm;
    if (w != NULL)
        w->asked = NULL;
    free(q);
    return w;
}

static struct silt_warm_question *begin_question(struct silt_warm *w)
{
    struct silt_warm_question *q = calloc(1, sizeof(*q));
    if (q == NULL)
        abort();
    q->warm = w;
    if (w != NULL)
        w->asked = q;
    return q;
}

static struct silt_priv_request request(const struct silt_sandbox *s, uint64_t number, enum silt_priv_op op)
{
    struct silt_priv_request q = {.op = op, .slot = s->row.slot, .body.context.number = number};
    memcpy(q.body.context.digest, s->row.digest, sizeof(q.body.context.digest));
    return q;
}

static void on_forked(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_warm *w = end_question(context);
    bool good = a->ok && nfds > 1;
    if (w != NULL)
        w->on_forked(w, good ? a->body.context.pid : 0, fds, good ? nfds : 0);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
}

void silt_warm_fork(struct silt_warm *w, const struct silt_sandbox *s, uint64_t number,
                    const int theirs[SILT_KERNEL_FDS])
{
    struct silt_priv_request q = request(s, number, SILT_PRIV_CONTEXT);
    silt_priv_ask(s->registry->priv, &q, theirs, SILT_KERNEL_FDS, on_forked, begin_question(w));
}

static void on_reaped(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_warm *w = end_question(context);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
    if (w != NULL)
        w->on_reaped(w, a->ok && a->body.context.known ? &a->body.context.status : NULL);
}

void silt_warm_reap(struct silt_warm *w, const struct silt_sandbox *s, uint64_t number)
{
    struct silt_priv_request q = request(s, number, SILT_PRIV_REAP);
    silt_priv_ask(s->registry->priv, &q, NULL, 0, on_reaped, begin_question(w));
}

void silt_warm_let_go(const struct silt_sandbox *s, uint64_t number)
{
    silt_warm_reap(NULL, s, number);
}

void silt_warm_forget(struct silt_warm *w)
{
    if (w->asked != NULL)
        w->asked->warm = NULL;
    w->asked = NULL;
}

void silt_warm_free(struct silt_warm *w)
{
    free(w->asked);
    w->asked = NULL;
}
