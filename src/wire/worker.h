/* SPDX-License-Identifier: Apache-2.0 */
/* worker: the protocol between siltd and a worker. A worker is a child of silt-init, inside the
 * sandbox and in its groups; it accesses the guest's files so that neither PID 1 nor siltd has to.
 * siltd creates a seqpacket pair, keeps one end and sends the other with SILT_AGENT_WORKER. Frames
 * are those of wire/frame.h; frame.id is not used.
 *
 * One operation at a time: siltd sends one request, then, if the operation takes data, DATA frames,
 * the last of them with SILT_WORKER_LAST. Large data is in memory that both share and only siltd
 * writes: SHARE sends its descriptor, then DATA gives offsets, and each piece stays unchanged until
 * the worker sends TAKEN; for the last piece the end of the operation means the same. The worker
 * sends its results and ends with a frame that has SILT_WORKER_LAST set, or with FAILED. Then it
 * waits for the next request. The socket is the flow control: the worker blocks in send while
 * siltd's client does not read. When siltd closes its end the worker removes unfinished files and
 * exits, even during an operation. A worker that hangs is killed on siltd's timeout
 * (SILT_AGENT_WORKER_KILL).
 *
 * siltd treats everything from a worker as hostile input. */
#pragma once

#include "base/error.h"
#include "wire/frame.h"

enum {
    SILT_WORKERS_MAX = 16, /* for files, per sandbox; watches and port waits have their own limit */
    SILT_WORKER_WATCHES_MAX = 32, /* watches and port waits, per sandbox */
    SILT_WORKER_PATH_MAX = 4096,
    SILT_WORKER_MIME_SIZE = 96,
    SILT_WORKER_LAST = 1u << 31, /* frame.flags */
};

/* siltd -> worker: frame.type. The body of all but DATA is struct silt_worker_ask and its parts. */
enum silt_worker_op {
    /* bytes of the running WRITE or UNTAR; after SHARE a struct silt_worker_span */
    SILT_WORKER_DATA = 1,
    SILT_WORKER_READ, /* offset, length (0: to the end). META with as much content as fits, then
                         DATA… */
    /* DATA follows; `text` may hold the first bytes, or with ONLY all of them. DONE */
    SILT_WORKER_WRITE,
    SILT_WORKER_DELETE,   /* directories only with RECURSIVE. DONE */
    SILT_WORKER_MOVE,     /* path -> to, like `mv`. DONE */
    SILT_WORKER_MKDIR,    /* RECURSIVE, mode. DONE */
    SILT_WORKER_LIST,     /* RECURSIVE, HIDDEN. ENTRIES…, DONE */
    SILT_WORKER_STAT,     /* META without content; NOFOLLOW */
    SILT_WORKER_CHMOD,    /* mode; RECURSIVE. DONE */
    SILT_WORKER_CHOWN,    /* uid, gid (-1: unchanged); RECURSIVE, NOFOLLOW. DONE */
    SILT_WORKER_SYMLINK,  /* makes `to` a link to `path`, which is not checked. DONE */
    SILT_WORKER_READLINK, /* DATA: the target */
    SILT_WORKER_TRUNCATE, /* length. DONE */
    /* text: what to find; to: glob of names, or empty; limit: matches. MATCH…, DONE */
    SILT_WORKER_SEARCH,
    SILT_WORKER_TAR, /* the directory's contents as a tar stream made by the image's tar. DATA… */
    SILT_WORKER_UNTAR, /* DATA follows: unpacked next to the directory, then moved into it. DONE */
    SILT_WORKER_WATCH, /* RECURSIVE, events; text: patterns. EVENT…; ends only on failure */
    SILT_WORKER_PORT,  /* mode: port; see silt_worker_port in `text`. DONE when it answers */
    SILT_WORKER_SHARE, /* one descriptor, once, before the first DATA of a WRITE or UNTAR */
    /* created with its parents if missing. DATA: its absolute path without links */
    SILT_WORKER_DIRECTORY,
    SILT_WORKER_OP_MAX
};

/* silt_worker_ask.flags */
enum {
    SILT_WORKER_RECURSIVE = 1,
    SILT_WORKER_HIDDEN = 2,   /* LIST: include names that start with a dot */
    SILT_WORKER_NOFOLLOW = 4, /* operate on a link itself */
    SILT_WORKER_PARENTS = 8,  /* WRITE, UNTAR: create missing directories */
    SILT_WORKER_SYNC = 16,    /* WRITE: sync to disk before the file appears */
    SILT_WORKER_ONLY = 32,    /* WRITE: `text` is all of it, no DATA follows */
    SILT_WORKER_MIME = 64,    /* READ, STAT: determine the MIME type */
    SILT_WORKER_ZSTD = 128,   /* TAR, UNTAR: compressed */
    /* WATCH: the patterns name what to report; without it, what to exclude */
    SILT_WORKER_INCLUDE = 256,
    SILT_WORKER_NEW = 512,     /* WRITE: fail if the file exists */
    SILT_WORKER_FOLDED = 1024, /* SEARCH: ignore case */
    /* UNTAR: owners as in the tar, even if files are created as another user than root */
    SILT_WORKER_OWNERS = 4096,
    SILT_WORKER_WRAP = 2048, /* TAR: the object itself, of any type, under its name */
};

/* The parts follow back to back in this order: cwd, path, to, text. Paths have no NUL and at most
 * SILT_WORKER_PATH_MAX bytes. A relative path starts at the directory of process `cwd_pid` if that
 * is not 0, else at `cwd`. */
struct silt_worker_ask {
    uint32_t flags;
    int32_t cwd_pid;
    uint64_t offset, length;
    uint32_t mode;     /* of a new file or directory; PORT: the port */
    uint32_t uid, gid; /* UINT32_MAX: unchanged */
    uint32_t limit;    /* SEARCH: matches; WATCH: SILT_WATCH_… events wanted */
    uint32_t cwd_len, path_len, to_len, text_len;
};

/* of the shared memory */
struct silt_worker_span {
    uint64_t offset, length;
};

/* worker -> siltd: frame.type */
enum silt_worker_say {
    SILT_WORKER_SAY_META = 1, /* struct silt_worker_meta, then content up to the end of the frame */
    SILT_WORKER_SAY_DATA, /* bytes; empty and not the last: a sign of life from a long operation */
    SILT_WORKER_SAY_ENTRIES, /* struct silt_worker_entry and its name, as many as fit */
    SILT_WORKER_SAY_MATCH,   /* struct silt_worker_match, path, line: as many as fit */
    SILT_WORKER_SAY_EVENT,   /* struct silt_worker_event and its path, as many as fit */
    SILT_WORKER_SAY_DONE,    /* struct silt_worker_done; always LAST */
    /* struct silt_error; always LAST. `sys` is the errno reported to clients */
    SILT_WORKER_SAY_FAILED,
    SILT_WORKER_SAY_TAKEN, /* empty: the oldest span is no longer needed */
    SILT_WORKER_SAY_MAX
};

enum silt_worker_type { SILT_TYPE_FILE = 1, SILT_TYPE_DIR, SILT_TYPE_LINK, SILT_TYPE_OTHER };

struct silt_worker_meta {
    uint64_t size, ino, dev;
    int64_t mtime_ns, ctime_ns;
    uint32_t mode; /* permission bits, with setuid and the like */
    uint32_t uid, gid;
    uint32_t type; /* enum silt_worker_type */
    uint32_t nlink;
    char mime[SILT_WORKER_MIME_SIZE]; /* NUL-terminated; empty if not requested */
};

/* padded to 8 bytes after its name */
struct silt_worker_entry {
    uint64_t size;
    int64_t mtime_ns;
    uint32_t mode, type;
    uint32_t uid, gid;
    uint32_t name_len; /* path below the listed directory, no NUL */
    uint32_t reserved;
};

/* padded to 8 bytes after its text */
struct silt_worker_match {
    uint64_t line, column; /* from 1 */
    uint32_t path_len, text_len;
};

/* silt_worker_event.what, and as a set `limit` of a WATCH */
enum {
    SILT_WATCH_CREATE = 1,
    SILT_WATCH_MODIFY = 2,
    SILT_WATCH_DELETE = 4,
    SILT_WATCH_MOVE_FROM = 8,
    SILT_WATCH_MOVE_TO = 16,
    SILT_WATCH_ATTRIB = 32,
    SILT_WATCH_READY = 64,     /* the watch is established; path: the directory */
    SILT_WATCH_OVERFLOW = 128, /* the kernel's queue overflowed: events are missing */
    SILT_WATCH_LIMIT = 256,    /* no more watches available: path is not followed */
    SILT_WATCH_GONE = 512,     /* the watched path itself is gone: the last event */
};

/* padded to 8 bytes after its path */
struct silt_worker_event {
    int64_t time_ms; /* wall clock */
    uint32_t what;   /* one of SILT_WATCH_… */
    uint32_t is_dir;
    uint32_t path_len; /* absolute */
    uint32_t reserved;
};

/* `text` of a PORT request; followed by the path of the request */
struct silt_worker_port {
    uint32_t http; /* 0: a connection is enough */
    uint32_t status_min, status_max;
    uint32_t interval_ms; /* between requests that got another status */
};

struct silt_worker_done {
    uint64_t bytes;               /* written, read or packed */
    uint64_t entries;             /* listed, removed, unpacked, matches */
    uint32_t status;              /* PORT, http: the status */
    uint32_t truncated;           /* LIST, SEARCH: there are more */
    struct silt_worker_meta meta; /* WRITE: of the new file */
};
