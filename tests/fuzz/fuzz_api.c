/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever has the token asks siltd for whatever it likes, by every route, while the sandbox does
 * nothing but start and end what it is told to: what comes back begins as an answer, and when the
 * caller has left and its sandboxes are destroyed nothing is left of them. The input: a line with
 * method and target, then the body; or, when the line begins with W, the target of a WebSocket and
 * then its messages, a line each. */
#include "api/core/api.h"
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "unit/sandbox/harness.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct harness h;
static struct silt_api api;
static struct silt_error e;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len = sizeof(address);
static int client = -1;

static void clean_up(void)
{
    silt_http_server_free(api.server);
    harness_turn(&h);
    harness_close(&h);
}

static void start(void)
{
    const struct silt_http_limits limits = {10, 1 << 30, 10000, 10000, 10000, 10000};
    const struct silt_http_hooks hooks = {.on_request = silt_api_on_request,
                                          .on_refusal = silt_api_on_refusal,
                                          .on_answered = silt_api_on_answered,
                                          .context = &api};
    silt_log_open("fuzz", SILT_LOG_ERROR);
    demand(harness_open(&h) == 0 && atexit(clean_up) == 0);
    api = (struct silt_api){.registry = &h.registry, .loop = &h.loop, .token = SILT_LIT("sesame")};
    silt_api_init(&api);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    demand(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 /* the kernel names it */
           && getsockname(fd, (struct sockaddr *)&address, &address_len) == 0
           && listen(fd, 10) == 0);
    demand(silt_http_server_open(&h.loop, fd, &limits, &hooks, &api.server, &e) == 0);
}

/* ---- the peers ---- */

static void serve_priv(void)
{
    struct silt_priv_request q;
    while (harness_asked(&h, &q)) {
        struct silt_priv_answer a = {.seq = q.seq, .slot = q.slot, .ok = 1};
        struct silt_parcel p = {.data = &a, .len = sizeof(a)};
        if (q.op != SILT_PRIV_SPOOL) {
            harness_answer(&h, &q, q.op != SILT_PRIV_DIAL);
            continue;
        }
        p.fds[p.nfds++] = memfd_create("spool", MFD_CLOEXEC);
        demand(silt_fd_send(h.priv, &p, &e) == 0);
        silt_parcel_close(&p);
    }
}

static void serve_agent(void)
{
    struct harness_frame f;
    struct silt_agent_end end = {0};
    int32_t pid = 5;
    for (uint32_t type; h.agent >= 0 && (type = harness_told(&h, &f)) != 0; silt_close_fd(&f.fd)) {
        if (type == SILT_AGENT_HELLO)
            harness_say(&h, SILT_AGENT_WELCOME, 0, 0, f.frame.body, sizeof(uint64_t));
        if (type == SILT_AGENT_OPEN)
            harness_say(&h, SILT_AGENT_OPENED, 0, f.frame.id, &pid, sizeof(pid));
        if (type == SILT_AGENT_CLOSE)
            harness_say(&h, SILT_AGENT_CLOSED, 0, f.frame.id, NULL, 0);
        if (type == SILT_AGENT_EXEC) {
            harness_say(&h, SILT_AGENT_STARTED, 0, f.frame.id, &pid, sizeof(pid));
            harness_say(&h, SILT_AGENT_ENDED, 0, f.frame.id, &end, sizeof(end));
        }
    }
}

static void settle(void)
{
    for (int i = 0; i < 3; i++) {
        serve_priv();
        serve_agent();
        while (harness_told_super(&h) != 0)
            continue;
    }
}

static void destroy_all(void)
{
    struct silt_sandbox *found[16], *box;
    size_t count = 0;
    for (size_t at = 0;
         count < SILT_COUNT(found) && (box = silt_map_next(&h.registry.by_id, &at)) != NULL;)
        found[count++] = box;
    for (size_t i = 0; i < count; i++)
        silt_sandbox_destroy(found[i], NULL);
    settle();
    demand(h.registry.slots_used == 0);
}

/* ---- the client ---- */

static void say(const void *bytes, size_t len)
{
    (void)send(client, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    settle();
}

static void listen_to_it(bool first)
{
    static char room[65536];
    for (ssize_t n; (n = recv(client, room, sizeof(room), MSG_DONTWAIT)) > 0; first = false)
        demand(
            !first
            || (n > 12 && memcmp(room, "HTTP/1.1 ", 9) == 0 && room[9] >= '1' && room[9] <= '5'));
}

static void say_message(silt_slice text)
{
    unsigned char head[8] = {0x81, (unsigned char)(0x80 | (text.len < 126 ? text.len : 126))};
    uint16_t len = htons((uint16_t)text.len);
    memcpy(head + 2, &len, sizeof(len)); /* the mask, zero, leaves the text as it is */
    if (text.len < 126)
        memset(head + 2, 0, 4);
    say(head, text.len < 126 ? 6 : 8);
    say(text.data, text.len);
    listen_to_it(false);
}

static void ask(silt_slice line, silt_slice body)
{
    static char text[20000];
    bool upgrade = line.len > 0 && line.data[0] == 'W';
    line.data += upgrade;
    line.len -= upgrade;
    int n = snprintf(text, sizeof(text),
                     "%s%.*s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sesame\r\n",
                     upgrade ? "GET " : "", (int)line.len, line.data);
    if (upgrade)
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
                      "13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
    else
        n += snprintf(text + n, sizeof(text) - (size_t)n, "Content-Length: %zu\r\n\r\n", body.len);
    say(text, (size_t)n);
    if (!upgrade)
        say(body.data, body.len);
    listen_to_it(true);
    for (silt_slice message; upgrade && body.len > 0 && silt_slice_split(&body, '\n', &message);)
        if (message.len <= UINT16_MAX)
            say_message(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice body = {(const char *)data, size}, line;
    if (h.directory[0] == 0)
        start();
    if (!silt_slice_split(&body, '\n', &line) || line.len > 8192)
        return 0;
    client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    demand(client >= 0 && connect(client, (struct sockaddr *)&address, address_len) == 0);
    ask(line, body);
    silt_close_fd(&client);
    settle();
    destroy_all();
    return 0;
}
