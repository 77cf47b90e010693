/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/outside.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/nft.h"
#include "engine/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum {
    TEXT_MAX = 64 << 10,
    ROUTES_MAX = 4 << 20, /* a machine with the whole table of the internet has more: no devices */
    LINE_MAX_BYTES = 256,
    SWITCH_MAX = 16,
    MTU_PRESET = 1500,
    MTU_LEAST = 1280, /* of IPv6 */
};

void silt_outside_init(struct silt_outside *o, const char *instance, const char *run)
{
    *o = (struct silt_outside){.mtu = MTU_PRESET};
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

/* Who leads to the world */

static void note_device(struct silt_outside *o, const char *name)
{
    for (size_t i = 0; i < o->ndevices; i++)
        if (strcmp(o->devices[i], name) == 0)
            return;
    if (o->ndevices == SILT_OUTSIDE_DEVICES || strcmp(name, "lo") == 0
        || strpbrk(name, "\"*\\") != NULL) /* what nft would take for something else */
        return;
    (void)snprintf(o->devices[o->ndevices++], IF_NAMESIZE, "%s", name);
}

/* /proc/net/route: name destination gateway flags refs use metric mask ... */
static void on_route4(void *context, const char *line)
{
    char name[IF_NAMESIZE];
    unsigned to, mask;
    if (sscanf(line, "%15s %x %*x %*x %*d %*d %*d %x", name, &to, &mask) == 3 && to == 0
        && mask == 0)
        note_device(context, name);
}

/* /proc/net/ipv6_route: destination length source length next metric refs use flags name */
static void on_route6(void *context, const char *line)
{
    char name[IF_NAMESIZE], to[33];
    unsigned len, flags;
    if (sscanf(line, "%32s %x %*s %*x %*s %*x %*x %*x %x %15s", to, &len, &flags, name) == 4
        && len == 0 && (flags & 0x0200U /* RTF_REJECT */) == 0)
        note_device(context, name);
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

/* Can a packet of ours leave this machine by IPv6? */
static bool has_ipv6(void)
{
    return first_of("/proc/sys/net/ipv6/conf/default/disable_ipv6") == '0'
           && first_of("/proc/sys/net/ipv6/conf/all/disable_ipv6") == '0'
           && (access("/proc/sys/net/ipv6/conf/all/force_forwarding", F_OK) == 0
               || first_of("/proc/sys/net/ipv6/conf/all/forwarding") == '1');
}

void silt_outside_look(struct silt_outside *o)
{
    o->ipv6 = has_ipv6();
    silt_auto_fd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint32_t least = UINT32_MAX;
    each_line("/proc/net/route", ROUTES_MAX, on_route4, o);
    each_line("/proc/net/ipv6_route", ROUTES_MAX, on_route6, o);
    for (size_t i = 0; i < o->ndevices; i++) {
        struct ifreq q = {0};
        memcpy(q.ifr_name, o->devices[i], IF_NAMESIZE);
        if (ioctl(sock, SIOCGIFMTU, &q) == 0 && (uint32_t)q.ifr_mtu < least)
            least = (uint32_t)q.ifr_mtu;
    }
    if (least != UINT32_MAX)
        o->mtu = least < MTU_LEAST ? MTU_LEAST : least;
}

/* Switches, each noted before it is turned. The note is there as long as anything of ours is. */

/* Of .../conf/<name>/<leaf>: has somebody made the whole machine a router meanwhile? Then it is not
 * ours any more. */
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

static int write_note(const struct silt_outside *o, const char *path, struct silt_error *e)
{
    char line[LINE_MAX_BYTES];
    silt_auto_fd fd = open(o->note, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", o->note);
    (void)snprintf(line, sizeof(line), "%s\n", path);
    return path[0] == 0 ? 0 : silt_fd_write_all(fd, silt_slice_of(line), e);
}

static int turn_on(const struct silt_outside *o, const char *path, bool *ret_was_off,
                   struct silt_error *e)
{
    char *value = NULL;
    size_t len;
    if (silt_fd_read_file(AT_FDCWD, path, SWITCH_MAX, &value, &len, e) < 0)
        return -1;
    *ret_was_off = value[0] == '0';
    free(value);
    if (!*ret_was_off)
        return 0;
    if (write_note(o, path, e) < 0)
        return -1;
    return silt_fd_put(AT_FDCWD, path, "1", e);
}

static void switch_path(char out[LINE_MAX_BYTES], int family, const char *name)
{
    (void)snprintf(out, LINE_MAX_BYTES, "/proc/sys/net/ipv%d/conf/%s/%s", family == AF_INET ? 4 : 6,
                   name, family == AF_INET ? "forwarding" : "force_forwarding");
}

/* Not the machine's ip_forward: only the interfaces that lead to the world have to take in answers
 * for somebody else. IPv6 has such a switch since Linux 6.17; before, IPv6 goes out where the
 * machine is a router already. */
static int open_device(struct silt_outside *o, const char *name, struct silt_error *e)
{
    char path[LINE_MAX_BYTES];
    bool four = false, six = false;
    size_t used = strlen(o->opened);
    switch_path(path, AF_INET, name);
    if (turn_on(o, path, &four, e) < 0)
        return -1;
    switch_path(path, AF_INET6, name);
    if (o->ipv6 && turn_on(o, path, &six, e) < 0 && e->sys != ENOENT)
        return -1;
    if (four || six)
        (void)snprintf(o->opened + used, sizeof(o->opened) - used, "%s ", name);
    return 0;
}

static int open_uplink(const struct silt_outside *o, struct silt_error *e)
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

static int give_addresses(const struct silt_outside *o, const struct silt_plan *plan,
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

static int load_rules(const struct silt_outside *o, const struct silt_plan *plan,
                      struct silt_error *e)
{
    silt_auto_buf text;
    struct silt_rules_outside r = {
        .table = o->table, .uplink = o->uplink, .plan = plan, .ipv6 = o->ipv6, .opened = o->opened};
    silt_buf_init(&text, TEXT_MAX);
    silt_rules_outside(&text, &r);
    return silt_nft_load(silt_buf_slice(&text), e);
}

/* The rules are there before the first packet, and once more with the names of the interfaces that
 * did not forward before. */
int silt_outside_open(struct silt_outside *o, const struct silt_plan *plan, struct silt_error *e)
{
    if (write_note(o, "", e) < 0 || load_rules(o, plan, e) < 0 || give_addresses(o, plan, e) < 0
        || open_uplink(o, e) < 0)
        return -1;
    for (size_t i = 0; i < o->ndevices; i++)
        if (open_device(o, o->devices[i], e) < 0)
            return -1;
    return o->opened[0] != 0 ? load_rules(o, plan, e) : 0;
}

/* The end */

static void remove_rules(const struct silt_outside *o)
{
    silt_auto_buf text;
    struct silt_error e;
    silt_buf_init(&text, TEXT_MAX);
    silt_rules_no_outside(&text, o->table);
    if (silt_nft_load(silt_buf_slice(&text), &e) < 0 && e.code != SILT_UNAVAILABLE)
        silt_log(SILT_LOG_WARN, "outside.rules", "error=\"%s\"", e.text);
}

static void remove_link(const struct silt_outside *o)
{
    struct silt_rtnl r;
    struct silt_error e;
    if (if_nametoindex(o->uplink) == 0 || silt_rtnl_open(&r, &e) < 0)
        return;
    if (silt_rtnl_delete(&r, o->uplink, &e) < 0)
        silt_log(SILT_LOG_WARN, "outside.link", "error=\"%s\"", e.text);
    silt_rtnl_close(&r);
}

/* Forwarding ends before the rules that bound it. */
void silt_outside_clear(const struct silt_outside *o)
{
    each_line(o->note, TEXT_MAX, set_back, NULL);
    remove_link(o);
    remove_rules(o);
    (void)unlink(o->note);
}

void silt_outside_clear_old(const char *instance, const char *run)
{
    struct silt_outside o;
    silt_outside_init(&o, instance, run);
    if (access(o.note, F_OK) == 0)
        silt_outside_clear(&o);
}
