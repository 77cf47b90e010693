/* SPDX-License-Identifier: Apache-2.0 */
/* worker: what siltd and a worker process say to each other. A worker is a child of silt-init, inside
 * the sandbox and in its groups; it touches the guest's files so that neither PID 1 nor siltd has to.
 * siltd makes a seqpacket pair, keeps one end and hands the other over with SILT_AGENT_WORKER. Frames
 * are those of wire/frame.h; frame.id is not used.
 *
 * One operation at a time: siltd sends one ask, then, where the operation takes bytes, DATA frames, the
 * last of them with SILT_WORKER_LAST. Many bytes lie in memory that both see and only siltd writes: SHARE
 * brings its descriptor, DATA then says where, and each piece stays as it is until the worker says TAKEN; of
 * the last one the end of the operation says it. The worker says what it has to and ends with a frame that has
 * SILT_WORKER_LAST set, or with FAILED. Then it waits for the next ask. The socket is the flow
 * control: the worker blocks in send, siltd does not read while its client does not.
 * When siltd closes its end the worker takes away what it has half made and exits, in the middle of an
 * operation too. What hangs is killed by siltd's deadline (SILT_AGENT_WORKER_KILL).
 *
 * Everything that comes from a worker is hostile input to siltd. */
#pragma once

#include "base/error.h"
#include "wire/frame.h"

enum {
    SILT_WORKERS_MAX = 16,        /* for files, per sandbox; watches and port waits have their own */
    SILT_WORKER_WATCHES_MAX = 32, /* watches and port waits, per sandbox */
    SILT_WORKER_PATH_MAX = 4096,
    SILT_WORKER_MIME_SIZE = 96,
    SILT_WORKER_LAST = 1u << 31,  /* frame.flags */
};

/* siltd -> worker: frame.type. The body of all but DATA is struct silt_worker_ask and its parts. */
enum silt_worker_op {
    SILT_WORKER_DATA = 1, /* bytes of the running WRITE or UNTAR; after SHARE a struct silt_worker_span */
    SILT_WORKER_READ,     /* offset, length (0: to the end). META with as much content as fits, then DATA… */
    SILT_WORKER_WRITE,    /* DATA follows; `text` may hold the first bytes, with ONLY all of them. DONE */
    SILT_WORKER_DELETE,   /* not a folder, unless RECURSIVE. DONE */
    SILT_WORKER_MOVE,     /* path -> to, as `mv`. DONE */
    SILT_WORKER_MKDIR,    /* RECURSIVE, mode. DONE */
    SILT_WORKER_LIST,     /* RECURSIVE, HIDDEN. ENTRIES…, DONE */
    SILT_WORKER_STAT,     /* META without content; NOFOLLOW */
    SILT_WORKER_CHMOD,    /* mode; RECURSIVE. DONE */
    SILT_WORKER_CHOWN,    /* uid, gid (-1: stays); RECURSIVE, NOFOLLOW. DONE */
    SILT_WORKER_SYMLINK,  /* `to` becomes a link to `path`, which is not looked at. DONE */
    SILT_WORKER_READLINK, /* DATA: the target */
    SILT_WORKER_TRUNCATE, /* length. DONE */
    SILT_WORKER_SEARCH,   /* text: what to find; to: glob of names, or empty; limit: matches. MATCH…, DONE */
    SILT_WORKER_TAR,      /* what is in the folder as a tar stream made by the image's tar. DATA… */
    SILT_WORKER_UNTAR,    /* DATA follows: unpacked beside the folder, then moved into it. DONE */
    SILT_WORKER_WATCH,    /* RECURSIVE, events; text: patterns. EVENT…; ends only by a failure */
    SILT_WORKER_PORT,     /* mode: port; see silt_worker_port in `text`. DONE when it answers */
    SILT_WORKER_SHARE,    /* one descriptor, once, before the first DATA of a WRITE or UNTAR */
    SILT_WORKER_OP_MAX
};

enum { /* silt_worker_ask.flags */
    SILT_WORKER_RECURSIVE = 1,
    SILT_WORKER_HIDDEN = 2,     /* LIST: names that begin with a dot too */
    SILT_WORKER_NOFOLLOW = 4,   /* a link at the end is the object */
    SILT_WORKER_PARENTS = 8,    /* WRITE, UNTAR: missing folders are made */
    SILT_WORKER_SYNC = 16,      /* WRITE: on the disk before it is there */
    SILT_WORKER_ONLY = 32,      /* WRITE: `text` is all of it, no DATA comes */
    SILT_WORKER_MIME = 64,      /* READ, STAT: find the type */
    SILT_WORKER_ZSTD = 128,     /* TAR, UNTAR: compressed */
    SILT_WORKER_INCLUDE = 256,  /* WATCH: the patterns name what is told; without it what is not */
    SILT_WORKER_NEW = 512,      /* WRITE: fails when there is something */
    SILT_WORKER_FOLDED = 1024,  /* SEARCH: upper and lower case alike */
    SILT_WORKER_OWNERS = 4096,  /* UNTAR: owners as the tar has them, also where files are made in the name of another user than root */
    SILT_WORKER_WRAP = 2048,    /* TAR: the object itself, whatever it is, under its name */
};

/* Parts follow back to back, in this order: cwd, path, to, text. Paths have no NUL and at most
 * SILT_WORKER_PATH_MAX bytes. A relative path begins at the directory of process `cwd_pid` when that
 * is not 0, else at `cwd`. */
struct silt_worker_ask {
    uint32_t flags;
    int32_t cwd_pid;
    uint64_t offset, length;
    uint32_t mode;     /* of a new file or folder; PORT: the port */
    uint32_t uid, gid; /* UINT32_MAX: stays */
    uint32_t limit;    /* SEARCH: matches; WATCH: SILT_WATCH_… events wanted */
    uint32_t cwd_len, path_len, to_len, text_len;
};

struct silt_worker_span { /* of the shared memory */
    uint64_t offset, length;
};

/* worker -> siltd: frame.type */
enum silt_worker_say {
    SILT_WORKER_SAY_META = 1, /* struct silt_worker_meta, then content up to the end of the frame */
    SILT_WORKER_SAY_DATA,     /* bytes; none, and not the last: a sign of life from something that takes long */
    SILT_WORKER_SAY_ENTRIES,  /* struct silt_worker_entry and its name, as many as fit */
    SILT_WORKER_SAY_MATCH,    /* struct silt_worker_match, path, line: as many as fit */
    SILT_WORKER_SAY_EVENT,    /* struct silt_worker_event and its path, as many as fit */
    SILT_WORKER_SAY_DONE,     /* struct silt_worker_done; always LAST */
    SILT_WORKER_SAY_FAILED,   /* struct silt_error; always LAST. `sys` is the errno that callers hear of */
    SILT_WORKER_SAY_TAKEN,    /* nothing: the oldest span is used up */
    SILT_WORKER_SAY_MAX
};

enum silt_worker_type { SILT_TYPE_FILE = 1, SILT_TYPE_DIR, SILT_TYPE_LINK, SILT_TYPE_OTHER };

struct silt_worker_meta {
    uint64_t size, ino, dev;
    int64_t mtime_ns, ctime_ns;
    uint32_t mode;  /* permission bits, with setuid and the like */
    uint32_t uid, gid;
    uint32_t type;  /* enum silt_worker_type */
    uint32_t nlink;
    char mime[SILT_WORKER_MIME_SIZE]; /* terminated; empty when not asked */
};

struct silt_worker_entry { /* padded to 8 behind its name */
    uint64_t size;
    int64_t mtime_ns;
    uint32_t mode, type;
    uint32_t uid, gid;
    uint32_t name_len; /* path below the listed folder, no NUL */
    uint32_t reserved;
};

struct silt_worker_match { /* padded to 8 behind its text */
    uint64_t line, column; /* from 1 */
    uint32_t path_len, text_len;
};

enum { /* silt_worker_event.what, and `limit` of a WATCH as a set */
    SILT_WATCH_CREATE = 1,
    SILT_WATCH_MODIFY = 2,
    SILT_WATCH_DELETE = 4,
    SILT_WATCH_MOVE_FROM = 8,
    SILT_WATCH_MOVE_TO = 16,
    SILT_WATCH_ATTRIB = 32,
    SILT_WATCH_READY = 64,     /* the watch is established; path: the folder */
    SILT_WATCH_OVERFLOW = 128, /* the kernel's queue was full: events are missing */
    SILT_WATCH_LIMIT = 256,    /* no more watches: path is not followed */
    SILT_WATCH_GONE = 512,     /* the watched path itself is gone: the last event */
};

struct silt_worker_event { /* padded to 8 behind its path */
    int64_t time_ms; /* wall clock */
    uint32_t what;   /* one of SILT_WATCH_… */
    uint32_t is_dir;
    uint32_t path_len; /* absolute */
    uint32_t reserved;
};

struct silt_worker_port { /* `text` of a PORT ask; the path of the request follows it */
    uint32_t http;                   /* 0: a connection is enough */
    uint32_t status_min, status_max;
    uint32_t interval_ms;            /* between requests that got another status */
};

struct silt_worker_done {
    uint64_t bytes;   /* written, read or packed */
    uint64_t entries; /* listed, removed, unpacked, matches */
    uint32_t status;  /* PORT, http: the status */
    uint32_t truncated; /* LIST, SEARCH: there is more */
    struct silt_worker_meta meta; /* WRITE: of the new file */
};
