/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that a reload cannot change. */
#include "base/own.h"
#include "config/row.h"

static const char *const fixed[] = {
    "instance",
    "state",
    "run",
    "images",
    "user",
    "ids.base",
    "ids.count",
    "ids.images",
    "cgroup",
    "listen",
    "preview.listen",
    "engine.socket",
    "engine.mode",
    "engine.group",
    "network",
    "network.ipv4",
    "network.ipv6",
    "network.open",
    "network.connections",
    "network.connections_all",
};

char **silt_config_fixed(const struct silt_config *c)
{
    char **flags = calloc(SILT_COUNT(fixed) + 1, sizeof(char *));
    if (flags == NULL)
        abort();
    for (size_t i = 0; i < SILT_COUNT(fixed); i++)
        flags[i] = silt_row_to_flag(silt_row_find(silt_slice_of(fixed[i])), c);
    return flags;
}

static bool is_fixed(silt_slice name)
{
    for (size_t i = 0; i < SILT_COUNT(fixed); i++)
        if (silt_slice_eq(silt_slice_of(fixed[i]), name))
            return true;
    return false;
}

int silt_config_fix(struct silt_config *c, const char *flag, bool *ret_other, struct silt_error *e)
{
    const char *equals = strchr(flag, '=');
    if (strncmp(flag, "--", 2) != 0 || equals == NULL)
        return silt_fail(e, SILT_PROTOCOL, "a setting that is not --name=value");
    silt_slice name = {flag + 2, (size_t)(equals - flag - 2)};
    if (!is_fixed(name))
        return silt_fail(e, SILT_PROTOCOL, "a setting that a reload does not keep");
    const struct silt_row *r = silt_row_find(name);
    silt_auto_free char *before = silt_row_to_flag(r, c);
    if (silt_row_set(r, c, equals + 1, e) < 0)
        return silt_because(e, "setting %s", r->name);
    /* one that is not set has been derived from others */
    *ret_other = strchr(before, '=')[1] != 0 && strcmp(before, flag) != 0;
    return 0;
}
