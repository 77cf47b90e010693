/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/uplink.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/network/conntrack.h"
#include "engine/network/nft.h"
#include "engine/network/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    TEXT_MAX = 64 << 10,
    LINE_MAX_BYTES = 256,
    SWITCH_MAX = 16,
    MTU_PRESET = 1500,
    MTU_LEAST = 1280, /* minimum of IPv6 */
};

void silt_uplink_init(struct silt_uplink *o, const char *instance, uint32_t block, const char *run)
{
    *o = (struct silt_uplink){.mtu = MTU_PRESET, .plan = {.block = (uint8_t)block}};
    (void)snprintf(o->uplink, sizeof(o->uplink), "%.8s-up", instance);
    (void)snprintf(o->table, sizeof(o->table), "silt_%.8s", instance);
    (void)snprintf(o->note, sizeof(o->note), "%s/forwarding", run);
}

static void each_line(const char *path, size_t max, void (*with)(void *context, const char *line),
                      void *context)
{
    struct silt_error ignored;
    char *text = NULL, line[LINE_MAX_BYTES];
    size_t len;
    silt_slice rest, one;
    if (silt_fd_read_file(AT_FDCWD, path, max, &text, &len, &ignored) < 0)
        return;
    rest = (silt_slice){text, len};
    while (silt_slice_split(&rest, '\n', &one))
        if (one.len > 0 && silt_slice_to_cstr(one, line, sizeof(line), &ignored) == 0)
            with(context, line);
    free(text);
}

static char first_of(const char *path)
{
    struct silt_error ignored;
    char *text = NULL;
    size_t len;
    if (silt_fd_read_file(AT_FDCWD, path, SWITCH_MAX, &text, &len, &ignored) < 0)
        return 0;
    char first = text[0];
    free(text);
    return first;
}

/* Can our packets leave this machine over IPv6? */
static bool has_ipv6(void)
{
    return first_of("/proc/sys/net/ipv6/conf/default/disable_ipv6") == '0'
           && first_of("/proc/sys/net/ipv6/conf/all/disable_ipv6") == '0'
           && (access("/proc/sys/net/ipv6/conf/all/force_forwarding", F_OK) == 0
               || first_of("/proc/sys/net/ipv6/conf/all/forwarding") == '1');
}

void silt_uplink_look(struct silt_uplink *o)
{
    silt_devices_find(&o->devices);
    uint32_t mtu = silt_devices_mtu(&o->devices);
    if (mtu != 0)
        o->mtu = mtu < MTU_LEAST ? MTU_LEAST : mtu;
    o->ipv6 = has_ipv6();
}

/* Sysctls, each recorded before it is changed. The file exists as long as anything of ours does. */

/* For .../conf/<name>/<leaf>: has the whole machine been made a router in the meantime? Then the
 * setting is no longer ours. */
static bool is_of_all(const char *path)
{
    char all[LINE_MAX_BYTES];
    const char *conf = strstr(path, "/conf/"), *leaf = strrchr(path, '/');
    if (conf == NULL)
        return false;
    (void)snprintf(all, sizeof(all), "%.*s/conf/all%s", (int)(conf - path), path, leaf);
    return first_of(all) == '1';
}

static void set_back(void *context, const char *path)
{
    struct silt_error e;
    (void)context;
    if (is_of_all(path) || silt_fd_put(AT_FDCWD, path, "0", &e) == 0 || e.sys == ENOENT)
        return; /* ENOENT: the interface is gone */
    silt_log(SILT_LOG_WARN, "outside.set_back", "error=\"%s\"", e.text);
}

static void switch_path(char out[LINE_MAX_BYTES], int family, const char *name)
{
    (void)snprintf(out, LINE_MAX_BYTES, "/proc/sys/net/ipv%d/conf/%s/%s", family == AF_INET ? 4 : 6,
                   name, family == AF_INET ? "forwarding" : "force_forwarding");
}

static void each_switch(const struct silt_uplink *o, void (*with)(void *context, const char *path),
                        void *context)
{
    char path[LINE_MAX_BYTES];
    for (size_t i = 0; i < o->nopened; i++) {
        switch_path(path, AF_INET, o->opened[i].name);
        if (o->opened[i].four)
            with(context, path);
        switch_path(path, AF_INET6, o->opened[i].name);
        if (o->opened[i].six)
            with(context, path);
    }
}

static void add_line(void *text, const char *path)
{
    silt_buf_addf(text, "%s\n", path);
}

/* Atomically, and before any change. */
static int write_note(const struct silt_uplink *o, struct silt_error *e)
{
    char new[sizeof(o->note) + 8];
    silt_auto_buf text;
    silt_buf_init(&text, TEXT_MAX);
    each_switch(o, add_line, &text);
    (void)snprintf(new, sizeof(new), "%s.new", o->note);
    (void)unlink(new);
    silt_auto_fd fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return silt_fail_errno(e, "make %s", new);
    if (silt_fd_write_all(fd, silt_buf_slice(&text), e) < 0)
        return -1;
    return rename(new, o->note) < 0 ? silt_fail_errno(e, "rename %s", new) : 0;
}

static void turn_on(void *context, const char *path)
{
    struct silt_error e;
    (void)context;
    if (silt_fd_put(AT_FDCWD, path, "1", &e) < 0 && e.sys != ENOENT)
        silt_log(SILT_LOG_WARN, "outside.turn_on", "error=\"%s\"", e.text);
}

/* We do not set the machine's ip_forward: only the interfaces with default routes must accept
 * responses to forwarded packets. IPv6 has such a per-interface setting since Linux 6.17; before
 * that, IPv6 works only if the machine is a router already. Interfaces that are ours stay ours
 * until the whole machine is made a router. */
static struct silt_uplink_opened consider(const struct silt_uplink *o, const char *name)
{
    struct silt_uplink_opened now = {0};
    char path[LINE_MAX_BYTES];
    (void)snprintf(now.name, sizeof(now.name), "%s", name);
    switch_path(path, AF_INET, name);
    now.four = first_of(path) == '0' && !is_of_all(path);
    switch_path(path, AF_INET6, name);
    now.six = o->ipv6 && first_of(path) == '0' && !is_of_all(path);
    for (size_t i = 0; i < o->nopened; i++) {
        const struct silt_uplink_opened *had = &o->opened[i];
        if (strcmp(had->name, name) != 0)
            continue;
        switch_path(path, AF_INET, name);
        now.four = now.four || (had->four && !is_of_all(path));
        switch_path(path, AF_INET6, name);
        now.six = now.six || (had->six && !is_of_all(path));
    }
    return now;
}

static int open_uplink(const struct silt_uplink *o, struct silt_error *e)
{
    char path[LINE_MAX_BYTES];
    switch_path(path, AF_INET, o->uplink);
    if (silt_fd_put(AT_FDCWD, path, "1", e) < 0)
        return -1;
    switch_path(path, AF_INET6, o->uplink);
    if (o->ipv6 && silt_fd_put(AT_FDCWD, path, "1", e) < 0 && e->sys != ENOENT)
        return -1;
    return 0;
}

static int give_addresses(const struct silt_uplink *o, const struct silt_plan *plan,
                          struct silt_error *e)
{
    uint32_t index = if_nametoindex(o->uplink);
    struct silt_rtnl r;
    if (silt_rtnl_open(&r, e) < 0)
        return -1;
    int done = silt_rtnl_address(&r, index, silt_plan_uplink(plan, AF_INET, true),
                                 SILT_PLAN_UPLINK_BITS4, e);
    if (done == 0 && o->ipv6)
        done = silt_rtnl_address(&r, index, silt_plan_uplink(plan, AF_INET6, true),
                                 SILT_PLAN_UPLINK_BITS6, e);
    silt_rtnl_close(&r);
    return done;
}

static int load_rules(const struct silt_uplink *o, const struct silt_plan *plan,
                      struct silt_error *e)
{
    silt_auto_buf text;
    struct silt_rules_outside r = {
        .table = o->table, .uplink = o->uplink, .plan = plan, .ipv6 = o->ipv6, .opened = o->opened};
    silt_buf_init(&text, TEXT_MAX);
    silt_rules_outside(&text, &r);
    return silt_nft_load(silt_buf_slice(&text), e);
}

/* Recomputes the opened interfaces; true if they changed. */
static bool reconsider(struct silt_uplink *o)
{
    struct silt_uplink_opened now[SILT_DEVICES_MAX] = {0};
    size_t count = 0;
    for (size_t i = 0; i < o->devices.count; i++) {
        now[count] = consider(o, o->devices.names[i]);
        count += now[count].four || now[count].six;
    }
    bool changed = count != o->nopened || memcmp(now, o->opened, count * sizeof(now[0])) != 0;
    memcpy(o->opened, now, sizeof(now));
    o->nopened = count;
    return changed;
}

/* Rules and file must exist before the first packet. */
int silt_uplink_open(struct silt_uplink *o, const struct silt_plan *plan, struct silt_error *e)
{
    (void)reconsider(o);
    if (write_note(o, e) < 0 || load_rules(o, plan, e) < 0 || give_addresses(o, plan, e) < 0
        || open_uplink(o, e) < 0)
        return -1;
    each_switch(o, turn_on, NULL);
    return 0;
}

static void close_leavers(const struct silt_uplink *before, const struct silt_uplink *now)
{
    struct silt_uplink gone = {0};
    for (size_t i = 0; i < before->nopened; i++)
        if (!silt_devices_have(&now->devices, before->opened[i].name))
            gone.opened[gone.nopened++] = before->opened[i];
    each_switch(&gone, set_back, NULL);
}

int silt_uplink_follow(struct silt_uplink *o, const struct silt_plan *plan, struct silt_error *e)
{
    struct silt_uplink before = *o;
    silt_devices_find(&o->devices);
    if (reconsider(o)) {
        close_leavers(&before, o);
        if (write_note(o, e) < 0 || load_rules(o, plan, e) < 0)
            return -1;
        for (size_t i = 0; i < o->nopened; i++)
            silt_log(SILT_LOG_INFO, "outside.forwarding", "device=%s", o->opened[i].name);
    }
    each_switch(o, turn_on, NULL); /* also for an interface that came back under its old name */
    return 0;
}

/* ".../ipv4/conf/eth0/forwarding": an interface that forwards because of us. */
static void recall(void *context, const char *path)
{
    struct silt_uplink *o = context;
    char name[IF_NAMESIZE], expected[LINE_MAX_BYTES];
    struct silt_error ignored;
    bool six = strstr(path, "/ipv6/") != NULL;
    const char *conf = strstr(path, "/conf/"), *leaf = strrchr(path, '/');
    size_t i = 0;
    if (conf == NULL || leaf < conf + 6
        || silt_slice_to_cstr((silt_slice){conf + 6, (size_t)(leaf - conf - 6)}, name, sizeof(name),
                              &ignored)
               < 0)
        return;
    switch_path(expected, six ? AF_INET6 : AF_INET, name);
    while (i < o->nopened && strcmp(o->opened[i].name, name) != 0)
        i++;
    if (i == SILT_DEVICES_MAX || strcmp(path, expected) != 0)
        return;
    memcpy(o->opened[i].name, name, sizeof(name));
    o->opened[i].four = o->opened[i].four || !six;
    o->opened[i].six = o->opened[i].six || six;
    o->nopened = i == o->nopened ? i + 1 : o->nopened;
}

void silt_uplink_resume(struct silt_uplink *o)
{
    silt_uplink_look(o);
    each_line(o->note, TEXT_MAX, recall, o);
}

/* Removal. */

static void remove_rules(const struct silt_uplink *o)
{
    silt_auto_buf text;
    struct silt_error e;
    silt_buf_init(&text, TEXT_MAX);
    silt_rules_no_outside(&text, o->table);
    if (silt_nft_load(silt_buf_slice(&text), &e) < 0 && e.code != SILT_UNAVAILABLE)
        silt_log(SILT_LOG_WARN, "outside.rules", "error=\"%s\"", e.text);
}

static void remove_link(const struct silt_uplink *o)
{
    struct silt_rtnl r;
    struct silt_error e;
    if (if_nametoindex(o->uplink) == 0 || silt_rtnl_open(&r, &e) < 0)
        return;
    if (silt_rtnl_delete(&r, o->uplink, &e) < 0)
        silt_log(SILT_LOG_WARN, "outside.link", "error=\"%s\"", e.text);
    silt_rtnl_close(&r);
}

static bool is_from_uplink(void *context, const struct silt_tracked *t)
{
    const struct silt_uplink *o = context;
    silt_ip ip = silt_plan_uplink(&o->plan, t->family, false);
    return memcmp(ip.bytes, t->from, (size_t)silt_ip_bits(t->family) / 8) == 0;
}

/* The machine would keep them for days. */
static void forget_connections(struct silt_uplink *o)
{
    struct silt_conntrack c;
    struct silt_error ignored;
    if (silt_conntrack_open(&c, &ignored) < 0)
        return;
    (void)silt_conntrack_forget(&c, AF_INET, is_from_uplink, o);
    (void)silt_conntrack_forget(&c, AF_INET6, is_from_uplink, o);
    silt_conntrack_close(&c);
}

/* Forwarding ends before the rules that restrict it. */
void silt_uplink_clear(struct silt_uplink *o)
{
    each_line(o->note, TEXT_MAX, set_back, NULL);
    remove_link(o);
    forget_connections(o);
    remove_rules(o);
    (void)unlink(o->note);
}

void silt_uplink_clear_old(const char *instance, uint32_t block, const char *run)
{
    struct silt_uplink o;
    silt_uplink_init(&o, instance, block, run);
    if (access(o.note, F_OK) == 0)
        silt_uplink_clear(&o);
}
