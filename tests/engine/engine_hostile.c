/* SPDX-License-Identifier: Apache-2.0 */
/* A siltd that has been taken over: what it sends along, and what it says that is not so. */
#include "engine_tests.h"
#include "strange.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SOMEBODY = 64998,
    SOON_MS = 3000,
    TIMES = 12 /* more than there are workers */,
    MANY = 40 /* more than we have room for */,
    SEALED = 77
};

static bool is_refused(struct world *w, struct silt_priv_request *q, const int *fds, int nfds)
{
    struct silt_priv_answer a;
    struct silt_parcel answer;
    ask(w, q, fds, nfds, &a, &answer);
    int got = answer.nfds;
    silt_parcel_close(&answer);
    return !a.ok && a.body.error.code == SILT_PROTOCOL && got == 0;
}

/* Of the descriptors that are fine, one after the other is something else. */
static bool takes_pipes_only(struct world *w)
{
    static const struct {
        enum silt_priv_op op;
        int count;
        enum strange right[4];
    } ops[] = {{SILT_PRIV_IMPORT, 2, {STRANGE_READ_END, STRANGE_WRITE_END}},
               {SILT_PRIV_EXPORT, 3, {STRANGE_READ_END, STRANGE_WRITE_END, STRANGE_WRITE_END}},
               {SILT_PRIV_CONTEXT,
                4,
                {STRANGE_READ_END, STRANGE_WRITE_END, STRANGE_WRITE_END, STRANGE_WRITE_END}},
               {SILT_PRIV_CREATE, 1, {STRANGE_PACKETS}}};
    for (size_t o = 0; o < SILT_COUNT(ops); o++)
        for (int wrong = 0; wrong < ops[o].count * STRANGE_MAX; wrong++) {
            struct silt_priv_request q = {.op = ops[o].op};
            enum strange kind = (enum strange)(wrong % STRANGE_MAX);
            int fds[4], at = wrong / STRANGE_MAX;
            if (kind == ops[o].right[at] || (kind == STRANGE_NESTED && q.op == SILT_PRIV_CREATE))
                continue; /* that is what it takes */
            for (int i = 0; i < ops[o].count; i++)
                CHECK((fds[i] = strange_open(i == at ? kind : ops[o].right[i])) >= 0);
            if (q.op == SILT_PRIV_CREATE)
                q = create_request(9, IMAGE_PLAIN, SILT_CREATE_FRESH);
            bool refused = is_refused(w, &q, fds, ops[o].count);
            strange_end();
            for (int i = 0; i < ops[o].count; i++)
                (void)close(fds[i]);
            CHECK(refused);
        }
    strange_end();
    return true;
}

struct gift {
    int fds[MANY];
    int count;
};

/* One message, as large as the kernel lets us. */
static bool send_gift(int channel, uint32_t op, const struct gift *g)
{
    struct silt_priv_request q = {.op = op, .seq = ~0ULL};
    struct iovec iov = {.iov_base = &q, .iov_len = sizeof(q)};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(g->fds))];
    } control = {0};
    size_t size = sizeof(int) * (size_t)g->count;
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = CMSG_SPACE(size)};
    struct cmsghdr *c = &control.align; /* the first */
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(c), g->fds, size);
    return sendmsg(channel, &m, MSG_NOSIGNAL) > 0;
}

/* From a process that ends then: whoever receives them is the last who has them. A process that
 * ends does not linger. */
static bool send_and_let_go(struct world *w, enum strange kind, int each, uint32_t op)
{
    struct gift gifts[TIMES];
    int go[2], status = -1;
    char byte = 0;
    CHECK(pipe2(go, O_CLOEXEC) == 0);
    for (int i = 0; i < TIMES; i++)
        for (gifts[i].count = 0; gifts[i].count < each; gifts[i].count++)
            CHECK((gifts[i].fds[gifts[i].count] = strange_open(kind)) >= 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool good = read(go[0], &byte, 1) == 1;
        for (int i = 0; i < TIMES; i++)
            good = good && send_gift(w->siltd, op, &gifts[i]);
        _exit(good ? 0 : 1);
    }
    for (int i = 0; i < TIMES; i++)
        for (int k = 0; k < each; k++)
            (void)close(gifts[i].fds[k]);
    CHECK(write(go[1], &byte, 1) == 1);
    (void)close(go[0]);
    (void)close(go[1]);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return true;
}

static bool closes_at_once(struct world *w)
{
    static const enum strange kinds[] = {STRANGE_LINGER, STRANGE_NESTED};
    for (size_t i = 0; i < SILT_COUNT(kinds); i++) {
        CHECK(send_and_let_go(w, kinds[i], 2, SILT_PRIV_STAT));
        CHECK(send_and_let_go(w, kinds[i], 1, SILT_PRIV_CREATE)); /* it takes one */
        int64_t begun = silt_clock_ms();
        for (int k = 0; k < 8; k++)
            CHECK(tell(w, SILT_PRIV_STAT, 3));
        CHECK(silt_clock_ms() - begun < SOON_MS);
    }
    strange_end();
    return true;
}

static bool takes_no_more_than_fit(struct world *w)
{
    CHECK(send_and_let_go(w, STRANGE_LINGER, MANY, SILT_PRIV_STAT));
    int64_t begun = silt_clock_ms();
    for (int k = 0; k < 8; k++)
        CHECK(tell(w, SILT_PRIV_STAT, 3));
    CHECK(silt_clock_ms() - begun < SOON_MS);
    strange_end();
    return true;
}

/* What nobody has read any more when siltd ends is closed, too, and the next siltd is served. */
static bool hangs_up_at_once(struct world *w)
{
    CHECK(send_and_let_go(w, STRANGE_NESTED, 1, SILT_PRIV_STAT));
    CHECK(send_and_let_go(w, STRANGE_LINGER, 8, SILT_PRIV_STAT));
    int64_t begun = silt_clock_ms();
    world_new_siltd(w);
    CHECK(tell(w, SILT_PRIV_STAT, 3));
    CHECK(silt_clock_ms() - begun < SOON_MS);
    strange_end();
    return true;
}

static const char *needs_version_1(struct world *w)
{
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/cgroup.controllers", w->cgroup);
    return access(path, F_OK) == 0 ? "handles of version 2 take no other processes" : NULL;
}

/* As siltd's user, with the descriptor that HANDLES answered: moves our process, which is root's,
 * where it could be frozen. */
static bool moves_us(int tasks)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%d", getpid()), status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) < 0
            || setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0)
            _exit(2);
        _exit(write(tasks, text, (size_t)len) == len ? 1 : errno == EACCES ? 0 : 3);
    }
    (void)waitpid(pid, &status, 0);
    return status != 0;
}

static bool lends_handles_for_the_sandbox_only(struct world *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_HANDLES, .slot = 9, .body.count = 1};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct box b;
    CHECK(box_create(w, 9, SILT_CREATE_FRESH, &b));
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(a.ok && fds.nfds == 2);
    bool moved = moves_us(fds.fds[0]);
    silt_parcel_close(&fds);
    CHECK(!moved);
    CHECK(tell(w, SILT_PRIV_DESTROY, 9));
    box_close(&b);
    return true;
}

static enum silt_code seal(struct world *w, int list)
{
    struct silt_priv_request q = {.op = SILT_PRIV_SEAL, .slot = 9},
                             forget = {.op = SILT_PRIV_FORGET};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    memset(q.body.seal.digest, SEALED, SILT_DIGEST_SIZE);
    memset(q.body.seal.parent, IMAGE_PLAIN, SILT_DIGEST_SIZE);
    memset(forget.body.import.digest, SEALED, SILT_DIGEST_SIZE);
    ask(w, &q, &list, 1, &a, &fds);
    enum silt_code code = a.ok ? SILT_OK : a.body.error.code;
    silt_parcel_close(&fds);
    if (code == SILT_OK)
        ask(w, &forget, NULL, 0, &a, &fds);
    return code;
}

static enum silt_code seal_without(struct world *w, const char *paths, size_t len)
{
    silt_auto_fd list = -1;
    struct silt_error e;
    return silt_fd_seal((silt_slice){paths, len}, &list, &e) == 0 ? seal(w, list) : e.code;
}

/* The same digest every time: one that failed has left nothing. */
static bool leaves_out_paths_of_the_sandbox_only(struct world *w)
{
    static char much[SILT_SEAL_LEFT_OUT_MAX + 1], deep[PATH_MAX + 1] = "/";
    static const char *const bad[] = {"a",         "./a",        "/",   "/a/",
                                      "/a/.",      "/a/..",      "/..", "/../../s/10",
                                      "/../upper", "/./../note", deep};
    struct box b, neighbour;
    memset(deep + 1, 'a', sizeof(deep) - 2);
    CHECK(box_create(w, 9, SILT_CREATE_FRESH, &b)
          && box_create(w, 10, SILT_CREATE_FRESH, &neighbour));
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        CHECK(seal_without(w, bad[i], strlen(bad[i]) + 1) != SILT_OK);
    CHECK(seal_without(w, "/a", 2) == SILT_PROTOCOL); /* without an end */
    CHECK(seal_without(w, "", 0) == SILT_LIMIT
          && seal_without(w, much, sizeof(much)) == SILT_LIMIT);
    for (size_t i = 0; i + 3 < sizeof(much); i += 3)
        memcpy(much + i, "/a", 3);
    CHECK(seal_without(w, much, sizeof(much) - 1) == SILT_OK
          && seal_without(w, "\0\0/a/b", 7) == SILT_OK);
    for (int kind = 0; kind < STRANGE_MAX; kind++) {
        int fd = strange_open((enum strange)kind);
        CHECK(fd < 0 || seal(w, fd) == SILT_PROTOCOL);
        strange_end();
        (void)close(fd);
    }
    silt_auto_fd open = memfd_create("paths", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(write(open, "/a", 3) == 3 && seal(w, open) == SILT_PROTOCOL);
    CHECK(strncmp(box_say(&neighbour, "mkdir /still"), "ok", 2) == 0);
    CHECK(tell(w, SILT_PRIV_DESTROY, 9) && tell(w, SILT_PRIV_DESTROY, 10));
    box_close(&b);
    box_close(&neighbour);
    return true;
}

const struct test hostile_tests[] = {
    {"a handle takes processes of its sandbox, and none of the machine's",
     lends_handles_for_the_sandbox_only, needs_version_1},
    {"descriptors are of the kind that an operation takes, or it is refused", takes_pipes_only,
     NULL},
    {"a layer leaves out paths of its own sandbox, or it is refused",
     leaves_out_paths_of_the_sandbox_only, NULL},
    {"descriptors that linger are closed at once, also when they lie in another one's queue",
     closes_at_once, NULL},
    {"descriptors that are too many are closed at once", takes_no_more_than_fit, NULL},
    {"what lies in a channel that ends is closed at once", hangs_up_at_once, NULL},
    {NULL, NULL, NULL},
};
