/* SPDX-License-Identifier: Apache-2.0 */
/* keys: calls with arguments that would really work. */
#define _GNU_SOURCE
#include "attempt.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IO_URING_SETUP = 425, PROCESS_KEYRING = -2 };

int main(void)
{
    char params[120];
    char attributes[128];
    memset(params, 0, sizeof params);
    memset(attributes, 0, sizeof attributes);
    attempt("io_uring", syscall(IO_URING_SETUP, 4, params));
    attempt("add_key", syscall(SYS_add_key, "user", "silt-test", "x", 1, PROCESS_KEYRING));
    attempt("keyctl", syscall(SYS_keyctl, 0, PROCESS_KEYRING, 1));
    attempt("request_key", syscall(SYS_request_key, "user", "silt-test", NULL, PROCESS_KEYRING));
    attempt("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC | 1));
    attempt("bpf", syscall(SYS_bpf, 0, attributes, sizeof attributes));
    attributes[0] = 1; /* PERF_TYPE_SOFTWARE */
    attributes[4] = (char)sizeof attributes;
    attempt("perf", syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0));
    attempt("kexec", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    attempt("init_module", syscall(SYS_init_module, "", 0, ""));
    attempt("syslog", syscall(SYS_syslog, 10, NULL, 0));
    return 0;
}
