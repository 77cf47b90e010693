/* SPDX-License-Identifier: Apache-2.0 */
/* silt doctor: checks this machine and reports what is missing and how to get it. Changes nothing.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "cli/core/cli.h"
#include "cli/core/find.h"
#include "cli/command/firewall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

enum {
    KERNEL_MAJOR = 5, /* 5.19: overlay on idmapped layers */
    KERNEL_MINOR = 19,
    PIDS_WISH = 65536,
    ALL_FILES_WISH = 1 << 25,
    FILE_MAX = 256 * 1024,
    CERTIFICATE_WISH_S = 14 * 86400,
};

static const uint64_t disk_least = 2ULL << 30, disk_wish = 10ULL << 30;

enum grade { OK, WARN, FAIL, GRADE_MAX };

struct finding {
    enum grade grade;
    char what[300];
    char fix[640]; /* empty if OK */
};

__attribute__((format(printf, 3, 4))) static struct finding found(enum grade grade, const char *fix,
                                                                  const char *format, ...)
{
    struct finding f = {.grade = grade};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(f.what, sizeof(f.what), format, args);
    va_end(args);
    (void)snprintf(f.fix, sizeof(f.fix), "%s", fix);
    return f;
}

/* The text of a small file, or "". */
static char *file_text(const char *path)
{
    char *text = NULL;
    size_t len;
    struct silt_error e;
    if (silt_fd_read_file(AT_FDCWD, path, FILE_MAX, &text, &len, &e) < 0)
        text = calloc(1, 1);
    if (text == NULL)
        abort();
    return text;
}

static bool has_word(const char *path, const char *word)
{
    silt_auto_free char *text = file_text(path);
    size_t n = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        bool begins = at == text || silt_is_any(at[-1], " \t\n");
        if (begins && (at[n] == 0 || silt_is_any(at[n], " \t\n")))
            return true;
    }
    return false;
}

static uint64_t file_number(const char *path)
{
    silt_auto_free char *text = file_text(path);
    return strtoull(text, NULL, 10);
}

/* The kernel */

static struct finding check_kernel(const struct silt_config *c)
{
    struct utsname u;
    (void)c;
    if (uname(&u) < 0)
        return found(WARN, "uname(2) failed.", "unknown version");
    char *dot;
    unsigned long major = strtoul(u.release, &dot, 10);
    unsigned long minor = *dot == '.' ? strtoul(dot + 1, NULL, 10) : 0;
    if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
        return found(FAIL, "Silt needs 5.19 or newer; Debian 12 has 6.1.", "Linux %s", u.release);
    if (strcmp(u.machine, "x86_64") != 0)
        return found(FAIL, "Silt runs on x86_64.", "Linux %s on %s", u.release, u.machine);
    return found(OK, "", "Linux %s", u.release);
}

static struct finding check_user_namespaces(const struct silt_config *c)
{
    (void)c;
    if (access("/proc/self/ns/user", F_OK) < 0)
        return found(FAIL, "The kernel is built without CONFIG_USER_NS.", "not in this kernel");
    uint64_t max = file_number("/proc/sys/user/max_user_namespaces");
    if (max < 1024)
        return found(FAIL, "sysctl user.max_user_namespaces=65536",
                     "user.max_user_namespaces is %llu", (unsigned long long)max);
    return found(OK, "", "up to %llu", (unsigned long long)max);
}

static bool can_load(const char *module)
{
    char path[300];
    struct utsname u;
    if (uname(&u) < 0)
        return false;
    (void)snprintf(path, sizeof(path), "/lib/modules/%s/kernel/fs/%s", u.release, module);
    return access(path, F_OK) == 0;
}

static struct finding check_file_system(const char *name, const char *module)
{
    char fix[100];
    if (has_word("/proc/filesystems", name))
        return found(OK, "", "in the kernel");
    (void)snprintf(fix, sizeof(fix), "modprobe %s", name);
    if (can_load(module))
        return found(WARN, fix, "a module that is not loaded");
    return found(FAIL, "The kernel needs it, built in or as a module.", "not in this kernel");
}

static struct finding check_overlay(const struct silt_config *c)
{
    (void)c;
    return check_file_system("overlay", "overlayfs");
}

/* A system call that exists fails with another error than ENOSYS; a container's seccomp filter may
 * hide it. */
static struct finding check_call(long got, const char *name)
{
    if (got < 0 && errno == ENOSYS)
        return found(FAIL, "A newer kernel, or a container that does not block it.", "no %s", name);
    return found(OK, "", "%s", name);
}

static struct finding check_clone3(const struct silt_config *c)
{
    (void)c;
    return check_call(syscall(SYS_clone3, NULL, (size_t)0), "clone3");
}

static struct finding check_openat2(const struct silt_config *c)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    (void)c;
    silt_auto_fd fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));
    return check_call(fd, "openat2");
}

static struct finding check_idmap(const struct silt_config *c)
{
    (void)c;
    return check_call(syscall(SYS_mount_setattr, -1, "", 0U, NULL, (size_t)0), "mount_setattr");
}

static struct finding check_pidfd(const struct silt_config *c)
{
    (void)c;
    silt_auto_fd fd = (int)syscall(SYS_pidfd_open, getpid(), 0U);
    return check_call(fd, "pidfd_open");
}

static struct finding check_seccomp(const struct silt_config *c)
{
    (void)c;
    if (!has_word("/proc/sys/kernel/seccomp/actions_avail", "errno"))
        return found(FAIL, "The kernel is built without CONFIG_SECCOMP_FILTER.", "no filters");
    return found(OK, "", "filters");
}

/* Control groups */

static struct finding check_v2(const struct silt_config *c)
{
    static const char *const wanted[] = {"cpu", "memory", "pids"};
    char path[PATH_MAX + 32];
    (void)snprintf(path, sizeof(path), "%s/cgroup.controllers", c->cgroup);
    for (size_t i = 0; i < SILT_COUNT(wanted); i++)
        if (!has_word(path, wanted[i]))
            return found(FAIL, "Boot without cgroup_disable= and cgroup_no_v1=, or delegate it.",
                         "version 2 without the controller %s", wanted[i]);
    return found(OK, "", "version 2 with cpu, memory, pids");
}

static struct finding check_v1(const struct silt_config *c)
{
    static const char *const wanted[] = {"cpu", "memory", "pids", "freezer"};
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < SILT_COUNT(wanted); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s/cgroup.procs", c->cgroup, wanted[i]);
        if (access(path, F_OK) < 0)
            return found(FAIL, "Mount it, or boot with systemd.unified_cgroup_hierarchy=1.",
                         "version 1 without the controller %s", wanted[i]);
    }
    return found(OK, "", "version 1 with cpu, memory, pids, freezer");
}

static struct finding check_cgroups(const struct silt_config *c)
{
    struct statfs s;
    if (statfs(c->cgroup, &s) < 0)
        return found(FAIL, "Mount cgroup2 there, or set `cgroup`.", "nothing at %s", c->cgroup);
    return (unsigned long)s.f_type == CGROUP2_SUPER_MAGIC ? check_v2(c) : check_v1(c);
}

/* Disk */

static int state_fs(const struct silt_config *c, char ret_path[PATH_MAX], struct statfs *ret)
{
    (void)snprintf(ret_path, PATH_MAX, "%s", c->state);
    while (statfs(ret_path, ret) < 0) { /* not created yet: look at the file system of its parent */
        char *slash = strrchr(ret_path, '/');
        if (slash == NULL || ret_path[1] == 0)
            return -1;
        slash[slash == ret_path ? 1 : 0] = 0;
    }
    return 0;
}

static bool in_path(const char *program)
{
    static const char *const directories[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin",
                                              "/usr/local/sbin"};
    char path[100];
    for (size_t i = 0; i < SILT_COUNT(directories); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", directories[i], program);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static struct finding check_btrfs(const struct silt_config *c)
{
    char path[PATH_MAX];
    struct statfs s;
    if (state_fs(c, path, &s) == 0 && (unsigned long)s.f_type == BTRFS_SUPER_MAGIC)
        return found(OK, "", "%s is on it", path);
    struct finding f = check_file_system("btrfs", "btrfs");
    if (f.grade == FAIL)
        return f;
    if (!in_path("mkfs.btrfs"))
        return found(FAIL, "apt-get install btrfs-progs", "no mkfs.btrfs for the pool file");
    if (access("/dev/loop-control", F_OK) < 0)
        return found(FAIL, "modprobe loop, or put the state directory on btrfs.",
                     "no loop devices for the pool file");
    return f.grade == OK ? found(OK, "", "in a pool file") : f;
}

static struct finding check_disk(const struct silt_config *c)
{
    char path[PATH_MAX], size[SILT_CLI_SIZE_TEXT];
    struct statfs s;
    if (state_fs(c, path, &s) < 0)
        return found(FAIL, "Set `state` to a directory that can exist.", "cannot look at %s",
                     c->state);
    uint64_t left = (uint64_t)s.f_bavail * (uint64_t)s.f_bsize;
    const char *text = silt_cli_size((int64_t)left, size);
    if (left < disk_least)
        return found(FAIL, "Free some, or set `state` to another disk.", "%s left at %s", text,
                     path);
    if (left < disk_wish)
        return found(WARN, "The base image alone takes about 2 GiB.", "%s left at %s", text, path);
    return found(OK, "", "%s left at %s", text, path);
}

/* Limits */

static struct finding check_files(const struct silt_config *c)
{
    struct rlimit files;
    rlim_t most = silt_config_files_most(c), least = silt_config_files_least(c);
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return found(WARN, "getrlimit(2) failed.", "unknown");
    if (files.rlim_max < least)
        return found(FAIL, "LimitNOFILE= in the unit (ours has it), or `ulimit -Hn`.",
                     "%llu open files here, the daemon does not start with less than %llu",
                     (unsigned long long)files.rlim_max, (unsigned long long)least);
    if (files.rlim_max < most)
        return found(WARN, "LimitNOFILE= in the unit (ours has it), or a smaller ids.count.",
                     "%llu open files here, %llu for all %u sandboxes",
                     (unsigned long long)files.rlim_max, (unsigned long long)most, c->ids_count);
    return found(OK, "", "%llu", (unsigned long long)files.rlim_max);
}

/* A sandbox of the default type may open 16,384 files in each of 1,024 processes. systemd raises
 * this limit at boot; without it the kernel's default is a tenth of the memory in KiB. */
static struct finding check_all_files(const struct silt_config *c)
{
    uint64_t max = file_number("/proc/sys/fs/file-max");
    (void)c;
    if (max < ALL_FILES_WISH)
        return found(WARN, "sysctl fs.file-max=9223372036854775807 (systemd's default)",
                     "fs.file-max is %llu: one sandbox could take all", (unsigned long long)max);
    return found(OK, "", "up to %llu", (unsigned long long)max);
}

static struct finding check_pids(const struct silt_config *c)
{
    uint64_t max = file_number("/proc/sys/kernel/pid_max");
    (void)c;
    if (max < PIDS_WISH)
        return found(WARN, "sysctl kernel.pid_max=4194304", "kernel.pid_max is %llu",
                     (unsigned long long)max);
    return found(OK, "", "up to %llu", (unsigned long long)max);
}

/* "name:first:count" */
static bool line_overlaps(silt_slice line, uint64_t first, uint64_t count)
{
    silt_slice name, start, length;
    uint64_t a, b;
    struct silt_error e;
    return silt_slice_split(&line, ':', &name) && silt_slice_split(&line, ':', &start)
           && silt_slice_split(&line, ':', &length)
           && silt_slice_to_u64(start, 0, UINT32_MAX, &a, &e) == 0
           && silt_slice_to_u64(length, 1, UINT32_MAX, &b, &e) == 0 && a < first + count
           && first < a + b;
}

static struct finding check_ids(const struct silt_config *c)
{
    static const char *const files[] = {"/etc/subuid", "/etc/subgid"};
    uint64_t count = (uint64_t)c->ids_count * SILT_CONFIG_SLOT_IDS;
    for (size_t i = 0; i < SILT_COUNT(files); i++) {
        silt_auto_free char *text = file_text(files[i]);
        silt_slice rest = silt_slice_of(text), line;
        while (silt_slice_split(&rest, '\n', &line))
            if (line_overlaps(line, c->ids_base, count)
                || line_overlaps(line, c->ids_images, SILT_CONFIG_SLOT_IDS))
                return found(FAIL, "Set ids.base and ids.images to numbers nobody uses.",
                             "%s gives ids of sandboxes to %.*s", files[i], (int)line.len,
                             line.data);
    }
    return found(OK, "", "%u and %llu more, used by nobody else", c->ids_base,
                 (unsigned long long)count - 1);
}

/* The daemon */

static silt_slice text_of(const struct silt_json *answer, silt_slice name)
{
    const struct silt_json *value = answer != NULL ? silt_json_get(answer, name) : NULL;
    return value != NULL && value->type == SILT_JSON_STRING ? value->string : (silt_slice){NULL, 0};
}

/* What /healthz reports about the disk pool and the database; its message ends with the remedy. */
static struct finding check_health(struct silt_client *client)
{
    struct silt_arena arena;
    const struct silt_json *answer = NULL;
    struct silt_error e;
    int status = client->head.status;
    silt_arena_init(&arena, 1 << 16);
    struct finding f = found(OK, "", "answers at %s", client->address);
    bool is_ours =
        silt_client_json(client, &arena, &answer, &e) == 0 && answer->type == SILT_JSON_OBJECT;
    silt_slice disk = text_of(is_ours ? answer : NULL, SILT_LIT("disk"));
    silt_slice database = text_of(is_ours ? answer : NULL, SILT_LIT("database"));
    silt_slice said = text_of(is_ours ? answer : NULL, SILT_LIT("message"));
    if ((disk.len > 0 || database.len > 0) && said.len > 0) {
        char text[sizeof(f.fix)];
        (void)snprintf(text, sizeof(text), "%.*s", (int)said.len, said.data);
        f = found(status == 200 ? WARN : FAIL, text, "answers at %s%s%.*s%s%.*s", client->address,
                  disk.len > 0 ? "; disk pool: " : "", (int)disk.len, disk.data,
                  database.len > 0 ? "; database: " : "", (int)database.len, database.data);
    } else if (status != 200) {
        f = found(FAIL, "Is something else listening there?", "%s answers %d", client->address,
                  status);
    }
    silt_arena_fini(&arena);
    return f;
}

static struct finding check_daemon(const struct silt_config *c)
{
    static struct silt_client client;
    struct silt_error e;
    const char *fix = "sudo script/up in the source tree, or systemctl start silt";
    struct silt_client_request q = {.method = "GET", .path = "/healthz", .file = -1};
    (void)c;
    if (silt_client_init(&client, NULL, NULL, &e) < 0)
        return found(FAIL, "Correct the settings.", "%s", e.text);
    client.timeout_ms = 5000;
    struct finding f = {0};
    if (silt_client_ask(&client, &q, &e) < 0)
        f = found(WARN, fix, "%s", e.text);
    else
        f = check_health(&client);
    silt_client_fini(&client);
    return f;
}

/* The network */

static struct finding check_network(const struct silt_config *c)
{
    if (strcmp(c->network, "off") == 0)
        return found(OK, "", "switched off by the setting network");
    if (!in_path("nft"))
        return found(WARN, "apt-get install nftables, then start the daemon again",
                     "no program nft: sandboxes have no network, their mode is none");
    if (access("/proc/sys/net/netfilter/nf_conntrack_max", F_OK) < 0 && !can_load("../net"))
        return found(WARN, "The kernel needs CONFIG_NF_TABLES and CONFIG_NF_CONNTRACK.",
                     "no connection tracking in this kernel");
    struct silt_firewall f;
    if (silt_firewall_find(c->instance, &f))
        return found(WARN, f.way_out, "%s drops what sandboxes send: they reach nothing", f.who);
    return found(OK, "", "nftables");
}

static struct finding check_registries(const struct silt_config *c)
{
    if (strcmp(c->network, "off") == 0)
        return found(OK, "", "nothing is pulled without a network");
    if (!in_path("skopeo"))
        return found(WARN, "apt-get install skopeo",
                     "no program skopeo: silt image pull fetches nothing");
    return found(OK, "", "skopeo");
}

/* Certificates: silt-super records whether it could load the files. */

static struct finding check_used(const char *line)
{
    char until[SILT_ISO_SIZE], *name;
    int64_t until_s = strtoll(line, &name, 10), left_s = until_s - silt_clock_wall_ms() / 1000;
    silt_clock_iso(until_s * 1000, until);
    int len = (int)strcspn(name, "\n");
    if (left_s < 0)
        return found(FAIL, "Renew it; the daemon takes the new one within seconds.",
                     "ended %s:%.*s", until, len, name);
    if (strstr(name, "(not for previews)") != NULL)
        return found(WARN, "It should be for *. and the setting preview.domain.", "until %s:%.*s",
                     until, len, name);
    if (left_s < CERTIFICATE_WISH_S)
        return found(WARN, "Renew it; the daemon takes the new one within seconds.", "ends %s:%.*s",
                     until, len, name);
    return found(OK, "", "until %s:%.*s", until, len, name);
}

static struct finding check_certificate(const struct silt_config *c)
{
    char path[PATH_MAX + 32];
    if (c->preview_certificate[0] == 0)
        return found(OK, "", "none: previews by plain HTTP");
    (void)snprintf(path, sizeof(path), "%s/preview-certificate", c->run);
    silt_auto_free char *text = file_text(path);
    const char *refused = strstr(text, "refused ");
    if (refused != NULL)
        return found(FAIL, "Correct the files; the daemon looks again within seconds.", "%.*s%s",
                     (int)strcspn(refused, "\n"), refused,
                     refused == text ? "" : " (the one before is used)");
    if (strncmp(text, "used ", 5) != 0)
        return found(OK, "", "%s, told more of while the daemon runs", c->preview_certificate);
    return check_used(text + 5);
}

static const struct check {
    const char *name;
    struct finding (*run)(const struct silt_config *c);
} checks[] = {
    {"kernel", check_kernel},
    {"user namespaces", check_user_namespaces},
    {"overlay", check_overlay},
    {"new processes", check_clone3},
    {"safe paths", check_openat2},
    {"idmapped mounts", check_idmap},
    {"process handles", check_pidfd},
    {"seccomp", check_seccomp},
    {"control groups", check_cgroups},
    {"btrfs", check_btrfs},
    {"disk space", check_disk},
    {"open files", check_files},
    {"files of all", check_all_files},
    {"process ids", check_pids},
    {"user ids", check_ids},
    {"network", check_network},
    {"certificate", check_certificate},
    {"registries", check_registries},
    {"daemon", check_daemon},
};

static void print_finding(const char *name, const struct finding *f)
{
    static const char *const grades[GRADE_MAX] = {[OK] = "ok", [WARN] = "warn", [FAIL] = "FAIL"};
    (void)printf("%-5s %-16s %s\n", grades[f->grade], name, f->what);
    if (f->grade != OK)
        (void)printf("%-22s -> %s\n", "", f->fix);
}

int silt_cli_doctor(int argc, char **argv)
{
    static struct silt_cli cli;
    const struct silt_config *config;
    struct silt_error e;
    size_t counts[GRADE_MAX] = {0};
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0 || silt_find_config(&config, &e) < 0)
        return silt_cli_fail(&e);
    for (size_t i = 0; i < SILT_COUNT(checks); i++) {
        struct finding f = checks[i].run(config);
        print_finding(checks[i].name, &f);
        counts[f.grade]++;
    }
    (void)printf("\n%zu ok, %zu to look at, %zu to fix\n", counts[OK], counts[WARN], counts[FAIL]);
    return counts[FAIL] > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
