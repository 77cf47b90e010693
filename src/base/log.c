/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *program_name = "silt";
static enum silt_log_level least_level = SILT_LOG_INFO;
static struct {
    bool on;
    size_t len;
    char bytes[32 * 1024];
} gathered;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

void silt_log_open(const char *program, enum silt_log_level least)
{
    program_name = program;
    least_level = least;
}

bool silt_log_wants(enum silt_log_level level)
{
    return level >= least_level;
}

void silt_log_gather(void)
{
    gathered.on = true;
}

bool silt_log_waiting(void)
{
    return gathered.len > 0;
}

static void put_out(const char *bytes, size_t len)
{
    /* Nowhere to report that the log cannot be written. */
    ssize_t written = write(STDERR_FILENO, bytes, len);
    (void)written;
}

void silt_log_flush(void)
{
    put_out(gathered.bytes, gathered.len);
    gathered.len = 0;
}

static void put_line(enum silt_log_level level, const char *line, size_t len)
{
    if (!gathered.on || level != SILT_LOG_DEBUG) {
        put_out(line, len);
        return;
    }
    if (gathered.len + len > sizeof(gathered.bytes))
        silt_log_flush();
    memcpy(gathered.bytes + gathered.len, line, len);
    gathered.len += len;
}

void silt_log(enum silt_log_level level, const char *event, const char *format, ...)
{
    if (!silt_log_wants(level))
        return;
    char line[2048];
    char when[SILT_ISO_SIZE];
    silt_clock_iso(silt_clock_wall_ms(), when);
    int n =
        snprintf(line, sizeof(line), "%s %s %s %s ", when, level_names[level], program_name, event);
    size_t used = n < 0 ? 0 : (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;
    va_list args;
    va_start(args, format);
    n = vsnprintf(line + used, sizeof(line) - used, format, args);
    va_end(args);
    used += n < 0 ? 0 : (size_t)n;
    if (used > sizeof(line) - 2)
        used = sizeof(line) - 2;
    line[used++] = '\n';
    put_line(level, line, used);
}

const char *silt_log_quote(silt_slice s, char out[SILT_LOG_QUOTE_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (n + 8 > SILT_LOG_QUOTE_SIZE) {
            memcpy(out + n, "...", 3);
            n += 3;
            break;
        }
        if (c > ' ' && c < 0x7f && c != '\\' && c != '"') {
            out[n++] = (char)c;
        } else {
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    out[n] = 0;
    return out;
}
