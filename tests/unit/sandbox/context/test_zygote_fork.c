/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/zygote_fork.h"
#include "base/own.h"
#include "unit/base/unit.h"

TEST(what_no_program_looks_at_when_it_starts_suits)
{
    assert_true(silt_zygote_fork_env_suits((silt_slice){NULL, 0}));
    assert_true(silt_zygote_fork_env_suits(
        SILT_LIT("A=1\0PATH=/x\0PYTHONPATH=/y\0PYTHONUNBUFFERED=1\0NOTHING\0=\0LATE=1\0")));
}

TEST(locales_in_utf8_suit_and_others_do_not)
{
    assert_true(silt_zygote_fork_env_suits(
        SILT_LIT("LANG=C.UTF-8\0LC_ALL=de_DE.utf8\0LC_TIME=\0LANGUAGE=de:en\0")));
    assert_false(silt_zygote_fork_env_suits(SILT_LIT("LANG=C\0")));
    assert_false(silt_zygote_fork_env_suits(SILT_LIT("LC_ALL=de_DE.ISO-8859-1\0")));
    assert_false(silt_zygote_fork_env_suits(SILT_LIT("LANG=.UTF-8\0")));
    assert_false(silt_zygote_fork_env_suits(SILT_LIT("A=1\0LC_CTYPE=POSIX\0")));
    assert_false(silt_zygote_fork_env_suits(SILT_LIT("LANGUAGES=C.UTF-8\0")));
}

TEST(what_is_read_once_does_not_suit)
{
    static const char *const variables[] = {
        "LD_PRELOAD=x",     "LD_LIBRARY_PATH=",  "MALLOC_ARENA_MAX=1",
        "GLIBC_TUNABLES=x", "OPENSSL_CONF=/x",   "MPLCONFIGDIR=/x",
        "MATPLOTLIBRC=/x",  "MKL_NUM_THREADS=1", "LD_",
        "LANG=POSIX",       "MPLBACKEND=TkAgg",  "OMP_NUM_THREADS=0",
        "OMP_NUM_THREADS",  "OMP_DYNAMIC=true",  "OPENBLAS_NUM_THREADS=1,2"};
    for (size_t i = 0; i < SILT_COUNT(variables); i++)
        assert_false(silt_zygote_fork_env_suits(silt_slice_of(variables[i])));
    assert_true(silt_zygote_fork_env_suits(
        SILT_LIT("MPLBACKEND=Agg\0OMP_NUM_THREADS=2\0OPENBLAS_NUM_THREADS=1\0")));
}
