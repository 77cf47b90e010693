/* SPDX-License-Identifier: Apache-2.0 */
/* call: makes system calls by number in each ABI, each in a child of its own, and tells what came
 * back. call ABI:NUMBER:A,B,C,D,E...        ABI: x64, x32 or i386; arguments are small integers
 *     call sweep ABI FIRST LAST           all numbers, every argument -1
 * Prints one line per call: ABI NUMBER (errno N | ok VALUE | signal N | hang). */
#include "attempt.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS = 6, PATIENCE_MS = 300, X32_BIT = 0x40000000 };

static long *answer; /* shared with the child */

static long native(long number, const long *a)
{
    long result;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static long i386(long number, const long *a)
{
    int result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"((int)number), "b"((int)a[0]), "c"((int)a[1]), "d"((int)a[2]),
                       "S"((int)a[3]), "D"((int)a[4])
                     : "r8", "r9", "r10", "r11", "memory");
    return result;
}

static void child(const char *abi, long number, const long *a)
{
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setsid();
    if (strcmp(abi, "i386") == 0)
        *answer = i386(number, a);
    else
        *answer = native(strcmp(abi, "x32") == 0 ? number | X32_BIT : number, a);
    _exit(0);
}

static void report(const char *abi, long number, int status, int hang)
{
    printf("%s %ld ", abi, number);
    if (hang)
        printf("hang\n");
    else if (WIFSIGNALED(status))
        printf("signal %d\n", WTERMSIG(status));
    else if (*answer < 0 && *answer > -4096)
        printf("errno %ld\n", -*answer);
    else
        printf("ok %ld\n", *answer);
}

static void one(const char *abi, long number, const long *a)
{
    int status = 0;
    int hang = 0;
    int alive[2];
    *answer = 0;
    fflush(stdout);
    if (pipe(alive) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        close(alive[0]);
        child(abi, number, a);
    }
    close(alive[1]);
    struct pollfd end = {.fd = alive[0], .events = POLLIN}; /* hangs up when the child ends */
    if (poll(&end, 1, PATIENCE_MS) == 0) {
        hang = 1;
        kill(pid, SIGKILL);
    }
    close(alive[0]);
    waitpid(pid, &status, 0);
    report(abi, number, status, hang);
}

/* Calls that end, copy or stop the caller instead of answering, and sync, which is only slow. */
static int pointless(const char *abi, long n)
{
    static const long x64[] = {15, 34, 57, 58, 60, 162, 231};
    static const long x86[] = {1, 2, 29, 36, 119, 173, 190, 252};
    int old = strcmp(abi, "i386") == 0;
    const long *list = old ? x86 : x64;
    size_t count = old ? sizeof x86 / sizeof *x86 : sizeof x64 / sizeof *x64;
    for (size_t i = 0; i < count; i++)
        if (list[i] == n)
            return 1;
    return 0;
}

static void sweep(const char *abi, long first, long last)
{
    const long all[ARGS] = {-1, -1, -1, -1, -1, -1};
    for (long n = first; n <= last; n++)
        if (!pointless(abi, n))
            one(abi, n, all);
}

static void parse(char *text)
{
    long a[ARGS] = {0};
    char *abi = strtok(text, ":");
    char *number = strtok(NULL, ":");
    char *part;
    for (int i = 0; i < ARGS && (part = strtok(NULL, ",")) != NULL; i++)
        a[i] = strtol(part, NULL, 0);
    if (abi && number)
        one(abi, strtol(number, NULL, 0), a);
}

int main(int argc, char **argv)
{
    answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answer == MAP_FAILED)
        return 1;
    if (argc == 5 && strcmp(argv[1], "sweep") == 0)
        sweep(argv[2], atol(argv[3]), atol(argv[4]));
    else
        for (int i = 1; i < argc; i++)
            parse(argv[i]);
    return 0;
}
