/* SPDX-License-Identifier: Apache-2.0 */
/* eat anon|memfd|shm|tmpfs MIB: touches that much memory of that kind and tells when it has it. */
#define _GNU_SOURCE
#include "attempt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static char *shared(int fd, size_t size)
{
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
        return MAP_FAILED;
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static char *get(const char *kind, size_t size)
{
    if (strcmp(kind, "memfd") == 0)
        return shared(memfd_create("eat", MFD_CLOEXEC), size);
    if (strcmp(kind, "tmpfs") == 0)
        return shared(open("/dev/shm/eat", O_RDWR | O_CREAT | O_CLOEXEC, 0600), size);
    if (strcmp(kind, "shm") == 0) {
        int id = shmget(IPC_PRIVATE, size, 0600);
        char *at = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
        if (id >= 0)
            shmctl(id, IPC_RMID, NULL);
        return at;
    }
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 1;
    size_t mib = (size_t)atol(argv[2]);
    char *at = get(argv[1], mib * MIB);
    if (at == MAP_FAILED) {
        attempt("get", -1);
        return 1;
    }
    for (size_t i = 0; i < mib; i++)
        memset(at + i * MIB, 1, MIB);
    printf("ate %zu\n", mib);
    unlink("/dev/shm/eat");
    return 0;
}
