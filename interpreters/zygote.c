/* SPDX-License-Identifier: Apache-2.0 */
/* zygote: forks a warm Python directly into a sandbox. Python loads it (silt_kernel/zygote.py) and
 * calls silt_zygote_serve, which returns only in the children: they are inside the sandbox by then,
 * with the rights of any command there. Everything here is done by system calls alone; nothing of
 * the sandbox runs before the filter is loaded and the rights are dropped.
 *
 * The child's parent is ours (CLONE_PARENT): silt-priv's zygote_parent, which reaps it. Python's
 * own fork hooks are called, those of the C library are not: there is one thread. Apart from them
 * libc's fork would only store the thread's new id; the kernel does that (CLONE_CHILD_SETTID). */
#include "wire/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* Functions of Python. */
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
void PyOS_AfterFork_Child(void);
struct arena_allocator { /* PyObjectArenaAllocator */
    void *context;
    void *(*take)(void *context, size_t size);
    void (*give)(void *context, void *at, size_t size);
};
void PyObject_GetArenaAllocator(struct arena_allocator *ret);
void PyObject_SetArenaAllocator(struct arena_allocator *a);

/* A file that was loaded, or one that must not exist (size -1). */
struct stamp {
    const char *path;
    int64_t size;
    int64_t mtime_ns;
};

/* The state of numpy's legacy generator, used by numpy.random.rand(); Python checks that it is. */
struct twister {
    uint32_t key[624];
    int position;
};

#define PUBLIC __attribute__((visibility("default")))
PUBLIC int silt_zygote_serve(void);
PUBLIC int silt_zygote_serve_inside(void);
PUBLIC void silt_zygote_gather(void);
PUBLIC void silt_zygote_gathered(void);
PUBLIC void silt_zygote_collapse(char *at, size_t len);
PUBLIC int silt_zygote_become(uint32_t uid, uint32_t gid, const uint32_t *groups, int count);
PUBLIC int silt_zygote_changed(const struct stamp *stamps, int count);
PUBLIC int silt_zygote_shuffle(struct twister *t);

enum {
    FDS_MAX = SILT_ZYGOTE_GROUPS + 1 + SILT_ZYGOTE_JOINS_MAX,
    HIGH_FD = 64, /* descriptors are parked here until their numbers are free */
    INIT_FD = 5,  /* in a child, until it has entered */
};

static const int namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC
                              | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME;

static struct silt_zygote_birth birth;
static int home = -1;        /* our own pid namespace */
static uint64_t tid_address; /* where libc keeps the thread's id */

struct asked {
    struct silt_zygote_ask ask;
    int fds[FDS_MAX];
    int nfds;
};

/* ---- memory, before the first fork ---- */

/* A fork copies page tables: one entry for a huge page, 512 for small ones. So objects are
 * allocated in one area of huge pages instead of between the libraries. What does not fit, and what
 * children need later, is allocated as usual. */
enum { HUGE = 2 << 20, GATHERED_MAX = 192 << 20 };
static struct arena_allocator plain_arenas;
static struct {
    char *begin, *next, *end;
} gathered;

static void *take_arena(void *context, size_t size)
{
    char *at = gathered.next;
    (void)context;
    if (size > (size_t)(gathered.end - at))
        return plain_arenas.take(plain_arenas.context, size);
    gathered.next += size;
    return at;
}

static void give_arena(void *context, void *at, size_t size)
{
    (void)context;
    if ((char *)at >= gathered.begin && (char *)at < gathered.end)
        (void)madvise(at, size, MADV_DONTNEED);
    else
        plain_arenas.give(plain_arenas.context, at, size);
}

void silt_zygote_gather(void)
{
    struct arena_allocator ours = {.take = take_arena, .give = give_arena};
    char *at = mmap(NULL, GATHERED_MAX + HUGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return;
    gathered.begin = gathered.next = (char *)(((uintptr_t)at + HUGE - 1) & ~((uintptr_t)HUGE - 1));
    gathered.end = gathered.begin + GATHERED_MAX;
    (void)madvise(gathered.begin, GATHERED_MAX, MADV_HUGEPAGE);
    PyObject_GetArenaAllocator(&plain_arenas);
    PyObject_SetArenaAllocator(&ours);
}

/* Stops allocating there: the rest is returned, and children use small pages. */
void silt_zygote_gathered(void)
{
    char *used = (char *)(((uintptr_t)gathered.next + HUGE - 1) & ~((uintptr_t)HUGE - 1));
    if (gathered.begin == NULL)
        return;
    if (used < gathered.end)
        (void)munmap(used, (size_t)(gathered.end - used));
    gathered.next = gathered.end = used;
    (void)madvise(gathered.begin, (size_t)(used - gathered.begin), MADV_NOHUGEPAGE);
}

/* For memory elsewhere. Without the kernel's support it stays as it is. */
void silt_zygote_collapse(char *at, size_t len)
{
    uintptr_t begin = ((uintptr_t)at + HUGE - 1) & ~((uintptr_t)HUGE - 1),
              end = (uintptr_t)at + len;
    for (; begin + HUGE <= end; begin += HUGE)
        (void)madvise((void *)begin, HUGE, MADV_COLLAPSE);
}

/* ---- in the child ---- */

/* The first file that has changed, or -1. */
int silt_zygote_changed(const struct stamp *stamps, int count)
{
    struct stat st;
    for (int i = 0; i < count; i++) {
        const struct stamp *s = &stamps[i];
        bool there = stat(s->path, &st) == 0;
        if (there != (s->size >= 0))
            return i;
        if (there
            && (st.st_size != s->size
                || st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec != s->mtime_ns))
            return i;
    }
    return -1;
}

static int join_groups(const struct asked *q)
{
    const int *tasks = q->fds + SILT_ZYGOTE_GROUPS + (q->ask.into ? 1 : 0);
    for (uint32_t i = 0; i < q->ask.joins; i++)
        if (write(tasks[i], "0", 1) != 1)
            return -1;
    return 0;
}

/* Moves the descriptors to 1, 2, … and closes everything above. */
static int place(const int *fds, int count)
{
    int high[FDS_MAX];
    for (int i = 0; i < count; i++)
        if ((high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD)) < 0)
            return -1;
    for (int i = 0; i < count; i++)
        if (dup3(high[i], i + 1, i >= 2 ? O_CLOEXEC : 0) < 0)
            return -1;
    return syscall(SYS_close_range, (unsigned)count + 1U, ~0U, 0) < 0 ? -1 : 0;
}

/* 1, 2, 3, 4 and, temporarily, INIT_FD; descriptor 0 is opened inside. */
static int place_descriptors(const struct asked *q)
{
    const int fds[INIT_FD] = {q->fds[SILT_ZYGOTE_OUT], q->fds[SILT_ZYGOTE_ERR],
                              q->fds[SILT_ZYGOTE_REQUESTS], q->fds[SILT_ZYGOTE_LINES],
                              q->fds[SILT_ZYGOTE_INIT]};
    if (close(STDIN_FILENO) < 0 && errno != EBADF)
        return -1;
    return place(fds, INIT_FD);
}

/* All in one call: after the first, each would be refused alone, because their owners differ. Root
 * and current directory are the sandbox's afterwards. */
static int enter_namespaces(void)
{
    if (syscall(SYS_setns, INIT_FD, namespaces) < 0)
        return -1;
    if (close(INIT_FD) < 0)
        return -1;
    int null = open("/dev/null", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (null < 0)
        return -1;
    if (null != STDIN_FILENO)
        return dup2(null, STDIN_FILENO) < 0 ? -1 : close(null);
    return fcntl(null, F_SETFD, 0);
}

/* The session keyring was silt-priv's. A kernel without keys has none to drop. */
static int become_root_inside(void)
{
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0
        || syscall(SYS_setresuid, 0, 0, 0) < 0)
        return -1;
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
        return -1;
    return 0;
}

/* Last, for an image that names a user. A process that changed its user cannot be inspected by that
 * user; one started as that user can. */
int silt_zygote_become(uint32_t uid, uint32_t gid, const uint32_t *groups, int count)
{
    if (syscall(SYS_setgroups, count, groups) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0
        || syscall(SYS_setresuid, uid, uid, uid) < 0)
        return -1;
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int load_filter(void)
{
    struct sock_fprog program = {.len = (unsigned short)birth.filter_len, .filter = birth.filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -1 : 0;
}

static int drop_bounding(void)
{
    for (unsigned long cap = 0; cap < 64; cap++) {
        if ((birth.caps >> cap & 1) != 0 || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        return errno == EINVAL ? 0 : -1; /* past the kernel's last capability */
    }
    return 0;
}

static int drop_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    uint32_t low = (uint32_t)birth.caps, high = (uint32_t)(birth.caps >> 32);
    struct __user_cap_data_struct data[2] = {{.effective = low, .permitted = low},
                                             {.effective = high, .permitted = high}};
    if (drop_bounding() < 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -1;
    return syscall(SYS_capset, &head, data) < 0 ? -1 : 0;
}

/* Numbers that no sibling has: as good as a seed, without the cost. */
int silt_zygote_shuffle(struct twister *t)
{
    if (syscall(SYS_getrandom, t->key, sizeof(t->key), 0) != (long)sizeof(t->key))
        return -1;
    t->position = 624;
    return 0;
}

static void must(int done, int step)
{
    if (done < 0)
        _exit(SILT_ZYGOTE_LOST + step);
}

/* Until the last step no process inside may inspect this one; from then on everything it holds is
 * theirs. */
static void enter(const struct asked *q)
{
    must(join_groups(q), 0);
    must(setsid() < 0 ? -1 : 0, 1);
    must(place_descriptors(q), 2);
    must(enter_namespaces(), 3);
    must(become_root_inside(), 4);
    must(load_filter(), 5);
    must(drop_rights(), 6);
    must(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 7);
}

/* ---- in the zygote ---- */

/* 0: a complete request; -1: zygote_parent is gone, or violated the protocol. */
static int receive_from(int from, void *data, size_t len, struct asked *q)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    } room;
    struct iovec iov = {.iov_base = data, .iov_len = len};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof(room)};
    ssize_t n;
    do
        n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (n != (ssize_t)len || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || c == NULL
        || c->cmsg_type != SCM_RIGHTS)
        return -1;
    q->nfds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(q->fds, CMSG_DATA(c), sizeof(int) * (size_t)q->nfds);
    return 0;
}

static int receive(struct asked *q)
{
    if (receive_from(SILT_ZYGOTE_FD, &q->ask, sizeof(q->ask), q) < 0)
        return -1;
    return q->ask.joins <= SILT_ZYGOTE_JOINS_MAX
                   && q->nfds == SILT_ZYGOTE_GROUPS + (q->ask.into ? 1 : 0) + (int)q->ask.joins
               ? 0
               : -1;
}

static int answer(const struct silt_zygote_answer *a, int pidfd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } room = {.bytes = {0}};
    struct silt_zygote_answer copy = *a;
    struct iovec iov = {.iov_base = &copy, .iov_len = sizeof(copy)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (pidfd >= 0) {
        m.msg_control = &room;
        m.msg_controllen = sizeof(room);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &pidfd, sizeof(pidfd));
    }
    return sendmsg(SILT_ZYGOTE_FD, &m, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static long clone_into(const struct asked *q, int *pidfd)
{
    struct clone_args args = {
        .flags = CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
        .pidfd = (uintptr_t)pidfd,
        .child_tid = tid_address,
    };
    if (q->ask.into) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)q->fds[SILT_ZYGOTE_GROUPS];
    }
    return syscall(SYS_clone3, &args, sizeof(args));
}

/* 0 in the child, else 1. The pid namespace applies only to children created from now on; our own
 * stays. */
static int fork_inside(const struct asked *q, struct silt_zygote_answer *a, int *pidfd)
{
    if (syscall(SYS_setns, q->fds[SILT_ZYGOTE_INIT], CLONE_NEWPID) < 0) {
        a->error = errno;
        return 1;
    }
    PyOS_BeforeFork();
    long pid = clone_into(q, pidfd);
    if (pid == 0) {
        enter(q);
        PyOS_AfterFork_Child();
        return 0;
    }
    int error = errno;
    PyOS_AfterFork_Parent();
    if (syscall(SYS_setns, home, CLONE_NEWPID) < 0)
        _exit(SILT_ZYGOTE_LOST); /* never continue in a foreign pid namespace */
    a->error = pid < 0 ? error : 0;
    a->pid = pid < 0 ? 0 : (int32_t)pid;
    return 1;
}

static int be_born(void)
{
    struct silt_zygote_answer warm = {0};
    ssize_t n = recv(SILT_ZYGOTE_FD, &birth, sizeof(birth), 0);
    home = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (n != (ssize_t)sizeof(birth) || birth.filter_len == 0
        || birth.filter_len > SILT_ZYGOTE_FILTER_MAX || home < 0
        || prctl(PR_GET_TID_ADDRESS, &tid_address) < 0)
        return -1;
    return answer(&warm, -1);
}

int silt_zygote_serve(void)
{
    static struct asked q;
    if (be_born() < 0)
        return -1;
    while (receive(&q) == 0) {
        struct silt_zygote_answer a = {0};
        int pidfd = -1;
        if (fork_inside(&q, &a, &pidfd) == 0)
            return 0;
        for (int i = 0; i < q.nfds; i++)
            (void)close(q.fds[i]);
        int told = answer(&a, pidfd);
        if (pidfd >= 0)
            (void)close(pidfd);
        if (told < 0)
            return -1;
    }
    return -1;
}

/* ---- a sandbox's own warm Python: nothing to enter or to drop ---- */

/* A child's first step: the sandbox's PID 1, its parent, moves it into its group. */
static void wait_for_place(const struct asked *q)
{
    enum { ANSWER_FD = 5, GATE_FD = 6 };
    const int fds[] = {q->fds[SILT_INSIDE_OUT],      q->fds[SILT_INSIDE_ERR],
                       q->fds[SILT_INSIDE_REQUESTS], q->fds[SILT_INSIDE_LINES],
                       q->fds[SILT_INSIDE_ANSWER],   q->fds[SILT_INSIDE_GATE]};
    int32_t pid = getpid();
    char byte;
    if (setsid() < 0 || place(fds, SILT_INSIDE_FDS) < 0
        || write(ANSWER_FD, &pid, sizeof(pid)) != (ssize_t)sizeof(pid) || close(ANSWER_FD) < 0)
        _exit(1);
    while (read(GATE_FD, &byte, 1) != 1)
        if (errno != EINTR)
            _exit(1);
    (void)close(GATE_FD);
}

/* 0: a request; -1: no more requests can come, or siltd, which holds the other end of our pipe, is
 * gone. */
static int await_ask(void)
{
    struct pollfd p[] = {{.fd = SILT_INSIDE_FD, .events = POLLIN},
                         {.fd = SILT_ZYGOTE_FD, .events = POLLIN}};
    while (poll(p, 2, -1) < 0)
        if (errno != EINTR)
            return -1;
    return p[1].revents == 0 ? 0 : -1;
}

/* Returns 0 in children, and -1 at the end. Uses clone, because the sandbox's filter may refuse
 * clone3; the order of its last two arguments differs between architectures, and one of them is
 * ignored. */
int silt_zygote_serve_inside(void)
{
    static struct asked q;
    char byte;
    if (prctl(PR_GET_TID_ADDRESS, &tid_address) < 0)
        return -1;
    while (await_ask() == 0 && receive_from(SILT_INSIDE_FD, &byte, sizeof(byte), &q) == 0) {
        PyOS_BeforeFork();
        long pid =
            q.nfds == SILT_INSIDE_FDS
                ? syscall(SYS_clone, CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, NULL,
                          NULL, tid_address, tid_address)
                : -1;
        if (pid == 0) {
            wait_for_place(&q);
            PyOS_AfterFork_Child();
            return 0;
        }
        PyOS_AfterFork_Parent();
        for (int i = 0; i < q.nfds; i++)
            (void)close(q.fds[i]);
    }
    return -1;
}
