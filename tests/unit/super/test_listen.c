/* SPDX-License-Identifier: Apache-2.0 */
#include "super/listen.h"
#include "base/own.h"
#include "unit/base/unit.h"

TEST(port_zero_takes_a_free_port_and_tells_it)
{
    silt_auto_fd fd = -1, again = -1;
    char text[SILT_LISTEN_TEXT], other[SILT_LISTEN_TEXT];
    struct silt_error e;
    assert_int_equal(silt_listen_open("127.0.0.1:0", false, &fd, text, &e), 0);
    assert_int_equal(strncmp(text, "127.0.0.1:", 10), 0);
    assert_string_not_equal(text, "127.0.0.1:0");
    assert_int_equal(silt_listen_open(text, false, &again, other, &e), -1); /* after its patience */
    assert_non_null(strstr(e.text, text));
}

TEST(an_address_that_is_none_is_refused)
{
    const char *bad[] = {"",        ":80",  "127.0.0.1", "localhost:80", "127.0.0.1:http",
                         "1.2.3:x", "[::1]"};
    char text[SILT_LISTEN_TEXT];
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        silt_auto_fd fd = -1;
        if (silt_listen_open(bad[i], false, &fd, text, &e) == 0)
            fail_msg("%s was taken", bad[i]);
    }
}
