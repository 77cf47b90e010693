/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest's shell reports as its variables: either refused, or NAME=value entries whose
 * differences from an environment, applied to it, give the same variables again. */
#include "fuzz/fuzz.h"
#include "sandbox/core/session_state.h"
#include "sandbox/core/start_frame.h"

static void check_entries(silt_slice env)
{
    silt_slice one, name;
    demand(env.len == 0 || env.data[env.len - 1] == 0);
    while (env.len > 0 && silt_slice_split(&env, 0, &one)) {
        if (one.len == 0 && env.len == 0)
            return;
        demand(silt_slice_split(&one, '=', &name) && one.data != NULL && name.len > 0);
        demand(name.data[0] < '0' || name.data[0] > '9');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const silt_slice base = {"A=1\0PATH=/bin\0", 14};
    struct silt_error e;
    silt_auto_buf now, kept, again;
    silt_buf_init(&now, SILT_SESSION_ENV_MAX);
    silt_buf_init(&kept, 2 * SILT_SESSION_ENV_MAX);
    silt_buf_init(&again, 2 * SILT_SESSION_ENV_MAX);
    if (silt_session_state_parse((silt_slice){(const char *)data, size}, &now, &e) < 0)
        return 0;
    check_entries(silt_buf_slice(&now));
    silt_session_state_diff(silt_buf_slice(&now), base, (silt_slice){NULL, 0}, &kept);
    silt_buf_add(&again, base);
    silt_session_state_apply(&again, silt_buf_slice(&kept));
    check_entries(silt_buf_slice(&again));
    silt_slice one, rest = silt_buf_slice(&again), name;
    while (rest.len > 0 && silt_slice_split(&rest, 0, &one))
        if (one.len > 0 && silt_slice_split(&one, '=', &name))
            demand(silt_env_find(silt_buf_slice(&now), name).data != NULL);
    return 0;
}
