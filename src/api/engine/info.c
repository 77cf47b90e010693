/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's description of itself: enough for workerd, wrangler and the docker command. */
#include "api/engine/engine.h"
#include "json/json.h"

#include <sys/utsname.h>
#include <unistd.h>

SILT_HANDLER(silt_engine_ping)
{
    (void)args;
    silt_http_reply(r, 200, SILT_LIT("text/plain; charset=utf-8"),
                    SILT_LIT("Api-Version: " SILT_ENGINE_API
                             "\r\nDocker-Experimental: false\r\nOstype: linux\r\n"
                             "Server: Silt/" SILT_VERSION
                             " (linux)\r\nCache-Control: no-cache, no-store, must-revalidate\r\n"),
                    SILT_LIT("OK"));
}

static const char *machine(struct utsname *u)
{
    if (uname(u) < 0)
        memset(u, 0, sizeof(*u));
    return strcmp(u->machine, "x86_64") == 0    ? "amd64"
           : strcmp(u->machine, "aarch64") == 0 ? "arm64"
                                                : u->machine;
}

SILT_HANDLER(silt_engine_version)
{
    struct utsname u;
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("Platform"));
    silt_json_raw(&b, SILT_LIT("{\"Name\":\"Silt\"}"));
    silt_json_add_text(&b, "Version", SILT_VERSION);
    silt_json_add_text(&b, "ApiVersion", SILT_ENGINE_API);
    silt_json_add_text(&b, "MinAPIVersion", SILT_ENGINE_API_MIN);
    silt_json_add_text(&b, "Os", "linux");
    silt_json_add_text(&b, "Arch", machine(&u));
    silt_json_add_text(&b, "KernelVersion", u.release);
    silt_json_key(&b, SILT_LIT("Components"));
    silt_json_open(&b, '[');
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "Name", "Engine");
    silt_json_add_text(&b, "Version", SILT_VERSION);
    silt_json_key(&b, SILT_LIT("Details")); /* all values are strings there */
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "ApiVersion", SILT_ENGINE_API);
    silt_json_add_text(&b, "MinAPIVersion", SILT_ENGINE_API_MIN);
    silt_json_add_text(&b, "Os", "linux");
    silt_json_add_text(&b, "Arch", machine(&u));
    silt_json_add_text(&b, "KernelVersion", u.release);
    silt_json_add_text(&b, "Experimental", "false");
    silt_json_close(&b, '}');
    silt_json_close(&b, '}');
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_engine_answer(r, 200, &b);
}

static void count(struct silt_containers *all, int64_t counts[3])
{
    silt_list_each(it, &all->list)
    {
        const struct silt_container *c = silt_outer(it, struct silt_container, link);
        counts[0]++;
        counts[silt_container_runs(c) ? 1 : 2]++;
    }
}

static size_t count_images(const struct silt_registry *r)
{
    size_t n = 0;
    silt_list_each(it, &r->images) n++;
    return n;
}

/* Never reports rootless: wrangler would then require rights that nobody gets here. */
SILT_HANDLER(silt_engine_info)
{
    struct silt_engine *g = silt_engine_of(r);
    struct utsname u;
    int64_t counts[3] = {0};
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, 8192);
    count(g->all, counts);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "ID", "silt");
    silt_json_add_text(&b, "Name", "silt");
    silt_json_add_i64(&b, "Containers", counts[0]);
    silt_json_add_i64(&b, "ContainersRunning", counts[1]);
    silt_json_add_i64(&b, "ContainersPaused", 0);
    silt_json_add_i64(&b, "ContainersStopped", counts[2]);
    silt_json_add_text(&b, "Driver", "silt");
    silt_json_add_text(&b, "OSType", "linux");
    (void)machine(&u);
    silt_json_add_text(&b, "Architecture", u.machine);
    silt_json_add_text(&b, "KernelVersion", u.release);
    silt_json_add_text(&b, "OperatingSystem", "Silt");
    silt_json_add_text(&b, "ServerVersion", SILT_VERSION);
    silt_json_add_text(&b, "CgroupDriver", "none");
    silt_json_add_text(&b, "DefaultRuntime", "silt");
    silt_json_add_i64(&b, "NCPU", sysconf(_SC_NPROCESSORS_ONLN));
    silt_json_add_i64(&b, "MemTotal", (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    static const char *const fine[] = {
        "MemoryLimit", "SwapLimit", "OomKillDisable", "CpuCfsQuota",      "CpuCfsPeriod",
        "CPUShares",   "CPUSet",    "IPv4Forwarding", "BridgeNfIptables", "BridgeNfIp6tables"};
    for (size_t i = 0; i < SILT_COUNT(fine); i++)
        silt_json_add_bool(&b, fine[i], true); /* false would make docker warn about a setting that
                                                  containers here do not use */
    silt_json_add_i64(&b, "Images", (int64_t)count_images(g->all->registry));
    silt_json_key(&b, SILT_LIT("Plugins"));
    silt_json_raw(
        &b, SILT_LIT("{\"Volume\":[\"local\"],\"Network\":[\"bridge\"],\"Log\":[\"json-file\"]}"));
    silt_json_key(&b, SILT_LIT("Swarm"));
    silt_json_raw(&b, SILT_LIT("{\"LocalNodeState\":\"inactive\"}"));
    silt_json_key(&b, SILT_LIT("SecurityOptions"));
    silt_json_raw(&b, SILT_LIT("[\"name=seccomp,profile=builtin\",\"name=userns\"]"));
    silt_json_key(&b, SILT_LIT("Warnings"));
    silt_json_raw(&b, SILT_LIT("[]"));
    silt_json_close(&b, '}');
    silt_engine_answer(r, 200, &b);
}

/* The gateway is loopback: workerd listens there for traffic of containers, and silt-proxy reaches
 * it without a bridge. */
#define BRIDGE                                                                                     \
    "{\"Name\":\"bridge\",\"Id\":"                                                                 \
    "\"5117b21d9e0000000000000000000000000000000000000000000000000000\","                          \
    "\"Created\":\"2026-01-01T00:00:00Z\",\"Scope\":\"local\",\"Driver\":\"bridge\","              \
    "\"EnableIPv6\":false,"                                                                        \
    "\"IPAM\":{\"Driver\":\"default\",\"Options\":null,\"Config\":[{\"Subnet\":\"172.17.0.0/"      \
    "16\",\"Gateway\":\"127.0.0.1\"}]},"                                                           \
    "\"Internal\":false,\"Attachable\":false,\"Ingress\":false,\"Containers\":{},\"Options\":{},"  \
    "\"Labels\":{}}"

SILT_HANDLER(silt_engine_network)
{
    if (!silt_slice_eq(args[0], SILT_LIT("bridge"))) {
        silt_engine_refuse(r, 404, "network %.*s not found",
                           (int)(args[0].len < 200 ? args[0].len : 200), args[0].data);
        return;
    }
    silt_http_reply(r, 200, SILT_LIT("application/json"), (silt_slice){NULL, 0}, SILT_LIT(BRIDGE));
}

SILT_HANDLER(silt_engine_network_list)
{
    (void)args;
    silt_http_reply(r, 200, SILT_LIT("application/json"), (silt_slice){NULL, 0},
                    SILT_LIT("[" BRIDGE "]"));
}
