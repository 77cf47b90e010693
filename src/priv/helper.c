/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/helper.h"
#include "base/log.h"
#include "base/own.h"
#include "engine/storage/copy.h"
#include "engine/storage/image.h"
#include "engine/launch/launch.h"
#include "engine/storage/layer.h"
#include "engine/launch/mount_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { RESOLVER_SIZE = 64 };

static int open_programs(struct silt_priv_helper *u, const char *directory, struct silt_error *e)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/silt-init", directory) >= (int)sizeof(path))
        return silt_fail(e, SILT_INVALID, "directory name too long");
    if (silt_launch_copy_program(path, &u->init, e) < 0)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/silt-fetch", directory);
    u->fetch = open(path, O_PATH | O_CLOEXEC);
    if (u->fetch < 0) /* then images cannot be imported, but sandboxes run */
        silt_log(SILT_LOG_WARN, "priv.no_fetch", "path=%s", path);
    return 0;
}

static int open_cgroups(struct silt_priv_helper *u, const struct silt_config *c,
                        struct silt_error *e)
{
    struct silt_cgroups_config config = {.root = c->cgroup,
                                         .instance = c->instance,
                                         .ids_base = c->ids_base,
                                         .ids_count = c->ids_count * SILT_SLOT_IDS,
                                         .ids_images = c->ids_images};
    return silt_cgroups_open(&u->cgroups, &config, e);
}

/* Uses a UTS namespace of its own: if setting a sandbox's host name goes wrong, the machine's is
 * not affected. */
static int open_homes(struct silt_priv_helper *u, struct silt_error *e)
{
    if (unshare(CLONE_NEWUTS) < 0)
        return silt_fail_errno(e, "make a namespace for the host name");
    u->home_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    u->home_uts = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    u->home_mnt = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (u->home_net < 0 || u->home_uts < 0 || u->home_mnt < 0)
        return silt_fail_errno(e, "open our own namespaces");
    u->gate.home = u->home_net;
    return 0;
}

static int find_gate(struct silt_priv_helper *u, const struct silt_config *c, int gate,
                     struct silt_error *e)
{
    u->gate = (struct silt_net_gate){.ns = gate, .inside = {.fd = -1}};
    return silt_plan_make(c->network_ipv4, c->network_ipv6, c->ids_base / SILT_CONFIG_BLOCK_IDS,
                          &u->gate.plan, e);
}

static void write_resolver(const struct silt_priv_helper *u, char out[RESOLVER_SIZE])
{
    silt_ip ip = silt_plan_ip(&u->gate.plan, AF_INET, 1);
    (void)snprintf(out, RESOLVER_SIZE, "nameserver %u.%u.%u.%u\n", ip.bytes[0], ip.bytes[1],
                   ip.bytes[2], ip.bytes[3]);
}

static int set_stage(struct silt_priv_helper *u, const struct silt_config *c, const char *programs,
                     struct silt_error *e)
{
    char pool[PATH_MAX], kernels[PATH_MAX];
    if (snprintf(pool, sizeof(pool), "%s/pool", c->state) >= (int)sizeof(pool)
        || snprintf(kernels, sizeof(kernels), "%s/interpreters", programs) >= (int)sizeof(kernels))
        return silt_fail(e, SILT_INVALID, "directory name too long");
    char groups[PATH_MAX];
    const char *memory = u->cgroups.version == 1 ? "/memory" : "";
    if (snprintf(groups, sizeof(groups), "%s%s/%s", c->cgroup, memory, c->instance)
        >= (int)sizeof(groups))
        return silt_fail(e, SILT_INVALID, "directory name too long");
    char resolver[RESOLVER_SIZE];
    write_resolver(u, resolver);
    struct silt_mount_stage stage = {.pool = pool,
                                     .images = c->images,
                                     .kernels = kernels,
                                     .cgroup = groups,
                                     .resolver = resolver};
    int qgroups = silt_volumes_find_qgroups(pool);
    if (silt_mount_stage_enter(&stage, e) < 0)
        return -1;
    if (silt_volumes_open(&u->volumes, SILT_MOUNT_STAGE_POOL, qgroups, e) < 0)
        return -1;
    u->images = open(SILT_MOUNT_STAGE_IMAGES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (u->images < 0)
        return silt_fail_errno(e, "open the images directory");
    return 0;
}

int silt_priv_helper_open(struct silt_priv_helper *u, const struct silt_config *c,
                          const char *programs, int gate, struct silt_error *e)
{
    *u = (struct silt_priv_helper){
        .ids_base = c->ids_base,
        .ids_images = c->ids_images,
        .slots = c->ids_count,
        .nets_wanted =
            c->pool_namespaces < SILT_PRIV_NETS_MAX ? c->pool_namespaces : SILT_PRIV_NETS_MAX,
        .locks = memfd_create("locks", MFD_CLOEXEC),
        .janitor = -1,
        .zygote_parent = -1,
        .claimed = -1,
    };
    if (u->locks < 0)
        return silt_fail_errno(e, "make the locks");
    if (open_programs(u, programs, e) < 0)
        return -1;
    if (open_cgroups(u, c, e) < 0)
        return -1;
    if (silt_seccomp_compile(&u->seccomp, u->cgroups.version == 2, e) < 0)
        return -1;
    if (find_gate(u, c, gate, e) < 0)
        return -1;
    if (set_stage(u, c, programs, e) < 0)
        return -1;
    return open_homes(u, e);
}

/* A former version used 0 to 15 for every instance. */
static void discard_former_stagings(const struct silt_priv_helper *u)
{
    struct silt_error ignored;
    for (uint32_t i = 0; i < SILT_STAGINGS_MAX; i++)
        (void)silt_image_discard(u->images, i, &ignored);
}

int silt_priv_helper_clear(struct silt_priv_helper *u, struct silt_error *e)
{
    if (silt_cgroups_clear(&u->cgroups, e) < 0)
        return -1;
    if (silt_layers_clear(&u->volumes, e) < 0)
        return -1;
    if (silt_copies_clear(&u->volumes, e) < 0)
        return -1;
    discard_former_stagings(u);
    silt_priv_discard_stagings(u);
    return silt_images_drop_replaced(u->images, e);
}

void silt_priv_discard_stagings(struct silt_priv_helper *u)
{
    struct silt_error e;
    for (uint32_t i = 0; i < SILT_STAGINGS_MAX; i++)
        if (silt_cgroup_fetch_end(&u->cgroups, i, &e) < 0
            || silt_image_discard(u->images, silt_priv_staging_directory(u, i), &e) < 0)
            silt_log(SILT_LOG_WARN, "image.discard", "staging=%u error=\"%s\"", i, e.text);
}

void silt_priv_close_later(struct silt_priv_helper *u)
{
    for (; u->nlater > 0; u->nlater--)
        silt_close_fd(&u->later[u->nlater - 1]);
}

static int set_lock(const struct silt_priv_helper *u, uint32_t which, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
    int done;
    do
        done = fcntl(u->locks, F_SETLKW, &lock);
    while (done < 0 && errno == EINTR);
    return done;
}

int silt_priv_lock(const struct silt_priv_helper *u, uint32_t which, struct silt_error *e)
{
    return set_lock(u, which, F_WRLCK) < 0 ? silt_fail_errno(e, "take lock %u", which) : 0;
}

void silt_priv_unlock(const struct silt_priv_helper *u, uint32_t which)
{
    (void)set_lock(u, which, F_UNLCK);
}
