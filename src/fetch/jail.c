/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/jail.h"

#include "base/own.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#ifdef SILT_SANITIZED /* memory and system calls of the sanitizers are not listed here */
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* libarchive remembers each directory until the end */
static const rlim_t MEMORY_MAX = 1024 * 1024 * 1024;

static const int allowed[] = {
    SCMP_SYS(read),          SCMP_SYS(write),
    SCMP_SYS(pwrite64),      SCMP_SYS(pread64),
    SCMP_SYS(getdents64),    SCMP_SYS(close),
    SCMP_SYS(lseek),         SCMP_SYS(open),
    SCMP_SYS(openat),        SCMP_SYS(fcntl),
    SCMP_SYS(ftruncate),     SCMP_SYS(truncate),
    SCMP_SYS(stat),          SCMP_SYS(fstat),
    SCMP_SYS(lstat),         SCMP_SYS(newfstatat),
    SCMP_SYS(statx),         SCMP_SYS(fstatfs),
    SCMP_SYS(syncfs),        SCMP_SYS(chdir),
    SCMP_SYS(fchdir),        SCMP_SYS(umask),
    SCMP_SYS(mkdir),         SCMP_SYS(mkdirat),
    SCMP_SYS(mknod),         SCMP_SYS(mknodat),
    SCMP_SYS(rmdir),         SCMP_SYS(unlink),
    SCMP_SYS(unlinkat),      SCMP_SYS(rename),
    SCMP_SYS(renameat),      SCMP_SYS(renameat2),
    SCMP_SYS(link),          SCMP_SYS(linkat),
    SCMP_SYS(symlink),       SCMP_SYS(symlinkat),
    SCMP_SYS(readlink),      SCMP_SYS(chmod),
    SCMP_SYS(fchmod),        SCMP_SYS(fchmodat),
    SCMP_SYS(chown),         SCMP_SYS(lchown),
    SCMP_SYS(fchown),        SCMP_SYS(fchownat),
    SCMP_SYS(utimensat),     SCMP_SYS(futimesat),
    SCMP_SYS(munmap),        SCMP_SYS(mremap),
    SCMP_SYS(brk),           SCMP_SYS(madvise),
    SCMP_SYS(futex),         SCMP_SYS(getrandom),
    SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
    SCMP_SYS(time),          SCMP_SYS(getpid),
    SCMP_SYS(gettid),        SCMP_SYS(getuid),
    SCMP_SYS(geteuid),       SCMP_SYS(getgid),
    SCMP_SYS(getegid),       SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),  SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),          SCMP_SYS(exit_group),
};

/* Loads now what libraries would load on first use: soon their file names are under the archive's
 * control. A UTF-8 locale keeps names in pax headers unchanged. */
static int load_early(struct silt_error *e)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
        return silt_fail(e, SILT_UNAVAILABLE, "start libcrypto");
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    int ok = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1;
    EVP_MD_CTX_free(digest);
    if (!ok)
        return silt_fail(e, SILT_UNAVAILABLE, "libcrypto without sha256");
    return 0;
}

static int limit(struct silt_error *e)
{
    struct rlimit none = {0, 0}, memory = {MEMORY_MAX, MEMORY_MAX};
    if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_DATA, &memory) < 0)
        return silt_fail_errno(e, "set limits");
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return silt_fail_errno(e, "forbid dumps");
    return 0;
}

static int change_root(struct silt_error *e)
{
    if (syscall(SYS_close_range, SILT_JAIL_RESULT + 1, ~0U, 0) < 0)
        return silt_fail_errno(e, "close inherited descriptors");
    if (chroot(".") < 0 || chdir("/") < 0)
        return silt_fail_errno(e, "make the output directory the root");
    return 0;
}

static void leave(int number)
{
    (void)number;
    _exit(3);
}

/* While layers are unpacked nothing is read or written, so a signal reports that the result's
 * reader is gone; as PID 1 we need a handler for it. */
static int end_with_reader(struct silt_error *e)
{
    struct sigaction action = {.sa_handler = leave};
    struct pollfd reader = {.fd = SILT_JAIL_RESULT, .events = 0};
    if (sigaction(SIGIO, &action, NULL) < 0 || fcntl(SILT_JAIL_RESULT, F_SETOWN, getpid()) < 0
        || fcntl(SILT_JAIL_RESULT, F_SETFL, O_ASYNC) < 0)
        return silt_fail_errno(e, "watch the result pipe");
    if (poll(&reader, 1, 0) > 0) /* it is gone already */
        _exit(3);
    return 0;
}

void silt_jail_tell(void)
{
    (void)fcntl(SILT_JAIL_RESULT, F_SETFL, 0);
}

static int drop_capabilities(struct silt_error *e)
{
    capng_clear(CAPNG_SELECT_BOTH);
    if (capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_CHOWN, CAP_DAC_OVERRIDE,
                      CAP_FOWNER, CAP_FSETID, -1)
        < 0)
        return silt_fail(e, SILT_INTERNAL, "choose capabilities");
    if (capng_apply(CAPNG_SELECT_CAPS) < 0)
        return silt_fail_errno(e, "drop capabilities");
    return 0;
}

/* Blocked system calls fail with ENOSYS, so that libraries fall back and errors stay readable. */
static int filter(struct silt_error *e)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (!f)
        return silt_fail(e, SILT_UNAVAILABLE, "start libseccomp");
    int bad = 0;
    for (size_t i = 0; i < SILT_COUNT(allowed); i++)
        bad |= seccomp_rule_add(f, SCMP_ACT_ALLOW, allowed[i], 0);
    bad |= seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                            SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    bad |= seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                            SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    bad |= seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (!bad)
        bad = seccomp_load(f); /* also sets no_new_privs */
    seccomp_release(f);
    if (bad)
        return silt_fail(e, SILT_UNAVAILABLE, "load the system call filter: %s", strerror(-bad));
    return 0;
}

int silt_jail_enter(struct silt_error *e)
{
    if (load_early(e) < 0 || change_root(e) < 0 || end_with_reader(e) < 0
        || drop_capabilities(e) < 0)
        return -1;
    if (SANITIZED)
        return 0;
    return limit(e) < 0 ? -1 : filter(e);
}
