/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that another one inside forks: what it says may be anything. */
#include "unit/agent/rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

/* Says that it is there, then does as its argument says with each thing that it is asked for. */
static const char warm_script[] =
    "import ctypes, os, socket, struct, sys\n"
    "control, how = socket.socket(fileno=5), sys.argv[1]\n"
    "clone = {'x86_64': 56}.get(os.uname().machine, 220)\n"
    "numbers = {'self': os.getpid(), 'first': 1, 'none': 0, 'all': -1, 'large': 2**31 - 1}\n"
    "kept = []\n"
    "def stranger():\n"
    "    for p in filter(str.isdigit, os.listdir('/proc')):\n"
    "        with open(f'/proc/{p}/cmdline', 'rb') as f:\n"
    "            if f.read() == b'sleep\\0004711\\0': return int(p)\n"
    "def fill(fd):\n"
    "    fd = os.open(f'/proc/self/fd/{fd}', os.O_WRONLY | os.O_NONBLOCK)\n"
    "    try:\n"
    "        while True: os.write(fd, bytes(4096))\n"
    "    except BlockingIOError: kept.append(fd)\n"
    "os.write(4, b'\\n')\n"
    "while True:\n"
    "    data, fds, _, _ = socket.recv_fds(control, 1, 8)\n"
    "    if not data: os._exit(0)\n"
    "    if how == 'silent': kept += fds; continue\n"
    "    if how == 'short': os.write(fds[4], b'ab')\n"
    "    if how in numbers: os.write(fds[4], struct.pack('i', numbers[how]))\n"
    "    if how == 'stranger':\n"
    "        os.write(fds[4], struct.pack('i', stranger())); kept += fds; continue\n"
    "    if how == 'full': fill(fds[5])\n"
    "    if how in ('fork', 'full') and ctypes.CDLL(None).syscall(clone, 0x8000, 0, 0, 0, 0) == "
    "0:\n"
    "        os.setsid()\n"
    "        os.write(fds[4], struct.pack('i', os.getpid()))\n"
    "        if os.read(fds[5], 1) == b'': os._exit(1)\n"
    "        try: control.send(b'x')\n"
    "        except BrokenPipeError: os.execvp('sh', ['sh', '-c', 'setsid sleep 1000 & exit 7'])\n"
    "        os._exit(2)\n"
    "    for fd in fds: os.close(fd)\n";

struct warm {
    struct rig_exec x;
    int requests[2], lines[2];
};

static struct rig_exec piped(uint32_t flags, int requests, int lines)
{
    return (struct rig_exec){.args = {"true"},
                             .command = "",
                             .mode = SILT_EXEC_PLAIN,
                             .cwd = "/tmp",
                             .env = "PATH=/usr/bin:/bin",
                             .flags =
                                 SILT_START_ARGV | SILT_START_SECRET | SILT_START_PIPES | flags,
                             .secret = requests,
                             .pipes = {STDERR_FILENO, STDERR_FILENO, lines}};
}

static void start_warm(struct rig *r, struct warm *w, const char *how)
{
    char byte;
    assert_int_equal(pipe2(w->requests, O_CLOEXEC) + pipe2(w->lines, O_CLOEXEC), 0);
    w->x = piped(SILT_START_WARM, w->requests[0], w->lines[1]);
    const char *args[] = {"python3", "-Ic", warm_script, how};
    memcpy(w->x.args, args, sizeof(args));
    rig_send(r, &w->x);
    rig_until_started(r, &w->x);
    assert_int_equal(read(w->lines[0], &byte, 1), 1);
}

static struct rig_exec fork_from(struct rig *r, const struct warm *w)
{
    struct rig_exec x = piped(SILT_START_FORK, w->requests[0], w->lines[1]);
    x.session = w->x.id;
    rig_run(r, &x);
    return x;
}

static void end_warm(struct rig *r, struct warm *w)
{
    struct silt_agent_kill k = {.signal = SIGKILL};
    rig_say(r, SILT_AGENT_KILL, w->x.id, &k, sizeof(k));
    rig_until_ended(r, &w->x);
    rig_free(&w->x);
    assert_int_equal(
        close(w->requests[0]) + close(w->requests[1]) + close(w->lines[0]) + close(w->lines[1]), 0);
    assert_int_equal(rig_count_all(r), 0);
}

TEST(a_forked_process_is_as_one_that_was_started)
{
    for (int mode = 1; mode <= 2; mode++) {
        struct warm w;
        RIG(.mode = mode);
        start_warm(r, &w, "fork");
        for (int i = 0; i < 3; i++) {
            struct rig_exec x = fork_from(r, &w);
            if (x.failed)
                fail_msg("%s", x.error.text);
            assert_true(x.started && x.pid > 1 && x.pid != w.x.pid);
            assert_int_equal(x.end.code, 7);
            assert_int_equal(rig_count_all(r), 1); /* what it had started ended with it */
            rig_free(&x);
        }
        end_warm(r, &w);
        rig_stop(r);
    }
}

TEST(numbers_of_processes_that_were_not_forked_are_refused)
{
    static const char *const ways[] = {"self", "first", "none", "all", "large", "short", "nothing"};
    RIG();
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        struct warm w;
        start_warm(r, &w, ways[i]);
        struct rig_exec x = fork_from(r, &w);
        if (!x.failed || x.error.code != SILT_UNAVAILABLE)
            fail_msg("%s: %s", ways[i], x.failed ? x.error.text : "it runs");
        rig_free(&x);
        assert_false(w.x.ended);
        end_warm(r, &w);
    }
    rig_stop(r);
}

static void sweep_all(struct rig *r, uint64_t id)
{
    struct silt_agent_sweep all = {.signal = SIGKILL};
    struct rig_frame swept;
    rig_say(r, SILT_AGENT_SWEEP, id, &all, sizeof(all));
    rig_expect(r, SILT_AGENT_SWEPT, id, &swept);
}

/* It would end with a context that it has nothing to do with, and not with the command that started
 * it. */
TEST(an_orphan_of_another_command_is_not_taken_for_a_forked_process)
{
    for (int mode = 1; mode <= 2; mode++) {
        struct warm w;
        struct rig_exec left = {.command = "setsid sleep 4711 >&- 2>&- &",
                                .mode = SILT_EXEC_PLAIN,
                                .cwd = "/tmp",
                                .env = "PATH=/usr/bin:/bin"};
        RIG(.mode = mode);
        rig_run(r, &left);
        start_warm(r, &w, "stranger");
        struct rig_exec x = fork_from(r, &w);
        if (!x.failed || x.error.code != SILT_UNAVAILABLE)
            fail_msg("%s", x.failed ? x.error.text : "it was taken");
        rig_free(&x);
        assert_int_equal(rig_count_all(r), 2); /* both live, where they were */
        sweep_all(r, 5000);
        rig_free(&left);
        end_warm(r, &w);
        rig_stop(r);
    }
}

/* Whoever may open the pipe by its name can fill it, so that one more byte would wait for ever. */
TEST(a_gate_that_was_filled_does_not_hold_us_up)
{
    struct warm w;
    RIG();
    start_warm(r, &w, "full");
    struct rig_exec x = fork_from(r, &w);
    assert_true(x.failed || x.ended);
    rig_free(&x);
    sweep_all(r, 5000);
    end_warm(r, &w);
    rig_stop(r);
}

TEST(one_that_does_not_answer_is_not_waited_for)
{
    struct warm w;
    RIG();
    start_warm(r, &w, "silent");
    struct rig_exec x = fork_from(r, &w);
    assert_true(x.failed && x.error.code == SILT_UNAVAILABLE);
    rig_free(&x);
    struct rig_exec later = piped(SILT_START_FORK, w.requests[0], w.lines[1]);
    later.session = w.x.id;
    rig_send(r, &later);
    end_warm(r, &w); /* whoever waits for it hears at once */
    rig_until_ended(r, &later);
    assert_true(later.failed && later.error.code == SILT_UNAVAILABLE);
    rig_free(&later);
    rig_stop(r);
}

TEST(only_what_was_started_for_it_forks)
{
    struct warm none = {.x.id = 4711};
    RIG();
    assert_int_equal(pipe2(none.requests, O_CLOEXEC) + pipe2(none.lines, O_CLOEXEC), 0);
    struct rig_exec x = fork_from(r, &none);
    assert_true(x.failed && x.error.code == SILT_UNAVAILABLE);
    rig_free(&x);
    x = piped(SILT_START_FORK | SILT_START_WARM, none.requests[0], none.lines[1]);
    rig_run(r, &x);
    assert_true(x.failed && x.error.code == SILT_PROTOCOL);
    rig_free(&x);
    assert_int_equal(close(none.requests[0]) + close(none.requests[1]) + close(none.lines[0])
                         + close(none.lines[1]),
                     0);
    rig_stop(r);
}
