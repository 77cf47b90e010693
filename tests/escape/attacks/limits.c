/* SPDX-License-Identifier: Apache-2.0 */
/* limits: tries to lift the data limit of process 1 by prlimit64 in each ABI.
 * Prints one line per attempt: name, then `ok` or `errno N`; and that the own limit can still be
 * set. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PRLIMIT64 = 302, PRLIMIT64_I386 = 340, X32_BIT = 0x40000000 };

struct limit {
    unsigned long long soft, hard;
};

static long native(long number, long pid, const struct limit *next, struct limit *last)
{
    long result;
    register long r10 __asm__("r10") = (long)last;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(pid), "S"((long)RLIMIT_DATA), "d"(next), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

static long i386(long pid, const struct limit *next)
{
    int result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(PRLIMIT64_I386), "b"((int)pid), "c"(RLIMIT_DATA), "d"((int)(long)next),
                       "S"(0)
                     : "r8", "r9", "r10", "r11", "memory");
    return result;
}

static void tell(const char *name, long got)
{
    if (got < 0)
        printf("%s errno %ld\n", name, -got);
    else
        printf("%s ok\n", name);
    fflush(stdout);
}

int main(void)
{
    struct limit *next =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    struct limit last;
    if (next == MAP_FAILED)
        return 1;
    memset(next, 0xff, sizeof(*next)); /* both without limit */
    tell("own", native(PRLIMIT64, 0, next, NULL));
    tell("own-pid", native(PRLIMIT64, getpid(), next, NULL));
    tell("read", native(PRLIMIT64, 1, NULL, &last));
    tell("x64", native(PRLIMIT64, 1, next, NULL));
    tell("x64-both", native(PRLIMIT64, 1, next, &last));
    tell("x64-high-bits", native(PRLIMIT64, 0x500000001, next, NULL));
    tell("x32", native(PRLIMIT64 | X32_BIT, 1, next, NULL));
    tell("i386", i386(1, next));
    return 0;
}
