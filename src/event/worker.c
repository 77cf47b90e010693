/* SPDX-License-Identifier: Apache-2.0 */
#include "event/worker.h"
#include "base/own.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>

enum { THREADS_MAX = 8 };

struct silt_worker {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch wake;
    pthread_mutex_t lock; /* guards the two lists and `closing` */
    pthread_cond_t work;
    struct silt_link waiting;
    struct silt_link finished;
    bool closing;
    unsigned threads;
    pthread_t thread[THREADS_MAX];
};

static struct silt_job *next_job(struct silt_worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    while (!w->closing && silt_list_empty(&w->waiting))
        (void)pthread_cond_wait(&w->work, &w->lock);
    struct silt_job *j = w->closing ? NULL : silt_list_first(&w->waiting, struct silt_job, link);
    if (j != NULL)
        silt_list_remove(&j->link);
    (void)pthread_mutex_unlock(&w->lock);
    return j;
}

static void *work(void *arg)
{
    struct silt_worker *w = arg;
    for (struct silt_job *j = next_job(w); j != NULL; j = next_job(w)) {
        j->run(j);
        (void)pthread_mutex_lock(&w->lock);
        silt_list_append(&w->finished, &j->link);
        (void)pthread_mutex_unlock(&w->lock);
        (void)eventfd_write(w->wake.fd, 1);
    }
    return NULL;
}

static void on_finished(struct silt_watch *watch, uint32_t events)
{
    struct silt_worker *w = silt_outer(watch, struct silt_worker, wake);
    struct silt_link done;
    eventfd_t count;
    (void)events;
    (void)eventfd_read(watch->fd, &count);
    silt_list_init(&done);
    (void)pthread_mutex_lock(&w->lock);
    silt_list_each(it, &w->finished)
    {
        silt_list_remove(it);
        silt_list_append(&done, it);
    }
    (void)pthread_mutex_unlock(&w->lock);
    while (!silt_list_empty(&done)) {
        struct silt_job *j = silt_outer(done.next, struct silt_job, link);
        silt_list_remove(&j->link);
        j->done(j);
    }
}

static int start_threads(struct silt_worker *w, unsigned threads, struct silt_error *e)
{
    sigset_t all, before; /* signals are handled by the loop's thread */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; w->threads < threads && w->threads < THREADS_MAX; w->threads++)
        if (pthread_create(&w->thread[w->threads], NULL, work, w) != 0)
            break;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (w->threads == 0)
        return silt_fail(e, SILT_LIMIT, "start a worker thread");
    return 0;
}

int silt_worker_open(struct silt_loop *loop, unsigned threads, struct silt_worker **ret,
                     struct silt_error *e)
{
    struct silt_worker *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    w->loop = loop;
    silt_list_init(&w->waiting);
    silt_list_init(&w->finished);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->work, NULL);
    w->wake =
        (struct silt_watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .on_ready = on_finished};
    if (w->wake.fd < 0) {
        free(w);
        return silt_fail_errno(e, "create eventfd");
    }
    if (start_threads(w, threads, e) < 0) {
        silt_close_fd(&w->wake.fd);
        free(w);
        return -1;
    }
    silt_loop_watch(loop, &w->wake, EPOLLIN);
    *ret = w;
    return 0;
}

void silt_worker_close(struct silt_worker *w)
{
    if (w == NULL)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->closing = true;
    (void)pthread_cond_broadcast(&w->work);
    (void)pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->threads; i++)
        (void)pthread_join(w->thread[i], NULL);
    silt_loop_forget(w->loop, &w->wake);
    silt_close_fd(&w->wake.fd);
    (void)pthread_cond_destroy(&w->work);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

void silt_worker_submit(struct silt_worker *w, struct silt_job *j)
{
    (void)pthread_mutex_lock(&w->lock);
    silt_list_append(&w->waiting, &j->link);
    (void)pthread_cond_signal(&w->work);
    (void)pthread_mutex_unlock(&w->lock);
}
