/* SPDX-License-Identifier: Apache-2.0 */
/* gain [run PROGRAM | setcap FILE]: run PROGRAM as uid and gid 1000; give FILE every capability;
 * else tell what we are. */
#define _GNU_SOURCE
#include "attempt.h"

#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static int run(char *program)
{
    char *arguments[] = {program, NULL};
    if (setgroups(0, NULL) != 0 || setresgid(1000, 1000, 1000) != 0
        || setresuid(1000, 1000, 1000) != 0) {
        attempt("setresuid", -1);
        return 1;
    }
    execv(program, arguments);
    attempt("exec", -1);
    return 1;
}

static int set_capabilities(const char *file)
{
    const uint32_t v2[5] = {0x02000001, 0xffffffff, 0, 0x1ff, 0}; /* effective; all permitted */
    attempt("setcap", setxattr(file, "security.capability", v2, sizeof v2, 0));
    return 0;
}

static int tell(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    printf("uid %d euid %d\n", (int)getuid(), (int)geteuid());
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "CapEff:", 7) == 0)
            printf("effective %s", line + 8);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "run") == 0)
        return run(argv[2]);
    if (argc == 3 && strcmp(argv[1], "setcap") == 0)
        return set_capabilities(argv[2]);
    return tell();
}
