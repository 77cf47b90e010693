/* SPDX-License-Identifier: Apache-2.0 */
/* agent: what siltd and silt-init say to each other (struct silt_frame on one seqpacket channel per
 * sandbox). Everything that comes from silt-init is hostile input to siltd.
 *
 * silt-init is started as
 *     silt-init <cgroup mode: 1|2> <number of join descriptors> <number of handles>
 * with these descriptors open and no others beside 0,1,2 (= /dev/null):
 *     3  the channel
 *     4  out-of-memory events: v1 memory.oom_control, v2 memory.events (read)
 *     5  memory peak: v1 memory.max_usage_in_bytes, v2 memory.peak or memory.current (read)
 *     6  pids events: pids.events (read; `max N` counts refused forks)
 *     7… v1: `tasks` of the guest's memory, pids and cpu groups: a child writes 0 to each before exec;
 *        v2: none, the handle's folder is below the guest's group
 *     then the handles, SILT_HANDLE_FDS descriptors each.
 * A handle is one cgroup for one session or process: v1 {tasks (rw), freezer.state (rw)},
 * v2 {folder (for CLONE_INTO_CGROUP), cgroup.procs (read), cgroup.kill (write)}. A handle is used again
 * when it is empty. When few are left silt-init asks for more (SILT_AGENT_NEED_HANDLES) and gets them
 * as descriptors of SILT_AGENT_HANDLES frames. */
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
    SILT_HANDLES_MAX = 160,           /* per sandbox; more concurrent execs wait for a free one */
    SILT_SESSIONS_MAX = 64,           /* per sandbox */
    SILT_SESSION_NOTE_MAX = 1024,     /* siltd's own bytes about a session, kept by silt-init */
    SILT_COMMAND_MAX = 32 << 20,      /* bytes of one command */
    SILT_START_MAX = 40 << 20,        /* bytes of one start request, environment and all */
    SILT_EXEC_WINDOW = 256 << 10,     /* output a running exec may be ahead of siltd */
    SILT_PEER_GRACE_MS = 60000,       /* silt-init ends its sandbox this long after its peer went */
};

/* Where a sandbox sees the interpreters: below its /dev, so that no image has to have them. */
#define SILT_KERNELS "/dev/silt-kernel"

/* siltd -> silt-init */
enum silt_agent_ask {
    SILT_AGENT_HELLO = 1,   /* body: uint64_t epoch. First frame of every siltd. Answer: WELCOME, then one
                               SESSION_INFO per session and one EXEC_INFO per running exec, then READY */
    SILT_AGENT_HANDLES,     /* descriptors of more handles */
    SILT_AGENT_OPEN,        /* id: new session. body: struct silt_agent_start (+ note, cwd, env). Answer:
                               OPENED or FAILED */
    SILT_AGENT_CLOSE,       /* id: session. Kills its shell and all it started. Answer: CLOSED */
    SILT_AGENT_EXEC,        /* id: new exec. body: struct silt_agent_start. Answer: STARTED or FAILED, OUT…,
                               ENDED */
    SILT_AGENT_CREDIT,      /* id: exec. body: uint64_t bytes more that may be sent */
    SILT_AGENT_DETACH,      /* id: exec. Nobody reads any more: drop output, no OUT frames; ENDED still comes */
    SILT_AGENT_KILL,        /* id: exec (not a foreground one). body: struct silt_agent_kill: a signal to the
                               whole handle or to its group. With SIGKILL or a grace the handle is emptied, and ENDED comes
                               when it is */
    SILT_AGENT_FOLLOW,      /* id: exec with a log. body: uint64_t position. One LOGGED comes when the log's
                               head is past it. What lies before it was read: a log that holds on
                               (SILT_START_HOLD) may overwrite it */
    SILT_AGENT_STDIN,       /* id: exec with SILT_START_STDIN. body: bytes for it; flags: SILT_STDIN_LAST.
                               Answer: STDIN_TAKEN when they are in the pipe, unless it ends first; one at
                               a time */
    SILT_AGENT_WORKER,      /* id: new worker. body: as silt_agent_start.user says, whose the files are that
                               it makes. A descriptor rides along: its end of a pair as in wire/worker.h. Answer: only FAILED; its end is seen on the pair */
    SILT_AGENT_WORKER_KILL, /* id: worker */
    SILT_AGENT_PING,        /* id: any. Answer: PONG with the same, at once, after all that was asked before */
    SILT_AGENT_ADOPT,       /* id: new exec. body: int32_t pid of a process of this namespace that somebody
                               outside has started and reaps; descriptors: its pidfd, then those of its
                               handle, which is nobody else's. From then on it is as an exec with
                               SILT_START_PIPES, no answer comes; with its end its whole handle is emptied.
                               Its ENDED has code -1 */
    SILT_AGENT_RESIZE,      /* id: exec with a terminal. body: uint32_t its new size */
    SILT_AGENT_SWEEP,       /* id: any. body: struct silt_agent_sweep. Answer: FOUND for all who are in the handles,
                               then SWEPT: at once, or when those who were to end have ended */
    SILT_AGENT_ASK_MAX
};

/* silt-init -> siltd */
enum silt_agent_say {
    SILT_AGENT_WELCOME = 1,  /* body: uint64_t epoch of the HELLO. What came before it is stale */
    SILT_AGENT_READY,        /* body: uint64_t epoch */
    SILT_AGENT_SESSION_INFO, /* id: session. body: struct silt_agent_session_info + note */
    SILT_AGENT_EXEC_INFO,    /* id: exec. body: struct silt_agent_exec_info */
    SILT_AGENT_OPENED,       /* id: session. body: int32_t pid of the shell */
    SILT_AGENT_CLOSED,       /* id: session */
    SILT_AGENT_DIED,         /* id: session whose shell ended by itself; body: struct silt_agent_end. If an
                                exec was running in it, its ENDED (SILT_END_SHELL set) comes first */
    SILT_AGENT_STARTED,      /* id: exec. body: int32_t pid */
    SILT_AGENT_OUT,          /* id: exec. flags: 1 stdout, 2 stderr. body: the bytes */
    SILT_AGENT_ENDED,        /* id: exec. body: struct silt_agent_end. Last frame about it */
    SILT_AGENT_FAILED,       /* id: exec or session that could not be started; body: struct silt_error */
    SILT_AGENT_NEED_HANDLES, /* flags: how many */
    SILT_AGENT_LOGGED,       /* id: exec. body: struct silt_agent_logged */
    SILT_AGENT_STDIN_TAKEN,  /* id: exec. body: uint64_t bytes that were taken; flags: SILT_STDIN_GONE */
    SILT_AGENT_PONG,         /* id: of the PING */
    SILT_AGENT_FOUND,        /* id: of the SWEEP. body: struct silt_agent_found and its text, one after the other */
    SILT_AGENT_SWEPT,        /* id: of the SWEEP. body: struct silt_agent_swept. Last frame about it */
    SILT_AGENT_SAY_MAX
};

enum silt_agent_mode {
    SILT_EXEC_FOREGROUND = 1, /* in the session's shell itself */
    SILT_EXEC_BACKGROUND,     /* in a new shell with the session's state */
    SILT_EXEC_PLAIN,          /* no session: bash -c */
};

/* The body of OPEN and EXEC. If the whole does not fit one frame, the frame holds only the struct, with
 * SILT_START_IN_MEMFD in frame.flags, and the parts lie in a memfd that rides along, one after the other.
 * Parts, in this order, back to back: note, cwd, env, user, command. Descriptors that ride along, in this
 * order: the memfd, the log, the secret, the three pipes. */
struct silt_agent_start {
    uint64_t session;    /* EXEC with a session: its id; else 0 */
    uint32_t mode;       /* enum silt_agent_mode; 0 for OPEN */
    uint32_t timeout_ms; /* 0: none */
    uint32_t note_len;   /* OPEN: siltd's note */
    uint32_t cwd_len;    /* 0: OPEN and PLAIN: /workspace, else the session's. OPEN falls back to $HOME, the user's own */
    uint32_t env_len;    /* NAME=value\0NAME=value\0…: OPEN and PLAIN: the whole environment; in a session:
                            what this command sees on top */
    uint32_t user_len;   /* OPEN, and EXEC but in a foreground: a name of the image's /etc/passwd, or uid,
                            perhaps with `:` and a group's name or gid; 0: root, and of BACKGROUND the session's. Without a group a name, or a uid
                            that /etc/passwd knows, has those of /etc/group; another uid has group 0. HOME, USER and LOGNAME are the entry's (HOME is / and
                            the others are not set where there is none), except those that `env` has: with
                            PLAIN leave them out of it unless the caller gave them. A user that is not
                            there: FAILED with SILT_NOT_FOUND */
    uint32_t command_len; /* with SILT_START_ARGV: the arguments, each with its NUL */
    uint32_t flags;       /* SILT_START_… of the request, below */
    uint32_t terminal;    /* rows << 16 | columns: the standard streams are a new terminal of that size, which controls the command's own session;
                             its output is all in stream 1. With STDIN, and BACKGROUND with LOG or PLAIN with ARGV only; 0: none */
};
enum { SILT_START_IN_MEMFD = 1 }; /* frame.flags */
enum { SILT_STDIN_LAST = 1 };     /* frame.flags of STDIN: then it is closed */
enum { SILT_STDIN_GONE = 1 };     /* frame.flags of STDIN_TAKEN: nobody reads it any more, or it is closed */
enum { /* silt_agent_start.flags; for a foreground command only QUIET */
    SILT_START_LOG = 1,    /* output goes to the log (wire/log.h) and is told by LOGGED, no OUT frames */
    SILT_START_HOLD = 2,   /* the process waits rather than overwrite what nobody has read (FOLLOW); ended
                              by DETACH */
    SILT_START_STDIN = 4,  /* standard input is a pipe that STDIN frames fill; without it it is empty */
    SILT_START_ARGV = 8,   /* no shell: the program is looked up in PATH of its environment. PLAIN only.
                              FAILED with SILT_NOT_FOUND or SILT_DENIED names it */
    SILT_START_SECRET = 16, /* the descriptor is number 3 in the command */
    SILT_START_QUIET = 32,  /* foreground: nobody waits for STARTED, so it is not sent */
    SILT_START_PIPES = 64,  /* the descriptors are standard output, standard error and number 4: siltd reads the
                               other ends itself, no OUT frames. PLAIN with ARGV and without a log only */
    SILT_START_FIRST = 128, /* process 1 shows the arguments as its own. With ARGV only */
};

enum silt_agent_target {
    SILT_KILL_HANDLE, /* everything that it started */
    SILT_KILL_GROUP,  /* its process group, as a terminal's interrupt: without a grace */
    SILT_KILL_LEADER, /* its first process: without a grace */
};

struct silt_agent_kill {
    uint32_t signal;
    uint32_t grace_ms; /* > 0: SIGKILL to all that is left after it */
    uint32_t target;   /* enum silt_agent_target */
};

/* Who is found in the handles: all processes but the shells of sessions, the first processes of contexts and
 * terminals, and our own workers. With a signal and no pid all of them get it, and those that are left after the
 * grace SIGKILL; a session's shell that is inside a command is replaced as at a timeout, where the state from before
 * the command was saved; else the session ends. Commands that begin later are left alone. */
struct silt_agent_sweep {
    int32_t pid;     /* this one only; 0: all */
    uint32_t signal; /* 0: nobody is to end */
    uint32_t grace_ms;
};

enum silt_agent_found_in {
    SILT_FOUND_LEFT = 1, /* of a command that is over. owner: its session, or 0 */
    SILT_FOUND_SHELL,    /* of a session that waits for its next command. owner: it */
    SILT_FOUND_COMMAND,  /* of a session whose shell is inside a command. owner: it */
    SILT_FOUND_EXEC,     /* of a command, context or terminal. owner: the exec */
};

struct silt_agent_found {
    uint64_t owner;
    int64_t started_ms; /* wall clock */
    int32_t pid;
    uint16_t in; /* enum silt_agent_found_in */
    uint16_t text_len; /* its command line, cut */
};
enum { SILT_FOUND_TEXT_MAX = 256, SILT_FOUND_MAX = 1024 /* told of one sweep; more are only counted */ };

struct silt_agent_swept {
    uint32_t found;
    uint32_t left; /* of those that were to end: who is still there */
};

struct silt_agent_logged {
    uint64_t head, tail; /* as in struct silt_log_head */
};

struct silt_agent_session_info {
    int32_t pid;
    uint32_t note_len;
    uint64_t busy_exec; /* foreground exec that runs in it, or 0 */
};

struct silt_agent_exec_info {
    uint64_t session;
    uint32_t mode;
    int32_t pid;
};

enum {
    SILT_END_TIMEOUT = 1,   /* ended by its deadline */
    SILT_END_OOM = 2,       /* the kernel killed for memory while it ran */
    SILT_END_SHELL = 4,     /* the session's shell ended with it (foreground) */
    SILT_END_RESTARTED = 8, /* the session has a new shell with the state from before the command */
    SILT_END_NO_CWD = 16,   /* the working directory could not be entered: the command did not run */
    SILT_END_PIDS = 32,     /* a fork was refused for the pids limit while it ran */
};

struct silt_agent_end {
    int32_t code;     /* 0..255: exit status, or 128+signal; -1 unknown */
    int32_t signal;   /* that ended it, or 0 */
    uint32_t flags;   /* SILT_END_… */
    uint32_t cwd_len; /* foreground: the shell's directory now follows, at most PATH_MAX bytes */
    uint64_t peak_bytes; /* memory peak of the sandbox, with SILT_END_OOM */
};
