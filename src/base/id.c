/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"
#include "base/own.h"

#include <stdlib.h>
#include <sys/random.h>

/* Names that would shadow our own hosts and pages; the npm client refuses the same ones. */
static const silt_slice reserved[] = {
    {"www", 3},    {"api", 3},         {"admin", 5},   {"root", 4},
    {"system", 6}, {"cloudflare", 10}, {"workers", 7},
};

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_edge_mark(char c)
{
    return c == '-' || c == '.';
}

int silt_id_check(silt_slice id, struct silt_error *e)
{
    if (id.len == 0)
        return silt_fail(e, SILT_INVALID, "empty sandbox id");
    if (id.len > SILT_ID_MAX)
        return silt_fail(e, SILT_INVALID, "sandbox id of %zu bytes, at most %d", id.len,
                         SILT_ID_MAX);
    for (size_t i = 0; i < id.len; i++) {
        char c = id.data[i];
        if (!is_alnum(c) && c != '-' && c != '.' && c != '_')
            return silt_fail(e, SILT_INVALID,
                             "sandbox id '%.*s' has more than letters, digits, '.', '_' and '-'",
                             (int)id.len, id.data);
        if (c == '.' && i > 0 && id.data[i - 1] == '.')
            return silt_fail(e, SILT_INVALID, "sandbox id with '..'");
    }
    if (is_edge_mark(id.data[0]) || is_edge_mark(id.data[id.len - 1]))
        return silt_fail(e, SILT_INVALID, "sandbox id begins or ends with '-' or '.'");
    for (size_t i = 0; i < SILT_COUNT(reserved); i++)
        if (silt_slice_ieq(id, reserved[i]))
            return silt_fail(e, SILT_INVALID, "sandbox id '%s' is reserved", reserved[i].data);
    return 0;
}

void silt_id_hostname(silt_slice id, char out[SILT_HOSTNAME_SIZE])
{
    size_t n = id.len < SILT_HOSTNAME_SIZE - 1 ? id.len : SILT_HOSTNAME_SIZE - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = is_alnum(id.data[i]) ? id.data[i] : '-';
    out[n] = 0;
}

int silt_id_check_image(silt_slice name, struct silt_error *e)
{
    if (name.len == 0 || name.len > 64)
        return silt_fail(e, SILT_INVALID, "image name of %zu bytes, 1 to 64", name.len);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter = c >= 'a' && c <= 'z';
        bool other = (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!letter && !(other && i > 0))
            return silt_fail(
                e, SILT_INVALID,
                "image name may hold a-z, 0-9, '.', '_', '-' and begins with a letter");
    }
    return 0;
}

bool silt_id_is_env_name(silt_slice name)
{
    if (name.len == 0 || name.len > 256 || (name.data[0] >= '0' && name.data[0] <= '9'))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!is_alnum(name.data[i]) && name.data[i] != '_')
            return false;
    return true;
}

void silt_id_random(char *out, size_t n)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    if (getrandom(out, n, 0) != (ssize_t)n)
        abort();
    for (size_t i = 0; i < n; i++)
        out[i] = alphabet[(unsigned char)out[i] & 31];
    out[n] = 0;
}

void silt_id_random_hex(char out[65])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[32];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        abort();
    for (size_t i = 0; i < sizeof(bytes); i++) {
        out[i * 2] = digits[bytes[i] >> 4];
        out[i * 2 + 1] = digits[bytes[i] & 15];
    }
    out[64] = 0;
}
