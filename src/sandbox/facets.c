/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/facets.h"
#include "sandbox/build/build.h"
#include "sandbox/network/intercept.h"
#include "sandbox/container/container.h"
#include "sandbox/context/context.h"
#include "sandbox/network/egress_channel.h"
#include "sandbox/network/network.h"
#include "sandbox/process/process.h"
#include "sandbox/image/pull.h"
#include "sandbox/context/prestarted.h"
#include "sandbox/context/run_log.h"
#include "sandbox/image/step_cache.h"
#include "sandbox/process/sweep.h"
#include "sandbox/preview/preview_dial.h"
#include "sandbox/file/watch.h"
#include "sandbox/file/worker_pool.h"
#include "sandbox/image/import.h"
#include "sandbox/image/seal.h"
#include "sandbox/image/snapshot.h"
#include "sandbox/image/fork.h"
#include "sandbox/image/undo.h"

static const struct silt_facet *const all[] = {
    &silt_container_facet, /* first: its program must not seem to exit by itself */
    &silt_network_facet,      &silt_egress_facet,
    &silt_intercept_facet,    &silt_preview_dial_facet,
    &silt_exposed_port_facet, &silt_preview_facet,
    &silt_sweep_facet,        &silt_exec_facet,
    &silt_context_facet,      &silt_prestarted_facet, /* after the execs */
    &silt_work_facet,         &silt_watch_facet,
    &silt_session_facet, /* by now no exec or process holds one */
    &silt_process_facet,      &silt_build_facet,
    &silt_pull_facet,         &silt_step_cache_facet,
    &silt_import_facet,       &silt_seal_facet,
    &silt_snapshot_facet,     &silt_fork_facet,
    &silt_run_log_facet,      &silt_undo_facet,
};

const struct silt_facets silt_facets = {.of = all, .count = SILT_COUNT(all)};
