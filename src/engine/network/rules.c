/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/rules.h"
#include "base/own.h"
#include "base/ip_prefix.h"
#include "base/test_switch.h"
#include "wire/priv.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum {
    SHARDS_MAX = 1024,
    SHARD_SIZE = 64,
    SHARE = 16, /* connections each sandbox may open above the common threshold */
};

/* A line, and the test switch that removes it. */
struct line {
    const char *rule, *protection;
};

/* Every check of the mode comes before "established": a change of mode then also stops existing
 * connections, and nothing has to be searched for and ended. The set of closed destinations never
 * changes while there is a gateway, so it is checked only for new connections and for packets that
 * belong to none.
 *
 * The first rules of a chain pass the most frequent packets by comparing numbers only: each of them
 * checks everything that the rules after it would check. */
static const struct line gate[] = {
    /* The source must be the address that is routed to this link. Fragments were reassembled
     * before; packets that still have an extension header or options are not legitimate. */
    {"chain arrive { type filter hook prerouting priority raw; policy accept; }", NULL},
    {"rule arrive iifgroup $uplink accept", NULL},
    {"rule arrive iifname \"v*\" fib saddr . iif oif missing counter drop", "net_source"},
    {"rule arrive ip hdrlength 5 ip protocol tcp accept", NULL},
    {"rule arrive ip6 nexthdr tcp accept", NULL},
    {"rule arrive iifname \"v*\" meta nfproto ipv6 ip6 nexthdr != { tcp, udp, icmpv6 } counter "
     "drop",
     "net_protocols"},
    {"rule arrive iifname \"v*\" meta nfproto ipv4 ip protocol != { tcp, udp, icmp } counter drop",
     "net_protocols"},
    {"rule arrive iifname \"v*\" ip hdrlength != 5 counter drop", "net_options"},

    /* DNS queries and all connections of a link in mode allow go to sockets of their own, so their
     * reader knows the mode. Added by silt_rules_gate. */
    {"chain divert { type nat hook prerouting priority dstnat; policy accept; }", NULL},

    /* A reset takes effect at once on new and old connections; an ICMP error does not while the
     * client is still inside connect. */
    {"chain refuse", NULL},
    {"rule refuse counter", NULL},
    {"rule refuse meta l4proto tcp reject with tcp reset", NULL},
    {"rule refuse reject with icmpx admin-prohibited", NULL},

    /* Refused and logged, rate-limited per link. The prefix is enum silt_nflog_prefix. */
    {"chain wrong_mode", NULL},
    {"rule wrong_mode update @told { iifname limit rate 20/second burst 40 packets }"
     " log prefix \"mode\" group 1 snaplen 64",
     NULL},
    {"rule wrong_mode goto refuse", NULL},
    {"chain closed", NULL},
    {"rule closed update @told { iifname limit rate 20/second burst 40 packets }"
     " log prefix \"closed\" group 1 snaplen 64",
     NULL},
    {"rule closed goto refuse", NULL},
    {"chain too_many", NULL},
    {"rule too_many update @told { iifname limit rate 20/second burst 40 packets }"
     " log prefix \"limit\" group 1 snaplen 64",
     NULL},
    {"rule too_many goto refuse", NULL},

    /* Is this destination allowed? */
    {"chain reach", NULL},
    {"rule reach ip daddr @open4 return", NULL},
    {"rule reach ip6 daddr @open6 return", NULL},
    {"rule reach ip daddr @closed4 goto closed", "net_closed"},
    {"rule reach ip6 daddr @closed6 goto closed", "net_closed"},

    /* A new connection, to the internet or to the gateway: each takes an entry in the gateway's
     * table. silt_rules_gate and silt_rules_crowd add the rules with limits. */
    {"chain count", NULL},

    {"chain begin", NULL},
    {"rule begin jump count", NULL},
    {"rule begin icmp type != echo-request goto wrong_mode", "net_protocols"},
    {"rule begin icmpv6 type != echo-request goto wrong_mode", "net_protocols"},
    {"rule begin log group 2 snaplen 1 accept", NULL}, /* counted by silt-proxy */

    {"chain out", NULL},
    {"rule out oifname != \"up\" goto closed", "net_neighbours"},
    {"rule out iifgroup != $public goto wrong_mode", "net_modes"},
    {"rule out jump reach", NULL},
    {"rule out ct state established,related accept", NULL},
    {"rule out ct state new goto begin", NULL},
    {"rule out drop", NULL},

    {"chain back", NULL},
    {"rule back iifname != \"up\" drop", NULL},
    {"rule back oifgroup != $public drop", "net_modes"},
    {"rule back ct state established,related accept", NULL},
    {"rule back drop", NULL},

    {"chain forward { type filter hook forward priority filter; policy drop; }", NULL},
    {"rule forward iifgroup $uplink oifgroup $public ct state established,related accept", NULL},
    {"rule forward iifgroup $public oifgroup $uplink ct state established accept", NULL},
    {"rule forward iifname \"v*\" goto out", NULL},
    {"rule forward oifname \"v*\" goto back", NULL},

    /* From a link in mode allow only diverted packets pass. */
    {"chain serve", NULL},
    {"rule serve ct status & dnat == 0 goto wrong_mode", NULL},
    {"rule serve ct state established,related accept", NULL},
    {"rule serve jump count", NULL},
    {"rule serve accept", NULL},

    /* The gateway itself answers only DNS queries and pings. */
    {"chain ask", NULL},
    {"rule ask iifgroup $allow goto serve", NULL},
    {"rule ask iifgroup != $public goto wrong_mode", "net_modes"},
    {"rule ask ct status dnat meta l4proto udp goto refuse", NULL}, /* started in mode allow */
    {"rule ask ct state established,related,untracked accept", NULL},
    /* for a response that came too late */
    {"rule ask icmp type destination-unreachable drop", NULL},
    {"rule ask icmpv6 type destination-unreachable drop", NULL},
    {"rule ask jump count", NULL},
    {"rule ask meta l4proto { tcp, udp } th dport 53 accept", NULL},
    {"rule ask icmp type echo-request accept", NULL},
    {"rule ask icmpv6 type echo-request accept", NULL},
    {"rule ask goto closed", NULL},
    {"chain input { type filter hook input priority filter; policy drop; }", NULL},
    {"rule input iifname \"v*\" goto ask", NULL},
    {"rule input ct state established,related accept", NULL},

    /* Responses to untracked queries. */
    {"chain answer { type filter hook output priority raw; policy accept; }", NULL},

    /* A router announces the multicast groups it listens to. Nobody here needs that, and a link
     * must be silent until its sandbox sends. */
    {"chain speak { type filter hook output priority filter; policy accept; }", NULL},
    {"rule speak icmpv6 type { mld-listener-report, mld2-listener-report } drop", NULL},
    /* silt-proxy's connections obey the same rules, and a change of mode ends them too. */
    {"rule speak oifname \"up\" jump reach", NULL},
    {"rule speak oifgroup $none meta l4proto tcp tcp flags & rst == 0 drop", "net_modes"},
    {"rule speak oifgroup $none meta l4proto udp drop", "net_modes"},

    {"chain leave { type nat hook postrouting priority srcnat; policy accept; }", NULL},
    {"rule leave oifname \"up\" masquerade", NULL},
};

/* "chain NAME ..." becomes "add chain inet TABLE NAME ...". */
static void add_line(struct silt_buf *out, const char *table, const char *rule)
{
    silt_slice rest = silt_slice_of(rule), word;
    (void)silt_slice_split(&rest, ' ', &word);
    silt_buf_addf(out, "add %.*s inet %s %.*s\n", (int)word.len, word.data, table, (int)rest.len,
                  rest.data);
}

static void add_lines(struct silt_buf *out)
{
    for (size_t i = 0; i < SILT_COUNT(gate); i++)
        if (gate[i].protection == NULL || !silt_without(gate[i].protection))
            add_line(out, "silt", gate[i].rule);
}

static void add_network(struct silt_buf *out, const silt_ip *ip, unsigned bits)
{
    char text[INET6_ADDRSTRLEN] = "";
    (void)inet_ntop(ip->family, ip->bytes, text, sizeof(text));
    silt_buf_addf(out, "add element inet silt open%d { %s/%u }\n", ip->family == AF_INET ? 4 : 6,
                  text, bits);
}

static void add_closed(struct silt_buf *out, int family)
{
    silt_buf_addf(out, "add set inet silt closed%d { type ipv%d_addr; flags interval; elements = {",
                  family, family);
    const char *comma = "";
    for (const char *const *it = silt_ip_prefix_closed; *it != NULL; it++) {
        if ((strchr(*it, ':') != NULL) != (family == 6))
            continue;
        silt_buf_addf(out, "%s %s", comma, *it);
        comma = ",";
    }
    silt_buf_addf(out, " } }\n");
}

/* out NULL: only checks. */
static int each_open(struct silt_buf *out, const char *open, struct silt_error *e)
{
    silt_slice rest = silt_slice_of(open), one;
    char text[64];
    silt_ip ip;
    unsigned bits;
    while (silt_slice_split(&rest, ',', &one)) {
        one = silt_slice_trim(one);
        if (one.len == 0)
            continue;
        if (silt_slice_to_cstr(one, text, sizeof(text), e) < 0)
            return -1;
        int family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
        if (silt_plan_network(text, family, &ip, &bits, e) < 0)
            return -1;
        if (out != NULL)
            add_network(out, &ip, bits);
    }
    return 0;
}

int silt_rules_check_open(const char *open, struct silt_error *e)
{
    return each_open(NULL, open, e);
}

static void add_divert(struct silt_buf *out, const struct silt_plan *plan, int family)
{
    const char *ip = family == AF_INET ? "ip" : "ip6";
    char gateway[INET6_ADDRSTRLEN] = "", to[INET6_ADDRSTRLEN + 2];
    silt_ip at = silt_plan_ip(plan, family, 1);
    (void)inet_ntop(family, at.bytes, gateway, sizeof(gateway));
    (void)snprintf(to, sizeof(to), family == AF_INET ? "%s" : "[%s]", gateway);
    silt_buf_addf(out,
                  "add rule inet silt divert iifgroup %d %s daddr %s meta l4proto { tcp, udp }"
                  " th dport %d dnat %s to %s:%d\n",
                  SILT_NET_ALLOW, ip, gateway, SILT_RULES_DNS_PORT, ip, to,
                  SILT_RULES_ALLOW_DNS_PORT);
    silt_buf_addf(out,
                  "add rule inet silt divert iifgroup %d meta nfproto %s meta l4proto tcp"
                  " dnat %s to %s:%d\n",
                  SILT_NET_ALLOW, family == AF_INET ? "ipv4" : "ipv6", ip, to,
                  SILT_RULES_ALLOW_PORT);
}

/* DNS queries in mode public and their responses are not tracked: hundreds per minute are usual,
 * and each would take a table entry until it expires. silt-proxy limits them. These are the last
 * rules of `arrive`: invalid packets have been dropped before. */
static void add_names(struct silt_buf *out, const struct silt_plan *plan, int family)
{
    const char *ip = family == AF_INET ? "ip" : "ip6";
    char gateway[INET6_ADDRSTRLEN] = "";
    silt_ip at = silt_plan_ip(plan, family, 1);
    (void)inet_ntop(family, at.bytes, gateway, sizeof(gateway));
    silt_buf_addf(out, "add rule inet silt arrive iifgroup %d %s daddr %s udp dport %d notrack\n",
                  SILT_NET_PUBLIC, ip, gateway, SILT_RULES_DNS_PORT);
    silt_buf_addf(out, "add rule inet silt answer %s saddr %s udp sport %d notrack\n", ip, gateway,
                  SILT_RULES_DNS_PORT);
}

void silt_rules_gate(struct silt_buf *out, const struct silt_rules_gate *r)
{
    struct silt_error ignored;
    silt_buf_addf(out,
                  "define none = %d\ndefine public = %d\ndefine allow = %d\ndefine uplink = %d\n",
                  SILT_NET_NONE, SILT_NET_PUBLIC, SILT_NET_ALLOW, SILT_PLAN_UPLINK_GROUP);
    silt_buf_addf(out, "add table inet silt\n"
                       "add set inet silt connections { type ifname; size 65535; flags dynamic; }\n"
                       "add set inet silt told { type ifname; size 65535; flags dynamic,timeout;"
                       " timeout 5s; }\n"
                       "add set inet silt open4 { type ipv4_addr; flags interval; auto-merge; }\n"
                       "add set inet silt open6 { type ipv6_addr; flags interval; auto-merge; }\n");
    add_closed(out, 4);
    add_closed(out, 6);
    (void)each_open(out, r->open, &ignored);
    add_lines(out);
    if (!r->ipv6) /* a refusal is better than a timeout */
        silt_buf_addf(out, "insert rule inet silt reach meta nfproto ipv6 goto closed\n");
    add_divert(out, r->plan, AF_INET);
    add_names(out, r->plan, AF_INET);
    if (r->plan->ipv6) {
        add_divert(out, r->plan, AF_INET6);
        add_names(out, r->plan, AF_INET6);
    }
    if (!silt_without("net_limit"))
        silt_buf_addf(out,
                      "add rule inet silt count add @connections { iifname ct count over %u }"
                      " goto too_many\n",
                      r->connections); /* nft has no name for this number */
}

/* The kernel counts by walking a list, so the connections are distributed over shards, by an id
 * that sandboxes cannot choose. */
static uint32_t shards_for(uint32_t all)
{
    uint32_t shards = 2;
    while (shards < SHARDS_MAX && all / shards > SHARD_SIZE)
        shards *= 2;
    return shards;
}

void silt_rules_crowd(struct silt_buf *out, uint32_t all)
{
    uint32_t shards = shards_for(all);
    uint32_t each = all / shards > 0 ? all / shards : 1;
    if (silt_without("net_crowd"))
        return;
    silt_buf_addf(
        out,
        "add set inet silt shards { type mark; size %u; flags dynamic; }\n"
        "add set inet silt full { type mark; size %u; flags dynamic; }\n"
        "add set inet silt share { type ifname; size 65535; flags dynamic; }\n"
        "add chain inet silt crowded\n"
        "add rule inet silt crowded add @share { iifname ct count over %d } goto too_many\n"
        "add rule inet silt crowded add @full { meta mark ct count over %u } goto too_many\n",
        shards, shards, SHARE, each);
    silt_buf_addf(
        out,
        "add rule inet silt count meta mark set ct id and 0x%x\n"
        "add rule inet silt count add @shards { meta mark ct count over %u } goto crowded\n",
        shards - 1, each);
}

/* Packets that arrive on an interface that forwards only because of us, and do not belong to a
 * connection, are not forwarded: the machine is no more of a router than before. Ports that the
 * machine redirects on purpose are left alone. */
static void add_guards(struct silt_buf *out, const struct silt_rules_outside *r)
{
    for (size_t i = 0; i < r->nopened; i++) {
        const struct silt_uplink_opened *o = &r->opened[i];
        const char *family = o->four && o->six ? ""
                             : o->four         ? "meta nfproto ipv4 "
                                               : "meta nfproto ipv6 ";
        silt_buf_addf(out, "add rule inet %s forward iifname \"%s\" %sct state new", r->table,
                      o->name, family);
        silt_buf_addf(out, " ct status & dnat == 0 drop\n");
    }
}

void silt_rules_no_outside(struct silt_buf *out, const char *table)
{
    silt_buf_addf(out, "add table inet %s\ndelete table inet %s\n", table, table);
}

static const char *const families[] = {[0] = "ip", [1] = "ip6"};

/* Adds "ip saddr" or "ip6 saddr", the operator, and the gateway's single address. */
static void add_saddr(struct silt_buf *out, const struct silt_rules_outside *r, int family,
                      const char *compared)
{
    char text[INET6_ADDRSTRLEN] = "";
    silt_ip ip = silt_plan_uplink(r->plan, family, false);
    (void)inet_ntop(family, ip.bytes, text, sizeof(text));
    silt_buf_addf(out, "%s saddr %s%s", families[family == AF_INET6], compared, text);
}

/* The most frequent packets: responses, and established connections. The second rule checks
 * everything that the rules after it would check. */
static void add_passing(struct silt_buf *out, const struct silt_rules_outside *r)
{
    silt_buf_addf(out, "add rule inet %s forward oif \"%s\" ct state established,related accept\n",
                  r->table, r->uplink);
    for (int six = 0; six <= r->ipv6; six++) {
        silt_buf_addf(out, "add rule inet %s forward iif \"%s\" ", r->table, r->uplink);
        add_saddr(out, r, six ? AF_INET6 : AF_INET, "");
        silt_buf_addf(out, " ct state established ct status & dnat == 0 accept\n");
    }
}

/* Packets from the uplink have the gateway's single address and go where they say: a port of the
 * machine redirected to something behind it belongs to the machine. */
static void add_source(struct silt_buf *out, const struct silt_rules_outside *r, int family)
{
    silt_buf_addf(out, "add rule inet %s forward iifname \"%s\" ", r->table, r->uplink);
    add_saddr(out, r, family, "!= ");
    silt_buf_addf(out, " drop\nadd rule inet %s leave ", r->table);
    add_saddr(out, r, family, "");
    silt_buf_addf(out, " oifname != \"%s\" masquerade\n", r->uplink);
}

static void add_refusal(struct silt_buf *out, const struct silt_rules_outside *r, const char *when)
{
    silt_buf_addf(out, "add rule inet %s %s meta l4proto tcp reject with tcp reset\n", r->table,
                  when);
    silt_buf_addf(out, "add rule inet %s %s reject with icmpx admin-prohibited\n", r->table, when);
}

/* No packet for the machine itself comes in by the uplink, and only responses go out by it. */
static void add_outside(struct silt_buf *out, const struct silt_rules_outside *r)
{
    char input[64], redirected[64];
    const char *t = r->table, *up = r->uplink;
    (void)snprintf(input, sizeof(input), "input iifname \"%s\"", up);
    (void)snprintf(redirected, sizeof(redirected), "forward iifname \"%s\" ct status dnat", up);
    add_line(out, t, "chain input { type filter hook input priority filter; policy accept; }");
    add_line(out, t, "chain forward { type filter hook forward priority filter; policy accept; }");
    add_line(out, t, "chain leave { type nat hook postrouting priority srcnat; policy accept; }");
    add_passing(out, r);
    if (!silt_without("net_host")) {
        add_refusal(out, r, input);
        add_refusal(out, r, redirected);
    }
    silt_buf_addf(out, "add rule inet %s forward oifname \"%s\" drop\n", t, up);
}

void silt_rules_outside(struct silt_buf *out, const struct silt_rules_outside *r)
{
    silt_rules_no_outside(out, r->table);
    silt_buf_addf(out, "add table inet %s\n", r->table);
    add_outside(out, r);
    add_guards(out, r);
    add_source(out, r, AF_INET);
    if (r->ipv6)
        add_source(out, r, AF_INET6);
}
