/* SPDX-License-Identifier: Apache-2.0 */
#include "super/instance_dirs.h"
#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>

enum {
    FALLBACK_UID = 64998,
    PROXY_UID = 64997,
}; /* in Debian's range for local allocation that adduser does not use */

/* only root can create directories here: /run/lock is world-writable */
static const char locks[] = "/run/silt-locks";

/* True for ids of sandboxes and images, which siltd may not have. */
static bool is_ours(const struct silt_config *c, uint64_t id)
{
    uint64_t sandboxes = (uint64_t)c->ids_count * SILT_CONFIG_SLOT_IDS;
    return (id >= c->ids_base && id - c->ids_base < sandboxes)
           || (id >= c->ids_images && id - c->ids_images < SILT_CONFIG_SLOT_IDS);
}

static int find_user(const char *user, uid_t *ret_uid, gid_t *ret_gid, struct silt_error *e)
{
    uint64_t number;
    const struct passwd *pw = getpwnam(user);
    if (pw != NULL) {
        *ret_uid = pw->pw_uid;
        *ret_gid = pw->pw_gid;
        return 0;
    }
    if (strcmp(user, "silt") == 0)
        number = FALLBACK_UID;
    else if (silt_slice_to_u64(silt_slice_of(user), 0, UINT32_MAX - 1, &number, e) < 0)
        return silt_fail(e, SILT_NOT_FOUND, "setting user: no user %s", user);
    *ret_uid = (uid_t)number;
    *ret_gid = (gid_t)number;
    return 0;
}

int silt_instance_dirs_user(const struct silt_config *c, uid_t *ret_uid, gid_t *ret_gid,
                            struct silt_error *e)
{
    uid_t uid;
    gid_t gid;
    if (find_user(c->user, &uid, &gid, e) < 0)
        return -1;
    if (uid == 0 || gid == 0)
        return silt_fail(e, SILT_INVALID, "setting user: siltd must not run as root");
    if (is_ours(c, uid) || is_ours(c, gid))
        return silt_fail(e, SILT_INVALID, "setting user: %u lies in the ids of sandboxes or images",
                         uid);
    *ret_uid = uid;
    *ret_gid = gid;
    return 0;
}

int silt_instance_dirs_proxy_user(const struct silt_config *c, uid_t siltd, uid_t *ret,
                                  struct silt_error *e)
{
    const struct passwd *pw = getpwnam("silt-proxy");
    uid_t uid = pw != NULL ? pw->pw_uid : PROXY_UID;
    if (uid == 0 || uid == siltd || is_ours(c, uid))
        return silt_fail(e, SILT_INVALID, "silt-proxy needs another uid than %u", uid);
    *ret = uid;
    return 0;
}

/* Creates the parents of a directory; existing ones stay unchanged. */
static int make_parents(const char *path, struct silt_error *e)
{
    char part[PATH_MAX];
    if (silt_slice_to_path(silt_slice_of(path), part, e) < 0)
        return -1;
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return silt_fail_errno(e, "make directory %s", part);
        *slash = '/';
    }
    return 0;
}

static int make_directory(const char *path, mode_t mode, uid_t uid, gid_t gid, struct silt_error *e)
{
    if (make_parents(path, e) < 0)
        return -1;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make directory %s", path);
    silt_auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return silt_fail_errno(e, "open directory %s", path);
    if (st.st_uid != 0 && st.st_uid != uid)
        return silt_fail(e, SILT_CONFLICT, "directory %s belongs to uid %u; give it to %u", path,
                         st.st_uid, uid);
    if (((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)
        || ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0))
        return silt_fail_errno(e, "set owner and mode of directory %s", path);
    return 0;
}

/* Images contain setuid programs from strangers, whose owner owns all images: no other user may
 * reach them. */
int silt_instance_dirs_directories(const struct silt_config *c, uid_t uid, gid_t gid,
                                   struct silt_error *e)
{
    char db[PATH_MAX];
    int n = snprintf(db, sizeof(db), "%s/db", c->state);
    if (n < 0 || (size_t)n >= sizeof(db))
        return silt_fail(e, SILT_INVALID, "setting state: path too long");
    if (make_directory(c->state, 0711, 0, 0, e) < 0 || make_directory(db, 0700, uid, gid, e) < 0
        || make_directory(c->images, 0700, 0, 0, e) < 0
        || make_directory(c->run, 0755, 0, 0, e) < 0)
        return -1;
    return make_directory(locks, 0755, 0, 0, e);
}

/* The holder wrote its pid there; this only helps to find it. */
static int fail_locked(int fd, const char *what, const char *path, struct silt_error *e)
{
    char pid[16] = "";
    ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);
    pid[n < 0 ? 0 : n] = 0;
    return silt_fail(e, SILT_CONFLICT, "%s is in use by another silt-super (pid %s, lock %s)", what,
                     pid, path);
}

/* The holder may have removed the file between our open and our lock: then the lock is void. */
static bool is_still_there(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino
           && ours.st_dev == there.st_dev;
}

/* The descriptor stays open: the lock ends with the process, however it ends. Any reader of the
 * file could take the lock and keep us from starting, so nobody may read it. */
static int lock(const char *path, const char *what, struct silt_instance_locks *all,
                struct silt_error *e)
{
    char pid[16];
    silt_auto_fd fd = -1;
    do {
        silt_close_fd(&fd);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 || fchmod(fd, 0600) < 0)
            return silt_fail_errno(e, "open lock %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            return errno == EWOULDBLOCK ? fail_locked(fd, what, path, e)
                                        : silt_fail_errno(e, "take lock %s", path);
    } while (!is_still_there(fd, path));
    int n = snprintf(pid, sizeof(pid), "%d", getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
        return silt_fail_errno(e, "write lock %s", path);
    assert(all->count < SILT_INSTANCE_LOCKS_MAX);
    all->fds[all->count++] = silt_take_fd(&fd);
    return 0;
}

enum { LOCK_PATH = 64 };

static void block_path(uint32_t block, char out[LOCK_PATH])
{
    (void)snprintf(out, LOCK_PATH, "%s/ids-%02x", locks, block);
}

static void instance_path(const struct silt_config *c, char out[LOCK_PATH])
{
    (void)snprintf(out, LOCK_PATH, "%s/instance-%s", locks, c->instance);
}

static int lock_block(uint32_t block, struct silt_instance_locks *all, struct silt_error *e)
{
    char path[LOCK_PATH], what[64];
    block_path(block, path);
    (void)snprintf(what, sizeof(what), "the id block from %u (setting ids.base)",
                   block * (uint32_t)SILT_CONFIG_BLOCK_IDS);
    return lock(path, what, all, e);
}

int silt_instance_dirs_lock(const struct silt_config *c, struct silt_instance_locks *ret,
                            struct silt_error *e)
{
    char state[PATH_MAX + 8], path[LOCK_PATH];
    (void)snprintf(state, sizeof(state), "%s/lock", c->state);
    instance_path(c, path);
    ret->count = 0;
    if (lock(state, "the state directory", ret, e) < 0
        || lock(path, "the name of the instance", ret, e) < 0)
        return -1;
    uint32_t first = c->ids_base / SILT_CONFIG_BLOCK_IDS;
    for (uint32_t i = 0; i < c->ids_count / 256; i++)
        if (lock_block(first + i, ret, e) < 0)
            return -1;
    return 0;
}

void silt_instance_dirs_unlock(const struct silt_config *c)
{
    char path[LOCK_PATH];
    uint32_t first = c->ids_base / SILT_CONFIG_BLOCK_IDS;
    instance_path(c, path);
    (void)unlink(path);
    for (uint32_t i = 0; i < c->ids_count / 256; i++) {
        block_path(first + i, path);
        (void)unlink(path);
    }
}

int silt_instance_dirs_tell(const struct silt_config *c, const char *name, const char *text,
                            struct silt_error *e)
{
    char path[PATH_MAX + 32], fresh[PATH_MAX + 40];
    (void)snprintf(path, sizeof(path), "%s/%s", c->run, name);
    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    silt_auto_fd fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", fresh);
    if (silt_fd_write_all(fd, silt_slice_of(text), e) < 0)
        return silt_because(e, "%s", fresh);
    if (rename(fresh, path) < 0)
        return silt_fail_errno(e, "rename %s", fresh);
    return 0;
}

void silt_instance_dirs_untell(const struct silt_config *c, const char *name)
{
    char path[PATH_MAX + 32];
    (void)snprintf(path, sizeof(path), "%s/%s", c->run, name);
    (void)unlink(path);
}
