/* SPDX-License-Identifier: Apache-2.0 */
/* What shells answer, and the state they put down. */
#include "agent/shell/shell.h"
#include "agent/shell/state.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <sys/mman.h>
#include <unistd.h>

TEST(answer_is_found_by_its_mark)
{
    struct silt_answer a;
    silt_slice text = SILT_LIT("17\0"
                               "3\0/tmp\0rest");
    assert_int_equal(silt_shell_answer(text, 17, false, &a), 10);
    assert_false(a.no_dir);
    assert_int_equal(a.code, 3);
    assert_text(a.cwd, "/tmp");
    assert_int_equal(silt_shell_answer(text, 18, false, &a), 0);
}

TEST(answer_behind_junk_is_found)
{
    struct silt_answer a;
    assert_int_equal(silt_shell_answer(SILT_LIT("junk\0\0\n16\0x\0\0"
                                                "17\0"
                                                "0\0/\0"),
                                       17, false, &a),
                     20);
    assert_int_equal(a.code, 0);
    assert_text(a.cwd, "/");
}

TEST(answer_that_is_not_complete_is_waited_for)
{
    static const char text[] = "17\0x\0x\0";
    struct silt_answer a;
    for (size_t len = 0; len < 7; len++)
        assert_int_equal(silt_shell_answer((silt_slice){text, len}, 17, false, &a), 0);
    assert_int_equal(silt_shell_answer((silt_slice){text, 7}, 17, false, &a), 7);
    assert_true(a.no_dir);
}

TEST(answer_with_a_strange_code_is_a_code)
{
    struct silt_answer a;
    assert_int_equal(silt_shell_answer(SILT_LIT("1\0"
                                                "99999999999999\0/\0"),
                                       1, false, &a),
                     19);
    assert_in_range(a.code, 0, 255);
    assert_int_equal(silt_shell_answer(SILT_LIT("1\0-5\0\0"), 1, false, &a), 6);
    assert_int_equal(a.code, 0);
}

TEST(answer_with_a_directory_beyond_all_measure_is_one_without)
{
    static char text[1000];
    struct silt_answer a;
    memset(text, 'x', sizeof(text));
    memcpy(text, "17\0004\000/", 6);
    silt_slice all = {text, sizeof(text)};
    assert_int_equal(silt_shell_answer(all, 17, false, &a), 0);
    assert_int_equal(silt_shell_answer(all, 17, true, &a), sizeof(text));
    assert_int_equal(a.code, 4);
    assert_int_equal(a.cwd.len, 0);
}

TEST(junk_makes_room_and_spares_what_may_be_an_answer)
{
    static char text[100];
    memset(text, 'x', sizeof(text));
    silt_slice all = {text, sizeof(text)};
    assert_int_equal(silt_shell_junk(all, 17), sizeof(text) - SILT_MARK_SIZE);
    memcpy(text + 40, "17\0", 3);
    assert_int_equal(silt_shell_junk(all, 17), 40);
    memcpy(text, "17\0", 3);
    assert_int_equal(silt_shell_junk(all, 17), 3);
}

TEST(state_is_trimmed_of_what_every_shell_has)
{
    static const char dump[] = "declare -- BASH=\"/bin/bash\"\n"
                               "declare -x HOME=\"/root\"\n"
                               "declare -ir UID=\"0\"\n"
                               "declare -a DIRSTACK=()\n"
                               "declare -i RANDOM\n"
                               "declare -- BASHES=\"mine\"\n"
                               "f () \n{ \n    echo declare\n}\n"
                               "declare -- _=\"x\"\n"
                               "no newline";
    static const char want[] = "declare -x HOME=\"/root\"\n"
                               "declare -- BASHES=\"mine\"\n"
                               "f () \n{ \n    echo declare\n}\n"
                               "no newline";
    char got[sizeof(dump)] = "";
    silt_auto_fd fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(write(fd, dump, sizeof(dump) - 1), (ssize_t)sizeof(dump) - 1);
    silt_state_trim(fd);
    assert_int_equal(pread(fd, got, sizeof(got), 0), (ssize_t)sizeof(dump) - 1);
    assert_memory_equal(got, want, sizeof(want) - 1);
    for (size_t i = sizeof(want) - 1; i < sizeof(dump) - 1; i++)
        assert_int_equal(got[i], '\n');
}
