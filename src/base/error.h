/* SPDX-License-Identifier: Apache-2.0 */
/* error: what went wrong, told outermost context first. Owned by the caller, allocates nothing, so it
 * works without memory and after fork, and travels through a socket as it is. */
#pragma once

#include <stddef.h>

enum silt_code {
    SILT_OK,
    SILT_INVALID,      /* the caller's input is wrong */
    SILT_NOT_FOUND,
    SILT_CONFLICT,     /* exists already, or is in a state that does not allow it */
    SILT_LIMIT,        /* a named maximum was reached */
    SILT_NO_SPACE,     /* disk or quota */
    SILT_DENIED,
    SILT_TIMEOUT,
    SILT_GONE,         /* the peer or the object ended underneath */
    SILT_UNAVAILABLE,  /* this machine cannot do it */
    SILT_INTERRUPTED,  /* a restart of ours cut it off */
    SILT_PROTOCOL,     /* a peer broke the contract */
    SILT_INTERNAL,
    SILT_CODE_MAX
};

struct silt_error {
    enum silt_code code; /* what a caller may branch on */
    int sys;             /* errno, or 0 when no syscall was involved */
    char text[504];      /* outermost context first; always terminated */
};

/* All of these are -1, so that a failing function can end in `return silt_fail(...)`; as macros, so that
 * the compiler sees the -1 and knows that results were not written. */
#define silt_fail(e, code, ...) (silt_error_set((e), (code), __VA_ARGS__), -1)
/* Uses errno; the code follows from it (ENOENT: not found, ENOSPC and EDQUOT: no space, ...). */
#define silt_fail_errno(e, ...) (silt_error_set_errno((e), __VA_ARGS__), -1)
/* Puts our part of the story before what is already told. */
#define silt_because(e, ...) (silt_error_prepend((e), __VA_ARGS__), -1)

void silt_error_set(struct silt_error *e, enum silt_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void silt_error_set_errno(struct silt_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void silt_error_prepend(struct silt_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Words of a stranger: control characters become `?`, so that no terminal obeys them. */
void silt_error_show(char *text, size_t len);

const char *silt_code_name(enum silt_code code);
