/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/slice.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[SILT_CODE_MAX] = {
    [SILT_OK] = "ok",
    [SILT_INVALID] = "invalid",
    [SILT_NOT_FOUND] = "not_found",
    [SILT_CONFLICT] = "conflict",
    [SILT_LIMIT] = "limit",
    [SILT_NO_SPACE] = "no_space",
    [SILT_DENIED] = "denied",
    [SILT_TIMEOUT] = "timeout",
    [SILT_GONE] = "gone",
    [SILT_UNAVAILABLE] = "unavailable",
    [SILT_INTERRUPTED] = "interrupted",
    [SILT_PROTOCOL] = "protocol",
    [SILT_INTERNAL] = "internal",
};

const char *silt_code_name(enum silt_code code)
{
    return (unsigned)code < SILT_CODE_MAX ? code_names[code] : "unknown";
}

/* Of the character that begins here; 0: none does. */
static size_t character(const char *text, size_t len)
{
    unsigned char first = (unsigned char)text[0];
    size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    return n <= len && silt_slice_is_utf8((silt_slice){text, n}) ? n : 0;
}

/* Those of two bytes (U+0080 to U+009F) are as good as ESC to a terminal. */
static bool is_control(const char *text, size_t n)
{
    unsigned char first = (unsigned char)text[0];
    if (n == 1)
        return first < ' ' || first == 0x7f;
    return n == 2 && first == 0xc2 && (unsigned char)text[1] < 0xa0;
}

void silt_error_show(char *text, size_t len)
{
    for (size_t i = 0, n; i<len; i += n> 0 ? n : 1) {
        n = character(text + i, len - i);
        if (n == 0 || is_control(text + i, n))
            memset(text + i, '?', n > 0 ? n : 1);
    }
}

static enum silt_code code_of_errno(int sys)
{
    switch (sys) {
    case ENOENT:
    case ESRCH:
        return SILT_NOT_FOUND;
    case EEXIST:
    case EBUSY:
    case ENOTEMPTY:
    case ETXTBSY:
        return SILT_CONFLICT;
    case ENOSPC:
    case EDQUOT:
        return SILT_NO_SPACE;
    case EACCES:
    case EPERM:
    case EROFS:
        return SILT_DENIED;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case EFBIG:
        return SILT_LIMIT;
    case ETIMEDOUT:
        return SILT_TIMEOUT;
    case EPIPE:
    case ECONNRESET:
        return SILT_GONE;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
        return SILT_INVALID;
    default:
        return SILT_INTERNAL;
    }
}

void silt_error_set(struct silt_error *e, enum silt_code code, const char *format, ...)
{
    va_list args;
    e->code = code;
    e->sys = 0;
    va_start(args, format);
    (void)vsnprintf(e->text, sizeof(e->text), format, args);
    va_end(args);
}

__attribute__((format(printf, 3, 0))) static void
set_with_reason(struct silt_error *e, const char *reason, const char *format, va_list args)
{
    int n = vsnprintf(e->text, sizeof(e->text), format, args);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof(e->text))
        (void)snprintf(e->text + used, sizeof(e->text) - used, ": %s", reason);
}

void silt_error_set_errno(struct silt_error *e, const char *format, ...)
{
    va_list args;
    e->sys = errno;
    e->code = code_of_errno(e->sys);
    va_start(args, format);
    set_with_reason(e, strerror(e->sys), format, args);
    va_end(args);
}

void silt_error_set_read(struct silt_error *e, ssize_t n, const char *format, ...)
{
    va_list args;
    e->sys = n < 0 ? errno : 0;
    e->code = n < 0 ? code_of_errno(e->sys) : SILT_INTERNAL;
    va_start(args, format);
    set_with_reason(e, n < 0 ? strerror(e->sys) : "it ended early", format, args);
    va_end(args);
}

void silt_error_prepend(struct silt_error *e, const char *format, ...)
{
    char inner[sizeof(e->text)];
    va_list args;
    memcpy(inner, e->text, sizeof(inner));
    inner[sizeof(inner) - 1] = 0;
    va_start(args, format);
    int n = vsnprintf(e->text, sizeof(e->text), format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof(e->text))
        (void)snprintf(e->text + used, sizeof(e->text) - used, ": %s", inner);
}
