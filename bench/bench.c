/* SPDX-License-Identifier: Apache-2.0 */
/* silt-bench: times what a user waits for, through the HTTP API on loopback, and peers beside it in
 * the same run. One line of JSON per series on stdout; bench/run collects them. silt-bench SERVER
 * TOKEN_FILE start|exec|builtin|stream|firstbyte|files|process|logs|logged|kill|closed COUNT
 * SPACING_MS silt-bench SERVER TOKEN_FILE
 * pandas|stale|frame|figure|javascript|typescript|spare|inner|cell|jscell COUNT SPACING_MS  (code)
 *     silt-bench SERVER TOKEN_FILE contexts COUNT       (that many Python contexts at once, one
 * sandbox) silt-bench SERVER TOKEN_FILE burst COUNT [COMMAND] (that many new ids at once)
 *     silt-bench SERVER TOKEN_FILE idle COUNT           (memory of that many idle sandboxes)
 *     silt-bench SERVER TOKEN_FILE writes COUNT         (that many files of 1 KB at once, one
 * sandbox) silt-bench SERVER TOKEN_FILE transfer MIB [TYPE]  (one file of that size up, then down;
 * type of the sandbox) silt-bench - - peer NAME COUNT SPACING_MS -- COMMAND… */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "http/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum {
    ANSWER_MAX = 1 << 20,
    DEADLINE_MS = 30000,
    BURST_MAX = 1000,
    SPARE_MS = 600,
    INNER_MS = 8000
};

static struct sockaddr_in server;
static char token[256];
static char run_id[16]; /* ids of this run */

_Noreturn static void die(const char *what)
{
    (void)fprintf(stderr, "silt-bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    struct timeval deadline = {.tv_sec = DEADLINE_MS / 1000};
    if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0)
        die("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    return fd;
}

static void send_request(int fd, const char *method, const char *path, const char *body)
{
    silt_auto_buf b;
    struct silt_error e;
    silt_buf_init(&b, 1 << 20);
    silt_buf_addf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n", method,
                  path, token);
    silt_buf_addf(&b, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    if (silt_fd_write_all(fd, silt_buf_slice(&b), &e) < 0)
        die(e.text);
}

/* Reads one answer whole; its bytes are in `out` (head and body as they came). */
static int read_answer(int fd, struct silt_buf *out)
{
    static struct silt_http_head head;
    int head_len = 0;
    silt_buf_clear(out);
    for (;;) {
        char *room = silt_buf_room(out, 65536);
        if (room == NULL)
            die("answer too large");
        ssize_t n = recv(fd, room, 65536, 0);
        if (n <= 0)
            die("read answer");
        out->len += (size_t)n;
        if (head_len == 0)
            head_len = silt_http_parse(&head, silt_buf_slice(out), true);
        if (head_len < 0)
            die("malformed answer");
        if (head_len == 0)
            continue;
        size_t body = out->len - (size_t)head_len;
        if (head.chunked ? out->len >= 5 && memcmp(out->data + out->len - 5, "0\r\n\r\n", 5) == 0
                         : body >= head.length)
            return head.status;
    }
}

static struct silt_buf answer; /* to the last call */

static void call(int fd, const char *method, const char *path, const char *body, int expect)
{
    if (answer.max == 0)
        silt_buf_init(&answer, ANSWER_MAX);
    send_request(fd, method, path, body);
    int status = read_answer(fd, &answer);
    if (status == expect)
        return;
    (void)fprintf(stderr, "silt-bench: %s %s: status %d: %.*s\n", method, path, status,
                  (int)(answer.len < 600 ? answer.len : 600), answer.data);
    exit(1);
}

static void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, long spacing, double *ms, size_t n)
{
    qsort(ms, n, sizeof(*ms), by_value);
    (void)printf(
        "{\"name\":\"%s\",\"spacingMs\":%ld,\"count\":%zu,\"p50\":%.3f,\"p99\":%.3f,\"min\":%.3f,"
        "\"max\":%.3f}\n",
        name, spacing, n, ms[n / 2], ms[n * 99 / 100], ms[0], ms[n - 1]);
}

static double since(int64_t start_us)
{
    return (double)(silt_clock_us() - start_us) / 1000.0;
}

/* New id to its first command's result; the destroy is not timed. */
static double time_start(int fd, size_t i, const char *body)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/sandboxes/b-%s-%zu/api/execute", run_id, i);
    int64_t start = silt_clock_us();
    call(fd, "POST", path, body, 200);
    double ms = since(start);
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s-%zu", run_id, i);
    call(fd, "DELETE", path, "", 200);
    return ms;
}

static double time_call(int fd, const char *route, const char *body)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/sandboxes/b-%s/api/%s", run_id, route);
    int64_t start = silt_clock_us();
    call(fd, "POST", path, body, 200);
    return since(start);
}

/* A builtin writes the time at which it writes: the rest is our way. */
static double time_first_byte(int fd, size_t i)
{
    (void)i;
    static struct silt_buf out;
    struct timespec now;
    char path[128];
    if (out.max == 0)
        silt_buf_init(&out, ANSWER_MAX);
    (void)snprintf(path, sizeof(path), "/sandboxes/b-%s/api/execute/stream", run_id);
    send_request(fd, "POST", path, "{\"command\":\"echo at=$EPOCHREALTIME.\"}");
    silt_buf_clear(&out);
    double ms = -1;
    for (;;) {
        char *room = silt_buf_room(&out, 65536);
        ssize_t n = room != NULL ? recv(fd, room, 65536, 0) : 0;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        if (n <= 0)
            die("read stream");
        out.len += (size_t)n;
        silt_buf_add_byte(&out, 0);
        out.len--;
        const char *at = strstr(out.data, "\"data\":\"at=");
        if (ms < 0 && at != NULL && strchr(at, '.') != NULL)
            ms = ((double)now.tv_sec + (double)now.tv_nsec / 1e9 - strtod(at + 11, NULL)) * 1000.0;
        if (out.len >= 5 && memcmp(out.data + out.len - 5, "0\r\n\r\n", 5) == 0)
            return ms;
    }
}

static double time_exec(int fd, size_t i)
{
    (void)i;
    return time_call(fd, "execute", "{\"command\":\"/bin/true\"}");
}

static double time_builtin(int fd, size_t i)
{
    (void)i;
    return time_call(fd, "execute", "{\"command\":\"true\"}");
}

static double time_stream(int fd, size_t i)
{
    (void)i;
    return time_call(fd, "execute/stream", "{\"command\":\"echo hi\"}");
}

/* A file of 1 KB, written and read back. */
static double time_files(int fd, size_t i)
{
    char body[1280];
    (void)snprintf(body, sizeof(body), "{\"path\":\"/workspace/f%zu\",\"content\":\"%01024zu\"}",
                   i % 64, i);
    double ms = time_call(fd, "write", body);
    (void)snprintf(body, sizeof(body), "{\"path\":\"/workspace/f%zu\"}", i % 64);
    return ms + time_call(fd, "read", body);
}

static double time_process(int fd, size_t i)
{
    char body[128];
    (void)snprintf(body, sizeof(body), "{\"command\":\"true\",\"processId\":\"p%zu\"}", i);
    return time_call(fd, "process/start", body);
}

/* The log of a process that runs and has nothing more to say. */
static double time_logs(int fd, size_t i)
{
    char path[128];
    if (i == 0)
        (void)time_call(fd, "process/start",
                        "{\"command\":\"echo hi; exec sleep 600\",\"processId\":\"l\"}");
    (void)snprintf(path, sizeof(path), "/sandboxes/b-%s/api/process/l/logs", run_id);
    int64_t start = silt_clock_us();
    call(fd, "GET", path, "", 200);
    return since(start);
}

/* A short process and its output: from its start to the answer with its log. */
static double time_logged(int fd, size_t i)
{
    char path[128], body[128];
    (void)snprintf(body, sizeof(body), "{\"command\":\"echo hi\",\"processId\":\"e%zu\"}", i);
    (void)snprintf(path, sizeof(path), "/sandboxes/b-%s/api/process/e%zu/logs", run_id, i);
    int64_t start = silt_clock_us();
    (void)time_call(fd, "process/start", body);
    call(fd, "GET", path, "", 200);
    return since(start);
}

/* A shell with 50 children, all of which ignore nothing: the answer comes when the last is gone. */
static double time_kill(int fd, size_t i)
{
    char path[160], body[256];
    (void)snprintf(body, sizeof(body),
                   "{\"command\":\"for i in {1..50}; do sleep 600 & done; echo up; "
                   "wait\",\"processId\":\"k%zu\"}",
                   i);
    (void)time_call(fd, "process/start", body);
    (void)snprintf(path, sizeof(path),
                   "/v1/sandboxes/b-%s/processes/k%zu/wait?for=line&text=up&timeoutMs=10000",
                   run_id, i);
    call(fd, "GET", path, "", 200);
    (void)snprintf(path, sizeof(path), "/sandboxes/b-%s/api/process/k%zu", run_id, i);
    int64_t start = silt_clock_us();
    call(fd, "DELETE", path, "", 200);
    return since(start);
}

static double time_new(int fd, size_t i)
{
    return time_start(fd, i, "{\"command\":\"echo hi\"}");
}

/* The same for one that is asked for without a network. */
static double time_closed(int fd, size_t i)
{
    char body[128];
    (void)snprintf(body, sizeof(body), "{\"id\":\"b-%s-%zu\",\"network\":{\"mode\":\"none\"}}",
                   run_id, i);
    int64_t start = silt_clock_us();
    call(fd, "POST", "/v1/sandboxes", body, 201);
    double ms = since(start);
    return ms + time_new(fd, i);
}

/* A member of the last answer that is a plain string. */
static void take_string(const char *name, char *out, size_t size)
{
    char key[64];
    int len = snprintf(key, sizeof(key), "\"%s\":\"", name);
    const char *end = answer.data + answer.len;
    const char *at = memmem(answer.data, answer.len, key, (size_t)len);
    size_t n = 0;
    if (at == NULL)
        die(name);
    for (at += len; at < end && *at != '"' && n + 1 < size; at++)
        out[n++] = *at;
    out[n] = 0;
}

/* A piece of code to its end, which must be a good one. */
static double time_code(int fd, const char *box, const char *body)
{
    static const char good[] = "execution_complete";
    char path[128];
    (void)snprintf(path, sizeof(path), "/sandboxes/%s/api/execute/code", box);
    int64_t start = silt_clock_us();
    call(fd, "POST", path, body, 200);
    double ms = since(start);
    if (memmem(answer.data, answer.len, good, sizeof(good) - 1) != NULL)
        return ms;
    (void)fprintf(stderr, "silt-bench: %.*s\n", (int)(answer.len < 600 ? answer.len : 600),
                  answer.data);
    exit(1);
}

/* In a sandbox that runs, where `before` was done and no context has been; making and ending it is
 * not timed. */
static double time_code_after(int fd, size_t i, const char *before, const char *body)
{
    char box[64], path[128];
    (void)snprintf(box, sizeof(box), "b-%s-%zu", run_id, i);
    (void)snprintf(path, sizeof(path), "/sandboxes/%s/api/execute", box);
    call(fd, "POST", path, before, 200);
    double ms = time_code(fd, box, body);
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/%s", box);
    call(fd, "DELETE", path, "", 200);
    return ms;
}

static double time_first_code(int fd, size_t i, const char *body)
{
    return time_code_after(fd, i, "{\"command\":\"true\"}", body);
}

/* The sandbox has another pandas than its image: no warm Python can be used. */
static double time_stale(int fd, size_t i)
{
    return time_code_after(
        fd, i, "{\"command\":\"touch /usr/lib/python3/dist-packages/pandas/__init__.py\"}",
        "{\"code\":\"import pandas as pd; pd.Series([1]).sum()\"}");
}

static double time_pandas(int fd, size_t i)
{
    return time_first_code(fd, i, "{\"code\":\"import pandas as pd; pd.Series([1]).sum()\"}");
}

static double time_frame(int fd, size_t i)
{
    return time_first_code(
        fd, i,
        "{\"code\":\"import pandas as pd; pd.DataFrame({'a': range(20), 'b': list('x' * 20)})\"}");
}

static double time_figure(int fd, size_t i)
{
    return time_first_code(
        fd, i, "{\"code\":\"import matplotlib.pyplot as plt; plt.plot([1, 2, 3]); plt.show()\"}");
}

static double time_javascript(int fd, size_t i)
{
    return time_first_code(fd, i, "{\"language\":\"javascript\",\"code\":\"1 + 1\"}");
}

static double time_typescript(int fd, size_t i)
{
    return time_first_code(fd, i,
                           "{\"language\":\"typescript\",\"code\":\"enum A { B = 2 }; A.B\"}");
}

/* From the request for a context to the end of its first code. Both requests count, the end of the
 * context does not. */
static double time_next(int fd, const char *context, const char *code)
{
    char path[160], id[64];
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s/contexts", run_id);
    int64_t start = silt_clock_us();
    call(fd, "POST", path, context, 201);
    take_string("contextId", id, sizeof(id));
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s/contexts/%s/run", run_id, id);
    call(fd, "POST", path, code, 200);
    double ms = since(start);
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s/contexts/%s", run_id, id);
    call(fd, "DELETE", path, "", 200);
    return ms;
}

static void begin_context(int fd, const char *context)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s/contexts", run_id);
    call(fd, "POST", path, context, 201);
}

/* A new context in a sandbox that had such ones before, and has rested since. */
static double time_spare(int fd, size_t i)
{
    if (i == 0)
        begin_context(fd, "{\"language\":\"javascript\"}");
    pause_ms(SPARE_MS);
    return time_next(fd, "{\"language\":\"javascript\"}", "{\"code\":\"1 + 1\"}");
}

/* The next contexts in a sandbox that has another pandas than its image: they are forked inside. */
static double time_inner(int fd, size_t i)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/sandboxes/b-%s/api/execute", run_id);
    if (i == 0) {
        call(fd, "POST", path,
             "{\"command\":\"touch /usr/lib/python3/dist-packages/pandas/__init__.py\"}", 200);
        begin_context(fd, "{\"language\":\"python\"}");
        pause_ms(INNER_MS);
    }
    return time_next(fd, "{\"language\":\"python\"}",
                     "{\"code\":\"import pandas as pd; pd.Series([1]).sum()\"}");
}

/* In a context that was made by the first one, which is not counted. */
static double time_again(int fd, size_t i, const char *body)
{
    char box[64];
    (void)snprintf(box, sizeof(box), "b-%s", run_id);
    if (i == 0)
        (void)time_code(fd, box, body);
    return time_code(fd, box, body);
}

static double time_cell(int fd, size_t i)
{
    return time_again(fd, i, "{\"code\":\"1 + 1\"}");
}

static double time_jscell(int fd, size_t i)
{
    return time_again(fd, i, "{\"language\":\"javascript\",\"code\":\"1 + 1\"}");
}

static const struct series {
    const char *name;
    double (*time)(int fd, size_t i);
    bool in_one; /* sandbox that runs already, with a warm session */
} all_series[] = {
    {"start", time_new, false},
    {"exec", time_exec, true},
    {"builtin", time_builtin, true},
    {"stream", time_stream, true},
    {"firstbyte", time_first_byte, true},
    {"files", time_files, true},
    {"process", time_process, true},
    {"logs", time_logs, true},
    {"logged", time_logged, true},
    {"kill", time_kill, true},
    {"closed", time_closed, false},
    {"pandas", time_pandas, false},
    {"frame", time_frame, false},
    {"figure", time_figure, false},
    {"javascript", time_javascript, false},
    {"typescript", time_typescript, false},
    {"spare", time_spare, true},
    {"stale", time_stale, false},
    {"inner", time_inner, true},
    {"cell", time_cell, true},
    {"jscell", time_jscell, true},
};

static const struct series *find_series(const char *name)
{
    for (size_t i = 0; i < SILT_COUNT(all_series); i++)
        if (strcmp(all_series[i].name, name) == 0)
            return &all_series[i];
    errno = EINVAL;
    die(name);
}

static void remove_box(int fd)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s", run_id);
    call(fd, "DELETE", path, "", 200);
}

static void run_series(const char *what, size_t count, long spacing)
{
    const struct series *s = find_series(what);
    double *ms = calloc(count, sizeof(*ms));
    int fd = dial();
    if (ms == NULL)
        die("memory");
    if (s->in_one)
        (void)time_builtin(fd, 0);
    for (size_t i = 0; i < count; i++) {
        if (spacing > 0)
            pause_ms(spacing);
        ms[i] = s->time(fd, i);
    }
    if (s->in_one)
        remove_box(fd);
    report(what, spacing, ms, count);
    free(ms);
    (void)close(fd);
}

/* Files of 1 KB, all asked for before the first is answered. */
static void run_writes(size_t count)
{
    int fds[BURST_MAX];
    char path[128], body[1280];
    size_t failed = 0;
    silt_buf_init(&answer, ANSWER_MAX);
    if (count > BURST_MAX)
        count = BURST_MAX;
    for (size_t i = 0; i < count; i++)
        fds[i] = dial();
    int box = dial();
    (void)time_builtin(box, 0);
    (void)snprintf(path, sizeof(path), "/sandboxes/b-%s/api/write", run_id);
    int64_t start = silt_clock_us();
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(body, sizeof(body),
                       "{\"path\":\"/workspace/w%zu\",\"content\":\"%01024zu\"}", i, i);
        send_request(fds[i], "POST", path, body);
    }
    for (size_t i = 0; i < count; i++)
        failed += read_answer(fds[i], &answer) != 200;
    double ms = since(start);
    remove_box(box);
    (void)close(box);
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    (void)printf("{\"name\":\"writes\",\"count\":%zu,\"failed\":%zu,\"totalMs\":%.1f}\n", count,
                 failed, ms);
}

/* All asked for before the first is ready, in a sandbox that had none. */
static void run_contexts(size_t count)
{
    int fds[BURST_MAX];
    char path[128];
    size_t failed = 0;
    silt_buf_init(&answer, ANSWER_MAX);
    if (count > BURST_MAX)
        count = BURST_MAX;
    for (size_t i = 0; i < count; i++)
        fds[i] = dial();
    int box = dial();
    (void)time_builtin(box, 0);
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s/contexts", run_id);
    int64_t start = silt_clock_us();
    for (size_t i = 0; i < count; i++)
        send_request(fds[i], "POST", path, "{}");
    for (size_t i = 0; i < count; i++)
        failed += read_answer(fds[i], &answer) != 201;
    double ms = since(start);
    remove_box(box);
    (void)close(box);
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    (void)printf("{\"name\":\"contexts\",\"count\":%zu,\"failed\":%zu,\"totalMs\":%.1f}\n", count,
                 failed, ms);
}

static void send_bytes(int fd, const char *path, size_t mib)
{
    static char piece[1 << 20];
    struct silt_error e;
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof(piece); i++)
        piece[i] = (char)(i * 2654435761U >> 13);
    silt_buf_addf(&b,
                  "PUT %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                  "%s\r\nContent-Length: %zu\r\n\r\n",
                  path, token, mib << 20);
    if (silt_fd_write_all(fd, silt_buf_slice(&b), &e) < 0)
        die(e.text);
    for (size_t i = 0; i < mib; i++)
        if (silt_fd_write_all(fd, (silt_slice){piece, sizeof(piece)}, &e) < 0)
            die(e.text);
}

/* Takes the answer without keeping it; how many bytes came, head and all. */
static size_t take_bytes(int fd, size_t least)
{
    static char piece[1 << 20];
    size_t total = 0;
    while (total < least) {
        ssize_t n = recv(fd, piece, sizeof(piece), 0);
        if (n <= 0)
            die("read file");
        total += (size_t)n;
    }
    return total;
}

static void make_box(int fd, const char *type)
{
    char body[128];
    (void)snprintf(body, sizeof(body), "{\"id\":\"b-%s\",\"type\":\"%s\"}", run_id, type);
    call(fd, "POST", "/v1/sandboxes", body, 201);
}

/* The worker that writes is the sandbox's: a type with half a core has half a core for it. */
static void run_transfer(size_t mib, const char *type)
{
    char path[128];
    int fd = dial();
    silt_buf_init(&answer, ANSWER_MAX);
    make_box(fd, type);
    (void)time_builtin(fd, 0);
    (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s/files?path=/workspace/big", run_id);
    int64_t start = silt_clock_us();
    send_bytes(fd, path, mib);
    int status = read_answer(fd, &answer);
    double up = since(start);
    if (status != 200 && status != 201)
        die("upload refused");
    start = silt_clock_us();
    send_request(fd, "GET", path, "");
    (void)take_bytes(fd, mib << 20);
    double down = since(start);
    (void)close(fd); /* the head came before the bytes: some of the answer may be unread */
    fd = dial();
    remove_box(fd);
    (void)close(fd);
    (void)printf("{\"name\":\"transfer\",\"type\":\"%s\",\"mib\":%zu,\"upMibPerS\":%.0f,"
                 "\"downMibPerS\":%.0f}\n",
                 type, mib, (double)mib * 1000 / up, (double)mib * 1000 / down);
}

static bool has_worked(int fd)
{
    static const char good[] = "\"exitCode\":0";
    return read_answer(fd, &answer) == 200
           && memmem(answer.data, answer.len, good, sizeof(good) - 1) != NULL;
}

static void run_burst(size_t count, const char *command)
{
    int fds[BURST_MAX];
    char path[128], body[512];
    size_t failed = 0;
    silt_buf_init(&answer, ANSWER_MAX);
    if (count > BURST_MAX)
        count = BURST_MAX;
    for (size_t i = 0; i < count; i++)
        fds[i] = dial();
    int64_t start = silt_clock_us();
    (void)snprintf(body, sizeof(body), "{\"command\":\"%s\"}", command);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "/sandboxes/b-%s-%zu/api/execute", run_id, i);
        send_request(fds[i], "POST", path, body);
    }
    for (size_t i = 0; i < count; i++)
        failed += !has_worked(fds[i]);
    double ms = since(start);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s-%zu", run_id, i);
        call(fds[i], "DELETE", path, "", 200);
        (void)close(fds[i]);
    }
    (void)printf("{\"name\":\"burst\",\"count\":%zu,\"failed\":%zu,\"totalMs\":%.1f}\n", count,
                 failed, ms);
}

static double free_kib(void)
{
    silt_auto_free char *text = NULL;
    size_t len;
    struct silt_error e;
    (void)silt_fd_put(AT_FDCWD, "/proc/sys/vm/drop_caches", "1", &e);
    if (silt_fd_read_file(AT_FDCWD, "/proc/meminfo", 65536, &text, &len, &e) < 0)
        die("read /proc/meminfo");
    const char *at = strstr(text, "MemFree:");
    return at != NULL ? strtod(at + 8, NULL) : 0;
}

static void run_idle(size_t count)
{
    int fd = dial();
    char path[128];
    double before = free_kib();
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "{\"id\":\"b-%s-%zu\"}", run_id, i);
        call(fd, "POST", "/v1/sandboxes", path, 201);
    }
    double each = (before - free_kib()) / (double)count;
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "/v1/sandboxes/b-%s-%zu", run_id, i);
        call(fd, "DELETE", path, "", 200);
    }
    (void)close(fd);
    (void)printf("{\"name\":\"idle\",\"count\":%zu,\"kibEach\":%.0f}\n", count, each);
}

extern char **environ;

static void run_peer(const char *name, size_t count, long spacing, char **argv)
{
    double *ms = calloc(count, sizeof(*ms));
    if (ms == NULL)
        die("memory");
    for (size_t i = 0; i < count; i++) {
        pid_t pid;
        int status = -1;
        if (spacing > 0)
            pause_ms(spacing);
        int64_t start = silt_clock_us();
        if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0
            || waitpid(pid, &status, 0) < 0)
            die(argv[0]);
        ms[i] = since(start);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            (void)fprintf(stderr, "silt-bench: peer %s failed with status %d\n", name, status);
            exit(1);
        }
    }
    report(name, spacing, ms, count);
    free(ms);
}

static void connect_to(const char *address, const char *token_file)
{
    silt_auto_free char *text = NULL;
    size_t len;
    struct silt_error e;
    const char *colon = strrchr(address, ':');
    char host[64];
    if (colon == NULL || (size_t)(colon - address) >= sizeof(host))
        die("SERVER must be host:port");
    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
    server = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    if (inet_pton(AF_INET, host, &server.sin_addr) != 1
        || silt_fd_read_file(AT_FDCWD, token_file, 255, &text, &len, &e) < 0)
        die("server or token");
    (void)snprintf(token, sizeof(token), "%.*s", (int)strcspn(text, "\r\n"), text);
    (void)snprintf(run_id, sizeof(run_id), "%d", getpid());
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void)fprintf(stderr, "usage: see the head of bench.c\n");
        return 2;
    }
    const char *what = argv[3];
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(what, "peer") == 0 && argc > 8) {
        run_peer(argv[4], strtoul(argv[5], NULL, 10), strtol(argv[6], NULL, 10), argv + 8);
        return 0;
    }
    connect_to(argv[1], argv[2]);
    size_t count = strtoul(argv[4], NULL, 10);
    if (strcmp(what, "burst") == 0)
        run_burst(count, argc > 5 ? argv[5] : "echo hi");
    else if (strcmp(what, "idle") == 0)
        run_idle(count);
    else if (strcmp(what, "writes") == 0)
        run_writes(count);
    else if (strcmp(what, "contexts") == 0)
        run_contexts(count);
    else if (strcmp(what, "transfer") == 0)
        run_transfer(count, argc > 5 ? argv[5] : "standard-1");
    else
        run_series(what, count, argc > 5 ? strtol(argv[5], NULL, 10) : 0);
    return 0;
}
