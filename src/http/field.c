/* SPDX-License-Identifier: Apache-2.0 */
#include "http/field.h"

#include <stdio.h>
#include <time.h>

enum silt_http_part silt_http_range_read(silt_slice field, struct silt_http_range *ret)
{
    silt_slice unit, first, last;
    uint64_t a = 0, b = 0;
    struct silt_error e;
    *ret = (struct silt_http_range){0};
    if (!silt_slice_split(&field, '=', &unit) || !silt_slice_ieq(unit, SILT_LIT("bytes")))
        return SILT_HTTP_WHOLE;
    last = silt_slice_trim(field);
    if (silt_slice_has_byte(last, ',') || !silt_slice_has_byte(last, '-')
        || !silt_slice_split(&last, '-', &first))
        return SILT_HTTP_WHOLE;
    if (first.len > 0 && silt_slice_to_u64(first, 0, INT64_MAX, &a, &e) < 0)
        return SILT_HTTP_WHOLE;
    if (last.len > 0 && silt_slice_to_u64(last, 0, INT64_MAX, &b, &e) < 0)
        return SILT_HTTP_WHOLE;
    if (first.len == 0) {
        ret->length = b;
        return last.len == 0 ? SILT_HTTP_WHOLE : b == 0 ? SILT_HTTP_NO_PART : SILT_HTTP_LAST_PART;
    }
    if (last.len > 0 && b < a)
        return SILT_HTTP_WHOLE;
    *ret = (struct silt_http_range){.from = a, .length = last.len > 0 ? b - a + 1 : 0};
    return SILT_HTTP_PART;
}

enum silt_http_part silt_http_range_fit(enum silt_http_part part, uint64_t size,
                                        struct silt_http_range *r)
{
    if (part == SILT_HTTP_WHOLE) {
        *r = (struct silt_http_range){.from = 0, .length = size};
        return part;
    }
    if (part == SILT_HTTP_LAST_PART) {
        r->length = r->length < size ? r->length : size;
        r->from = size - r->length;
    }
    if (part == SILT_HTTP_NO_PART || r->from >= size)
        return SILT_HTTP_NO_PART;
    if (r->length == 0 || r->length > size - r->from)
        r->length = size - r->from;
    return SILT_HTTP_PART;
}

/* Tags contain no quotes but may contain commas. */
bool silt_http_etag_in(silt_slice list, silt_slice etag, bool weak)
{
    silt_slice between, tag;
    if (silt_slice_eq(silt_slice_trim(list), SILT_LIT("*")))
        return true;
    while (silt_slice_split(&list, '"', &between)) {
        bool is_weak = between.len >= 2 && memcmp(between.data + between.len - 2, "W/", 2) == 0;
        if (list.data == NULL || !silt_slice_split(&list, '"', &tag) || list.data == NULL)
            return false; /* an unterminated tag does not count */
        bool is_same = etag.len == tag.len + 2 && memcmp(etag.data + 1, tag.data, tag.len) == 0;
        if (is_same && (weak || !is_weak))
            return true;
    }
    return false;
}

bool silt_http_accepts(silt_slice accept, silt_slice type)
{
    silt_slice item, name;
    while (silt_slice_split(&accept, ',', &item))
        if (silt_slice_split(&item, ';', &name) && silt_slice_ieq(silt_slice_trim(name), type))
            return true;
    return false;
}

void silt_http_date(int64_t seconds, char out[SILT_HTTP_DATE_SIZE])
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t when = seconds;
    struct tm t = {0};
    char text[80];
    (void)gmtime_r(&when, &t);
    (void)snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", days[t.tm_wday],
                   t.tm_mday, months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
    (void)snprintf(out, SILT_HTTP_DATE_SIZE, "%.29s", text);
}
