/* SPDX-License-Identifier: Apache-2.0 */
/* own: local variables that own a descriptor or memory and release it on every way out of the
 * scope. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* -1 means none. EINTR is not retried: on Linux the descriptor is closed anyway, and its number may
 * be in use again. */
static inline void silt_close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static inline int silt_take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static inline void silt_free_ptr(void *p)
{
    free(*(void **)p);
}

#define silt_auto_fd __attribute__((cleanup(silt_close_fd))) int
#define silt_auto_free __attribute__((cleanup(silt_free_ptr)))

#define silt_take_ptr(p)                                                                           \
    ({                                                                                             \
        __typeof__(p) *silt_from = &(p);                                                           \
        __typeof__(p) silt_taken = *silt_from;                                                     \
        *silt_from = NULL;                                                                         \
        silt_taken;                                                                                \
    })

#define silt_outer(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define SILT_COUNT(array) (sizeof(array) / sizeof((array)[0]))
