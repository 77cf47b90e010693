/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/policy/dns_pins.h"
#include "base/test_switch.h"

#include <stdlib.h>

struct pin {
    struct silt_link link;
    silt_ip_prefix address;
    int64_t until_ms;
    size_t len;
    char name[];
};

static struct pin *pin_of(struct silt_link *it)
{
    return silt_outer(it, struct pin, link);
}

static silt_slice name_of(const struct pin *p)
{
    return (silt_slice){p->name, p->len};
}

void silt_dns_pins_init(struct silt_dns_pins *p, size_t *all)
{
    *p = (struct silt_dns_pins){.all = all};
    silt_list_init(&p->list);
}

static void drop(struct silt_dns_pins *p, struct pin *pin)
{
    silt_list_remove(&pin->link);
    p->count--;
    (*p->all)--;
    free(pin);
}

void silt_dns_pins_fini(struct silt_dns_pins *p)
{
    silt_list_each(it, &p->list) drop(p, pin_of(it));
}

static bool is_at(const struct pin *pin, const silt_ip_prefix *address)
{
    return memcmp(&pin->address, address, sizeof(*address)) == 0;
}

static struct pin *find(const struct silt_dns_pins *p, silt_slice name,
                        const silt_ip_prefix *address)
{
    for (struct silt_link *it = p->list.next; it != &p->list; it = it->next)
        if (is_at(pin_of(it), address) && silt_slice_eq(name_of(pin_of(it)), name))
            return pin_of(it);
    return NULL;
}

static int64_t until(uint32_t ttl_s, int64_t now_ms)
{
    int64_t s = (int64_t)ttl_s + SILT_DNS_PINS_GRACE_S,
            most = SILT_DNS_PINS_MOST_S + SILT_DNS_PINS_GRACE_S;
    s = s < SILT_DNS_PINS_LEAST_S ? SILT_DNS_PINS_LEAST_S : s;
    return now_ms + (s < most ? s : most) * 1000;
}

static struct pin *make(struct silt_dns_pins *p, silt_slice name, const silt_ip_prefix *address)
{
    /* The last places are for those who have few. */
    bool crowded = *p->all >= SILT_DNS_PINS_ALL_MAX - SILT_DNS_PINS_ALL_MAX / 4;
    if (p->count == SILT_DNS_PINS_MAX || (crowded && p->count >= SILT_DNS_PINS_FEW))
        drop(p, pin_of(p->list.next));
    if (*p->all >= SILT_DNS_PINS_ALL_MAX)
        return NULL;
    struct pin *pin = calloc(1, sizeof(*pin) + name.len);
    if (pin == NULL)
        abort();
    pin->address = *address;
    pin->len = name.len;
    memcpy(pin->name, name.data, name.len);
    silt_list_init(&pin->link);
    p->count++;
    (*p->all)++;
    return pin;
}

void silt_dns_pins_add(struct silt_dns_pins *p, silt_slice name, const silt_ip_prefix *address,
                       uint32_t ttl_s, int64_t now_ms)
{
    struct pin *pin = find(p, name, address);
    if (pin == NULL)
        pin = make(p, name, address);
    if (pin == NULL)
        return;
    silt_list_remove(&pin->link);
    silt_list_append(&p->list, &pin->link);
    int64_t wanted = until(ttl_s, now_ms);
    pin->until_ms = pin->until_ms > wanted ? pin->until_ms : wanted;
}

bool silt_dns_pins_has(const struct silt_dns_pins *p, silt_slice name,
                       const silt_ip_prefix *address, int64_t now_ms)
{
    const struct pin *pin = find(p, name, address);
    return (pin != NULL && pin->until_ms > now_ms) || silt_without("allow_pins");
}

enum silt_policy_verdict silt_dns_pins_reach(const struct silt_dns_pins *p,
                                             const struct silt_policy *policy,
                                             const silt_ip_prefix *address, uint16_t port,
                                             int64_t now_ms)
{
    enum silt_policy_verdict best = silt_without("allow_pins") ? SILT_POLICY_YES : SILT_POLICY_NO;
    for (struct silt_link *it = p->list.next; it != &p->list && best != SILT_POLICY_YES;
         it = it->next) {
        const struct pin *pin = pin_of(it);
        if (!is_at(pin, address) || pin->until_ms <= now_ms)
            continue;
        enum silt_policy_verdict v = silt_policy_name(policy, name_of(pin), port);
        best = v > best ? v : best;
    }
    return best;
}

void silt_dns_pins_prune(struct silt_dns_pins *p, const struct silt_policy *policy)
{
    silt_list_each(it, &p->list)
    {
        if (!silt_policy_names(policy, name_of(pin_of(it))))
            drop(p, pin_of(it));
    }
}
