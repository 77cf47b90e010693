/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/process/port_wait.h"
#include "base/buf.h"
#include "sandbox/file/watch.h"

void silt_port_wait_leave(struct silt_port_wait *w)
{
    if (w->work == NULL)
        return;
    silt_process_unwatch(&w->watch);
    silt_work_leave(w->work);
    w->work = NULL;
}

static void on_said(struct silt_work_sink *sink, enum silt_worker_say type, silt_slice body,
                    bool last)
{
    struct silt_port_wait *w = silt_outer(sink, struct silt_port_wait, sink);
    struct silt_worker_done done;
    struct silt_error e;
    if (last)
        w->work = NULL;
    else
        silt_port_wait_leave(w);
    silt_process_unwatch(&w->watch);
    if (type != SILT_WORKER_SAY_DONE || body.len != sizeof(done) || !last) {
        (void)silt_fail(&e, SILT_PROTOCOL, "a worker inside the sandbox broke the protocol");
        w->failed(w, &e);
        return;
    }
    memcpy(&done, body.data, sizeof(done));
    w->reached(w, done.status < 1000 ? done.status : 0);
}

static void on_failed(struct silt_work_sink *sink, const struct silt_error *e)
{
    struct silt_port_wait *w = silt_outer(sink, struct silt_port_wait, sink);
    w->work = NULL;
    silt_process_unwatch(&w->watch);
    w->failed(w, e);
}

static void on_process(struct silt_process_watch *watch, struct silt_process *p,
                       enum silt_process_event what, const struct silt_error *e)
{
    struct silt_port_wait *w = silt_outer(watch, struct silt_port_wait, watch);
    (void)e;
    if (what == SILT_PROCESS_STARTED) {
        silt_process_watch(p, watch);
        return;
    }
    int32_t code = p->row.exit_code;
    silt_port_wait_leave(w);
    w->exited(w, code);
}

int silt_port_wait_start(struct silt_port_wait *w, struct silt_sandbox *s,
                         const struct silt_port_request *q, struct silt_error *e)
{
    silt_auto_buf text;
    struct silt_worker_port how = {
        .http = q->http,
        .status_min = q->status_min,
        .status_max = q->status_max,
        .interval_ms = q->interval_ms,
    };
    silt_buf_init(&text, sizeof(how) + SILT_WORKER_PATH_MAX);
    silt_buf_add(&text, (silt_slice){(const char *)&how, sizeof(how)});
    silt_buf_add(&text, q->path);
    struct silt_work_request work = {
        .kind = SILT_WORK_LONG,
        .op = SILT_WORKER_PORT,
        .ask = {.mode = q->port},
        .text = silt_buf_slice(&text),
    };
    w->sink = (struct silt_work_sink){.said = on_said, .failed = on_failed};
    w->work = NULL;
    silt_list_init(&w->watch.link);
    w->watch.on_event = on_process;
    if (text.broken)
        return silt_fail(e, SILT_INVALID, "a path of more than %d bytes", SILT_WORKER_PATH_MAX);
    silt_file_watch_make_room(s);
    if (silt_work_start(s, &work, &w->sink, &w->work, e) < 0)
        return -1;
    if (q->process != NULL)
        silt_process_watch(q->process, &w->watch);
    return 0;
}
