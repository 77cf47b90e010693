/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/firewall.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

enum { TEXT_MAX = 16 << 20, ANSWER_MS = 10000, NAME_SIZE = 64 };

static bool has(silt_slice text, const char *part)
{
    return memmem(text.data, text.len, part, strlen(part)) != NULL;
}

/* nftables. One table at a time; its lines are "table FAMILY NAME {", "\tchain NAME {", "\t\t" with
 * a rule, "\t}" and "}". */

struct table {
    char family[NAME_SIZE], name[NAME_SIZE];
    char chain[NAME_SIZE]; /* the current chain */
    bool forwards;         /* it is hooked into forwarding */
    bool drops;            /* its policy or its last rule drops packets */
    char dropper[NAME_SIZE];
    bool lets_in, lets_out; /* it accepts packets of the uplink */
    bool docker;
};

static void take_name(silt_slice *rest, char ret[NAME_SIZE])
{
    struct silt_error ignored;
    silt_slice word;
    ret[0] = 0;
    if (silt_slice_split(rest, ' ', &word))
        (void)silt_slice_to_cstr(word, ret, NAME_SIZE, &ignored);
}

static void end_chain(struct table *t)
{
    if (t->forwards && t->drops)
        memcpy(t->dropper, t->chain, sizeof(t->dropper));
    t->forwards = t->drops = false;
}

static void read_rule(struct table *t, silt_slice rule, const char *uplink)
{
    char in[NAME_SIZE], out[NAME_SIZE];
    (void)snprintf(in, sizeof(in), "iifname \"%s\"", uplink);
    (void)snprintf(out, sizeof(out), "oifname \"%s\"", uplink);
    if (has(rule, "hook forward")) {
        t->forwards = true;
        t->drops = has(rule, "policy drop");
        return;
    }
    if (has(rule, " accept")) {
        t->lets_in = t->lets_in || has(rule, in);
        t->lets_out = t->lets_out || has(rule, out);
    }
    /* An unconditional rule at the end of a chain acts as its policy. */
    if (silt_slice_starts(rule, SILT_LIT("drop")) || silt_slice_starts(rule, SILT_LIT("reject")))
        t->drops = true;
}

static bool is_closed(const struct table *t, const char *own)
{
    return t->dropper[0] != 0 && !(t->lets_in && t->lets_out) && strcmp(t->name, own) != 0;
}

static void say_way_out(const struct table *t, const char *up, struct silt_firewall *ret)
{
    const char *ip = strcmp(t->family, "ip6") == 0 ? "ip6tables" : "iptables";
    char *out = ret->way_out;
    size_t size = sizeof(ret->way_out);
    (void)snprintf(ret->who, sizeof(ret->who), "%s %s %s", t->family, t->name, t->dropper);
    if (t->docker)
        (void)snprintf(out, size,
                       "%s -I DOCKER-USER -i %s -j ACCEPT; %s -I DOCKER-USER -o %s -j ACCEPT", ip,
                       up, ip, up);
    else if (strcmp(t->name, "firewalld") == 0)
        (void)snprintf(
            out, size,
            "firewall-cmd --permanent --zone=trusted --add-interface=%s; firewall-cmd --reload",
            up);
    else
        (void)snprintf(
            out, size,
            "nft insert rule %s %s %s iifname %s accept; nft insert rule %s %s %s oifname %s "
            "accept",
            t->family, t->name, t->dropper, up, t->family, t->name, t->dropper, up);
}

static void read_line(struct table *t, silt_slice line, const char *uplink, bool *ufw)
{
    silt_slice rest = silt_slice_trim(line), word;
    if (silt_slice_starts(line, SILT_LIT("table "))) {
        *t = (struct table){0};
        (void)silt_slice_split(&rest, ' ', &word);
        take_name(&rest, t->family);
        take_name(&rest, t->name);
    } else if (silt_slice_starts(line, SILT_LIT("\tchain "))) {
        (void)silt_slice_split(&rest, ' ', &word);
        take_name(&rest, t->chain);
        t->docker = t->docker || strcmp(t->chain, "DOCKER-USER") == 0;
        *ufw = *ufw || strncmp(t->chain, "ufw", 3) == 0;
    } else if (silt_slice_starts(line, SILT_LIT("\t\t"))) {
        read_rule(t, rest, uplink);
    } else if (silt_slice_starts(line, SILT_LIT("\t}"))) {
        end_chain(t);
    }
}

bool silt_firewall_in_nft(silt_slice text, const char *own, const char *uplink,
                          struct silt_firewall *ret)
{
    struct table t = {0};
    silt_slice line;
    bool ufw = false;
    while (silt_slice_split(&text, '\n', &line)) {
        read_line(&t, line, uplink, &ufw);
        if (!silt_slice_starts(line, SILT_LIT("}")) || !is_closed(&t, own))
            continue;
        say_way_out(&t, uplink, ret);
        if (ufw && !t.docker)
            (void)snprintf(ret->way_out, sizeof(ret->way_out),
                           "ufw route allow in on %s; ufw route allow out on %s", uplink, uplink);
        return true;
    }
    return false;
}

/* Legacy iptables, which nft does not show */

bool silt_firewall_in_legacy(silt_slice text, const char *program, const char *uplink,
                             struct silt_firewall *ret)
{
    char in[NAME_SIZE], out[NAME_SIZE];
    const char *chain = has(text, "-N DOCKER-USER") ? "DOCKER-USER" : "FORWARD";
    (void)snprintf(in, sizeof(in), "-i %s -j ACCEPT", uplink);
    (void)snprintf(out, sizeof(out), "-o %s -j ACCEPT", uplink);
    if (!has(text, "-P FORWARD DROP") || (has(text, in) && has(text, out)))
        return false;
    (void)snprintf(ret->who, sizeof(ret->who), "%s FORWARD", program);
    if (has(text, "-N ufw"))
        (void)snprintf(ret->way_out, sizeof(ret->way_out),
                       "ufw route allow in on %s; ufw route allow out on %s", uplink, uplink);
    else
        (void)snprintf(ret->way_out, sizeof(ret->way_out), "%s -I %s %s; %s -I %s %s", program,
                       chain, in, program, chain, out);
    return true;
}

/* Running the programs */

static _Noreturn void be_program(char *const args[], int out)
{
    char *env[] = {(char[]){"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, NULL};
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(nowhere, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0
        && dup2(nowhere, STDERR_FILENO) >= 0)
        (void)execvpe(args[0], args, env);
    _exit(127);
}

static void await(pid_t pid)
{
    silt_auto_fd end = pidfd_open(pid, 0);
    struct pollfd p = {.fd = end, .events = POLLIN};
    if (end < 0 || poll(&p, 1, ANSWER_MS) <= 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The output of a program, for the caller to free; "" if it cannot run. */
static char *text_of(char *const args[])
{
    char path[32], *text = NULL;
    struct silt_error e;
    size_t len;
    silt_auto_fd out = memfd_create("answer", MFD_CLOEXEC);
    pid_t pid = out < 0 ? -1 : fork();
    if (pid == 0)
        be_program(args, out);
    if (pid > 0)
        await(pid);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", out);
    if (pid < 0 || silt_fd_read_file(AT_FDCWD, path, TEXT_MAX, &text, &len, &e) < 0)
        text = calloc(1, 1);
    if (text == NULL)
        abort();
    return text;
}

/* Only if the kernel has such tables already: listing them would load them. */
static bool find_legacy(const char *names, char *program, const char *uplink,
                        struct silt_firewall *ret)
{
    char *args[] = {program, (char[]){"-S"}, NULL}, first;
    silt_auto_fd fd = open(names, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &first, 1) != 1)
        return false;
    char *text = text_of(args);
    bool found = silt_firewall_in_legacy(silt_slice_of(text), program, uplink, ret);
    free(text);
    return found;
}

bool silt_firewall_find(const char *instance, struct silt_firewall *ret)
{
    char own[NAME_SIZE], uplink[NAME_SIZE], four[] = "iptables-legacy", six[] = "ip6tables-legacy";
    char *args[] = {(char[]){"nft"}, (char[]){"list"}, (char[]){"ruleset"}, NULL};
    (void)snprintf(own, sizeof(own), "silt_%s", instance);
    (void)snprintf(uplink, sizeof(uplink), "%s-up", instance);
    char *text = text_of(args);
    bool found = silt_firewall_in_nft(silt_slice_of(text), own, uplink, ret);
    free(text);
    return found || find_legacy("/proc/net/ip_tables_names", four, uplink, ret)
           || find_legacy("/proc/net/ip6_tables_names", six, uplink, ret);
}
