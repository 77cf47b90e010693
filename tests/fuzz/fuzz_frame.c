/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on their way to silt-init: the bytes are cut into messages (two bytes of length before
 * each), sent through a channel, and each one that asks for a start is taken apart. */
#include "agent/output/channel.h"
#include "agent/spawn/start_frame.h"
#include "fuzz/fuzz.h"

#include <sys/mman.h>
#include <sys/socket.h>

static struct silt_loop loop;
static struct silt_channel channel;
static struct silt_error e;
static int peer = -1;

static void check_start(const struct silt_frame *f, size_t body_len, struct silt_parcel *p)
{
    struct silt_start_frame s;
    char **envp, **argv;
    if (silt_start_frame_parse(&s, f, body_len, p, &e) < 0)
        return;
    bool is_argv = (s.head.flags & SILT_START_ARGV) != 0;
    demand(s.command.len <= SILT_COMMAND_MAX && (is_argv || !silt_slice_has_byte(s.command, 0)));
    demand(!silt_slice_has_byte(s.cwd, 0) && !silt_slice_has_byte(s.user, 0));
    if (is_argv && silt_start_frame_argv(&s, &argv, &e) == 0) {
        demand(argv[0] != NULL && argv[0][0] != 0);
        free(argv);
    }
    (void)silt_start_frame_getenv(&s, "PATH");
    if (silt_start_frame_envp(&s, &envp, &e) == 0)
        free(envp);
    silt_start_frame_fini(&s);
}

static void on_frame(struct silt_channel *c, const struct silt_frame *f, size_t body_len,
                     struct silt_parcel *p)
{
    (void)c;
    struct silt_frame *exact = malloc(sizeof(*f) + body_len); /* a read beyond it is seen */
    demand(exact != NULL);
    memcpy(exact, f, sizeof(*f) + body_len);
    check_start(exact, body_len, p);
    free(exact);
}

static void on_gone(struct silt_channel *c)
{
    (void)c;
    abort(); /* no bytes may end the channel */
}

static void start(void)
{
    int pair[2];
    demand(silt_fd_pair(SOCK_SEQPACKET, pair, &e) == 0 && silt_loop_open(&loop, &e) == 0);
    channel.on_frame = on_frame;
    channel.on_gone = on_gone;
    demand(silt_channel_open(&channel, &loop, pair[0], &e) == 0);
    peer = pair[1];
}

/* A message; one that says so brings its parts in a memfd. */
static void send_message(silt_slice bytes)
{
    static char room[SILT_FRAME_MAX + 16];
    struct silt_frame head = {0};
    memcpy(room, bytes.data, bytes.len);
    memcpy(&head, room, bytes.len < sizeof(head) ? bytes.len : sizeof(head));
    silt_auto_fd memory = -1;
    if ((head.flags & SILT_START_IN_MEMFD) != 0)
        memory = memfd_create("start", MFD_CLOEXEC);
    if (memory >= 0)
        demand(silt_fd_write_all(memory, bytes, &e) == 0);
    struct silt_parcel p = {
        .data = room, .len = bytes.len, .fds = {memory}, .nfds = memory >= 0 ? 1 : 0};
    demand(silt_fd_send(peer, &p, &e) == 0);
    demand(silt_loop_turn(&loop, 0, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (peer < 0)
        start();
    while (size > 2) {
        size_t len = (size_t)data[0] << 8 | data[1];
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        if (len > 0 && len <= SILT_FRAME_MAX + 16)
            send_message((silt_slice){(const char *)data, len});
        data += len;
        size -= len;
    }
    return 0;
}
