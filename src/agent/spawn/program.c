/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/program.h"
#include "base/slice.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static silt_slice path_of(char *const *envp)
{
    for (; *envp != NULL; envp++)
        if (strncmp(*envp, "PATH=", 5) == 0)
            return silt_slice_of(*envp + 5);
    return SILT_LIT(USUAL_PATH);
}

/* It is not here, but may be elsewhere. */
static bool is_absence(int sys)
{
    return sys == ENOENT || sys == ENOTDIR || sys == ENAMETOOLONG;
}

/* Returns the most informative errno: that a program exists but may not be started is worth
 * reporting. */
static int try_path(silt_slice path, char *const *argv, char *const *envp)
{
    char full[PATH_MAX];
    int worst = ENOENT;
    silt_slice directory;
    while (silt_slice_split(&path, ':', &directory)) {
        int n = snprintf(full, sizeof(full), "%.*s%s%s", (int)directory.len, directory.data,
                         directory.len > 0 ? "/" : "", argv[0]);
        if (n < 0 || (size_t)n >= sizeof(full))
            continue;
        (void)execve(full, argv, envp);
        if (errno == EACCES)
            worst = EACCES;
        else if (!is_absence(errno))
            return errno;
    }
    return worst;
}

static int try_all(char *const *argv, char *const *envp)
{
    if (strchr(argv[0], '/') == NULL)
        return try_path(path_of(envp), argv, envp);
    (void)execve(argv[0], argv, envp);
    return errno;
}

void silt_program_exec(char *const *argv, char *const *envp, struct silt_error *e)
{
    int sys = try_all(argv, envp);
    errno = sys;
    if (is_absence(sys))
        (void)silt_fail(e, SILT_NOT_FOUND, "program '%s' not found", argv[0]);
    else if (sys == E2BIG)
        (void)silt_fail(e, SILT_LIMIT, "arguments and environment of '%s' are too long", argv[0]);
    else if (sys == ENOEXEC)
        (void)silt_fail(e, SILT_INVALID, "'%s' is not a program", argv[0]);
    else
        (void)silt_fail_errno(e, "start '%s'", argv[0]);
}
