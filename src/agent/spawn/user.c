/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/user.h"
#include "agent/spawn/script.h"
#include "agent/spawn/start_frame.h"
#include "base/own.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    IDS = 65536,           /* number of ids in a sandbox; no others exist */
    FILE_MAX = 1 << 20,    /* bytes of a file to read */
    LINE_MAX_BYTES = 8192, /* longer lines are skipped */
};

/* ---- lines ---- */

struct lines {
    int fd;
    size_t seen; /* bytes of the file read so far */
    size_t at, len;
    bool skipping; /* within a line that is too long */
    char text[LINE_MAX_BYTES];
};

static bool fill(struct lines *l)
{
    l->len -= l->at;
    memmove(l->text, l->text + l->at, l->len);
    l->at = 0;
    if (l->len == sizeof(l->text)) {
        l->skipping = true;
        l->len = 0;
    }
    if (l->fd < 0 || l->seen >= FILE_MAX)
        return false;
    ssize_t n = read(l->fd, l->text + l->len, sizeof(l->text) - l->len);
    if (n <= 0)
        return false;
    l->seen += (size_t)n;
    l->len += (size_t)n;
    return true;
}

static bool next_line(struct lines *l, silt_slice *ret)
{
    for (;;) {
        const char *from = l->text + l->at;
        const char *end = memchr(from, '\n', l->len - l->at);
        if (end == NULL && fill(l))
            continue;
        *ret = (silt_slice){l->text + l->at, end != NULL ? (size_t)(end - from) : l->len - l->at};
        l->at += ret->len + (end != NULL);
        bool whole = !l->skipping;
        l->skipping = false;
        if (whole && ret->len > 0)
            return true;
        if (end == NULL)
            return false;
    }
}

static bool to_id(silt_slice text, uint32_t *ret)
{
    struct silt_error e;
    uint64_t n;
    if (silt_slice_to_u64(text, 0, UINT32_MAX - 1, &n, &e) < 0) /* -1 means "leave it" to setuid */
        return false;
    *ret = (uint32_t)n;
    return true;
}

/* ---- /etc/passwd: name:password:uid:gid:comment:home:shell ---- */

struct entry {
    silt_slice name, home;
    uid_t uid;
    gid_t gid;
};

static bool parse_entry(silt_slice line, struct entry *ret)
{
    silt_slice uid, gid, skip;
    if (!silt_slice_split(&line, ':', &ret->name) || !silt_slice_split(&line, ':', &skip)
        || !silt_slice_split(&line, ':', &uid) || !silt_slice_split(&line, ':', &gid)
        || !silt_slice_split(&line, ':', &skip) || !silt_slice_split(&line, ':', &ret->home))
        return false;
    return ret->name.len > 0 && to_id(uid, &ret->uid) && to_id(gid, &ret->gid);
}

static int find_entry(int passwd, silt_slice name, const uid_t *uid, struct silt_user *ret)
{
    struct lines l = {.fd = passwd};
    struct silt_error e;
    silt_slice line;
    struct entry it;
    while (next_line(&l, &line)) {
        if (!parse_entry(line, &it)
            || (uid != NULL ? it.uid != *uid : !silt_slice_eq(it.name, name)))
            continue;
        if (silt_slice_to_cstr(it.name, ret->name, sizeof(ret->name), &e) < 0
            || silt_slice_to_cstr(it.home, ret->home, sizeof(ret->home), &e) < 0)
            continue;
        ret->uid = it.uid;
        ret->gid = it.gid;
        return 0;
    }
    ret->name[0] = 0;
    return -1;
}

/* ---- /etc/group: name:password:gid:member,member ---- */

static bool has_member(silt_slice members, silt_slice name)
{
    silt_slice one;
    while (silt_slice_split(&members, ',', &one))
        if (silt_slice_eq(one, name))
            return true;
    return false;
}

static void find_groups(int group, struct silt_user *u)
{
    struct lines l = {.fd = group};
    silt_slice line, skip, gid;
    uint32_t id;
    u->groups[0] = u->gid;
    u->ngroups = 1;
    while (u->ngroups < SILT_USER_GROUPS_MAX && next_line(&l, &line)) {
        if (!silt_slice_split(&line, ':', &skip) || !silt_slice_split(&line, ':', &skip)
            || !silt_slice_split(&line, ':', &gid) || !to_id(gid, &id))
            continue;
        if (id < IDS && id != u->gid && has_member(line, silt_slice_of(u->name)))
            u->groups[u->ngroups++] = id;
    }
}

static bool find_group(int group, silt_slice name, gid_t *ret)
{
    struct lines l = {.fd = group};
    silt_slice line, one, skip, gid;
    while (next_line(&l, &line))
        if (silt_slice_split(&line, ':', &one) && silt_slice_eq(one, name)
            && silt_slice_split(&line, ':', &skip) && silt_slice_split(&line, ':', &gid)
            && to_id(gid, ret))
            return true;
    return to_id(name, ret);
}

/* ---- lookup ---- */

int silt_user_find(const char *text, int passwd, int group, struct silt_user *ret,
                   struct silt_error *e)
{
    silt_slice group_name = silt_slice_of(text), name;
    uint32_t uid = 0;
    *ret = (struct silt_user){.home = "/"};
    (void)silt_slice_split(&group_name, ':', &name);
    bool is_number = to_id(name, &uid);
    bool known = find_entry(passwd, name, is_number ? &uid : NULL, ret) == 0;
    if (!known && !is_number)
        return silt_fail(e, SILT_NOT_FOUND, "no user '%s' in this image", text);
    ret->uid = is_number ? uid : ret->uid;
    if (group_name.data != NULL && !find_group(group, group_name, &ret->gid))
        return silt_fail(e, SILT_NOT_FOUND, "no group of user '%s' in this image", text);
    if (ret->uid >= IDS || ret->gid >= IDS)
        return silt_fail(e, SILT_DENIED,
                         "user '%s' is %u:%u, but a sandbox has numbers below %d only", text,
                         (unsigned)ret->uid, (unsigned)ret->gid, IDS);
    if (group_name.data == NULL && known)
        find_groups(group, ret);
    return 0;
}

/* A FIFO would block us; anything but a regular file counts as missing. */
static int open_file(const char *path)
{
    struct stat st;
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? silt_take_fd(&fd) : -1;
}

int silt_user_look_up(const char *text, struct silt_user *ret, struct silt_error *e)
{
    silt_auto_fd passwd = open_file("/etc/passwd");
    silt_auto_fd group = open_file("/etc/group");
    return silt_user_find(text, passwd, group, ret, e);
}

/* ---- variables ---- */

static struct variables {
    char home[PATH_MAX + 8], name[SILT_USER_NAME_MAX + 8], login[SILT_USER_NAME_MAX + 12];
    char *envp[SILT_START_FRAME_ENV_MAX + 4];
} vars;

static void name_variables(const struct silt_user *u)
{
    (void)snprintf(vars.home, sizeof(vars.home), "HOME=%s", u->home);
    (void)snprintf(vars.name, sizeof(vars.name), "USER=%s", u->name);
    (void)snprintf(vars.login, sizeof(vars.login), "LOGNAME=%s", u->name);
}

static bool is_set(char *const *envp, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;
    while (*envp != NULL && strncmp(*envp, variable, len) != 0)
        envp++;
    return *envp != NULL;
}

char *const *silt_user_envp(const struct silt_user *u, char *const *envp)
{
    char *const more[] = {vars.home, vars.name, vars.login};
    size_t count = 0, known = u->name[0] != 0 ? 3 : 1;
    name_variables(u);
    for (; envp[count] != NULL && count < SILT_START_FRAME_ENV_MAX; count++)
        vars.envp[count] = envp[count];
    for (size_t i = 0; i < known; i++)
        if (!is_set(envp, more[i]))
            vars.envp[count++] = more[i];
    vars.envp[count] = NULL;
    return vars.envp;
}

static int dup_state(void *arg)
{
    return fcntl(*(int *)arg, F_DUPFD_CLOEXEC, 0);
}

static void put_variable(struct silt_script *s, const char *variable)
{
    silt_script_add_env(s, (silt_slice){variable, strlen(variable) + 1});
}

/* A readonly HOME stays, and is not an error. */
int silt_user_put(const struct silt_user *u, int state, struct silt_error *e)
{
    static struct silt_script s;
    name_variables(u);
    silt_script_init(&s, dup_state, &state);
    silt_script_expect(&s, silt_slice_of(u->home));
    silt_script_add_c(&s, "\\command export ");
    put_variable(&s, vars.home);
    if (u->name[0] != 0) {
        put_variable(&s, vars.name);
        put_variable(&s, vars.login);
    }
    silt_script_add_c(&s, "|| :\n");
    if (u->name[0] == 0)
        silt_script_add_c(&s, "\\command unset -v USER LOGNAME || :\n");
    if (lseek(state, 0, SEEK_END) < 0 || fchown(state, u->uid, u->gid) < 0)
        return silt_fail_errno(e, "hand over the session's state");
    if (silt_script_flush(&s) ? s.broken : write(state, s.text, s.len) != (ssize_t)s.len)
        return silt_fail(e, SILT_NO_SPACE, "the session's state could not be written");
    return 0;
}

int silt_user_become(const struct silt_user *u, struct silt_error *e)
{
    if (setgroups(u->ngroups, u->groups) < 0 || setresgid(u->gid, u->gid, u->gid) < 0
        || setresuid(u->uid, u->uid, u->uid) < 0)
        return silt_fail_errno(e, "become user %u:%u", (unsigned)u->uid, (unsigned)u->gid);
    return 0;
}
