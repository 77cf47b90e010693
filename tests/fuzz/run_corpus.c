/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over what its corpus holds, without a fuzzer:
 *   fuzz_<noun>_corpus PATH...          tables (*.txt), files, or folders of files */
#include "base/fd.h"
#include "fuzz/fuzz.h"
#include "unit/base/table.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { INPUT_MAX = 16 << 20 };

static size_t inputs;

static void run(silt_slice bytes)
{
    (void)LLVMFuzzerTestOneInput((const uint8_t *)bytes.data, bytes.len);
    inputs++;
}

static void run_case(void *context, const struct table_case *c)
{
    (void)context;
    run(c->bytes);
}

static void run_file(const char *path)
{
    struct silt_error e;
    char *data;
    size_t size;
    if (silt_fd_read_file(AT_FDCWD, path, INPUT_MAX, &data, &size, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    char *exact = malloc(size + (size == 0)); /* so that a sanitizer sees a read beyond it */
    demand(exact != NULL);
    memcpy(exact, data, size);
    free(data);
    run((silt_slice){exact, size});
    free(exact);
}

static void run_folder(const char *path)
{
    DIR *d = opendir(path);
    demand(d != NULL);
    for (struct dirent *f; (f = readdir(d)) != NULL;) {
        char name[512];
        if (f->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof(name), "%s/%s", path, f->d_name);
        run_file(name);
    }
    (void)closedir(d);
}

static void run_path(const char *path)
{
    struct stat s;
    size_t len = strlen(path);
    if (len > 4 && strcmp(path + len - 4, ".txt") == 0)
        (void)table_each(path, run_case, NULL);
    else if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
        run_folder(path);
    else
        run_file(path);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run_path(argv[i]);
    (void)printf("%zu inputs\n", inputs);
    return inputs > 0 ? 0 : 1;
}
