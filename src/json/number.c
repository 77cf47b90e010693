/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers: exact if they are integers that fit int64_t, else the nearest double. */
#include "json/reader.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

enum { NUMBER_MAX = 64 }; /* longer numbers are copied to the arena, not to the stack */

struct number {
    bool negative, whole;
    size_t digits;     /* significant digits seen, including leading zeros of a fraction */
    uint64_t mantissa; /* of the first 19 digits */
    int64_t exponent;  /* power of ten */
};

static bool is_digit(const struct silt_json_reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static int read_digits(struct silt_json_reader *r, struct number *n)
{
    if (!is_digit(r))
        return silt_json_refuse(r, "expected a digit");
    for (; is_digit(r); r->at++)
        if (n->digits++ < 19)
            n->mantissa = n->mantissa * 10 + (uint64_t)(*r->at - '0');
    return 0;
}

static int read_exponent(struct silt_json_reader *r, struct number *n)
{
    bool negative = false;
    int64_t value = 0;
    r->at++;
    if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
        negative = *r->at++ == '-';
    if (!is_digit(r))
        return silt_json_refuse(r, "expected a digit");
    for (; is_digit(r); r->at++)
        if (value < 100000) /* beyond any double */
            value = value * 10 + (*r->at - '0');
    n->exponent += negative ? -value : value;
    return 0;
}

static int scan_number(struct silt_json_reader *r, struct number *n)
{
    if (*r->at == '-') {
        n->negative = true;
        r->at++;
    }
    bool zero = r->at < r->end && *r->at == '0';
    const unsigned char *first = r->at;
    if (read_digits(r, n) < 0)
        return -1;
    if (zero && r->at - first > 1)
        return silt_json_refuse(r, "number with a leading zero");
    n->whole = true;
    if (r->at < r->end && *r->at == '.') {
        n->whole = false;
        const unsigned char *fraction = ++r->at;
        if (read_digits(r, n) < 0)
            return -1;
        n->exponent = fraction - r->at;
    }
    if (r->at < r->end && (*r->at | 0x20) == 'e') {
        n->whole = false;
        return read_exponent(r, n);
    }
    return 0;
}

/* True if it fits int64_t. */
static bool as_integer(const struct number *n, int64_t *ret)
{
    uint64_t most = n->negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    if (!n->whole || n->digits > 19 || n->mantissa > most)
        return false;
    *ret = (int64_t)(n->negative ? 0 - n->mantissa : n->mantissa);
    return true;
}

/* If mantissa and power of ten are exact doubles, one operation rounds only once (Clinger 1990). */
static bool as_exact_double(const struct number *n, double *ret)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (n->digits > 19 || n->mantissa >= 1ULL << 53 || n->exponent < -22 || n->exponent > 22)
        return false;
    double value = (double)n->mantissa;
    value = n->exponent < 0 ? value / powers[-n->exponent] : value * powers[n->exponent];
    *ret = n->negative ? -value : value;
    return true;
}

/* strtod in the C locale, whatever locale the process has set. */
static int as_any_double(struct silt_json_reader *r, const unsigned char *from, double *ret)
{
    char few[NUMBER_MAX];
    size_t len = (size_t)(r->at - from);
    char *text = len < sizeof(few) ? few : silt_json_allocate(r, len + 1);
    if (text == NULL)
        return -1;
    memcpy(text, from, len);
    text[len] = 0;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return silt_fail(r->error, SILT_LIMIT, "JSON: no memory to read a number");
    double value = strtod_l(text, NULL, c);
    freelocale(c);
    if (!isfinite(value))
        return silt_json_refuse(r, "number too large");
    *ret = value;
    return 0;
}

int silt_json_read_number(struct silt_json_reader *r, struct silt_json *v)
{
    const unsigned char *from = r->at;
    struct number n = {0};
    if (scan_number(r, &n) < 0)
        return -1;
    v->type = SILT_JSON_INT;
    if (as_integer(&n, &v->integer))
        return 0;
    v->type = SILT_JSON_DOUBLE;
    if (as_exact_double(&n, &v->number))
        return 0;
    return as_any_double(r, from, &v->number);
}
