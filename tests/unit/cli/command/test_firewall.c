/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/firewall.h"
#include "unit/base/unit.h"

static struct silt_firewall f;

static bool finds(const char *text)
{
    return silt_firewall_in_nft(silt_slice_of(text), "silt_silt", "silt-up", &f);
}

#define DOCKER(more)                                                                               \
    "table ip filter {\n"                                                                          \
    "\tchain FORWARD {\n"                                                                          \
    "\t\ttype filter hook forward priority filter; policy drop;\n"                                 \
    "\t\tcounter packets 0 bytes 0 jump DOCKER-USER\n"                                             \
    "\t}\n\n"                                                                                      \
    "\tchain DOCKER-USER {\n" more "\t}\n"                                                         \
    "}\n"

TEST(a_policy_of_docker_is_found_with_its_way_out)
{
    assert_true(finds(DOCKER("")));
    assert_string_equal(f.who, "ip filter FORWARD");
    assert_string_equal(f.way_out, "iptables -I DOCKER-USER -i silt-up -j ACCEPT; "
                                   "iptables -I DOCKER-USER -o silt-up -j ACCEPT");
    assert_true(finds(DOCKER("\t\tiifname \"silt-up\" counter packets 0 bytes 0 accept\n")));
    assert_true(finds(DOCKER("\t\tiifname \"other-up\" counter packets 0 bytes 0 accept\n"
                             "\t\toifname \"other-up\" counter packets 0 bytes 0 accept\n")));
    assert_false(finds(DOCKER("\t\tiifname \"silt-up\" counter packets 0 bytes 0 accept\n"
                              "\t\toifname \"silt-up\" counter packets 0 bytes 0 accept\n")));
}

TEST(ufw_firewalld_and_plain_tables_are_found)
{
    assert_true(finds("table ip6 filter {\n"
                      "\tchain ufw6-before-forward {\n\t}\n"
                      "\tchain FORWARD {\n"
                      "\t\ttype filter hook forward priority filter; policy drop;\n"
                      "\t}\n}\n"));
    assert_string_equal(f.way_out, "ufw route allow in on silt-up; ufw route allow out on silt-up");
    assert_true(finds("table inet firewalld {\n"
                      "\tchain filter_FORWARD {\n"
                      "\t\ttype filter hook forward priority filter + 10; policy accept;\n"
                      "\t\tct state { established, related } accept\n"
                      "\t\treject with icmpx admin-prohibited\n"
                      "\t}\n}\n"));
    assert_non_null(strstr(f.way_out, "firewall-cmd --permanent --zone=trusted"));
    assert_true(finds("table inet mine {\n"
                      "\tchain f {\n"
                      "\t\ttype filter hook forward priority filter; policy drop;\n"
                      "\t}\n}\n"));
    assert_string_equal(f.way_out, "nft insert rule inet mine f iifname silt-up accept; "
                                   "nft insert rule inet mine f oifname silt-up accept");
}

TEST(what_harms_nobody_is_passed_over)
{
    assert_false(finds(""));
    assert_false(finds("garbage\n}\n{{{\n\t\t\n\tchain\n"));
    assert_false(finds("table ip filter {\n"
                       "\tchain INPUT {\n"
                       "\t\ttype filter hook input priority filter; policy drop;\n"
                       "\t}\n\n"
                       "\tchain FORWARD {\n"
                       "\t\ttype filter hook forward priority filter; policy accept;\n"
                       "\t\tiifname \"eth9\" drop\n"
                       "\t}\n}\n"));
    assert_false(finds("table inet silt_silt {\n"
                       "\tchain forward {\n"
                       "\t\ttype filter hook forward priority filter; policy drop;\n"
                       "\t}\n}\n"));
}

TEST(the_iptables_of_old_are_read_too)
{
    static const char *const drop = "-P INPUT ACCEPT\n-P FORWARD DROP\n-N DOCKER-USER\n";
    assert_true(silt_firewall_in_legacy(silt_slice_of(drop), "iptables-legacy", "silt-up", &f));
    assert_string_equal(f.who, "iptables-legacy FORWARD");
    assert_string_equal(f.way_out, "iptables-legacy -I DOCKER-USER -i silt-up -j ACCEPT; "
                                   "iptables-legacy -I DOCKER-USER -o silt-up -j ACCEPT");
    assert_false(
        silt_firewall_in_legacy(SILT_LIT("-P FORWARD ACCEPT\n"), "iptables-legacy", "silt-up", &f));
    assert_false(silt_firewall_in_legacy(
        SILT_LIT(
            "-P FORWARD DROP\n-A FORWARD -i silt-up -j ACCEPT\n-A FORWARD -o silt-up -j ACCEPT\n"),
        "iptables-legacy", "silt-up", &f));
}
