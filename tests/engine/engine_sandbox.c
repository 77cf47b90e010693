/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox is, seen from inside. */
#include "engine_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool starts(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 1, SILT_CREATE_FRESH, &b));
    CHECK(has(box_say(&b, "ping"), "pong 1 0 "));
    CHECK_SAYS(&b, "name", "puppet");
    CHECK_SAYS(&b, "stat /", "40755 0:0");
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    CHECK(box_is_dead(&b));
    box_close(&b);
    return true;
}

static bool has_its_descriptors_only(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 1, SILT_CREATE_FRESH, &b));
    const char *fds = box_say(&b, "fds");
    CHECK(has(fds, "0=/dev/null 1=/dev/null 2=/dev/null 3=socket:"));
    int count = 0;
    for (const char *at = strchr(fds, '='); at != NULL; at = strchr(at + 1, '='))
        count++;
    CHECK(has(fds, "memory.oom_control") && has(fds, "pids.events") && has(fds, "freezer.state"));
    CHECK(!has(fds, "memfd") && !has(fds, "pool"));
    int joins = 0, handles = 0, version = 0;
    CHECK(sscanf(box_say(&b, "ping"), "pong 1 0 %d %d %d", &version, &joins, &handles) == 3);
    CHECK(handles == 4 && count == 7 + joins + handles * (version == 1 ? 2 : 3));
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

static bool hides_the_machine(struct world *w)
{
    static const char *const closed[] = {"write /proc/sysrq-trigger h",
                                         "write /proc/sys/kernel/shmmax 1",
                                         "write /proc/sys/kernel/core_pattern |x",
                                         "write /proc/keys x",
                                         "write /proc/timer_list x",
                                         "write /sys/kernel/uevent_seqnum 1"};
    static const char *const empty[] = {"read /proc/kallsyms",   "read /proc/keys",
                                        "read /proc/timer_list", "list /sys/firmware",
                                        "list /sys/fs/cgroup",   "list /proc/bus"};
    struct box b;
    CHECK(box_create(w, 1, SILT_CREATE_FRESH, &b));
    for (size_t i = 0; i < SILT_COUNT(closed); i++)
        CHECK(has(box_say(&b, "%s", closed[i]), "errno "));
    for (size_t i = 0; i < SILT_COUNT(empty); i++)
        CHECK_SAYS(&b, empty[i], "");
    CHECK(strtol(box_say(&b, "uptime"), NULL, 10) < 5);
    const char *mounts = box_say(&b, "read /proc/mounts");
    CHECK(!has(mounts, w->directory) && !has(mounts, "/images"));
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

static bool has_the_usual_devices(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 1, SILT_CREATE_FRESH, &b));
    CHECK_SAYS(&b, "write /dev/null x", "ok");
    CHECK_SAYS(&b, "write /dev/shm/x x", "ok");
    CHECK_SAYS(&b, "write /dev/silt/x x", "ok");
    CHECK_SAYS(&b, "stat /dev/silt", "40700 0:0");
    CHECK_SAYS(&b, "stat /dev/pts/ptmx", "20666 0:0");
    CHECK(has(box_say(&b, "write /dev/new x"), "errno 30"));
    CHECK_SAYS(&b, "write /tmp/x x", "ok");
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

static bool refuses_system_calls(struct world *w)
{
    static const struct {
        long number;
        const char *answer;
    } calls[] = {
        {SYS_mount, "-1 errno 1"},
        {SYS_umount2, "-1 errno 1"},
        {SYS_setns, "-1 errno 1"},
        {SYS_unshare, "-1 errno 1"},
        {SYS_bpf, "-1 errno 1"},
        {SYS_keyctl, "-1 errno 1"},
        {SYS_open_by_handle_at, "-1 errno 1"},
        {SYS_clone3, "-1 errno 38"},
        {SYS_io_uring_setup, "-1 errno 38"},
        {SYS_fsopen, "-1 errno 1"},
        {467, "-1 errno 1"},
        {600, "-1 errno 38"},
        {0x40000000 + SYS_mount, "-1 errno 38"},
    };
    struct box b;
    char line[64];
    CHECK(box_create(w, 1, SILT_CREATE_FRESH, &b));
    for (size_t i = 0; i < SILT_COUNT(calls); i++) {
        (void)snprintf(line, sizeof(line), "call %ld", calls[i].number);
        CHECK_SAYS(&b, line, calls[i].answer);
    }
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

static bool has_few_socket_families(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 1, SILT_CREATE_FRESH, &b));
    CHECK(has(box_say(&b, "socket %d %d 0", AF_UNIX, SOCK_STREAM), "ok"));
    CHECK(has(box_say(&b, "socket %d %d 0", AF_INET6, SOCK_STREAM), "ok"));
    CHECK(has(box_say(&b, "socket %d %d 0", AF_NETLINK, SOCK_RAW), "ok"));
    CHECK(has(box_say(&b, "socket %d %d 1", AF_INET, SOCK_DGRAM), "ok")); /* ping */
    CHECK(has(box_say(&b, "socket %d %d 12", AF_NETLINK, SOCK_RAW), "errno"));
    CHECK(has(box_say(&b, "socket %d %d 0", AF_VSOCK, SOCK_STREAM), "errno"));
    CHECK(has(box_say(&b, "socket %d %d 0", AF_PACKET, SOCK_RAW), "errno"));
    CHECK(has(box_say(&b, "socket %d %d 0", AF_ALG, SOCK_SEQPACKET), "errno"));
    CHECK(has(box_say(&b, "socket %d %d 255", AF_INET, SOCK_RAW), "errno"));
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

static bool owns_its_files(struct world *w)
{
    struct box b;
    char path[256];
    struct stat st;
    CHECK(box_create(w, 3, SILT_CREATE_FRESH, &b));
    CHECK_SAYS(&b, "write /tmp/mine x", "ok");
    (void)snprintf(path, sizeof(path), "%s/state/pool/s/3/upper/tmp/mine", w->directory);
    CHECK(stat(path, &st) == 0);
    CHECK(st.st_uid == w->ids_base + 3 * SILT_SLOT_IDS && st.st_gid == st.st_uid);
    CHECK_SAYS(&b, "stat /tmp/mine", "100644 0:0");
    CHECK_SAYS(&b, "stat /etc", "40755 0:0"); /* of the image, stored with other ids */
    CHECK(tell(w, SILT_PRIV_DESTROY, 3));
    box_close(&b);
    return true;
}

static bool renames_directories_of_the_image(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 1, SILT_CREATE_FRESH, &b));
    CHECK(has(box_say(&b, "rename /usr/share /usr/moved"), "ok"));
    CHECK_SAYS(&b, "list /usr", "moved ");
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

static bool keeps_its_memory_limit(struct world *w)
{
    struct silt_priv_request q = create_request(1, IMAGE_PLAIN, SILT_CREATE_FRESH);
    struct silt_priv_request ask_stat = {.op = SILT_PRIV_STAT, .slot = 1};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct box b;
    q.body.create.limits.memory_bytes = 32 << 20;
    CHECK(box_create_by(w, &q, &b));
    CHECK_SAYS(&b, "eat 16", "exit 0");
    CHECK_SAYS(&b, "eat 100", "signal 9");
    CHECK(has(box_say(&b, "ping"), "pong 1 ")); /* PID 1 is not what the kernel chose */
    ask(w, &ask_stat, NULL, 0, &a, &fds);
    CHECK(a.ok && a.body.stat.running == 1 && a.body.stat.oom_kills == 1);
    CHECK(a.body.stat.memory_peak_bytes == 32 << 20 && a.body.stat.cpu_us > 0);
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

static bool keeps_its_process_limit(struct world *w)
{
    struct silt_priv_request q = create_request(1, IMAGE_PLAIN, SILT_CREATE_FRESH);
    struct box b;
    q.body.create.limits.pids = 20;
    CHECK(box_create_by(w, &q, &b));
    CHECK_SAYS(&b, "forks 100", "exit 20");
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

static bool keeps_its_disk_limit(struct world *w)
{
    struct silt_priv_request ask_stat = {.op = SILT_PRIV_STAT, .slot = 1};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct silt_priv_request q = create_request(1, IMAGE_PLAIN, SILT_CREATE_FRESH);
    struct box b, neighbour;
    long mib = 0;
    int why = 0;
    q.body.create.limits.disk_bytes = 20 << 20;
    CHECK(box_create_by(w, &q, &b));
    CHECK(box_create(w, 2, SILT_CREATE_FRESH, &neighbour));
    CHECK(sscanf(box_say(&b, "fill /big 60"), "%ld errno %d", &mib, &why) == 2);
    CHECK(mib >= 15 && mib <= 20 && why == 122 /* EDQUOT */);
    ask(w, &ask_stat, NULL, 0, &a, &fds);
    CHECK(a.ok && a.body.stat.disk_bytes > 10 << 20 && a.body.stat.disk_bytes <= 20 << 20);
    CHECK_SAYS(&neighbour, "fill /big 30", "30 errno 0");
    CHECK(tell(w, SILT_PRIV_DESTROY, 1) && tell(w, SILT_PRIV_DESTROY, 2));
    box_close(&b);
    box_close(&neighbour);
    return true;
}

static bool borrows_usr(struct world *w)
{
    struct silt_priv_request q =
        create_request(1, IMAGE_PLAIN, SILT_CREATE_FRESH | SILT_CREATE_HOST_USR);
    struct box b;
    CHECK(box_create_by(w, &q, &b));
    CHECK(has(box_say(&b, "stat /usr/bin/env"), " 0:0"));
    CHECK(has(box_say(&b, "write /usr/bin/env x"), "errno 30"));
    CHECK(tell(w, SILT_PRIV_DESTROY, 1));
    box_close(&b);
    return true;
}

const struct test sandbox_tests[] = {
    {"a new sandbox runs its own PID 1 as root", starts, NULL},
    {"PID 1 has the promised descriptors and no others", has_its_descriptors_only, NULL},
    {"procfs and sysfs show nothing of the machine that is worth stealing", hides_the_machine,
     NULL},
    {"/dev has the usual nodes and nothing can be added to it", has_the_usual_devices, NULL},
    {"dangerous system calls are refused", refuses_system_calls, NULL},
    {"only harmless socket families can be opened", has_few_socket_families, NULL},
    {"files belong to the sandbox's own range of ids", owns_its_files, NULL},
    {"a directory of the image can be renamed", renames_directories_of_the_image, NULL},
    {"too much memory kills the eater and not PID 1", keeps_its_memory_limit, NULL},
    {"the number of processes is limited", keeps_its_process_limit, NULL},
    {"the disk is limited and the neighbour does not notice", keeps_its_disk_limit, NULL},
    {"the machine's /usr can be lent read-only", borrows_usr, NULL},
    {NULL, NULL, NULL},
};
