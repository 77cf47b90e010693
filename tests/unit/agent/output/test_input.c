/* SPDX-License-Identifier: Apache-2.0 */
/* Commands whose input siltd fills. */
#include "unit/agent/rig.h"

#include <signal.h>

static struct rig_exec reading(const char *command)
{
    return (struct rig_exec){.command = command,
                             .mode = SILT_EXEC_PLAIN,
                             .cwd = "/tmp",
                             .env = "PATH=/usr/bin:/bin",
                             .flags = SILT_START_STDIN};
}

static void give(struct rig *r, const struct rig_exec *x, const char *bytes, size_t len, bool last)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX];
    } out;
    out.frame = (struct silt_frame){
        .type = SILT_AGENT_STDIN, .id = x->id, .flags = last ? SILT_STDIN_LAST : 0};
    memcpy(out.frame.body, bytes, len);
    rig_say_frame(r, &out.frame, len);
}

/* The flags of the answer. */
static uint32_t taken(struct rig *r, const struct rig_exec *x, uint64_t wanted)
{
    struct rig_frame f;
    uint64_t got;
    rig_expect(r, SILT_AGENT_STDIN_TAKEN, x->id, &f);
    memcpy(&got, f.body, sizeof(got));
    assert_int_equal(got, wanted);
    return f.head.flags;
}

static void done(struct rig *r, struct rig_exec *x)
{
    rig_free(x);
    rig_stop(r);
}

TEST(input_reaches_a_command_until_it_is_closed)
{
    RIG();
    struct rig_exec x = reading("cat; echo end");
    rig_send(r, &x);
    rig_until_started(r, &x);
    give(r, &x, "one\n", 4, false);
    assert_int_equal(taken(r, &x, 4), 0);
    rig_until_out(r, &x, "one\n");
    give(r, &x, "two\n", 4, true);
    assert_int_equal(taken(r, &x, 4), 0);
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "one\ntwo\nend\n");
    done(r, &x);
}

TEST(input_may_be_closed_with_nothing_in_it)
{
    RIG();
    struct rig_exec x = reading("cat; echo end");
    rig_send(r, &x);
    rig_until_started(r, &x);
    give(r, &x, "", 0, true);
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "end\n");
    done(r, &x);
}

TEST(input_that_nobody_reads_yet_waits_and_others_do_not)
{
    RIG();
    static char much[SILT_FRAME_BODY_MAX];
    struct rig_frame f;
    struct rig_exec x = reading("until test -e /tmp/go; do sleep 0.01; done; wc -c");
    struct rig_exec other = reading("touch /tmp/go");
    memset(much, 'x', sizeof(much));
    rig_send(r, &x);
    rig_until_started(r, &x);
    give(r, &x, much, sizeof(much), false);
    (void)taken(r, &x, sizeof(much));
    give(r, &x, much, sizeof(much), true);
    assert_false(rig_hears(r, &f, 100));
    rig_send(r, &other);
    assert_int_equal(taken(r, &x, sizeof(much)), 0); /* perhaps before the other has ended */
    rig_until_ended(r, &other);
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "122880\n");
    rig_free(&other);
    done(r, &x);
}

TEST(input_of_a_command_that_closed_it_is_refused)
{
    RIG();
    static char much[SILT_FRAME_BODY_MAX];
    struct rig_exec x = reading("exec <&-; echo closed; sleep 100");
    rig_send(r, &x);
    rig_until_out(r, &x, "closed");
    give(r, &x, "x", 1, false);
    assert_int_equal(taken(r, &x, 0), SILT_STDIN_GONE);
    give(r, &x, "x", 1, false);
    assert_int_equal(taken(r, &x, 0), SILT_STDIN_GONE);
    struct rig_exec deaf = reading("echo up; sleep 0.3; exec <&-; sleep 100");
    rig_send(r, &deaf);
    rig_until_out(r, &deaf, "up");
    give(r, &deaf, much, sizeof(much), false);
    (void)taken(r, &deaf, sizeof(much));
    give(r, &deaf, much, sizeof(much), false);
    struct rig_frame f;
    rig_expect(r, SILT_AGENT_STDIN_TAKEN, deaf.id, &f);
    assert_int_equal(f.head.flags, SILT_STDIN_GONE);
    rig_free(&deaf);
    done(r, &x);
}

TEST(input_of_a_command_without_one_is_refused)
{
    RIG();
    struct rig_exec x = reading("sleep 100");
    x.flags = 0;
    rig_send(r, &x);
    rig_until_started(r, &x);
    give(r, &x, "x", 1, false);
    assert_int_equal(taken(r, &x, 0), SILT_STDIN_GONE);
    done(r, &x);
}

TEST(input_of_a_session_command_is_no_text_for_its_shell)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "f() { read line; echo \"got $line\"; return 7; }", "", "");
    struct rig_exec x = reading("echo up; f; ls /proc/self/fd | tr '\\n' ' '; f");
    x.mode = SILT_EXEC_BACKGROUND;
    x.session = s;
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    give(r, &x, "a\nb\ntouch /tmp/never\n", 21, false);
    (void)taken(r, &x, 21);
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "up\ngot a\n0 1 2 3 got b\n");
    assert_int_equal(x.end.code, 7);
    (void)rig_check(r, s, "ls /tmp", "", "");
    done(r, &x);
}

TEST(input_that_an_earlier_siltd_left_goes_before_that_of_the_next)
{
    RIG();
    static char much[SILT_FRAME_BODY_MAX];
    struct rig_frame f;
    uint64_t epoch = 2;
    struct rig_exec x = reading("until test -e /tmp/go; do sleep 0.01; done; cat | tail -c 6");
    struct rig_exec other = reading("touch /tmp/go");
    memset(much, 'x', sizeof(much));
    rig_send(r, &x);
    rig_until_started(r, &x);
    give(r, &x, much, sizeof(much), false);
    (void)taken(r, &x, sizeof(much));
    give(r, &x, much, sizeof(much), false);
    rig_say(r, SILT_AGENT_HELLO, 0, &epoch, sizeof(epoch));
    rig_expect(r, SILT_AGENT_READY, 0, &f);
    give(r, &x, "last\n", 5, true);
    rig_run(r, &other);
    rig_expect(r, SILT_AGENT_STDIN_TAKEN, x.id, &f);
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "xlast\n");
    rig_free(&other);
    done(r, &x);
}
