/* SPDX-License-Identifier: Apache-2.0 */
/* agent: the protocol between siltd and silt-init (struct silt_frame on one seqpacket channel per
 * sandbox). siltd treats everything from silt-init as hostile input.
 *
 * silt-init is started as
 *     silt-init <cgroup mode: 1|2> <number of join descriptors> <number of handles>
 * with 0, 1 and 2 on /dev/null and only these descriptors open:
 *     3  the channel
 *     4  OOM events: v1 memory.oom_control, v2 memory.events (read)
 *     5  memory peak: v1 memory.max_usage_in_bytes, v2 memory.peak or memory.current (read)
 *     6  pids events: pids.events (read; `max N` counts refused forks)
 *     7… v1: `tasks` of the guest's memory, pids and cpu groups: a child writes 0 to each before
 *        exec; v2: none, the handle's directory is below the guest's group
 * then the handles, SILT_HANDLE_FDS descriptors each.
 *
 * A handle is one cgroup for one session or process: v1 {tasks (rw), freezer.state (rw)}, v2
 * {directory (for CLONE_INTO_CGROUP), cgroup.procs (read), cgroup.kill (write)}. Empty handles are
 * reused. When few are left, silt-init asks for more (SILT_AGENT_NEED_HANDLES) and receives them as
 * descriptors of SILT_AGENT_HANDLES frames. */
#pragma once

#include "base/error.h"
#include "wire/frame.h"

enum {
    SILT_AGENT_FD_CHANNEL = 3,
    SILT_AGENT_FD_OOM = 4,
    SILT_AGENT_FD_PEAK = 5,
    SILT_AGENT_FD_PIDS = 6,
    SILT_AGENT_FD_FIRST = 7,
    SILT_HANDLE_FDS_V1 = 2,
    SILT_HANDLE_FDS_V2 = 3,
    SILT_HANDLES_MAX = 160,       /* per sandbox; further execs wait for a free one */
    SILT_SESSIONS_MAX = 64,       /* per sandbox */
    SILT_SESSION_NOTE_MAX = 1024, /* opaque bytes of siltd about a session, kept by silt-init */
    SILT_COMMAND_MAX = 32 << 20,  /* bytes of one command */
    SILT_START_MAX = 40 << 20,    /* bytes of one start request, including the environment */
    SILT_EXEC_WINDOW = 256 << 10, /* how far output of a running exec may be ahead of siltd */
    SILT_PEER_GRACE_MS = 60000, /* silt-init ends its sandbox this long after siltd disconnected */
};

/* Path of the interpreters in a sandbox: below /dev, so that images need not contain them. */
#define SILT_KERNELS "/dev/silt-kernel"

/* siltd -> silt-init */
enum silt_agent_ask {
    /* body: uint64_t epoch. First frame of every siltd. Response: WELCOME, then one SESSION_INFO
     * per session and one EXEC_INFO per running exec, then READY */
    SILT_AGENT_HELLO = 1,
    SILT_AGENT_HANDLES, /* descriptors of more handles */
    /* id: new session. body: struct silt_agent_start (+ note, cwd, env). Response: OPENED or
     * FAILED */
    SILT_AGENT_OPEN,
    SILT_AGENT_CLOSE, /* id: session. Kills its shell and everything it started. Response: CLOSED */
    /* id: new exec. body: struct silt_agent_start. Response: STARTED or FAILED, OUT…, ENDED */
    SILT_AGENT_EXEC,
    SILT_AGENT_CREDIT, /* id: exec. body: uint64_t, how many more bytes may be sent */
    /* id: exec. No reader any more: output is dropped, no OUT frames; ENDED still comes */
    SILT_AGENT_DETACH,
    /* id: exec (not a foreground one). body: struct silt_agent_kill: signals the whole handle or
     * its process group. With SIGKILL or a grace period the handle is emptied, and ENDED comes
     * after that */
    SILT_AGENT_KILL,
    /* id: exec with a log. body: uint64_t position. One LOGGED comes when the log's head is past
     * it. Everything before it was read: a log with SILT_START_HOLD may overwrite it */
    SILT_AGENT_FOLLOW,
    /* id: exec with SILT_START_STDIN. body: bytes for its input; flags: SILT_STDIN_LAST. Response:
     * STDIN_TAKEN once they are in the pipe, unless the exec ends first; one request at a time */
    SILT_AGENT_STDIN,
    /* id: new worker. body: the owner of the files it creates, as silt_agent_start.user. One
     * descriptor: its end of a pair as in wire/worker.h. Response: only FAILED; its end is seen on
     * the pair */
    SILT_AGENT_WORKER,
    SILT_AGENT_WORKER_KILL, /* id: worker */
    /* id: any. Response: PONG with the same id, at once, after all earlier requests. flags:
     * SILT_PING_FLUSH */
    SILT_AGENT_PING,
    /* id: new exec. body: int32_t pid, in this namespace, of a process that another process started
     * outside and reaps; descriptors: its pidfd, then those of its handle, which it alone uses.
     * From then on it is like an exec with SILT_START_PIPES, without a response; when it ends, its
     * whole handle is emptied. Its ENDED has code -1 */
    SILT_AGENT_ADOPT,
    SILT_AGENT_RESIZE, /* id: exec with a terminal. body: uint32_t new size */
    /* id: any. body: struct silt_agent_sweep. Response: FOUND for all processes in the handles,
     * then SWEPT: at once, or when those to be ended have ended */
    SILT_AGENT_SWEEP,
    SILT_AGENT_ASK_MAX
};

/* silt-init -> siltd */
enum silt_agent_say {
    SILT_AGENT_WELCOME = 1,  /* body: uint64_t epoch of the HELLO. Everything before it is stale */
    SILT_AGENT_READY,        /* body: uint64_t epoch */
    SILT_AGENT_SESSION_INFO, /* id: session. body: struct silt_agent_session_info + note */
    SILT_AGENT_EXEC_INFO,    /* id: exec. body: struct silt_agent_exec_info */
    SILT_AGENT_OPENED,       /* id: session. body: int32_t pid of the shell */
    SILT_AGENT_CLOSED,       /* id: session */
    /* id: session whose shell exited by itself; body: struct silt_agent_end. If an exec was running
     * in it, its ENDED (with SILT_END_SHELL) comes first */
    SILT_AGENT_DIED,
    SILT_AGENT_STARTED, /* id: exec. body: int32_t pid */
    SILT_AGENT_OUT,     /* id: exec. flags: 1 stdout, 2 stderr. body: the bytes */
    SILT_AGENT_ENDED,   /* id: exec. body: struct silt_agent_end. The exec's last frame */
    SILT_AGENT_FAILED,  /* id: exec or session that could not be started; body: struct silt_error */
    SILT_AGENT_NEED_HANDLES, /* flags: how many */
    SILT_AGENT_LOGGED,       /* id: exec. body: struct silt_agent_logged */
    SILT_AGENT_STDIN_TAKEN,  /* id: exec. body: uint64_t bytes written; flags: SILT_STDIN_GONE */
    SILT_AGENT_PONG,         /* id: of the PING */
    SILT_AGENT_FOUND, /* id: of the SWEEP. body: records of struct silt_agent_found and its text */
    SILT_AGENT_SWEPT, /* id: of the SWEEP. body: struct silt_agent_swept. The sweep's last frame */
    /* id: session. body: its exported variables as bash's `declare -px` prints them, after a
     * command that changed them, or the session's first one. Left out if larger than a frame */
    SILT_AGENT_EXPORTED,
    SILT_AGENT_SAY_MAX
};

enum silt_agent_mode {
    SILT_EXEC_FOREGROUND = 1, /* in the session's shell itself */
    SILT_EXEC_BACKGROUND,     /* in a new shell with the session's state */
    SILT_EXEC_PLAIN,          /* no session: bash -c */
};

/* The body of OPEN and EXEC. If it does not fit into one frame, the frame holds only the struct,
 * with SILT_START_IN_MEMFD in frame.flags, and an attached memfd holds the parts. The parts follow
 * back to back in this order: note, cwd, env, user, command. Attached descriptors, in this order:
 * the memfd, the log, the secret, the three pipes. */
struct silt_agent_start {
    /* EXEC with a session: its id; with SILT_START_FORK: the id of the exec that forks; else 0 */
    uint64_t session;
    uint32_t mode;       /* enum silt_agent_mode; 0 for OPEN */
    uint32_t timeout_ms; /* 0: none */
    uint32_t note_len;   /* OPEN: siltd's note */
    /* 0: /workspace for OPEN and PLAIN, else the session's. OPEN falls back to the user's $HOME */
    uint32_t cwd_len;
    /* NAME=value\0NAME=value\0…: for OPEN and PLAIN the whole environment; in a session, what this
     * command sees in addition */
    uint32_t env_len;
    /* OPEN, and EXEC except in the foreground: a name in the image's /etc/passwd, or a uid,
     * optionally followed by `:` and a group name or gid; 0: root, or for BACKGROUND the session's
     * user. Without a group, a name or a uid known to /etc/passwd gets its groups from /etc/group;
     * another uid gets group 0. HOME, USER and LOGNAME come from the entry (without an entry HOME
     * is / and the others are unset), unless `env` has them: for PLAIN, include them only if the
     * client set them. Unknown user: FAILED with SILT_NOT_FOUND */
    uint32_t user_len;
    uint32_t command_len; /* with SILT_START_ARGV: the arguments, each NUL-terminated */
    uint32_t flags;       /* SILT_START_… flags of the request, below */
    /* rows << 16 | columns: the standard streams are a new terminal of that size, the controlling
     * terminal of the command's own session; all its output is in stream 1. Requires STDIN, and
     * BACKGROUND with LOG or PLAIN with ARGV; 0: none */
    uint32_t terminal;
};
enum { SILT_START_IN_MEMFD = 1 }; /* frame.flags */
enum {
    /* frame.flags of PING: id is an exec with a log; PONG comes once all its output so far is in
     * the log, unless it ends first */
    SILT_PING_FLUSH = 1,
    /* PONG comes once the variables of all commands that have ended were reported (EXPORTED), or
     * soon after. One at a time; id: not 0 */
    SILT_PING_EXPORTED = 2,
};
enum { SILT_STDIN_LAST = 1 }; /* frame.flags of STDIN: close the pipe afterwards */
enum { SILT_STDIN_GONE = 1 }; /* frame.flags of STDIN_TAKEN: the pipe has no reader, or is closed */
/* silt_agent_start.flags; a foreground command accepts only QUIET */
enum {
    /* output goes to the log (wire/log.h) and is announced by LOGGED, no OUT frames */
    SILT_START_LOG = 1,
    /* the process waits instead of overwriting unread output (FOLLOW); ended by DETACH */
    SILT_START_HOLD = 2,
    /* standard input is a pipe filled by STDIN frames; without this flag it is empty */
    SILT_START_STDIN = 4,
    /* no shell: the program is looked up in PATH of its environment. PLAIN only. FAILED with
     * SILT_NOT_FOUND or SILT_DENIED names it */
    SILT_START_ARGV = 8,
    SILT_START_SECRET = 16, /* the descriptor becomes descriptor 3 of the command */
    SILT_START_QUIET = 32,  /* foreground: STARTED is not needed and not sent */
    /* the descriptors become standard output, standard error and descriptor 4: siltd reads the
     * other ends itself, no OUT frames. Only PLAIN with ARGV and without a log */
    SILT_START_PIPES = 64,
    /* PID 1 shows the arguments as its own command line. Only with ARGV */
    SILT_START_FIRST = 128,
    /* it forks processes for FORK: silt-init sends it requests on its descriptor 5
     * (wire/zygote.h). Only with PIPES */
    SILT_START_WARM = 256,
    /* nothing is started: the exec `session`, one with WARM, forks the process, which gets the
     * descriptors. FAILED if it cannot or does not: then nothing has run. Only with PIPES */
    SILT_START_FORK = 512,
};

enum silt_agent_target {
    SILT_KILL_HANDLE, /* everything it started */
    SILT_KILL_GROUP,  /* its process group, like a terminal's interrupt: without a grace period */
    SILT_KILL_LEADER, /* its first process: without a grace period */
};

struct silt_agent_kill {
    uint32_t signal;
    uint32_t grace_ms; /* > 0: SIGKILL after this time to everything that is left */
    uint32_t target;   /* enum silt_agent_target */
};

/* Counts the processes in the handles, except the shells of sessions, the first processes of
 * contexts and terminals, and our own workers. With a signal and no pid, all of them get it, and
 * those left after the grace period get SIGKILL. A session's shell that is running a command is
 * replaced as on a timeout if the state from before the command was saved; otherwise the session
 * ends. Commands that start later are not affected. */
struct silt_agent_sweep {
    int32_t pid;     /* only this process; 0: all */
    uint32_t signal; /* 0: only count */
    uint32_t grace_ms;
};

enum silt_agent_found_in {
    SILT_FOUND_LEFT = 1, /* of a finished command. owner: its session, or 0 */
    SILT_FOUND_SHELL,    /* of a session that waits for its next command. owner: the session */
    SILT_FOUND_COMMAND,  /* of a session whose shell is running a command. owner: the session */
    SILT_FOUND_EXEC,     /* of a command, context or terminal. owner: the exec */
};

struct silt_agent_found {
    uint64_t owner;
    int64_t started_ms; /* wall clock */
    int32_t pid; /* negative: the number of further processes in this group, without details */
    uint16_t in; /* enum silt_agent_found_in */
    uint16_t text_len; /* its command line, truncated */
};
enum {
    SILT_FOUND_TEXT_MAX = 256,
    /* reported one by one per sweep; for the others only a number per group */
    SILT_FOUND_MAX = 1024
};

struct silt_agent_swept {
    uint32_t found;
    uint32_t left; /* how many of those to be ended are still there */
};

struct silt_agent_logged {
    uint64_t head, tail; /* as in struct silt_log_head */
};

struct silt_agent_session_info {
    int32_t pid;
    uint32_t note_len;
    uint64_t busy_exec; /* the foreground exec running in it, or 0 */
};

struct silt_agent_exec_info {
    uint64_t session;
    uint32_t mode;
    int32_t pid;
};

enum {
    SILT_END_TIMEOUT = 1,   /* ended by its timeout */
    SILT_END_OOM = 2,       /* the kernel's OOM killer was active while it ran */
    SILT_END_SHELL = 4,     /* the session's shell ended with it (foreground) */
    SILT_END_RESTARTED = 8, /* the session has a new shell with the state from before the command */
    SILT_END_NO_CWD = 16, /* the working directory could not be entered: the command did not run */
    SILT_END_PIDS = 32,   /* a fork was refused by the pids limit while it ran */
    /* set by siltd: silt-priv killed all processes because of TCP socket memory */
    SILT_END_TCP = 64,
};

struct silt_agent_end {
    int32_t code;        /* 0..255: exit status, or 128+signal; -1: unknown */
    int32_t signal;      /* the signal that ended it, or 0 */
    uint32_t flags;      /* SILT_END_… */
    uint32_t cwd_len;    /* foreground: the shell's directory follows, at most PATH_MAX bytes */
    uint64_t peak_bytes; /* memory peak of the sandbox, with SILT_END_OOM */
};
