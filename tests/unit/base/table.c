/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/table.h"
#include "base/buf.h"
#include "base/own.h"

#include <stdio.h>
#include <stdlib.h>

enum { CASE_MAX = 1 << 20 };

static _Noreturn void refuse(const char *path, const char *line)
{
    (void)fprintf(stderr, "%s: not a case: %.60s\n", path, line);
    exit(1);
}

/* One byte, plain or as ~xx; NULL: neither. */
static const char *take_byte(const char *p, char *ret)
{
    unsigned value;
    if (*p != '~') {
        *ret = *p;
        return p + 1;
    }
    if (sscanf(p + 1, "%2x", &value) != 1 || strspn(p + 1, "0123456789abcdef") < 2)
        return NULL;
    *ret = (char)value;
    return p + 3;
}

static bool expand(const char *p, struct silt_buf *out)
{
    while (*p != 0) {
        unsigned long times = 1;
        char byte, *end;
        if (p[0] == '~' && p[1] == '(') {
            times = strtoul(p + 2, &end, 10);
            if (*end != ')')
                return false;
            p = end + 1;
        }
        p = take_byte(p, &byte);
        if (p == NULL)
            return false;
        while (times-- > 0)
            silt_buf_add_byte(out, byte);
    }
    return !out->broken;
}

size_t table_each(const char *path, void (*each)(void *context, const struct table_case *c),
                  void *context)
{
    FILE *f = fopen(path, "re");
    if (f == NULL)
        refuse(path, "cannot be opened");
    silt_auto_free char *line = NULL;
    size_t room = 0, count = 0;
    for (ssize_t n; (n = getline(&line, &room, f)) >= 0;) {
        if (n > 0 && line[n - 1] == '\n')
            line[--n] = 0;
        if (n == 0 || line[0] == '#')
            continue;
        if (n < 3 || line[1] != ' ')
            refuse(path, line);
        char *name = line + 2, *text = strchr(name, ' ');
        if (text != NULL)
            *text++ = 0;
        silt_auto_buf bytes;
        silt_buf_init(&bytes, CASE_MAX);
        if (!expand(text != NULL ? text : "", &bytes))
            refuse(path, name);
        silt_auto_free char *exact = malloc(bytes.len + (bytes.len == 0));
        if (bytes.len > 0)
            memcpy(exact, bytes.data, bytes.len);
        each(context, &(struct table_case){line[0], name, {exact, bytes.len}});
        count++;
    }
    (void)fclose(f);
    return count;
}
