/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that somebody outside has started, and reaps. */
#include "unit/agent/rig.h"

#include <signal.h>
#include <sys/wait.h>

enum { ADOPTED = 4711 };

static struct silt_agent_end hear_end(struct rig *r)
{
    struct rig_frame f;
    struct silt_agent_end end;
    rig_expect(r, SILT_AGENT_ENDED, ADOPTED, &f);
    assert_true(f.len >= sizeof(end));
    memcpy(&end, f.body, sizeof(end));
    return end;
}

static int reap(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* A second one stays when the first leaves. */
TEST(what_an_adopted_process_has_started_ends_with_it)
{
    for (int mode = 1; mode <= 2; mode++) {
        RIG(.mode = mode);
        pid_t pid = rig_adopt(r, ADOPTED, "setsid sleep 1000 & exit 7");
        struct silt_agent_end end = hear_end(r);
        assert_int_equal(end.code, -1); /* it is not for silt-init to say */
        assert_int_equal(end.signal, 0);
        assert_int_equal(rig_count_all(r), 0);
        int status = reap(pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        rig_stop(r);
    }
}

TEST(an_adopted_process_is_killed_with_all_that_it_has_started)
{
    for (int mode = 1; mode <= 2; mode++) {
        struct silt_agent_kill k = {.signal = SIGKILL};
        RIG(.mode = mode);
        pid_t pid = rig_adopt(r, ADOPTED, "setsid sleep 1000 & sleep 1000");
        rig_until_count(r, 3);
        rig_say(r, SILT_AGENT_KILL, ADOPTED, &k, sizeof(k));
        assert_int_equal(hear_end(r).code, -1);
        assert_int_equal(rig_count_all(r), 0);
        int status = reap(pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        rig_stop(r);
    }
}

TEST(an_interrupt_reaches_the_group_of_an_adopted_process_only)
{
    struct silt_agent_kill k = {.signal = SIGINT, .target = 1};
    RIG();
    pid_t pid = rig_adopt(r, ADOPTED,
                          "trap 'exit 3' INT; setsid sleep 1000 & while :; do sleep 0.01; done");
    rig_until_count(r, 3);
    rig_say(r, SILT_AGENT_KILL, ADOPTED, &k, sizeof(k));
    assert_int_equal(hear_end(r).code, -1);
    int status = reap(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_int_equal(rig_count_all(r), 0);
    rig_stop(r);
}

TEST(an_adoption_without_its_descriptors_is_refused)
{
    struct rig_frame f;
    int32_t pid = 2;
    RIG();
    rig_say(r, SILT_AGENT_ADOPT, ADOPTED, &pid, sizeof(pid));
    rig_expect(r, SILT_AGENT_FAILED, ADOPTED, &f);
    assert_true(rig_alive(r));
    rig_stop(r);
}
