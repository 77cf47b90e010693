/* SPDX-License-Identifier: Apache-2.0 */
/* priv: what siltd may ask of silt-priv: fixed structs with ids, numbers and descriptors on one
 * seqpacket socket. Several workers answer; an answer carries the request's number. siltd sends at most
 * one request that changes something per slot at a time. silt-priv builds every path itself from the slot's number or a digest. */
#pragma once

#include "base/error.h"
#include "base/id.h"
#include "base/reference.h"

#include <stdint.h>

enum {
    SILT_DIGEST_SIZE = 32,
    SILT_STAGINGS_MAX = 16,
    SILT_SLOT_IDS = 65536, /* ids of one sandbox */
    SILT_LAYERS_MAX = 32,  /* of an image, on its tree */
    SILT_PRIV_CONTEXT_FDS = 4,
    SILT_RECOVERY_MAX = 64 << 10,        /* bytes of a sandbox's recovery record */
    SILT_RECOVERY_IMAGE_MAX = 512 << 10, /* of an image's, which has its configuration */
};

enum silt_priv_op {
    SILT_PRIV_CREATE = 1,   /* body.create; descriptors: silt-init's end of the channel, a seqpacket socket, then a recovery record as of RECORD, if
                               any, which is written first. Answer: pidfd */
    SILT_PRIV_CLAIM,        /* body.claim: a running ready sandbox gets its host name and limits. Descriptor, if any: as above */
    SILT_PRIV_STOP,         /* ends all processes; answers when the sandbox is empty; files stay */
    SILT_PRIV_DESTROY,      /* STOP, then the files go to the trash. Fine when nothing is there */
    SILT_PRIV_STAT,         /* Answer: body.stat */
    SILT_PRIV_HANDLES,      /* body.count more handles. Answer: their descriptors, in the order of wire/agent.h */
    SILT_PRIV_SPOOL,        /* a nameless file in the sandbox's state folder, counted against its disk.
                               Answer: one read-write descriptor */
    SILT_PRIV_LOG,          /* body.log: opens, or with `fresh` makes, the log of that number in the sandbox's
                               state folder, counted against its disk. Answer: one read-write descriptor,
                               or SILT_NOT_FOUND, or with `fresh` SILT_CONFLICT */
    SILT_PRIV_UNLOG,        /* body.log: the log goes. Fine when there is none */
    SILT_PRIV_IMPORT,       /* body.import; descriptors, all pipes: stream (read end: a struct silt_fetch_order, then the archive), result
                               (write end). silt-fetch runs in its cage. Answer at once: pidfd. It writes a struct
                               silt_fetch_result to the result pipe, and what the image says */
    SILT_PRIV_EXPORT,       /* body.import.digest, of an image's files; descriptors, all pipes: stream (read end: a struct silt_fetch_order of
                               kind PACK, then the configuration), archive (write end), result (write end). silt-fetch
                               runs in its cage, which is the image, read-only. Answer at once: pidfd. It writes the archive,
                               then a struct silt_fetch_result to the result pipe */
    SILT_PRIV_COMMIT,       /* body.import: the staging folder becomes the image `digest`; fine when it exists. Its silt-fetch is
                               ended before */
    SILT_PRIV_DISCARD,      /* body.import: the staging folder goes, as does its silt-fetch */
    SILT_PRIV_FORGET,       /* body.import.digest: the image's files go */
    SILT_PRIV_NETWORK,      /* body.network: a running sandbox's mode; what it forbids is cut off */
    SILT_PRIV_NETSTAT,      /* Answer: body.netstat of a running sandbox, or SILT_UNAVAILABLE */
    SILT_PRIV_CONTEXT,      /* body.context; descriptors, all pipes: requests, stdout, stderr, lines. A warm Python of the tree
                               that this image lies on is forked into the sandbox and into a handle of its own. Answer: body.context,
                               descriptors: its pidfd, then the handle's; SILT_UNAVAILABLE: there is no warm
                               one (yet) */
    SILT_PRIV_REAP,         /* body.context.number: its process has ended and its handle is empty: the handle
                               goes. Answer: body.context.status */
    SILT_PRIV_DIAL,         /* body.port, of a running sandbox. Answer: one socket inside, non-blocking, connected
                               to that port or about to be; SILT_UNAVAILABLE with sys == ECONNREFUSED: nobody
                               listens there */
    SILT_PRIV_CAPTURE,      /* of a running sandbox in mode captive. Answer: sockets inside that its way out leads to, in the order of
                               enum silt_captive_socket, of IPv4 and, where there is IPv6, again; SILT_CONFLICT: somebody
                               listens there already */
    SILT_PRIV_SEAL,         /* body.seal: what the sandbox has written so far, running or not, becomes the layer `digest` on the image
                               `parent`, which it was made from; CREATE takes either. Answer: body.bytes.
                               SILT_LIMIT: too many layers; SILT_UNAVAILABLE: this pool cannot. FORGET takes layers, too */
    SILT_PRIV_RECORD,       /* body.recovery: its recovery record, which only siltd understands. Descriptor, if any: a sealed memfd with
                               the new one; without: the record goes. Fine when there is none */
    SILT_PRIV_RECORDS,      /* Answer: one descriptor to read from, an array of struct silt_priv_recovery, one for each slot that has
                               files or a record and for each image that has a record */
    SILT_PRIV_READ_RECORD,  /* body.recovery. Answer: one descriptor to read the record from */
    SILT_PRIV_OP_MAX
};

/* What a sandbox's link may carry; also the number of its interface group, which the rules match. */
enum silt_net_mode {
    SILT_NET_DEFAULT, /* a sandbox that is made or claimed: the instance's own choice; else no change */
    SILT_NET_NONE,    /* nothing but loopback */
    SILT_NET_PUBLIC,  /* the internet; not the host, not its networks, not other sandboxes */
    SILT_NET_ALLOW,   /* what its policy names, through silt-proxy (wire/egress.h); nothing before that is set */
    SILT_NET_CAPTIVE, /* no link: whatever leaves goes to silt-proxy's sockets inside, which offers it to another program (wire/egress.h) */
    SILT_NET_MODE_MAX
};

/* What CAPTURE answers with, of each family. All have IP_TRANSPARENT: their own address is where the other side wanted to go. */
enum silt_captive_socket {
    SILT_CAPTIVE_TCP, /* listens; every connection that does not go to the sandbox itself */
    SILT_CAPTIVE_DNS, /* UDP; every question to port 53, whoever was asked */
    SILT_CAPTIVE_SOCKET_MAX
};

enum {
    SILT_CREATE_FRESH = 1,     /* no files yet: make the folder. Without it the folder must exist */
    SILT_CREATE_EPHEMERAL = 2, /* overlay mounted volatile */
    SILT_CREATE_HOST_USR = 4,  /* the machine's /usr is mounted read-only over the image */
    SILT_CREATE_READY = 8,     /* with FRESH: it waits to be claimed; noted beside its files */
};

struct silt_priv_limits {
    uint64_t memory_bytes;
    uint64_t disk_bytes;
    uint32_t cpu_milli; /* 1000: one core; 0: no ceiling, only its share among the others */
    uint32_t pids;
};

struct silt_priv_create {
    uint8_t digest[SILT_DIGEST_SIZE]; /* image */
    struct silt_priv_limits limits;
    uint32_t flags;
    uint32_t handles; /* how many silt-init gets at birth */
    uint32_t network; /* enum silt_net_mode */
    char hostname[SILT_HOSTNAME_SIZE];
};

struct silt_priv_claim {
    struct silt_priv_limits limits; /* with `keep_limits`: not looked at */
    uint32_t keep_limits;           /* those it was made with are right */
    uint32_t network;               /* enum silt_net_mode */
    char hostname[SILT_HOSTNAME_SIZE];
};

struct silt_priv_import {
    uint8_t digest[SILT_DIGEST_SIZE]; /* COMMIT and FORGET */
    uint32_t staging;                 /* 0..SILT_STAGINGS_MAX-1 */
};

struct silt_priv_seal {
    uint8_t digest[SILT_DIGEST_SIZE], parent[SILT_DIGEST_SIZE];
};

struct silt_priv_log {
    uint64_t number;
    uint32_t fresh;
};

struct silt_priv_context {
    uint64_t number; /* siltd's */
    uint8_t digest[SILT_DIGEST_SIZE];
};

struct silt_priv_context_answer {
    int32_t pid; /* CONTEXT: inside */
    int32_t known; /* REAP: 0: whoever could have told has died meanwhile */
    int32_t status; /* REAP: as of waitpid */
};

enum silt_recovery_kind { SILT_RECOVERY_SANDBOX, SILT_RECOVERY_IMAGE, SILT_RECOVERY_KIND_MAX };

/* Whose recovery record: that of the request's slot, or of an image. */
struct silt_priv_recovery {
    uint32_t kind;                    /* enum silt_recovery_kind */
    uint32_t slot;                    /* RECORDS: of a sandbox */
    uint8_t digest[SILT_DIGEST_SIZE]; /* of an image */
    uint32_t files, record;           /* RECORDS: whether it has these. An image may have its parent's files */
    uint32_t ready;                   /* RECORDS: a sandbox that was made for nobody yet, and not claimed */
};

struct silt_priv_netstat {
    uint64_t sent_bytes, sent_packets; /* by the sandbox */
    uint64_t received_bytes, received_packets;
    uint32_t mode; /* enum silt_net_mode */
};

struct silt_priv_stat {
    uint64_t memory_bytes, memory_peak_bytes;
    uint64_t memory_cache_bytes; /* of them, of files that were not used for a while */
    uint64_t cpu_us;
    uint64_t disk_bytes;
    uint64_t oom_kills;
    uint32_t pids;
    uint32_t running; /* 1 when it has a process */
};

struct silt_priv_request {
    uint64_t seq;
    uint32_t op;
    uint32_t slot;
    union {
        struct silt_priv_create create;
        struct silt_priv_claim claim;
        struct silt_priv_import import;
        struct silt_priv_seal seal;
        struct silt_priv_log log;
        struct silt_priv_context context;
        struct silt_priv_recovery recovery;
        uint32_t count;
        uint32_t network; /* enum silt_net_mode */
        uint32_t port;
    } body;
};

struct silt_priv_sealed {
    uint64_t bytes;   /* of the layer */
    uint32_t crowded; /* the pool has little room left */
};

struct silt_priv_answer {
    uint64_t seq;
    uint32_t ok;
    uint32_t slot;
    uint32_t link; /* CREATE, NETWORK, NETSTAT: number of its link (wire/egress.h); 0: it has none */
    union {
        struct silt_error error; /* ok == 0 */
        struct silt_priv_stat stat;
        struct silt_priv_netstat netstat;
        struct silt_priv_context_answer context;
        struct silt_priv_sealed sealed;
    } body;
};

/* What an archive of an image is; AUTO: its first name tells. */
enum silt_fetch_format {
    SILT_FETCH_AUTO,
    SILT_FETCH_TAR,    /* of a root */
    SILT_FETCH_OCI,    /* an OCI layout */
    SILT_FETCH_DOCKER, /* what `docker save` writes, in its old or new form */
    SILT_FETCH_FORMAT_MAX
};

enum silt_fetch_kind { SILT_FETCH_UNPACK, SILT_FETCH_PACK, SILT_FETCH_KIND_MAX };

/* What siltd writes to the stream, ahead of the archive or of the configuration. */
struct silt_fetch_order {
    uint32_t kind;                   /* enum silt_fetch_kind */
    uint32_t format;                 /* enum silt_fetch_format; PACK: not AUTO */
    char image[SILT_REFERENCE_SIZE]; /* UNPACK: which of several in the archive; empty: the first. PACK: its name; empty: none */
    uint32_t config_size;            /* PACK: of what follows, JSON */
    int64_t created_s;               /* PACK */
};

/* What silt-fetch reports on its result pipe, in one write; when it has unpacked, what the image says follows. */
struct silt_fetch_result {
    uint32_t ok;
    uint8_t digest[SILT_DIGEST_SIZE]; /* of a root: sha256 of the stream; else of its layers */
    uint64_t bytes;                   /* unpacked */
    uint64_t entries;
    uint64_t left_out;                /* device nodes; PACK: whatever an archive cannot hold */
    uint32_t config_size;             /* follows: its configuration, JSON; then its names, each with a newline */
    uint32_t names_size;
    struct silt_error error;          /* ok == 0 */
};
