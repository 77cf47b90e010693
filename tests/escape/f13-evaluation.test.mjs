// SPDX-License-Identifier: Apache-2.0
// F13: what programs that look for ways out of containers look at, all at once. What they would find is compared with what we have agreed to show.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const LOOK = `
import ctypes, glob, json, os, re, socket, stat, struct
found = {}
def read(path):
    try:
        with open(path, errors='replace') as f: return f.read(1 << 20)
    except OSError: return ''
def tried(name, act):
    try: found[name] = act()
    except OSError as e: found[name] = 'refused'
status = dict(l.split(':', 1) for l in read('/proc/self/status').splitlines() if ':' in l)
found['capabilities'] = status['CapEff'].strip()
found['seccomp'] = status['Seccomp'].strip()
found['new privileges'] = status['NoNewPrivs'].strip() == '0'
found['whole user namespace'] = read('/proc/self/uid_map').split()[2:] == ['4294967295']
found['processes of others'] = sorted({read(f'/proc/{p}/comm').strip() for p in os.listdir('/proc') if p.isdigit()} - {'silt-init', 'memfd:silt-init', 'bash', 'python3', 'sh', 'silt-worker'})
found['cgroup of the host'] = [l for l in read('/proc/self/cgroup').splitlines() if not re.search(r':/(h\\d+)?$', l)]
mounts = [l.split() for l in read('/proc/self/mountinfo').splitlines()]
found['mounts of the host'] = [m[4] for m in mounts if m[4] not in ('/',) and re.search(r'docker|kubelet|containerd|/host(/|$)|/rootfs|/mnt/', m[4])]
def opens(path):
    try: os.close(os.open(path, os.O_WRONLY)); return True
    except OSError: return False
found['writable kernel files'] = [p for p in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/kernel/modprobe', '/sys/kernel/uevent_helper', '/proc/sys/fs/binfmt_misc/register', '/sys/fs/cgroup/release_agent', '/proc/sys/vm/panic_on_oom', '/proc/1/mem') if opens(p)]
found['readable kernel files'] = [p for p in ('/proc/kcore', '/proc/kallsyms', '/proc/keys', '/proc/timer_list', '/proc/sched_debug', '/sys/kernel/debug', '/sys/kernel/security', '/sys/firmware/efi', '/proc/kmsg', '/boot') if (read(p).strip('\\0') if not os.path.isdir(p) else os.listdir(p))]
found['sockets'] = [p for p in ('/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock', '/run/crio/crio.sock', '/run/podman/podman.sock', '/run/systemd/private', '/run/dbus/system_bus_socket', '/run/silt') if os.path.exists(p)]
found['abstract sockets'] = [l.split()[-1] for l in read('/proc/net/unix').splitlines()[1:] if '@' in l]
found['devices'] = sorted(os.path.join(d, n) for d, _, names in os.walk('/dev') for n in names if stat.S_ISBLK(os.lstat(os.path.join(d, n)).st_mode))
found['secrets in the environment'] = [k for k in os.environ if re.search('TOKEN|SECRET|PASSWORD|AWS_|KUBERNETES|SILT', k)]
found['service account'] = os.path.exists('/var/run/secrets')
found['keys'] = glob.glob('/root/.ssh/*') + glob.glob('/root/.aws/*') + glob.glob('/root/.docker/*') + glob.glob('/root/.kube/*')
found['interfaces'] = sorted(os.listdir('/sys/class/net')) if os.path.isdir('/sys/class/net') else []
found['programs with capabilities'] = [l for l in os.popen('getcap -r / 2>/dev/null').read().splitlines() if not l.startswith('/usr')]
found['modules can be loaded'] = ctypes.CDLL(None, use_errno=True).syscall(175, 0, 0, 0) == 0
tried('raw socket', lambda: bool(socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)))
tried('packet socket', lambda: bool(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)))
tried('vsock', lambda: bool(socket.socket(40, socket.SOCK_STREAM)))
found['user namespace'] = 'refused' if ctypes.CDLL(None).unshare(0x10000000) else 'made'
def metadata():
    s = socket.create_connection(('169.254.169.254', 80), 1); return True
tried('metadata', metadata)
print(json.dumps(found))
`;

/** What we show and stand by: docs are SECURITY.md. Anything else that appears here is a finding. */
const AGREED = {
	capabilities: '00000000a00401fb',
	seccomp: '2',
	'new privileges': false,
	'whole user namespace': false,
	'processes of others': [],
	'cgroup of the host': [],
	'mounts of the host': [],
	'writable kernel files': [],
	'readable kernel files': [],
	sockets: [],
	'abstract sockets': [],
	devices: [],
	'secrets in the environment': [],
	'service account': false,
	keys: [],
	'programs with capabilities': [],
	'modules can be loaded': false,
	'raw socket': 'refused',
	'packet socket': 'refused',
	vsock: 'refused',
	'user namespace': 'refused',
	metadata: 'refused',
};

test('F13 an evaluation from inside finds nothing beyond the agreed list', async t => {
	const box = await daemon.box(t);
	const { interfaces, ...found } = JSON.parse(await box.out(`python3 - <<'END'\n${LOOK}\nEND`, { timeoutMs: 60_000 }));
	assert.deepEqual(found, AGREED);
	assert.deepEqual(interfaces.filter(name => !['lo', 'eth0'].includes(name)), []);
});
