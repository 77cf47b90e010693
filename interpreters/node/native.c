/* SPDX-License-Identifier: Apache-2.0 */
/* native: what the kernel of a JavaScript context needs and JavaScript cannot do. It hides the
 * control descriptors from user code's children, reads requests on its own thread, writes whole
 * lines, and stops JavaScript on SIGINT wherever it is: in a cell, after an await, in a timer.
 *
 * SIGINT is first reported to the event loop (onInterrupt). If the loop does not answer within
 * PATIENCE_MS it is blocked by user code, which is then terminated, repeatedly until the loop
 * answers. Code of the kernel itself is never terminated: it runs while nothing is watched, or is a
 * native call.
 *
 * Linked against no library: every name below is exported by node or by the C library that node has
 * loaded, so one file works in every image. Node-API is declared here so that a build does not need
 * Node. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef struct napi_ref__ *napi_ref;
typedef struct napi_threadsafe_function__ *napi_threadsafe_function;
typedef napi_value (*napi_callback)(napi_env, napi_callback_info);
typedef void (*napi_threadsafe_function_call_js)(napi_env, napi_value, void *, void *);
typedef void (*napi_finalize)(napi_env, void *, void *);
typedef int napi_status; /* 0 is success */

napi_status napi_create_function(napi_env, const char *, size_t, napi_callback, void *,
                                 napi_value *);
napi_status napi_set_named_property(napi_env, napi_value, const char *, napi_value);
napi_status napi_get_cb_info(napi_env, napi_callback_info, size_t *, napi_value *, napi_value *,
                             void **);
napi_status napi_get_undefined(napi_env, napi_value *);
napi_status napi_get_null(napi_env, napi_value *);
napi_status napi_get_boolean(napi_env, bool, napi_value *);
napi_status napi_get_value_int32(napi_env, napi_value, int *);
napi_status napi_get_value_bool(napi_env, napi_value, bool *);
napi_status napi_create_int32(napi_env, int, napi_value *);
napi_status napi_create_string_utf8(napi_env, const char *, size_t, napi_value *);
napi_status napi_get_value_string_utf8(napi_env, napi_value, char *, size_t, size_t *);
napi_status napi_is_buffer(napi_env, napi_value, bool *);
napi_status napi_get_buffer_info(napi_env, napi_value, void **, size_t *);
napi_status napi_call_function(napi_env, napi_value, napi_value, size_t, const napi_value *,
                               napi_value *);
napi_status napi_create_reference(napi_env, napi_value, uint32_t, napi_ref *);
napi_status napi_get_reference_value(napi_env, napi_ref, napi_value *);
napi_status napi_get_and_clear_last_exception(napi_env, napi_value *);
napi_status napi_fatal_exception(napi_env, napi_value);
napi_status napi_create_threadsafe_function(napi_env, napi_value, napi_value, napi_value, size_t,
                                            size_t, void *, napi_finalize, void *,
                                            napi_threadsafe_function_call_js,
                                            napi_threadsafe_function *);
napi_status napi_call_threadsafe_function(napi_threadsafe_function, void *, int);
__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env,
                                                                          napi_value exports);

/* Methods of v8::Isolate, by their mangled C++ names. */
void *current_isolate(void) __asm__("_ZN2v87Isolate10GetCurrentEv");
void terminate_execution(void *isolate) __asm__("_ZN2v87Isolate18TerminateExecutionEv");
void cancel_terminate_execution(void *isolate) __asm__(
    "_ZN2v87Isolate24CancelTerminateExecutionEv");
typedef void (*promise_hook)(int type, napi_value promise, napi_value parent);
void set_promise_hook(void *isolate, promise_hook hook) __asm__(
    "_ZN2v87Isolate14SetPromiseHookEPFvNS_15PromiseHookTypeENS_5LocalINS_7PromiseEEENS2_INS_"
    "5ValueEEEE");
#pragma weak set_promise_hook

enum {
    AUTO_LENGTH = -1,
    PROMISE_INIT = 0, /* of v8::PromiseHookType */
    PATIENCE_MS = 20,
    /* away from the numbers that user code gets and closes, and below 64, the initial size of a
     * process's table: with threads Linux waits 10 ms to enlarge it */
    CONTROL_FD_MIN = 60,
    LINE_MAX_BYTES = 64 << 20, /* code of 10 MB, every byte escaped */
    READ_BYTES = 64 << 10,
};

/* The states of an interrupt, from the signal to its handling. */
enum interrupt { NONE, ASKED, ANSWERED };

struct line {
    size_t length;
    char bytes[];
};

static struct {
    void *isolate;
    napi_env env;
    napi_ref on_promise;
    napi_threadsafe_function lines, interrupts;
    int control; /* requests */
    int answers;
    int signal_read, signal_write;
    bool closed; /* used by the thread: control has ended */
    char *buffer;
    size_t used, size;

    pthread_mutex_t lock; /* guards the following members */
    enum interrupt interrupt;
    bool stopped;     /* the process ends: the event loop gets no more calls */
    unsigned waiting; /* lines that the event loop has not taken yet */
    unsigned inside;  /* depth of call() */
    bool busy;        /* a line was taken and is being handled: interrupts are meant for it */
    bool shielded;    /* node is doing something that must not be interrupted halfway */
    bool watched;     /* user code may be running anywhere */
} k = {.control = -1, .answers = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the thread ---- */

static void on_signal(int number)
{
    (void)number;
    int saved = errno;
    (void)!write(k.signal_write, "", 1);
    errno = saved;
}

static void guard_signal(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    (void)sigaction(SIGINT, &action, NULL);
}

static bool stuck(void)
{
    return k.interrupt == ASKED && !k.shielded && (k.inside || k.watched || (k.waiting && !k.busy));
}

static void strike(void)
{
    pthread_mutex_lock(&k.lock);
    if (stuck())
        terminate_execution(k.isolate);
    pthread_mutex_unlock(&k.lock);
}

/* A signal while nothing runs and nothing waits has no effect. */
static void ask(void)
{
    char drain[64];
    bool any = false;
    pthread_mutex_lock(&k.lock);
    while (read(k.signal_read, drain, sizeof drain) > 0)
        any = true; /* forget() may have been faster */
    bool idle = !any || (!k.busy && !k.waiting);
    if (!idle && k.interrupt == NONE)
        k.interrupt = ASKED;
    if (!idle && !k.stopped)
        (void)napi_call_threadsafe_function(k.interrupts, NULL, 0);
    pthread_mutex_unlock(&k.lock);
}

static bool asked(void)
{
    pthread_mutex_lock(&k.lock);
    bool yes = k.interrupt == ASKED;
    pthread_mutex_unlock(&k.lock);
    return yes;
}

/* NULL means the end of the requests. */
static void deliver(const char *bytes, size_t length)
{
    struct line *line = NULL;
    if (bytes) {
        line = malloc(sizeof *line + length);
        if (!line)
            abort();
        line->length = length;
        memcpy(line->bytes, bytes, length);
    }
    pthread_mutex_lock(&k.lock);
    k.waiting++;
    if (!k.stopped)
        (void)napi_call_threadsafe_function(k.lines, line, 0);
    pthread_mutex_unlock(&k.lock);
}

static void split(size_t from)
{
    char *start = k.buffer, *end = k.buffer + k.used, *at = k.buffer + from;
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        deliver(start, (size_t)(at - start));
        start = ++at;
    }
    k.used = (size_t)(end - start);
    memmove(k.buffer, start, k.used);
}

static bool make_room(void)
{
    if (k.size - k.used >= READ_BYTES)
        return true;
    size_t size = k.size * 2 + READ_BYTES * 2;
    char *larger = size <= LINE_MAX_BYTES ? realloc(k.buffer, size) : NULL;
    if (!larger)
        return false;
    k.buffer = larger;
    k.size = size;
    return true;
}

static void read_control(void)
{
    ssize_t n = make_room() ? read(k.control, k.buffer + k.used, k.size - k.used) : 0;
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        k.closed = true;
        deliver(NULL, 0);
        return;
    }
    k.used += (size_t)n;
    split(k.used - (size_t)n);
}

static void *thread(void *unused)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = k.signal_read, .events = POLLIN},
                               {.fd = k.closed ? -1 : k.control, .events = POLLIN}};
        int ready = poll(fds, 2, asked() ? PATIENCE_MS : -1);
        if (ready == 0)
            strike();
        if (ready <= 0)
            continue;
        if (fds[1].revents)
            read_control(); /* before the signal: what was sent first may be the reason for it */
        if (fds[0].revents)
            ask();
    }
    return unused;
}

/* ---- in the event loop ---- */

/* User code is off the stack: JavaScript of the kernel runs and is not stopped. Called with the
 * lock held. */
static void take_over(void)
{
    if (k.interrupt == ASKED)
        k.interrupt = ANSWERED;
    k.watched = false;
    k.shielded = false;
    cancel_terminate_execution(k.isolate);
}

static void take_line(void)
{
    pthread_mutex_lock(&k.lock);
    take_over();
    k.waiting--;
    k.busy = true;
    pthread_mutex_unlock(&k.lock);
}

static void on_line(napi_env env, napi_value handler, void *context, void *data)
{
    (void)context;
    struct line *line = data;
    napi_value self, text, result;
    if (env) {
        take_line();
        napi_get_undefined(env, &self);
        if (!line || napi_create_string_utf8(env, line->bytes, line->length, &text) != 0)
            napi_get_null(env, &text);
        (void)napi_call_function(env, self, handler, 1, &text, &result);
    }
    free(line);
}

static void on_interrupt(napi_env env, napi_value handler, void *context, void *data)
{
    (void)context, (void)data;
    napi_value self, result;
    if (!env || !asked())
        return; /* handled already */
    pthread_mutex_lock(&k.lock);
    take_over();
    pthread_mutex_unlock(&k.lock);
    napi_get_undefined(env, &self);
    (void)napi_call_function(env, self, handler, 0, NULL, &result);
}

/* ---- functions for JavaScript ---- */

/* watch(): from here on user code may run anywhere. False if the run has been interrupted
 * already. */
static napi_value watch(napi_env env, napi_callback_info info)
{
    (void)info;
    pthread_mutex_lock(&k.lock);
    k.watched = true;
    bool undisturbed = k.interrupt == NONE;
    pthread_mutex_unlock(&k.lock);
    napi_value result;
    napi_get_boolean(env, undisturbed, &result);
    return result;
}

/* pause(): the kernel continues the run; an interrupt waits for its next call() or watch(). */
static napi_value pause_run(napi_env env, napi_callback_info info)
{
    (void)env, (void)info;
    pthread_mutex_lock(&k.lock);
    take_over();
    pthread_mutex_unlock(&k.lock);
    return NULL;
}

/* forget(): discards signals received so far. Those sent before a line that this thread has taken
 * are in the pipe: their handler has run. */
static napi_value forget(napi_env env, napi_callback_info info)
{
    (void)env, (void)info;
    char drain[64];
    pthread_mutex_lock(&k.lock);
    while (read(k.signal_read, drain, sizeof drain) > 0)
        ;
    k.interrupt = NONE;
    pthread_mutex_unlock(&k.lock);
    return NULL;
}

/* rest(): the line is handled. */
static napi_value rest(napi_env env, napi_callback_info info)
{
    (void)env, (void)info;
    pthread_mutex_lock(&k.lock);
    take_over();
    k.busy = false;
    k.interrupt = NONE;
    pthread_mutex_unlock(&k.lock);
    return NULL;
}

static bool enter(void)
{
    pthread_mutex_lock(&k.lock);
    bool allowed = k.interrupt == NONE;
    k.inside += allowed;
    pthread_mutex_unlock(&k.lock);
    return allowed;
}

static bool leave(void)
{
    pthread_mutex_lock(&k.lock);
    k.inside--;
    bool undisturbed = k.interrupt == NONE;
    if (k.interrupt == ASKED)
        k.interrupt = ANSWERED;
    k.shielded = false;
    cancel_terminate_execution(k.isolate);
    pthread_mutex_unlock(&k.lock);
    return undisturbed;
}

/* call(f): true if f has returned, false if SIGINT stopped it or came before; rethrows what f
 * throws. */
static napi_value call(napi_env env, napi_callback_info info)
{
    size_t count = 1;
    napi_value f, self, result;
    napi_get_cb_info(env, info, &count, &f, NULL, NULL);
    napi_get_undefined(env, &self);
    bool finished = false;
    if (enter()) {
        (void)napi_call_function(env, self, f, 0, NULL, &result);
        finished = leave();
    }
    if (!finished)
        (void)napi_get_and_clear_last_exception(env, &result);
    napi_get_boolean(env, finished, &result);
    return result;
}

/* shield(on): an earlier interrupt takes effect where the next function begins, a later one
 * waits. */
static napi_value shield(napi_env env, napi_callback_info info)
{
    size_t count = 1;
    napi_value on;
    bool shielded = false;
    napi_get_cb_info(env, info, &count, &on, NULL, NULL);
    napi_get_value_bool(env, on, &shielded);
    pthread_mutex_lock(&k.lock);
    k.shielded = shielded;
    pthread_mutex_unlock(&k.lock);
    return NULL;
}

/* ---- the next promise ---- */

static void on_promise(int type, napi_value promise, napi_value parent)
{
    (void)parent;
    napi_value self, f, result;
    if (type != PROMISE_INIT)
        return;
    set_promise_hook(k.isolate, NULL); /* the callback creates promises, too */
    napi_get_undefined(k.env, &self);
    if (napi_get_reference_value(k.env, k.on_promise, &f) == 0)
        (void)napi_call_function(k.env, self, f, 1, &promise, &result);
}

/* onPromise(f): sets the callback for promises; false if this V8 does not support it. */
static napi_value set_on_promise(napi_env env, napi_callback_info info)
{
    size_t count = 1;
    napi_value f, result;
    napi_get_cb_info(env, info, &count, &f, NULL, NULL);
    k.env = env;
    bool can = set_promise_hook != NULL && napi_create_reference(env, f, 1, &k.on_promise) == 0;
    napi_get_boolean(env, can, &result);
    return result;
}

/* awaitPromise(on): f gets the next promise, while it is being created, if one is created before
 * this is switched off. */
static napi_value await_promise(napi_env env, napi_callback_info info)
{
    size_t count = 1;
    napi_value on;
    bool wanted = false;
    napi_get_cb_info(env, info, &count, &on, NULL, NULL);
    napi_get_value_bool(env, on, &wanted);
    set_promise_hook(k.isolate, wanted ? on_promise : NULL);
    return NULL;
}

/* Blocks as long as it takes: the reader always reads on. A child may have made a pipe
 * non-blocking. */
static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n >= 0) {
            bytes += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd full = {.fd = fd, .events = POLLOUT};
            (void)poll(&full, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static int write_value(napi_env env, int fd, napi_value value, const char *end)
{
    bool is_buffer = false;
    void *bytes = NULL;
    size_t length = 0, tail = strlen(end);
    napi_is_buffer(env, value, &is_buffer);
    if (is_buffer)
        return napi_get_buffer_info(env, value, &bytes, &length) ? EINVAL
                                                                 : write_all(fd, bytes, length);
    if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != 0)
        return EINVAL;
    char *text = malloc(length + tail + 1);
    if (!text)
        return ENOMEM;
    napi_get_value_string_utf8(env, value, text, length + 1, &length);
    memcpy(text + length, end, tail);
    int error = write_all(fd, text, length + tail);
    free(text);
    return error;
}

/* send(text): writes one line to control. write(fd, text or buffer): writes output. Both return 0
 * or errno. */
static napi_value send_line(napi_env env, napi_callback_info info)
{
    size_t count = 1;
    napi_value text, result;
    napi_get_cb_info(env, info, &count, &text, NULL, NULL);
    napi_create_int32(env, write_value(env, k.answers, text, "\n"), &result);
    return result;
}

static napi_value write_output(napi_env env, napi_callback_info info)
{
    size_t count = 2;
    napi_value args[2], result;
    int fd = -1;
    napi_get_cb_info(env, info, &count, args, NULL, NULL);
    napi_get_value_int32(env, args[0], &fd);
    napi_create_int32(env, write_value(env, fd, args[1], ""), &result);
    return result;
}

/* unwind(): throws an exception that nothing catches, after which node resets its stack of
 * asynchronous calls. Code terminated in a timer or a tick has left it unbalanced. */
static napi_value unwind(napi_env env, napi_callback_info info)
{
    (void)info;
    napi_value nothing;
    napi_get_undefined(env, &nothing);
    (void)napi_fatal_exception(env, nothing);
    return NULL;
}

/* stop(): the event loop ends with the process, and the thread must not call it any more. */
static napi_value stop(napi_env env, napi_callback_info info)
{
    (void)env, (void)info;
    pthread_mutex_lock(&k.lock);
    k.stopped = true;
    pthread_mutex_unlock(&k.lock);
    return NULL;
}

/* guard(): takes SIGINT back from user code's listeners. */
static napi_value guard(napi_env env, napi_callback_info info)
{
    (void)env, (void)info;
    guard_signal();
    return NULL;
}

static int open_descriptors(int requests, int answers)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return errno;
    k.signal_read = fcntl(pipe_fds[0], F_DUPFD_CLOEXEC, CONTROL_FD_MIN);
    k.signal_write = fcntl(pipe_fds[1], F_DUPFD_CLOEXEC, CONTROL_FD_MIN);
    k.control = fcntl(requests, F_DUPFD_CLOEXEC, CONTROL_FD_MIN);
    k.answers = fcntl(answers, F_DUPFD_CLOEXEC, CONTROL_FD_MIN);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    (void)close(requests); /* children of user code must not inherit them */
    (void)close(answers);
    return k.signal_read < 0 || k.signal_write < 0 || k.control < 0 || k.answers < 0 ? errno : 0;
}

static int start_thread(void)
{
    sigset_t all, before;
    pthread_t id;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to node's own threads */
    int error = pthread_create(&id, NULL, thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static napi_threadsafe_function callback(napi_env env, napi_value handler,
                                         napi_threadsafe_function_call_js from_loop)
{
    napi_value name;
    napi_threadsafe_function f = NULL;
    napi_create_string_utf8(env, "control", (size_t)AUTO_LENGTH, &name);
    (void)napi_create_threadsafe_function(env, handler, NULL, name, 0, 1, NULL, NULL, NULL,
                                          from_loop, &f);
    return f;
}

/* open(requests, lines, onLine(text or null at the end), onInterrupt()): 0 or errno. Takes both
 * descriptors. */
static napi_value open_control(napi_env env, napi_callback_info info)
{
    size_t count = 4;
    napi_value args[4], result;
    int requests = -1, answers = -1;
    napi_get_cb_info(env, info, &count, args, NULL, NULL);
    napi_get_value_int32(env, args[0], &requests);
    napi_get_value_int32(env, args[1], &answers);
    k.isolate = current_isolate();
    k.lines = callback(env, args[2], on_line);
    k.interrupts = callback(env, args[3], on_interrupt);
    int error = k.lines && k.interrupts ? open_descriptors(requests, answers) : EINVAL;
    if (!error)
        guard_signal();
    if (!error)
        error = start_thread();
    napi_create_int32(env, error, &result);
    return result;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    static const struct {
        const char *name;
        napi_callback run;
    } functions[] = {
        {"open", open_control},
        {"send", send_line},
        {"write", write_output},
        {"call", call},
        {"watch", watch},
        {"rest", rest},
        {"guard", guard},
        {"pause", pause_run},
        {"shield", shield},
        {"stop", stop},
        {"unwind", unwind},
        {"forget", forget},
        {"onPromise", set_on_promise},
        {"awaitPromise", await_promise},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        napi_value f;
        napi_create_function(env, functions[i].name, (size_t)AUTO_LENGTH, functions[i].run, NULL,
                             &f);
        napi_set_named_property(env, exports, functions[i].name, f);
    }
    return exports;
}
