/* SPDX-License-Identifier: Apache-2.0 */
#include "super/certificate.h"
#include "base/log.h"
#include "base/own.h"
#include "super/instance_dirs.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
    LOOK_MS = 1000,
    FILE_MAX = 256 << 10, /* what silt-proxy reads of each */
};

static const char *path_of(const struct silt_config *config, int which)
{
    return which == 0 ? config->preview_certificate : config->preview_key;
}

static bool is_set(const struct silt_config *config)
{
    return config->preview_certificate[0] != 0;
}

/* Files. */

static int check_file(int fd, bool key, struct silt_error *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "stat");
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return silt_fail(e, SILT_INVALID, "not a plain file of at most %d bytes", FILE_MAX);
    if (key && (st.st_mode & 0007) != 0)
        return silt_fail(e, SILT_DENIED, "everybody can read it: chmod 600");
    return 0;
}

static int open_file(const char *path, bool key, int *ret, struct silt_error *e)
{
    /* an open must not block on a FIFO */
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", path);
    if (check_file(fd, key, e) < 0)
        return silt_because(e, "%s", path);
    *ret = silt_take_fd(&fd);
    return 0;
}

int silt_certificate_files(const struct silt_config *config, int ret_fds[SILT_CERTIFICATE_FILES],
                           struct silt_error *e)
{
    silt_auto_fd first = -1;
    if (open_file(path_of(config, 0), false, &first, e) < 0)
        return silt_because(e, "setting preview.certificate");
    if (open_file(path_of(config, 1), true, &ret_fds[1], e) < 0)
        return silt_because(e, "setting preview.key");
    ret_fds[0] = silt_take_fd(&first);
    return 0;
}

int silt_certificate_check(const struct silt_config *config, struct silt_error *e)
{
    int fds[SILT_CERTIFICATE_FILES];
    if (!is_set(config))
        return 0;
    if (silt_certificate_files(config, fds, e) < 0)
        return -1;
    for (int i = 0; i < SILT_CERTIFICATE_FILES; i++)
        silt_close_fd(&fds[i]);
    return 0;
}

/* Changes. */

static bool is_same(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool are_same(const struct silt_certificate_stamp *a, const struct silt_certificate_stamp *b)
{
    for (int i = 0; i < SILT_CERTIFICATE_FILES; i++)
        if (a[i].device != b[i].device || a[i].inode != b[i].inode || a[i].size != b[i].size
            || !is_same(&a[i].written, &b[i].written) || !is_same(&a[i].changed, &b[i].changed))
            return false;
    return true;
}

/* By path, following symlinks; a missing file is all zeroes. */
static void look_at(const struct silt_config *config,
                    struct silt_certificate_stamp out[SILT_CERTIFICATE_FILES])
{
    for (int i = 0; i < SILT_CERTIFICATE_FILES; i++) {
        struct stat st;
        out[i] = (struct silt_certificate_stamp){0};
        if (stat(path_of(config, i), &st) == 0)
            out[i] = (struct silt_certificate_stamp){.device = st.st_dev,
                                                     .inode = st.st_ino,
                                                     .size = st.st_size,
                                                     .written = st.st_mtim,
                                                     .changed = st.st_ctim};
    }
}

/* The two files are not written atomically: they are sent once both have been unchanged for a
 * while. */
static void on_look(struct silt_timer *t)
{
    struct silt_certificate *c = silt_outer(t, struct silt_certificate, look);
    struct silt_certificate_stamp now[SILT_CERTIFICATE_FILES];
    look_at(c->config, now);
    bool calm = are_same(now, c->seen);
    memcpy(c->seen, now, sizeof(now));
    silt_loop_after(c->loop, &c->look, LOOK_MS);
    if (!calm || are_same(now, c->told))
        return;
    silt_log(SILT_LOG_INFO, "certificate.changed", "file=%s", c->config->preview_certificate);
    c->due = true;
    c->on_due(c);
}

void silt_certificate_open(struct silt_certificate *c)
{
    c->look.on_time = on_look;
    if (!is_set(c->config))
        return;
    look_at(c->config, c->seen);
    silt_loop_after(c->loop, &c->look, LOOK_MS);
}

void silt_certificate_close(struct silt_certificate *c)
{
    silt_loop_cancel(c->loop, &c->look);
    silt_instance_dirs_untell(c->config, "preview-certificate");
}

void silt_certificate_renew(struct silt_certificate *c)
{
    c->due = is_set(c->config);
    c->asked = 0;
}

/* Results. */

static void write_down(struct silt_certificate *c)
{
    char text[sizeof(c->used) + sizeof(c->refused)];
    struct silt_error e;
    (void)snprintf(text, sizeof(text), "%s%s", c->used, c->refused);
    if (silt_instance_dirs_tell(c->config, "preview-certificate", text, &e) < 0)
        silt_log(SILT_LOG_WARN, "certificate.tell", "error=\"%s\"", e.text);
}

static void refuse(struct silt_certificate *c, const char *why)
{
    (void)snprintf(c->refused, sizeof(c->refused), "refused %.300s\n", why);
    silt_log(SILT_LOG_ERROR, "certificate.refused", "error=\"%s\" still_used=%s", why,
             c->used[0] != 0 ? "the one before" : "none");
    write_down(c);
}

bool silt_certificate_take(struct silt_certificate *c, int ret_fds[SILT_CERTIFICATE_FILES])
{
    struct silt_error e;
    c->due = false;
    look_at(c->config, c->told);
    memcpy(c->seen, c->told, sizeof(c->seen));
    if (silt_certificate_files(c->config, ret_fds, &e) == 0) {
        c->asked++;
        return true;
    }
    refuse(c, e.text);
    return false;
}

void silt_certificate_told(struct silt_certificate *c, const struct silt_super_told *told)
{
    char text[SILT_LOG_QUOTE_SIZE];
    if (c->asked == 0) /* a compromised silt-preview could make us write forever */
        return;
    c->asked--;
    silt_slice said = {told->text, strnlen(told->text, sizeof(told->text))};
    (void)silt_log_quote(said, text);
    if (told->used == 0) {
        refuse(c, text);
        return;
    }
    (void)snprintf(c->used, sizeof(c->used), "used %lld %s\n", (long long)told->until_s, text);
    c->refused[0] = 0;
    silt_log(SILT_LOG_INFO, "certificate.used", "name=%s until=%lld", text,
             (long long)told->until_s);
    write_down(c);
}
