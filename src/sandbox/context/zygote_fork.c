/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/zygote_fork.h"
#include "base/own.h"
#include "sandbox/core/image.h"
#include "sandbox/core/registry.h"
#include "sandbox/core/start_frame.h"

#include <stdlib.h>

struct silt_zygote_fork_question {
    struct silt_zygote_fork *warm; /* borrowed; NULL: not wanted any more */
};

/* ---- variables ---- */

/* Variables that Python and its preloaded modules read at program start. */
static const char *const start_names[] = {"LD_",    "LC_",          "LANG",      "MALLOC_",
                                          "GLIBC_", "MPL",          "OPENBLAS_", "OMP_",
                                          "MKL_",   "MATPLOTLIBRC", "OPENSSL_",  NULL};

/* A zygote's files are in UTF-8; the forked process sets the exact locale itself. */
static bool is_utf8(silt_slice locale)
{
    static const char *const ends[] = {".UTF-8", ".utf8", ".UTF8", ".utf-8"};
    for (size_t i = 0; i < SILT_COUNT(ends); i++) {
        size_t len = strlen(ends[i]);
        if (locale.len > len && memcmp(locale.data + locale.len - len, ends[i], len) == 0)
            return true;
    }
    return locale.len == 0;
}

/* Variables that a forked process honours just as a started one would. */
static bool is_harmless(silt_slice name, silt_slice value)
{
    struct silt_error e;
    uint64_t count;
    if (silt_slice_eq(name, SILT_LIT("LANGUAGE")))
        return true;
    if (silt_slice_eq(name, SILT_LIT("LANG")) || silt_slice_starts(name, SILT_LIT("LC_")))
        return is_utf8(value);
    if (silt_slice_eq(name, SILT_LIT("MPLBACKEND")))
        return silt_slice_eq(value, SILT_LIT("Agg")) || silt_slice_eq(value, SILT_LIT("agg"));
    if (silt_slice_eq(name, SILT_LIT("OPENBLAS_NUM_THREADS"))
        || silt_slice_eq(name, SILT_LIT("OMP_NUM_THREADS")))
        return silt_slice_to_u64(value, 1, 1 << 16, &count, &e) == 0;
    return false;
}

bool silt_zygote_fork_env_suits(silt_slice env)
{
    silt_slice variable, name;
    while (env.len > 0 && silt_slice_split(&env, 0, &variable)) {
        silt_slice value = variable;
        if (silt_env_names(variable, start_names)
            && !(silt_slice_split(&value, '=', &name) && is_harmless(name, value)))
            return false;
    }
    return true;
}

bool silt_zygote_fork_suits(const struct silt_sandbox *s, silt_slice env)
{
    const struct silt_image *image = silt_image_of(s);
    return silt_zygote_fork_env_suits(env)
           && (image == NULL || silt_zygote_fork_env_suits(image->config.env))
           && silt_zygote_fork_env_suits((silt_slice){s->row.env, s->row.env_len});
}

/* ---- requests ---- */

static struct silt_zygote_fork *end_question(struct silt_zygote_fork_question *q)
{
    struct silt_zygote_fork *w = q->warm;
    if (w != NULL)
        w->asked = NULL;
    free(q);
    return w;
}

static struct silt_zygote_fork_question *begin_question(struct silt_zygote_fork *w)
{
    struct silt_zygote_fork_question *q = calloc(1, sizeof(*q));
    if (q == NULL)
        abort();
    q->warm = w;
    if (w != NULL)
        w->asked = q;
    return q;
}

static struct silt_priv_request request(const struct silt_sandbox *s, uint64_t number,
                                        enum silt_priv_op op)
{
    struct silt_priv_request q = {.op = op, .slot = s->row.slot, .body.context.number = number};
    const struct silt_image *image = silt_image_of(s);
    memcpy(q.body.context.digest, image != NULL ? silt_image_files(image) : s->row.digest,
           sizeof(q.body.context.digest));
    return q;
}

static void on_forked(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_zygote_fork *w = end_question(context);
    bool good = a->ok && nfds > 1;
    if (w != NULL)
        w->later = !a->ok && a->body.error.code == SILT_UNAVAILABLE;
    if (w != NULL)
        w->on_forked(w, good ? a->body.context.pid : 0, fds, good ? nfds : 0);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
}

void silt_zygote_fork_fork(struct silt_zygote_fork *w, const struct silt_sandbox *s,
                           uint64_t number, const int theirs[SILT_KERNEL_FDS])
{
    struct silt_priv_request q = request(s, number, SILT_PRIV_CONTEXT);
    silt_priv_ask(s->registry->priv, &q, theirs, SILT_KERNEL_FDS, on_forked, begin_question(w));
}

static void on_reaped(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_zygote_fork *w = end_question(context);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
    if (w != NULL)
        w->on_reaped(w, a->ok && a->body.context.known ? &a->body.context.status : NULL);
}

void silt_zygote_fork_reap(struct silt_zygote_fork *w, const struct silt_sandbox *s,
                           uint64_t number)
{
    struct silt_priv_request q = request(s, number, SILT_PRIV_REAP);
    silt_priv_ask(s->registry->priv, &q, NULL, 0, on_reaped, begin_question(w));
}

void silt_zygote_fork_let_go(const struct silt_sandbox *s, uint64_t number)
{
    silt_zygote_fork_reap(NULL, s, number);
}

void silt_zygote_fork_forget(struct silt_zygote_fork *w)
{
    if (w->asked != NULL)
        w->asked->warm = NULL;
    w->asked = NULL;
}

void silt_zygote_fork_free(struct silt_zygote_fork *w)
{
    free(w->asked);
    w->asked = NULL;
}
