/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/answer.h"

#include <stdio.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Cuts off the first line; false: it is not complete yet. */
static bool cut_line(silt_slice *rest, silt_slice *ret)
{
    if (!silt_slice_has_byte(*rest, '\n'))
        return false;
    (void)silt_slice_split(rest, '\n', ret);
    if (ret->len > 0 && ret->data[ret->len - 1] == '\r')
        ret->len--;
    return true;
}

/* HTTP/1.1 200 OK */
static bool read_status(silt_slice line, uint32_t *ret)
{
    if (line.len < 12 || !silt_slice_starts(line, SILT_LIT("HTTP/")) || line.data[8] != ' ')
        return false;
    const char *d = line.data + 9;
    if (!is_digit(d[0]) || !is_digit(d[1]) || !is_digit(d[2]) || (line.len > 12 && d[3] != ' '))
        return false;
    *ret = (uint32_t)((d[0] - '0') * 100 + (d[1] - '0') * 10 + (d[2] - '0'));
    return true;
}

int silt_answer_read(silt_slice bytes, struct silt_answer *ret)
{
    silt_slice line, name;
    *ret = (struct silt_answer){0};
    while (cut_line(&bytes, &line)) {
        if (ret->status == 0) {
            if (!read_status(line, &ret->status))
                return -1;
            continue;
        }
        if (line.len > 0) {
            if (silt_slice_split(&line, ':', &name) && silt_slice_ieq(name, SILT_LIT("location")))
                ret->location = silt_slice_trim(line);
            continue;
        }
        if (ret->status >= 200)
            return 1;
        *ret = (struct silt_answer){0};
    }
    return 0;
}

bool silt_target_of(silt_slice path, char out[SILT_TARGET_SIZE])
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    if (path.len == 0 || path.data[0] != '/')
        out[n++] = '/';
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.data[i];
        if (n + 4 > SILT_TARGET_SIZE)
            return false;
        if (c == '#')
            break; /* fragments are not sent */
        if (c > ' ' && c < 0x7f) {
            out[n++] = (char)c;
            continue;
        }
        out[n++] = '%';
        out[n++] = hex[c >> 4];
        out[n++] = hex[c & 15];
    }
    out[n] = 0;
    return true;
}

/* Cuts off `http://host:port`, which must be ours. */
static bool is_here(silt_slice *url, uint16_t port)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    char wanted[64];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int n = snprintf(wanted, sizeof(wanted), port == 80 ? "http://%s" : "http://%s:%u",
                         names[i], port);
        silt_slice w = {wanted, (size_t)n};
        if (url->len < w.len || !silt_slice_ieq((silt_slice){url->data, w.len}, w))
            continue;
        silt_slice rest = {url->data + w.len, url->len - w.len};
        if (port == 80 && silt_slice_starts(rest, SILT_LIT(":80")))
            rest = (silt_slice){rest.data + 3, rest.len - 3};
        if (rest.len > 0 && !silt_is_any(rest.data[0], "/?#"))
            continue;
        *url = rest;
        return true;
    }
    return false;
}

/* A relative reference replaces what follows the last slash. */
static bool join(silt_slice path, char target[SILT_TARGET_SIZE])
{
    char whole[SILT_TARGET_SIZE];
    size_t query = strcspn(target, "?"), dir = query;
    while (dir > 0 && target[dir - 1] != '/')
        dir--;
    size_t keep = path.data[0] == '?' ? query : dir;
    if (keep + path.len >= sizeof(whole))
        return false;
    memcpy(whole, target, keep);
    memcpy(whole + keep, path.data, path.len);
    return silt_target_of((silt_slice){whole, keep + path.len}, target);
}

bool silt_answer_redirect(const struct silt_answer *a, uint16_t port, char target[SILT_TARGET_SIZE])
{
    silt_slice url = a->location;
    bool sends_on = a->status == 301 || a->status == 302 || a->status == 303 || a->status == 307
                    || a->status == 308;
    if (!sends_on || url.len == 0 || silt_slice_starts(url, SILT_LIT("//")))
        return false;
    if (is_here(&url, port) || url.data[0] == '/')
        return silt_target_of(url, target);
    size_t scheme = 0;
    while (scheme < url.len && !silt_is_any(url.data[scheme], ":/?#"))
        scheme++;
    if (scheme < url.len && url.data[scheme] == ':')
        return false; /* another scheme, host or port */
    return join(url, target);
}
