/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/image.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

enum { THREADS = 3, ROUNDS = 500 };

struct maker {
    pthread_t thread;
    int images;
    uint32_t staging;
    struct silt_error e;
    bool failed;
};

static void *make_and_discard(void *context)
{
    struct maker *m = context;
    for (int i = 0; i < ROUNDS && !m->failed; i++) {
        silt_auto_fd fd = -1;
        m->failed = silt_image_stage(m->images, m->staging, getuid(), &fd, &m->e) < 0
                    || mkdirat(fd, "x", 0755) < 0
                    || silt_image_discard(m->images, m->staging, &m->e) < 0;
    }
    return NULL;
}

TEST(images_that_go_at_the_same_moment_are_not_in_each_others_way)
{
    char place[] = "/tmp/silt-unit-XXXXXX";
    struct maker makers[THREADS] = {0};
    struct silt_error e;
    assert_non_null(mkdtemp(place));
    silt_auto_fd images = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(images >= 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        makers[i] = (struct maker){.images = images, .staging = i};
        assert_int_equal(pthread_create(&makers[i].thread, NULL, make_and_discard, &makers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(makers[i].thread, NULL), 0);
    assert_int_equal(silt_images_empty_trash(images, &e), 0);
    for (uint32_t i = 0; i < SILT_STAGINGS_MAX; i++)
        (void)silt_image_discard(images, i, &e);
    assert_int_equal(silt_images_empty_trash(images, &e), 0);
    assert_int_equal(rmdir(place), 0);
    for (int i = 0; i < THREADS; i++)
        if (makers[i].failed)
            fail_msg("%s", makers[i].e.text);
}
