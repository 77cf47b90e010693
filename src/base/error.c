/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

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

void silt_error_show(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
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

void silt_error_set_errno(struct silt_error *e, const char *format, ...)
{
    int sys = errno;
    va_list args;
    e->code = code_of_errno(sys);
    e->sys = sys;
    va_start(args, format);
    int n = vsnprintf(e->text, sizeof(e->text), format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof(e->text))
        (void)snprintf(e->text + used, sizeof(e->text) - used, ": %s", strerror(sys));
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
