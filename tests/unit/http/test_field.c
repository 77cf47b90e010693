/* SPDX-License-Identifier: Apache-2.0 */
#include "http/field.h"
#include "base/own.h"
#include "unit/base/unit.h"

static enum silt_http_part fit(const char *field, uint64_t size, struct silt_http_range *r)
{
    return silt_http_range_fit(silt_http_range_read(silt_slice_of(field), r), size, r);
}

TEST(a_range_is_fitted_into_its_file)
{
    static const struct {
        const char *field;
        uint64_t from, length;
    } good[] = {{"bytes=0-0", 0, 1},   {"bytes=10-19", 10, 10}, {"bytes=90-", 90, 10},
                {"bytes=-1", 99, 1},   {"bytes=-1000", 0, 100}, {"bytes=50-99999", 50, 50},
                {"Bytes=0-99", 0, 100}};
    struct silt_http_range r;
    for (size_t i = 0; i < SILT_COUNT(good); i++) {
        assert_int_equal(fit(good[i].field, 100, &r), SILT_HTTP_PART);
        assert_int_equal(r.from, good[i].from);
        assert_int_equal(r.length, good[i].length);
    }
}

TEST(a_range_that_is_not_understood_is_the_whole)
{
    static const char *const fields[] = {"",
                                         "bytes",
                                         "bytes=",
                                         "bytes=-",
                                         "bytes=a-b",
                                         "bytes=2-1",
                                         "lines=1-2",
                                         "bytes=0-1,2-3",
                                         "bytes=01-2",
                                         "bytes=+1-2",
                                         "bytes=99999999999999999999-"};
    struct silt_http_range r;
    for (size_t i = 0; i < SILT_COUNT(fields); i++) {
        assert_int_equal(fit(fields[i], 100, &r), SILT_HTTP_WHOLE);
        assert_int_equal(r.from, 0);
        assert_int_equal(r.length, 100);
    }
}

TEST(a_range_outside_of_the_file_is_refused)
{
    struct silt_http_range r;
    assert_int_equal(fit("bytes=100-", 100, &r), SILT_HTTP_NO_PART);
    assert_int_equal(fit("bytes=100-200", 100, &r), SILT_HTTP_NO_PART);
    assert_int_equal(fit("bytes=-0", 100, &r), SILT_HTTP_NO_PART);
    assert_int_equal(fit("bytes=0-", 0, &r), SILT_HTTP_NO_PART);
    assert_int_equal(fit("bytes=-5", 0, &r), SILT_HTTP_NO_PART);
}

TEST(tags_are_found_in_lists_and_weak_ones_only_where_that_is_enough)
{
    silt_slice tag = SILT_LIT("\"a,b\"");
    assert_true(silt_http_etag_in(SILT_LIT("\"a,b\""), tag, false));
    assert_true(silt_http_etag_in(SILT_LIT("\"x\", \"a,b\" , \"y\""), tag, false));
    assert_true(silt_http_etag_in(SILT_LIT(" * "), tag, false));
    assert_true(silt_http_etag_in(SILT_LIT("W/\"a,b\""), tag, true));
    assert_false(silt_http_etag_in(SILT_LIT("W/\"a,b\""), tag, false));
    static const char *const others[] = {"",     "a,b",      "\"a\"",  "\"a,b",
                                         "\"\"", "\"a,bc\"", "W/\"x\""};
    for (size_t i = 0; i < SILT_COUNT(others); i++)
        assert_false(silt_http_etag_in(silt_slice_of(others[i]), tag, true));
}

TEST(a_type_is_accepted_when_it_is_spelled_out)
{
    assert_true(silt_http_accepts(SILT_LIT("application/x-tar"), SILT_LIT("application/x-tar")));
    assert_true(silt_http_accepts(SILT_LIT("text/html, Application/X-Tar;q=0.5"),
                                  SILT_LIT("application/x-tar")));
    assert_false(silt_http_accepts(SILT_LIT("*/*"), SILT_LIT("application/x-tar")));
    assert_false(silt_http_accepts(SILT_LIT(""), SILT_LIT("application/x-tar")));
}

TEST(dates_are_those_of_rfc_9110)
{
    char date[SILT_HTTP_DATE_SIZE];
    silt_http_date(784111777, date);
    assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
}
