/* SPDX-License-Identifier: Apache-2.0 */
/* error: a code and a message, outermost context first. The caller owns it. It allocates nothing,
 * so it works without memory and after fork, and can be sent through a socket as it is. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum silt_code {
    SILT_OK,
    SILT_INVALID, /* the caller's input is wrong */
    SILT_NOT_FOUND,
    SILT_CONFLICT, /* exists already, or its state does not allow it */
    SILT_LIMIT,    /* a named maximum was reached */
    SILT_NO_SPACE, /* disk or quota */
    SILT_DENIED,
    SILT_TIMEOUT,
    SILT_GONE,        /* the peer or the object ended meanwhile */
    SILT_UNAVAILABLE, /* this machine cannot do it */
    SILT_INTERRUPTED, /* a restart of Silt cut it off */
    SILT_PROTOCOL,    /* a peer broke the protocol */
    SILT_INTERNAL,
    SILT_CODE_MAX
};

struct silt_error {
    enum silt_code code; /* what a caller may branch on */
    int sys;             /* errno, or 0 when no syscall was involved */
    char text[504];      /* outermost context first; always terminated */
};

/* All of these evaluate to -1, so that a failing function can end in `return silt_fail(...)`. They
 * are macros: the compiler sees the -1 and knows that results were not written. */
#define silt_fail(e, code, ...) (silt_error_set((e), (code), __VA_ARGS__), -1)
/* Uses errno and derives the code from it (ENOENT: not found, ENOSPC and EDQUOT: no space, ...). */
#define silt_fail_errno(e, ...) (silt_error_set_errno((e), __VA_ARGS__), -1)
/* For a read or a copy that returned `n` <= 0 where bytes were due. Uses errno only if n < 0; at 0
 * it is stale. */
#define silt_fail_read(e, n, ...) (silt_error_set_read((e), (n), __VA_ARGS__), -1)
/* Prepends context to the message. */
#define silt_because(e, ...) (silt_error_prepend((e), __VA_ARGS__), -1)

void silt_error_set(struct silt_error *e, enum silt_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void silt_error_set_errno(struct silt_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void silt_error_set_read(struct silt_error *e, ssize_t n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void silt_error_prepend(struct silt_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For text from outside: replaces control characters and invalid UTF-8 by `?`, so that no terminal
 * obeys them. */
void silt_error_show(char *text, size_t len);

const char *silt_code_name(enum silt_code code);
