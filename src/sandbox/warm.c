/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/warm.h"
#include "base/own.h"
#include "sandbox/image.h"

#include <stdlib.h>

struct silt_warm {
    struct silt_context *context; /* borrowed; NULL: gone */
};

static bool concerns_the_start(silt_slice variable)
{
    static const char *const names[] = {"LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "MPL", "OPENBLAS_", "OMP_", "MKL_"};
    for (size_t i = 0; i < SILT_COUNT(names); i++)
        if (strncmp(variable.data, names[i], strlen(names[i])) == 0) /* it has a terminator */
            return true;
    return false;
}

static bool is_plain(silt_slice env)
{
    silt_slice variable;
    while (env.len > 0 && silt_slice_split(&env, 0, &variable))
        if (variable.len > 0 && concerns_the_start(variable))
            return false;
    return true;
}

bool silt_warm_suits(const struct silt_context *c)
{
    const struct silt_sandbox *s = c->sandbox;
    const struct silt_registry_settings *set = &s->registry->settings;
    const struct silt_image *image = silt_image_of(s);
    return c->row.language == SILT_PYTHON && !c->cold && set->zygotes > 0 && silt_image_user(s).len == 0
           && (image == NULL || is_plain(image->config.env))
           && is_plain((silt_slice){s->row.env, s->row.env_len})
           && is_plain((silt_slice){c->row.env, c->row.env_len});
}

static struct silt_context *end_question(struct silt_warm *w)
{
    struct silt_context *c = w->context;
    if (c != NULL)
        c->asked = NULL;
    free(w);
    return c;
}

static struct silt_warm *begin_question(struct silt_context *c)
{
    struct silt_warm *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    w->context = c;
    c->asked = w;
    return w;
}

static struct silt_priv_request request(const struct silt_context *c, enum silt_priv_op op)
{
    struct silt_priv_request q = {
        .op = op, .slot = c->row.slot, .body.context.number = c->row.number};
    const struct silt_image *image = silt_image_of(c->sandbox);
    memcpy(q.body.context.digest, image != NULL ? silt_image_tree(image) : c->sandbox->row.digest,
           sizeof(q.body.context.digest));
    return q;
}

static void on_forked(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_context *c = end_question(context);
    bool good = a->ok && nfds > 1;
    if (c != NULL)
        silt_context_on_forked(c, good ? a->body.context.pid : 0, fds, good ? nfds : 0);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
}

void silt_warm_fork(struct silt_context *c, const int theirs[SILT_KERNEL_FDS])
{
    struct silt_priv_request q = request(c, SILT_PRIV_CONTEXT);
    silt_priv_ask(c->sandbox->registry->priv, &q, theirs, SILT_KERNEL_FDS, on_forked, begin_question(c));
}

static void on_reaped(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_context *c = end_question(context);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
    if (c != NULL)
        silt_context_on_reaped(c, a->ok && a->body.context.known ? &a->body.context.status : NULL);
}

void silt_warm_reap(struct silt_context *c)
{
    struct silt_priv_request q = request(c, SILT_PRIV_REAP);
    silt_priv_ask(c->sandbox->registry->priv, &q, NULL, 0, on_reaped, begin_question(c));
}

void silt_warm_let_go(struct silt_context *c)
{
    silt_warm_reap(c);
    silt_warm_forget(c);
}

void silt_warm_forget(struct silt_context *c)
{
    if (c->asked == NULL)
        return;
    c->asked->context = NULL;
    c->asked = NULL;
}
