/* SPDX-License-Identifier: Apache-2.0 */
/* Between a corpus, which is a table of cases, and what libFuzzer wants, a directory of files:
 *   fuzz_table_files TABLE DIR    writes each case as a file
 *   fuzz_table_files FILE...      prints each file as a line for a table, named after the file */
#include "base/fd.h"
#include "fuzz/fuzz.h"
#include "unit/base/table.h"

#include <ctype.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>

enum { CASE_MAX = 1 << 20, RUN_MIN = 7 /* shorter ones are not shorter as ~(n)c */ };

static void write_case(void *context, const struct table_case *c)
{
    struct silt_error e;
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", (const char *)context, c->name);
    silt_auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    demand(fd >= 0 && silt_fd_write_all(fd, c->bytes, &e) == 0);
}

static void print_byte(unsigned char c)
{
    if (isgraph(c) && c != '~')
        (void)putchar(c);
    else
        (void)printf("~%02x", c);
}

static int print_case(char *path)
{
    struct silt_error e;
    char *data;
    size_t size;
    if (silt_fd_read_file(AT_FDCWD, path, CASE_MAX, &data, &size, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    (void)printf("- %s ", basename(path));
    for (size_t i = 0, end; i < size; i = end) {
        for (end = i + 1; end < size && data[end] == data[i]; end++)
            continue;
        if (end - i >= RUN_MIN)
            (void)printf("~(%zu)", end - i);
        else
            end = i + 1;
        print_byte((unsigned char)data[i]);
    }
    (void)putchar('\n');
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    struct stat st;
    if (argc == 3 && stat(argv[2], &st) == 0 && S_ISDIR(st.st_mode))
        return table_each(argv[1], write_case, argv[2]) > 0 ? 0 : 1;
    for (int i = 1; i < argc; i++)
        if (print_case(argv[i]) < 0)
            return 1;
    return 0;
}
