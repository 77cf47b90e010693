/* SPDX-License-Identifier: Apache-2.0 */
/* silt-fetch: reads its order and an archive from descriptor 0, unpacks the archive into the
 * current directory and writes the result to descriptor 3: a struct silt_fetch_result, then the
 * image's configuration and names. Or it packs the current directory into an archive on descriptor
 * 1. Started by silt-priv as root of a user namespace with 65,536 ids. */
#include "fetch/archive.h"
#include "fetch/jail.h"
#include "fetch/export.h"
#include "fetch/manifest.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { SAID_MAX = SILT_MANIFEST_SAID_MAX + SILT_MANIFEST_NAMES_MAX * SILT_REFERENCE_SIZE };

/* An image is published by renaming its directory: all of it must be on disk before. */
static int settle(struct silt_error *e)
{
    silt_auto_fd root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return silt_fail_errno(e, "open the output directory");
    if (fchmod(root, 0755) < 0)
        return silt_fail_errno(e, "set the mode of the output directory");
    if (syncfs(root) < 0)
        return silt_fail_errno(e, "write the image to the disk");
    return 0;
}

static int read_whole(char *at, size_t left, struct silt_error *e)
{
    while (left > 0) {
        ssize_t n = read(SILT_JAIL_INPUT, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return silt_fail(e, SILT_PROTOCOL, "no order");
        at += n;
        left -= (size_t)n;
    }
    return 0;
}

static int read_order(struct silt_fetch_order *ret, struct silt_error *e)
{
    if (read_whole((char *)ret, sizeof(*ret), e) < 0)
        return -1;
    ret->image[sizeof(ret->image) - 1] = 0;
    if (ret->kind >= SILT_FETCH_KIND_MAX || ret->format >= SILT_FETCH_FORMAT_MAX)
        return silt_fail(e, SILT_PROTOCOL, "order %u of format %u", ret->kind, ret->format);
    return 0;
}

static int pack(const struct silt_fetch_order *order, struct silt_fetch_result *ret,
                struct silt_error *e)
{
    if (order->config_size > SILT_MANIFEST_SAID_MAX)
        return silt_fail(e, SILT_PROTOCOL, "configuration of %u bytes", order->config_size);
    silt_auto_free char *config = malloc(order->config_size + 1);
    if (!config)
        return silt_fail(e, SILT_LIMIT, "no memory");
    if (read_whole(config, order->config_size, e) < 0)
        return -1;
    return silt_export(order, (silt_slice){config, order->config_size}, SILT_JAIL_OUTPUT, ret, e);
}

static int fetch(struct silt_fetch_result *ret, struct silt_buf *said, struct silt_error *e)
{
    struct silt_fetch_order order;
    if (silt_jail_enter(e) < 0)
        return silt_because(e, "enter the cage");
    if (read_order(&order, e) < 0)
        return -1;
    if (order.kind == SILT_FETCH_PACK)
        return pack(&order, ret, e);
    if (silt_archive_unpack(SILT_JAIL_INPUT, &order, &silt_archive_defaults, ret, said, e) < 0)
        return -1;
    return settle(e);
}

int main(void)
{
    static struct silt_fetch_result result;
    struct silt_error e = {0};
    silt_auto_buf said;
    silt_buf_init(&said, SAID_MAX);
    result.ok = fetch(&result, &said, &result.error) == 0;
    if (!result.ok) {
        silt_buf_clear(&said);
        result.config_size = result.names_size = 0;
    }
    silt_slice bytes = {(const char *)&result, sizeof(result)};
    silt_jail_tell();
    if (silt_fd_write_all(SILT_JAIL_RESULT, bytes, &e) < 0
        || silt_fd_write_all(SILT_JAIL_RESULT, silt_buf_slice(&said), &e) < 0)
        return 2;
    return result.ok ? 0 : 1;
}
