/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/proxy/hello.h"

#include <string.h>

enum { RECORD = 5, MESSAGE = 4 };

static void put(char *at, size_t value)
{
    at[0] = (char)(value >> 8);
    at[1] = (char)(value & 255);
}

static size_t put_sni(char *at, const char *name)
{
    size_t n = strlen(name);
    put(at, 0);
    put(at + 2, n + 5);
    put(at + 4, n + 3);
    at[6] = 0;
    put(at + 7, n);
    memcpy(at + 9, name, n);
    return 9 + n;
}

static size_t put_extension(char *at, size_t type, size_t size)
{
    put(at, type);
    put(at + 2, size);
    memset(at + 4, 'e', size);
    return 4 + size;
}

size_t make_hello(char *out, const char *name, enum hello_kind kind)
{
    static const char fixed[] = {0, 0, 2, 0x13,
                                 1, 1, 0}; /* no session, one cipher, no compression */
    char *at = out + RECORD + MESSAGE;
    put(at, 0x0303);
    memset(at + 2, 'r', 32);
    at += 34;
    memcpy(at, fixed, sizeof(fixed));
    at += sizeof(fixed);
    char *extensions = at;
    at += 2;
    at += put_extension(at, 10, 4);
    if (name[0] != 0)
        at += put_sni(at, name);
    if (kind == HELLO_TWICE)
        at += put_sni(at, "other.test");
    if (kind == HELLO_ECH)
        at += put_extension(at, 0xfe0d, 20);
    if (kind == HELLO_EARLY)
        at += put_extension(at, 42, 0);
    put(extensions, (size_t)(at - extensions - 2));
    size_t len = (size_t)(at - out);
    memcpy(out, "\x16\x03\x01", 3);
    put(out + 3, len - RECORD);
    put(out + RECORD, 0x0100);
    put(out + RECORD + 2, len - RECORD - MESSAGE);
    return len;
}

size_t spread_hello(const char *hello, size_t len, char *out)
{
    size_t n = 0;
    for (size_t i = RECORD; i < len; i++) {
        memcpy(out + n, "\x16\x03\x01\x00\x01", RECORD);
        out[n + RECORD] = hello[i];
        n += RECORD + 1;
    }
    return n;
}
