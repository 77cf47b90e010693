#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bystander.py SERVER TOKEN_FILE SECONDS [KIND...]: one line of JSON for each kind of trouble and each way to run a command beside it."""
import http.client
import json
import subprocess
import sys
import threading
import time

server, token_file, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3])
token = open(token_file).read().strip()
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
SPACING_S = 0.005
TARGET_MS = 500


def script(body):
    """A program inside that does `body` again and again for its time."""
    return "python3 - <<'END'\nimport os, socket, time, random, signal\nend = time.time() + %d\n%s\nEND" % (seconds, body)


ORPHANS = script("""
while time.time() < end:
    if os.fork() == 0:
        for _ in range(50):
            try:
                if os.fork() == 0: os._exit(0)
            except OSError: time.sleep(0.001)
        os._exit(0)
    os.wait()""")
DIRTY = script("""
block = b"x" * (1 << 20)
while time.time() < end:
    with open("/tmp/dirty", "wb") as f:
        for _ in range(256):
            if time.time() < end: f.write(block)""")
FSYNC = script("""
f = os.open("/tmp/synced", os.O_CREAT | os.O_WRONLY)
while time.time() < end:
    os.pwrite(f, b"x" * 4096, 4096 * random.randrange(4096))
    os.fsync(f)""")
FILES = script("""
os.makedirs("/tmp/storm", exist_ok=True)
while time.time() < end:
    for i in range(500): os.close(os.open("/tmp/storm/%d" % i, os.O_CREAT | os.O_WRONLY))
    for i in range(500): os.unlink("/tmp/storm/%d" % i)""")
MEMORY = "end=$((SECONDS + %d)); while [ $SECONDS -lt $end ]; do python3 -c 'b = [bytearray(1 << 24) for _ in range(4096)]' 2>/dev/null; done" % seconds
PIPES = script("""
import fcntl
held = []
for _ in range(20):
    if os.fork() == 0:
        while time.time() < end:
            try:
                r, w = os.pipe()
                held.append((r, w))
                try: fcntl.fcntl(w, 1031, 1 << 20)
                except OSError: pass
                os.set_blocking(w, False)
                while os.write(w, b"x" * 65536) > 0: pass
            except BlockingIOError: pass
            except OSError: time.sleep(0.01)
        os._exit(0)
time.sleep(%d)""" % seconds)
DNS = script("""
at = [l.split()[1] for l in open("/etc/resolv.conf") if l.startswith("nameserver")][0]
s = socket.socket(socket.AF_INET6 if ":" in at else socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
while time.time() < end:
    name = b"".join(bytes([len(p)]) + p for p in (b"%x" % random.getrandbits(40), b"invalid")) + b"\\0"
    try: s.sendto(os.urandom(2) + b"\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name + b"\\0\\1\\0\\1", (at, 53))
    except OSError: time.sleep(0.0005)
    try: s.recv(512)
    except OSError: pass""")
TCP = script("""
held = []
while time.time() < end:
    s = socket.socket()
    s.setblocking(False)
    try: s.connect(("198.51.100.%d" % random.randrange(1, 255), 80))
    except OSError: pass
    held.append(s)
    if len(held) > 200: held.pop(0).close()""")
# Fills connections to itself that nobody accepts. With "reset" it resets each then: the kernel lists such a connection nowhere.
TCP_MEMORY = """python3 - <<'END'
import resource, socket, struct, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
block = b"x" * (1 << 18)
def fill(at):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    s.settimeout(1)
    s.connect(at)
    s.setblocking(False)
    try:
        while True: s.send(block)
    except BlockingIOError: pass
    return s
while time.time() < @END@:
    l = socket.socket()
    l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    l.bind(("127.0.0.1", 0))
    l.listen(4096)
    held, at = [], l.getsockname()
    try:
        while len(held) < 4000 and time.time() < @END@:
            held.append(fill(at))
            if "@KIND@" == "reset":
                held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                held[-1].close()
    except OSError: pass
END"""
# In the bystander: the milliseconds that 64 MiB take over a connection of its own.
TRANSFER = """python3 - <<'END'
import os, socket, time
l = socket.create_server(("127.0.0.1", 0))
block, left, start = b"x" * (1 << 17), 64 << 20, time.perf_counter()
if os.fork() == 0:
    s = socket.create_connection(l.getsockname())
    for _ in range(512): s.sendall(block)
    os._exit(0)
s = l.accept()[0]
while left > 0:
    left -= len(s.recv(1 << 18))
print((time.perf_counter() - start) * 1000)
END"""
TCP_LIMIT_MIB = 64  # the least that a sandbox has
ENDLESS = "timeout %d yes" % seconds

# How it is started: a command that is answered whole, one that is streamed, or a process with a log.
TROUBLES = {
    "alone": None,
    "orphans": ("whole", ORPHANS),
    "endless output, logged": ("process", ENDLESS),
    "endless output, streamed": ("stream", ENDLESS),
    "endless output, answered whole": ("whole", ENDLESS),
    "dirty pages": ("whole", DIRTY),
    "fsync": ("whole", FSYNC),
    "files": ("whole", FILES),
    "deaths by memory": ("whole", MEMORY),
    "pipes": ("whole", PIPES),
    "DNS flood": ("whole", DNS),
    "TCP flood": ("whole", TCP),
    "TCP memory, nobody accepts": ("again", TCP_MEMORY.replace("@KIND@", "wait")),
    "TCP memory, reset": ("again", TCP_MEMORY.replace("@KIND@", "reset")),
}


class Client:
    def __init__(self):
        self.conn = http.client.HTTPConnection(server, timeout=120)

    def ask(self, method, path, body=None):
        self.conn.request(method, path, json.dumps(body) if body is not None else None, headers)
        return self.conn.getresponse()

    def call(self, method, path, body=None):
        answer = self.ask(method, path, body)
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text)


def run_whole(box, command, path):
    # A program of its own reads the answer: a thread of ours would keep the bystander's client waiting.
    subprocess.run(["curl", "-fsSN", "-o", "/dev/null", "-H", "@-", "--data", json.dumps({"command": command, "sessionId": "__DISABLE_SESSION__"}),
                    f"http://{server}/sandboxes/{box}{path}"], input="Authorization: Bearer " + token, text=True, check=True)


def trouble(box, how, command, over):
    client = Client()
    end = time.time() + seconds
    try:
        if how == "again":  # it is killed now and then
            while time.time() < end:
                run_whole(box, command.replace("@END@", str(end)), "/api/execute")
        elif how == "process":
            made = client.call("POST", f"/v1/sandboxes/{box}/processes", {"command": command})
            client.call("GET", f"/v1/sandboxes/{box}/processes/{made['id']}/wait?for=exit&timeoutMs={seconds * 1000 + 30000}")
        else:
            run_whole(box, command, "/api/execute" + ("/stream" if how == "stream" else ""))
    finally:
        over.set()


def measure(client, box, over, transfers):
    times = {"session": [], "sessionless": [], **({"transfer of 64 MiB": []} if transfers else {})}
    end = time.monotonic() + seconds
    while time.monotonic() < end and not over.is_set():
        if transfers:
            said = client.call("POST", f"/sandboxes/{box}/api/execute", {"command": TRANSFER, "sessionId": "__DISABLE_SESSION__"})
            times["transfer of 64 MiB"].append(float(said["stdout"]))
        for way, session in (("session", "s"), ("sessionless", "__DISABLE_SESSION__")):
            start = time.perf_counter()
            client.call("POST", f"/sandboxes/{box}/api/execute", {"command": "/bin/true", "sessionId": session})
            times[way].append((time.perf_counter() - start) * 1000)
            time.sleep(SPACING_S)
    return times


def tcp_mib():
    line = next(l for l in open("/proc/net/sockstat") if l.startswith("TCP:"))
    return int(line.split()[-1]) * 4096 / (1 << 20)


def held_mib(samples, window_s=0.5):
    """The most that was held for as long as that."""
    whole = [[m for t, m in samples if at - window_s <= t <= at] for at, _ in samples if at - window_s >= samples[0][0]]
    return max(map(min, whole), default=0)


class TcpMemory:
    """What TCP connections of the machine hold more than before."""

    def __enter__(self):
        self.samples, self.over, before = [], threading.Event(), tcp_mib()

        def sample():
            while not self.over.wait(0.01):
                self.samples.append((time.monotonic(), tcp_mib() - before))
        self.thread = threading.Thread(target=sample)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def beside(name, wanted):
    client, over = Client(), threading.Event()
    bystander, attacker = "bystander", "trouble-%d" % list(TROUBLES).index(name)
    client.call("POST", f"/sandboxes/{bystander}/api/execute", {"command": "true", "sessionId": "s"})
    thread = None
    if wanted is not None:
        client.call("POST", "/v1/sandboxes", {"id": attacker, "network": {"mode": "allow", "allow": ["example.invalid"]},
                                              **({"limits": {"memoryMiB": 256}} if wanted[0] == "again" else {})})
        client.call("POST", f"/sandboxes/{attacker}/api/execute", {"command": "true"})
        thread = threading.Thread(target=trouble, args=(attacker, *wanted, over))
        thread.start()
        time.sleep(0.3)
    start = time.monotonic()
    times = measure(client, bystander, over, wanted is None or wanted[0] == "again")
    if thread is not None and time.monotonic() - start < seconds * 0.7:
        raise RuntimeError(f"{name} was over too soon")
    if thread is not None:
        thread.join()
        client.call("DELETE", f"/v1/sandboxes/{attacker}")
    return times


def rank(sorted_times, share):
    return sorted_times[min(len(sorted_times) - 1, int(len(sorted_times) * share))]


def tcp_row(memory, ratio):
    held = held_mib(memory.samples)
    return {"heldMiB": round(held, 1), "peakMiB": round(max(m for _, m in memory.samples), 1), "limitMiB": TCP_LIMIT_MIB,
            "kept": ratio <= 1.5 and held <= 1.1 * TCP_LIMIT_MIB}


alone = {}
wanted = sys.argv[4:] or list(TROUBLES)
for name in dict.fromkeys(["alone", *wanted]):
    with TcpMemory() as memory:
        ways = beside(name, TROUBLES[name])
    for way, times in ways.items():
        times.sort()
        p50, p99 = rank(times, 0.5), rank(times, 0.99)
        alone.setdefault(way, (p50, p99))
        print(json.dumps({"name": f"{name}, {way}", "spacingMs": 5, "count": len(times), "p50": round(p50, 3), "p99": round(p99, 3),
                          "min": round(times[0], 3), "max": round(times[-1], 3), "ratioP50": round(p50 / alone[way][0], 2),
                          "ratioP99": round(p99 / alone[way][1], 2), "kept": p99 <= TARGET_MS,
                          **(tcp_row(memory, p50 / alone[way][0]) if way.startswith("transfer") and name != "alone" else {})}), flush=True)
