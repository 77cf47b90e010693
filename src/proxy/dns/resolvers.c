/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/resolvers.h"
#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>

enum { LOOK_EVERY_MS = 1000, FILE_MAX = 64 << 10 };

static const char file[] = "/etc/resolv.conf";

static bool add(struct silt_resolvers *r, silt_slice text)
{
    char address[INET6_ADDRSTRLEN];
    struct silt_error ignored;
    struct silt_resolver one = {0};
    struct sockaddr_in *four = (void *)&one.address;
    struct sockaddr_in6 *six = (void *)&one.address;
    if (silt_slice_to_cstr(text, address, sizeof(address), &ignored) < 0)
        return false;
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(SILT_RESOLVERS_PORT);
        one.len = sizeof(*four);
    } else if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(SILT_RESOLVERS_PORT);
        one.len = sizeof(*six);
    } else {
        return false;
    }
    if (r->count < SILT_RESOLVERS_MAX)
        r->list[r->count++] = one;
    return true;
}

void silt_resolvers_parse(struct silt_resolvers *r, silt_slice text)
{
    silt_slice line, word;
    r->count = 0;
    while (silt_slice_split(&text, '\n', &line)) {
        line = silt_slice_trim(line);
        if (!silt_slice_starts(line, SILT_LIT("nameserver")))
            continue;
        line.data += sizeof("nameserver") - 1;
        line.len -= sizeof("nameserver") - 1;
        silt_slice rest = silt_slice_trim(line);
        if (rest.len == line.len || !silt_slice_split(&rest, ' ', &word))
            continue; /* another keyword with this prefix, or no value */
        (void)add(r, word);
    }
}

int silt_resolvers_init(struct silt_resolvers *r, const char *setting, struct silt_error *e)
{
    silt_slice rest = silt_slice_of(setting), one;
    *r = (struct silt_resolvers){.fixed = setting[0] != 0};
    while (r->fixed
           && silt_slice_split(&rest, ',', &one)) /* splitting an empty text yields one part */
        if (!add(r, silt_slice_trim(one)))
            return silt_fail(e, SILT_INVALID, "setting network.resolvers: %.*s is no address",
                             (int)one.len, one.data);
    silt_resolvers_refresh(r);
    return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size
           && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void silt_resolvers_refresh(struct silt_resolvers *r)
{
    int64_t now = silt_clock_ms();
    struct silt_error ignored;
    struct stat st;
    char *text = NULL;
    size_t len;
    if (r->fixed || (r->looked_ms != 0 && now - r->looked_ms < LOOK_EVERY_MS))
        return;
    r->looked_ms = now;
    if (stat(file, &st) < 0 || is_same(&st, &r->seen))
        return; /* missing for a moment: keep the resolvers we know */
    if (silt_fd_read_file(AT_FDCWD, file, FILE_MAX, &text, &len, &ignored) < 0)
        return;
    silt_resolvers_parse(r, (silt_slice){text, len});
    r->seen = st;
    free(text);
}
