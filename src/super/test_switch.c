/* SPDX-License-Identifier: Apache-2.0 */
#include "super/test_switch.h"

#ifdef SILT_UNSAFE_TESTS
#include "base/log.h"
#include "base/own.h"

/* tests/escape/PROTECTIONS.md explains each. */
static const char *const known[] = {
    "context_pipes",  "staging_group", "trust_unpack",   "trust_mark",   "commit_links",
    "pool_ahead",     "tcp_memory",    "proc_exe",       "close_fds",    "dev_symlink",
    "masks",          "mount_block",   "caps",           "seccomp",      "pivot",
    "handles",        "devices",       "own_dev",        "nnp",          "abi",
    "tiocsti",        "userns_limit",  "pids_limit",     "memory_limit", "cgroup_ro",
    "pidns",          "kill_tree",     "infoleaks",      "uts",          "net_source",
    "net_closed",     "net_limit",     "net_neighbours", "net_modes",    "net_host",
    "net_protocols",  "net_arp",       "netns",          "net_options",  "net_crowd",
    "net_answers",    "allow_names",   "allow_pins",     "allow_hosts",  "allow_clear",
    "preview_fields", "preview_cage",  "preview_origin", "init_limits",  "agents_memory",
    "passrights",     "cpu_limit",     "inner_zygote",
};

/* Faults, not protections: tests/faults/reload.test.mjs. */
static const char *const faults[] = {
    "reload_exec",  /* the execve of a reload fails after its check */
    "reload_table", /* what a reload hands over is damaged */
};

static int check_name(silt_slice name, struct silt_error *e)
{
    char quoted[SILT_LOG_QUOTE_SIZE];
    for (size_t i = 0; i < SILT_COUNT(faults); i++)
        if (silt_slice_eq(name, silt_slice_of(faults[i])))
            return 0;
    for (size_t i = 0; i < SILT_COUNT(known); i++) {
        if (!silt_slice_eq(name, silt_slice_of(known[i])))
            continue;
        silt_log(SILT_LOG_WARN, "super.without", "protection=%s is switched off", known[i]);
        return 0;
    }
    return silt_fail(e, SILT_INVALID, "SILT_WITHOUT: no protection %s",
                     silt_log_quote(name, quoted));
}

int silt_without_check(struct silt_error *e)
{
    const char *list = getenv("SILT_WITHOUT");
    silt_slice rest = silt_slice_of(list != NULL ? list : ""), name;
    while (silt_slice_split(&rest, ',', &name))
        if (name.len > 0 && check_name(name, e) < 0)
            return -1;
    return 0;
}
#else
/* ISO C forbids an empty translation unit. */
typedef int silt_without_nothing;
#endif
