/* SPDX-License-Identifier: Apache-2.0 */
/* priv: the requests of siltd to silt-priv: fixed structs with ids, numbers and descriptors on one
 * seqpacket socket. Several workers answer independently; a response carries its request's number.
 * siltd sends at most one of MAKE, ROLLBACK, CREATE, CLAIM, STOP, FREEZE, THAW, DESTROY, HANDLES
 * and NETWORK per slot at a time (priv/ask.c). silt-priv builds every path itself, from the slot's
 * number or a digest. */
#pragma once

#include "base/error.h"
#include "base/id.h"
#include "base/reference.h"

#include <stdint.h>

enum {
    SILT_DIGEST_SIZE = 32,
    SILT_STAGINGS_MAX = 16,
    SILT_SLOT_IDS = 65536, /* ids of one sandbox */
    SILT_LAYERS_MAX = 32,  /* of an image, on top of its tree */
    SILT_PRIV_CONTEXT_FDS = 4,
    SILT_RECOVERY_MAX = 64 << 10,        /* bytes of a sandbox's recovery record */
    SILT_RECOVERY_IMAGE_MAX = 512 << 10, /* bytes of an image's, which includes its configuration */
};

enum silt_priv_op {
    /* body.create; descriptors: silt-init's end of the channel, a seqpacket socket, then optionally
     * a recovery record as in RECORD, which is written first. Response: pidfd */
    SILT_PRIV_CREATE = 1,
    /* body.claim: sets host name and limits of a running ready sandbox. Optional descriptor: a
     * recovery record as above */
    SILT_PRIV_CLAIM,
    /* kills all processes; the response comes when the sandbox is empty; files stay */
    SILT_PRIV_STOP,
    /* stops the guest's processes where they are; silt-init runs on. Succeeds if they are frozen
     * already. SILT_TIMEOUT: some did not freeze in time, and all are thawed again */
    SILT_PRIV_FREEZE,
    SILT_PRIV_THAW,    /* succeeds if they are not frozen */
    SILT_PRIV_DESTROY, /* STOP, then moves the files to the trash. Succeeds if nothing is there */
    SILT_PRIV_STAT,    /* Response: body.stat */
    /* body.count more handles. Response: their descriptors, in the order of wire/agent.h */
    SILT_PRIV_HANDLES,
    /* an unnamed file in the sandbox's state directory, counted against its disk limit. Response:
     * one read-write descriptor */
    SILT_PRIV_SPOOL,
    /* body.log: opens, or with `fresh` creates, the log of that number in the sandbox's state
     * directory, counted against its disk limit. Response: one read-write descriptor, or
     * SILT_NOT_FOUND, or with `fresh` SILT_CONFLICT */
    SILT_PRIV_LOG,
    SILT_PRIV_UNLOG, /* body.log: removes the log. Succeeds if there is none */
    /* body.import; descriptors, all pipes: stream (read end: a struct silt_fetch_order, then the
     * archive), result (write end). Starts silt-fetch in its jail. Response at once: pidfd.
     * silt-fetch writes a struct silt_fetch_result to the result pipe, followed by the image's
     * configuration and names */
    SILT_PRIV_IMPORT,
    /* body.import.digest, of an image's files; descriptors, all pipes: stream (read end: a struct
     * silt_fetch_order of kind PACK, then the configuration), archive (write end), result (write
     * end). Starts silt-fetch in its jail, which is the image, read-only. Response at once: pidfd.
     * silt-fetch writes the archive, then a struct silt_fetch_result to the result pipe */
    SILT_PRIV_EXPORT,
    /* body.import: makes the staging directory the image `digest`; succeeds if the image exists.
     * Kills its silt-fetch first */
    SILT_PRIV_COMMIT,
    SILT_PRIV_DISCARD, /* body.import: kills its silt-fetch and removes the staging directory */
    SILT_PRIV_FORGET,  /* body.import.digest: removes the image's files */
    /* body.limits: changes a running sandbox's limits */
    SILT_PRIV_LIMIT,
    /* body.network: changes a running sandbox's mode; cuts off what the new mode forbids */
    SILT_PRIV_NETWORK,
    SILT_PRIV_NETSTAT, /* Response: body.netstat of a running sandbox, or SILT_UNAVAILABLE */
    /* body.context; descriptors, all pipes: requests, stdout, stderr, lines. Forks the warm Python
     * of this image's tree into the sandbox, in a handle of its own. Response: body.context,
     * descriptors: its pidfd, then the handle's; SILT_UNAVAILABLE: there is no warm Python (yet) */
    SILT_PRIV_CONTEXT,
    /* body.context.number: its process has ended and its handle is empty: removes the handle.
     * Response: body.context.status */
    SILT_PRIV_REAP,
    /* body.port, of a running sandbox. Response: one non-blocking socket inside the sandbox,
     * connected to that port or connecting; SILT_UNAVAILABLE with sys == ECONNREFUSED: no
     * listener */
    SILT_PRIV_DIAL,
    /* of a running sandbox in mode captive. Response: the sockets inside that receive its outgoing
     * traffic, in the order of enum silt_captive_socket, IPv4 and then, if available, IPv6;
     * SILT_CONFLICT: they are open already */
    SILT_PRIV_CAPTURE,
    /* body.seal: makes what the sandbox has written so far, running or not, the layer `digest` on
     * the image `parent`, which the sandbox was created from; CREATE accepts either. Optional
     * descriptor: a sealed memfd with at most SILT_SEAL_LEFT_OUT_MAX bytes of absolute paths to
     * leave out, each NUL-terminated. With `compare` no layer is made if nothing was written since
     * the layer `since`, of the same sandbox. Response: body.sealed. SILT_LIMIT: too many layers;
     * SILT_UNAVAILABLE: the pool does not support it. FORGET removes layers, too */
    SILT_PRIV_SEAL,
    /* body.make: files for a sandbox that has none and does not run yet; CREATE without FRESH
     * starts it later. Optional descriptor: a recovery record, as with CREATE. SILT_UNAVAILABLE:
     * the pool makes no copies */
    SILT_PRIV_MAKE,
    /* body.make, with `copy`: ends the processes and replaces the files by a copy of the layer;
     * logs stay. If it fails, the files are as they were */
    SILT_PRIV_ROLLBACK,
    /* body.recovery: its recovery record, opaque to silt-priv. Optional descriptor: a sealed memfd
     * with the new record; without it the record is removed. Succeeds if there is none */
    SILT_PRIV_RECORD,
    /* Response: one descriptor to read, an array of struct silt_priv_recovery, one for each slot
     * that has files or a record and for each image that has a record */
    SILT_PRIV_RECORDS,
    SILT_PRIV_READ_RECORD, /* body.recovery. Response: one descriptor to read the record from */
    SILT_PRIV_OP_MAX
};

/* What a sandbox's link may carry; also the number of its interface group, which the rules
 * match. */
enum silt_net_mode {
    SILT_NET_DEFAULT, /* create or claim: the instance's default; else no change */
    SILT_NET_NONE,    /* loopback only */
    SILT_NET_PUBLIC,  /* the internet; not the host, its networks or other sandboxes */
    /* what its policy names, through silt-proxy (wire/egress.h); nothing before the policy is
     * set */
    SILT_NET_ALLOW,
    /* no link: outgoing traffic goes to silt-proxy's sockets inside, which offers it to another
     * program (wire/egress.h) */
    SILT_NET_CAPTIVE,
    SILT_NET_MODE_MAX
};

/* The sockets of a CAPTURE response, per address family. All have IP_TRANSPARENT: their local
 * address is the destination the client asked for. */
enum silt_captive_socket {
    SILT_CAPTIVE_TCP, /* listening; every connection that does not go to the sandbox itself */
    SILT_CAPTIVE_DNS, /* UDP; every query to port 53 of any address */
    SILT_CAPTIVE_SOCKET_MAX
};

enum {
    /* no files yet: create the directory. Without this flag the directory must exist */
    SILT_CREATE_FRESH = 1,
    SILT_CREATE_EPHEMERAL = 2, /* mount the overlay volatile */
    SILT_CREATE_HOST_USR = 4,  /* mount the machine's /usr read-only over the image */
    /* with FRESH: the sandbox waits to be claimed; marked beside its files */
    SILT_CREATE_READY = 8,
};

struct silt_priv_limits {
    uint64_t memory_bytes;
    uint64_t disk_bytes;
    uint32_t cpu_milli; /* 1000: one core; 0: unlimited, only its share among the others */
    uint32_t pids;
};

struct silt_priv_create {
    uint8_t digest[SILT_DIGEST_SIZE]; /* image */
    struct silt_priv_limits limits;
    uint32_t flags;
    uint32_t handles; /* how many silt-init gets at start */
    uint32_t network; /* enum silt_net_mode */
    char hostname[SILT_HOSTNAME_SIZE];
};

struct silt_priv_claim {
    struct silt_priv_limits limits; /* ignored with `keep_limits` */
    uint32_t keep_limits;           /* keep the limits it was created with */
    uint32_t network;               /* enum silt_net_mode */
    char hostname[SILT_HOSTNAME_SIZE];
};

struct silt_priv_import {
    uint8_t digest[SILT_DIGEST_SIZE]; /* COMMIT and FORGET */
    uint32_t staging;                 /* 0..SILT_STAGINGS_MAX-1 */
};

enum { SILT_SEAL_LEFT_OUT_MAX = 512 << 10 };

struct silt_priv_seal {
    uint8_t digest[SILT_DIGEST_SIZE], parent[SILT_DIGEST_SIZE], since[SILT_DIGEST_SIZE];
    uint32_t compare;
    uint32_t soon; /* answer before the layer is on the disk; a power failure may take it back */
};

struct silt_priv_make {
    struct silt_priv_limits limits;
    uint32_t copy; /* begin as a copy of the layer `digest`; else empty */
    uint8_t digest[SILT_DIGEST_SIZE];
};

struct silt_priv_log {
    uint64_t number;
    uint32_t fresh;
};

struct silt_priv_context {
    uint64_t number; /* chosen by siltd */
    uint8_t digest[SILT_DIGEST_SIZE];
};

struct silt_priv_context_answer {
    int32_t pid;    /* CONTEXT: pid inside the sandbox */
    int32_t known;  /* REAP: 0: unknown, since the process that knew has died */
    int32_t status; /* REAP: as from waitpid */
};

enum silt_recovery_kind { SILT_RECOVERY_SANDBOX, SILT_RECOVERY_IMAGE, SILT_RECOVERY_KIND_MAX };

/* Owner of a recovery record: the request's slot, or an image. */
struct silt_priv_recovery {
    uint32_t kind;                    /* enum silt_recovery_kind */
    uint32_t slot;                    /* RECORDS: of a sandbox */
    uint8_t digest[SILT_DIGEST_SIZE]; /* of an image */
    uint32_t files, record; /* RECORDS: whether these exist. An image may use its parent's files */
    uint32_t ready;         /* RECORDS: a ready sandbox that was not claimed */
};

struct silt_priv_netstat {
    uint64_t sent_bytes, sent_packets; /* by the sandbox */
    uint64_t received_bytes, received_packets;
    uint32_t mode; /* enum silt_net_mode */
};

struct silt_priv_stat {
    uint64_t memory_bytes, memory_peak_bytes;
    uint64_t memory_cache_bytes; /* of these, file cache not used for a while */
    uint64_t cpu_us;
    uint64_t disk_bytes;
    uint64_t oom_kills;
    uint32_t pids;
    uint32_t running; /* 1 if it has a process */
};

struct silt_priv_request {
    uint64_t seq;
    uint32_t op;
    uint32_t slot;
    union {
        struct silt_priv_create create;
        struct silt_priv_claim claim;
        struct silt_priv_limits limits;
        struct silt_priv_import import;
        struct silt_priv_seal seal;
        struct silt_priv_make make;
        struct silt_priv_log log;
        struct silt_priv_context context;
        struct silt_priv_recovery recovery;
        uint32_t count;
        uint32_t network; /* enum silt_net_mode */
        uint32_t port;
    } body;
};

struct silt_priv_sealed {
    uint64_t bytes;     /* of the layer */
    uint32_t crowded;   /* the pool is nearly full */
    uint32_t unchanged; /* nothing was written since `since`: there is no layer */
};

struct silt_priv_answer {
    uint64_t seq;
    uint32_t ok;
    uint32_t slot;
    uint32_t link; /* CREATE, NETWORK, NETSTAT: number of its link (wire/egress.h); 0: no link */
    union {
        struct silt_error error; /* if ok == 0 */
        struct silt_priv_stat stat;
        struct silt_priv_netstat netstat;
        struct silt_priv_context_answer context;
        struct silt_priv_sealed sealed;
    } body;
};

/* Format of an image archive; AUTO: decided by the first name in it. */
enum silt_fetch_format {
    SILT_FETCH_AUTO,
    SILT_FETCH_TAR,    /* of a root file system */
    SILT_FETCH_OCI,    /* an OCI layout */
    SILT_FETCH_DOCKER, /* old or new format of `docker save` */
    SILT_FETCH_FORMAT_MAX
};

enum silt_fetch_kind { SILT_FETCH_UNPACK, SILT_FETCH_PACK, SILT_FETCH_KIND_MAX };

/* Written by siltd to the stream, before the archive or the configuration. */
struct silt_fetch_order {
    uint32_t kind;   /* enum silt_fetch_kind */
    uint32_t format; /* enum silt_fetch_format; PACK: not AUTO */
    /* UNPACK: which image of several in the archive; empty: the first. PACK: its name; empty:
     * none */
    char image[SILT_REFERENCE_SIZE];
    uint32_t config_size; /* PACK: bytes of the JSON that follows */
    int64_t created_s;    /* PACK */
};

/* Written by silt-fetch to its result pipe in one write; after unpacking, the image's configuration
 * and names follow. */
struct silt_fetch_result {
    uint32_t ok;
    uint8_t digest[SILT_DIGEST_SIZE]; /* of a root: SHA-256 of the stream; else of its layers */
    uint64_t bytes;                   /* unpacked */
    uint64_t entries;
    uint64_t left_out; /* device nodes; PACK: everything an archive cannot contain */
    /* followed by this many bytes of configuration, JSON, then the names, one per line */
    uint32_t config_size;
    uint32_t names_size;
    struct silt_error error; /* if ok == 0 */
};
