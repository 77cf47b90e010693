/* SPDX-License-Identifier: Apache-2.0 */
/* Requests taken apart. */
#include "agent/spawn/start_frame.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <sys/mman.h>
#include <unistd.h>

static union {
    struct silt_frame frame;
    char bytes[4096];
} request;

static size_t put(const struct silt_agent_start *head, const char *parts, size_t len)
{
    request.frame = (struct silt_frame){.type = SILT_AGENT_EXEC};
    memcpy(request.frame.body, head, sizeof(*head));
    memcpy(request.frame.body + sizeof(*head), parts, len);
    return sizeof(*head) + len;
}

static int parse(struct silt_start_frame *s, const struct silt_agent_start *head, const char *parts,
                 size_t len, struct silt_error *e)
{
    struct silt_parcel p = {.nfds = 0};
    size_t body = put(head, parts, len);
    return silt_start_frame_parse(s, &request.frame, body, &p, e);
}

TEST(start_is_cut_into_its_parts)
{
    struct silt_start_frame s;
    struct silt_error e;
    struct silt_agent_start head = {
        .mode = SILT_EXEC_PLAIN, .note_len = 1, .cwd_len = 2, .env_len = 8, .command_len = 2};
    assert_int_equal(parse(&s, &head, "n/wA=1\0B=2\0ls", 13, &e), 0);
    assert_text(s.note, "n");
    assert_text(s.cwd, "/w");
    assert_text(s.command, "ls");
    char **envp;
    assert_int_equal(silt_start_frame_envp(&s, &envp, &e), 0);
    assert_string_equal(envp[0], "A=1");
    assert_string_equal(envp[1], "B=2");
    assert_null(envp[2]);
    assert_string_equal(silt_start_frame_getenv(&s, "B"), "2");
    assert_null(silt_start_frame_getenv(&s, "C"));
    free(envp);
    silt_start_frame_fini(&s);
    silt_start_frame_fini(&s);
}

TEST(start_whose_parts_do_not_add_up_is_refused)
{
    struct silt_start_frame s;
    struct silt_error e;
    struct silt_agent_start head = {.mode = SILT_EXEC_PLAIN, .command_len = 3};
    assert_int_equal(parse(&s, &head, "ls", 2, &e), -1);
    assert_int_equal(e.code, SILT_PROTOCOL);
    head = (struct silt_agent_start){
        .mode = SILT_EXEC_PLAIN, .command_len = UINT32_MAX, .cwd_len = UINT32_MAX};
    assert_int_equal(parse(&s, &head, "ls", 2, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
}

TEST(start_with_forbidden_bytes_is_refused)
{
    static const struct {
        struct silt_agent_start head;
        const char *parts;
        size_t len;
        enum silt_code code;
    } cases[] = {
        {{.mode = SILT_EXEC_PLAIN, .command_len = 3}, "a\0b", 3, SILT_INVALID},
        {{.mode = SILT_EXEC_PLAIN, .cwd_len = 3}, "a\0b", 3, SILT_INVALID},
        {{.mode = SILT_EXEC_PLAIN, .env_len = 3}, "A=1", 3, SILT_PROTOCOL},
        {{.mode = SILT_EXEC_FOREGROUND, .env_len = 6}, "A;B=1", 6, SILT_INVALID},
        {{.mode = SILT_EXEC_BACKGROUND, .env_len = 5}, "1B=1", 5, SILT_INVALID},
        {{.mode = SILT_EXEC_BACKGROUND, .env_len = 4}, "=1\0", 4, SILT_INVALID},
        {{.mode = 0}, "", 0, SILT_PROTOCOL},
        {{.mode = 4}, "", 0, SILT_PROTOCOL},
        {{.mode = SILT_EXEC_PLAIN, .note_len = SILT_SESSION_NOTE_MAX + 1},
         "",
         SILT_SESSION_NOTE_MAX + 1,
         SILT_PROTOCOL},
    };
    static char parts[2048];
    for (size_t i = 0; i < SILT_COUNT(cases); i++) {
        struct silt_start_frame s;
        struct silt_error e;
        memcpy(parts, cases[i].parts, cases[i].len < 8 ? cases[i].len : 0);
        assert_int_equal(parse(&s, &cases[i].head, parts, cases[i].len, &e), -1);
        if (e.code != cases[i].code)
            fail_msg("case %zu: %s", i, e.text);
    }
}

TEST(start_in_a_memory_file_is_checked_against_its_size)
{
    struct silt_start_frame s;
    struct silt_error e;
    struct silt_agent_start head = {.mode = SILT_EXEC_PLAIN, .command_len = 10};
    silt_auto_fd fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(write(fd, "echo hello", 10), 10);
    struct silt_parcel p = {.nfds = 1, .fds = {fd}};
    size_t body = put(&head, "", 0);
    request.frame.flags = SILT_START_IN_MEMFD;
    assert_int_equal(silt_start_frame_parse(&s, &request.frame, body, &p, &e), 0);
    assert_text(s.command, "echo hello");
    silt_start_frame_fini(&s);
    head.command_len = 11;
    body = put(&head, "", 0);
    request.frame.flags = SILT_START_IN_MEMFD;
    assert_int_equal(silt_start_frame_parse(&s, &request.frame, body, &p, &e), -1);
    assert_int_equal(e.code, SILT_PROTOCOL);
    p.nfds = 0;
    assert_int_equal(silt_start_frame_parse(&s, &request.frame, body, &p, &e), -1);
    assert_int_equal(e.code, SILT_PROTOCOL);
}
