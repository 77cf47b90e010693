// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const lines = text => text.split('\n').filter(Boolean);

// ---- the answer ----

test('an answer tells how long the command took', async t => {
	const box = await daemon.box(t);
	const { duration } = await box.run('sleep 0.3');
	assert.ok(duration >= 300 && duration < 30_000, String(duration));
});

test('an answer has its fields in the documented order', async t => {
	const box = await daemon.box(t);
	const command = 'echo out; echo err >&2; false';
	const answer = await box.exec(command, { sessionId: 'build' });
	assert.equal(answer.status, 200);
	assert.deepEqual(Object.keys(answer.body), ['success', 'exitCode', 'stdout', 'stderr', 'command', 'duration', 'timestamp', 'sessionId']);
	assert.match(answer.body.timestamp, TIME);
	assert.equal(typeof answer.body.duration, 'number');
	assert.deepEqual({ ...answer.body, timestamp: 0, duration: 0 },
		{ success: false, exitCode: 1, stdout: 'out\n', stderr: 'err\n', command, duration: 0, timestamp: 0, sessionId: 'build' });
});

test('a sessionless answer names the reserved session', async t => {
	const box = await daemon.box(t);
	const body = await box.run('echo hi', { sessionId: SESSIONLESS });
	assert.deepEqual([body.success, body.exitCode, body.stdout, body.stderr, body.sessionId], [true, 0, 'hi\n', '', SESSIONLESS]);
});

test('a blank command succeeds and says nothing', async t => {
	const box = await daemon.box(t);
	for (const command of ['', ' ', '\n\t']) {
		const body = await box.run(command);
		assert.deepEqual([body.success, body.exitCode, body.stdout, body.stderr, body.command], [true, 0, '', '', command]);
	}
});

test('exit codes come back as they are', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS]) {
		assert.equal((await box.run('true', { sessionId })).exitCode, 0);
		assert.equal((await box.run('(exit 42)', { sessionId })).exitCode, 42);
		assert.equal((await box.run('no-such-program-here', { sessionId })).exitCode, 127);
		assert.equal((await box.run('/etc', { sessionId })).exitCode, 126);
		assert.equal((await box.run('sh -c "kill -9 \\$\\$"', { sessionId })).exitCode, 137);
		assert.equal((await box.run('false; true', { sessionId })).exitCode, 0);
		assert.equal((await box.run('true | false', { sessionId })).exitCode, 1);
	}
});

// ---- output, verbatim ----

const VERBATIM = [
	['echo hi', 'hi\n'], ['printf a', 'a'], ["printf 'a\\n\\n'", 'a\n\n'], ['echo', '\n'], ["printf '\\n\\n\\n'", '\n\n\n'], ['true', ''],
	["printf 'a\\r\\nb\\r'", 'a\r\nb\r'], ["printf ' lead and trail \\t'", ' lead and trail \t'], ["printf '\\033[31mred\\033[0m'", '\x1b[31mred\x1b[0m'],
	["printf 'quote\" back\\\\ slash/ \\b\\f'", 'quote" back\\ slash/ \b\f'], ["printf 'ü€😀'", 'ü€😀'], ["printf '\\342\\200\\250\\342\\200\\251'", '\u2028\u2029'],
	["printf '\\357\\273\\277bom'", '\ufeffbom'], ["printf '\\001\\037\\177'", '\x01\x1f\x7f'],
];

test('output is verbatim on both streams, in sessions and without', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS]) {
		for (const [command, expected] of VERBATIM) {
			assert.equal((await box.run(command, { sessionId })).stdout, expected, command);
			const onError = await box.run(`{ ${command}; } >&2`, { sessionId });
			assert.deepEqual([onError.stdout, onError.stderr], ['', expected], command);
		}
	}
});

test('NUL bytes vanish from the output', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS])
		assert.equal(await box.out("printf 'a\\0b\\0\\0c\\n'", { sessionId }), 'abc\n');
});

test('bytes that are not UTF-8 become U+FFFD as a TextDecoder would do it', async t => {
	const box = await daemon.box(t);
	const bytes = Buffer.concat([
		Buffer.from('fffe 41 c3 42 e282 43 f09f98 44 eda080 c0af f8888080 f4908080 e2 e2 82ac 80 bf ed9fbf ee8080 f48fbfbf'.replaceAll(' ', ''), 'hex'),
		randomBytes(65_536).map(byte => byte || 1),
		Buffer.from('e282', 'hex'),
	]);
	const expected = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
	await box.put('/tmp/bytes', bytes);
	for (const sessionId of ['default', SESSIONLESS])
		assert.equal(await box.out('cat /tmp/bytes', { sessionId }), expected);
});

test('a single line of 5 MB arrives whole', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS])
		assert.equal(await box.out("head -c 5000000 /dev/zero | tr '\\0' x", { sessionId }), 'x'.repeat(5_000_000));
});

test('200,000 lines arrive whole', async t => {
	const box = await daemon.box(t);
	const expected = Array.from({ length: 200_000 }, (_, i) => `${i + 1}\n`).join('');
	for (const sessionId of ['default', SESSIONLESS])
		assert.equal(await box.out('seq 1 200000', { sessionId }), expected);
});

test('both streams may be large at the same time', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS]) {
		const body = await box.run("head -c 3000000 /dev/zero | tr '\\0' e >&2 & head -c 3000000 /dev/zero | tr '\\0' o; wait", { sessionId });
		assert.equal(body.stdout, 'o'.repeat(3_000_000));
		assert.equal(body.stderr, 'e'.repeat(3_000_000));
	}
});

// ---- commands ----

test('a command of 1 MB runs', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS])
		assert.equal(await box.out(`x='${'y'.repeat(1_000_000)}'; echo \${#x}`, { sessionId }), '1000000\n');
});

test('multi-line text and here-documents pass unchanged', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('cat <<EOF\nline $((1+1))\n  indented\n\nEOF\ncat <<\'EOF\'\n$raw \\ `text`\nEOF'), 'line 2\n  indented\n\n$raw \\ `text`\n');
	assert.equal(await box.out('for i in 1 2\ndo\n\techo $i\ndone\nif true\nthen echo yes\nfi'), '1\n2\nyes\n');
	assert.equal(await box.out('cat <<A; cat <<B\na\nA\nb\nB'), 'a\nb\n');
	assert.equal(await box.out("cat <<-EOF\n\ttabbed\n\tEOF\n"), 'tabbed\n');
	assert.equal(await box.out('echo a # comment'), 'a\n');
	assert.equal(await box.out("printf '%s\\n' 'single '\\''quoted'\\'' text' \"double \\\"quoted\\\"\""), 'single \'quoted\' text\ndouble "quoted"\n');
	assert.equal(await box.out('echo a \\\n b'), 'a b\n');
	assert.equal(await box.out('echo one\r\n'), 'one\r\n');
});

test('a trailing backslash does not reach anything of ours', async t => {
	const box = await daemon.box(t);
	const body = await box.run('echo a \\');
	assert.match(body.stdout, /^a( \\)?\n$/);
	assert.equal(await box.out('echo next'), 'next\n');
});

test('words of a wrapper\'s kind are only text', async t => {
	const box = await daemon.box(t);
	for (const word of ['EOF', '__EOF__', '%s', '\\n', '$(', '"', "'", ';;', '&&', 'EXIT_CODE=5', 'done', '}', 'fi']) {
		assert.equal(await box.out(`cat <<'unique end'\n${word}\nunique end`), `${word}\n`);
		assert.equal(await box.out('echo still here'), 'still here\n');
	}
});

test('stdin is empty', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS]) {
		assert.equal(await box.out('cat; echo end', { sessionId }), 'end\n');
		assert.equal(await box.out('read x; echo $? [$x]', { sessionId }), '1 []\n');
		assert.equal(await box.out('wc -c', { sessionId }), '0\n');
	}
});

test('commands own the descriptors 0, 1 and 2 only', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS])
		assert.equal(await box.out("sh -c 'for fd in /proc/$$/fd/*; do [ -L $fd ] && echo ${fd##*/}; done; true'", { sessionId }), '0\n1\n2\n');
});

// ---- state of a session ----

test('the documented sequence gives the documented answers', async t => {
	const box = await daemon.box(t);
	assert.equal((await box.run('cd /tmp && export FOO=1')).exitCode, 0);
	assert.equal(await box.out('echo $PWD $FOO'), '/tmp 1\n');
	assert.equal(await box.out('pwd', { cwd: '/' }), '/\n');
	await box.out('cd /var', { cwd: '/' });
	assert.equal(await box.out('pwd'), '/tmp\n');
	assert.equal(await box.out('echo $FOO $BAR', { env: { FOO: 'x', BAR: "it's" } }), "x it's\n");
	assert.equal(await box.out('echo [$FOO][$BAR]'), '[1][]\n');
	assert.deepEqual(refused(await box.exec('exit 3'), 410, 'SESSION_TERMINATED').exitCode, 3);
	assert.equal(await box.out('echo after $PWD [$FOO]'), 'after /workspace []\n');
});

test('everything a shell can remember is remembered', async t => {
	const box = await daemon.box(t);
	await box.out('plain=1; export exported=2; arr=(a "b c"); declare -A map=([k]=v); f() { echo "f:$1"; }; umask 027; ulimit -n 100; set -o noglob; shopt -s extglob; trap "echo usr1" USR1; alias ll="ls -l"; cd /usr');
	assert.equal(await box.out('echo $plain $exported "${arr[1]}" ${map[k]} $(f x) $(umask) $(ulimit -n) $PWD *'), '1 2 b c v f:x 0027 100 /usr *\n');
	assert.match(await box.out('trap -p USR1; alias ll; shopt extglob'), /^trap -- 'echo usr1' SIGUSR1\nalias ll='ls -l'\nextglob\s+on\n$/);
	assert.equal((await box.run('ll')).exitCode, 127, 'aliases are stored, not expanded');
	assert.equal(await box.out('kill -USR1 $$; :'), 'usr1\n');
});

test('the shell is bash without rc files, always the same process', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('echo $- $0'), 'hBs bash\n');
	const pids = [];
	for (let i = 0; i < 5; i++)
		pids.push(await box.out('echo $$'));
	assert.equal(new Set(pids).size, 1);
	assert.equal(await box.out('echo $LANG $LC_ALL'), 'C.UTF-8 C.UTF-8\n');
	assert.equal(await box.out('set -o | grep -E "^(history|histexpand|monitor) .*on"; echo none'), 'none\n');
});

test('$? is 0 when a command starts', async t => {
	const box = await daemon.box(t);
	await box.run('false');
	assert.equal(await box.out('echo $?'), '0\n');
});

test('nothing of ours is in the user\'s shell', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	await box.run('true', { cwd: '/', env: { A: '1' } });
	await box.run('false', { timeoutMs: 10_000 });
	assert.equal(await box.out('trap -p; alias; declare -F; jobs'), '');
	// The same questions to a bash that is nobody's session.
	const both = async question => {
		const own = lines(await box.out(question));
		const plain = lines(await box.out(`bash --norc <<'END'\n${question}\nEND`));
		return own.filter(line => !plain.includes(line));
	};
	assert.deepEqual(await both('compgen -v | grep -vE "^(_|OLDPWD|PIPESTATUS|BASH_.*|FUNCNAME|LINES|COLUMNS)$"'), []);
	assert.deepEqual(await both('compgen -A function || :'), []);
	assert.deepEqual(await both('set +o'), []);
	assert.deepEqual(await both('shopt -p'), []);
	assert.doesNotMatch(await box.out('set; declare -p; env'), /silt/i);
});

test('variables are the same before and after commands of every kind', async t => {
	const box = await daemon.box(t);
	const volatile = /^(declare \S+ )?(_|BASH\w*|RANDOM|SRANDOM|SECONDS|EPOCH\w*|LINENO|PIPESTATUS|OLDPWD|FUNCNAME|COMP_WORDBREAKS|DIRSTACK|GROUPS|HISTCMD)\b/; // bash fills these when they are looked at
	const look = async () => lines(await box.out('declare -p')).filter(line => !volatile.test(line));
	const first = await look();
	await box.run('false');
	await box.run('echo "unterminated');
	await box.run('pwd', { cwd: '/tmp' });
	await box.run('pwd', { cwd: '/missing' });
	await box.run('echo $A', { env: { A: '1', PATH: '/usr/bin' } });
	await box.exec('sleep 30', { timeoutMs: 200 });
	assert.deepEqual(await look(), first);
});

test('closing other descriptors does not lose the session', async t => {
	const box = await daemon.box(t);
	await box.run('X=kept; for fd in {3..30}; do eval "exec $fd>&-"; done');
	assert.equal(await box.out('echo $X'), 'kept\n');
});

test('user descriptors persist', async t => {
	const box = await daemon.box(t);
	await box.out('exec 3>/tmp/log; exec 4</etc/passwd');
	await box.out('echo one >&3; echo two >&3; read -r -u 4 line; exec 3>&- 4<&-');
	assert.equal(await box.out('cat /tmp/log; echo ${line%%:*}'), 'one\ntwo\nroot\n');
});

// ---- cwd ----

test('a cwd that cannot be entered fails the command and nothing else', async t => {
	const box = await daemon.box(t);
	await box.out('cd /tmp');
	for (const cwd of ['/missing', '/etc/passwd', 'relative/missing', "it's $(missing)"]) {
		const body = await box.run('touch /tmp/ran; pwd', { cwd });
		assert.equal(body.exitCode, 1);
		assert.equal(body.success, false);
		assert.equal(body.stdout, '');
		assert.ok(body.stderr.includes(`Failed to change directory to '${cwd}'`), body.stderr);
	}
	assert.equal((await box.run('pwd; ls /tmp/ran')).stdout, '/tmp\n');
});

test('a relative cwd starts at the session\'s directory', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p /tmp/a/b; cd /tmp');
	assert.equal(await box.out('pwd', { cwd: 'a/b' }), '/tmp/a/b\n');
	assert.equal(await box.out('pwd'), '/tmp\n');
});

test('a cwd is left again even when its directory is gone', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir /tmp/short; cd /var');
	await box.out('rm -r /tmp/short', { cwd: '/tmp/short' });
	assert.equal(await box.out('pwd'), '/var\n');
});

test('a sessionless cwd that does not exist is an error', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('pwd', { sessionId: SESSIONLESS }), '/workspace\n');
	assert.equal(await box.out('pwd', { sessionId: SESSIONLESS, cwd: '/tmp' }), '/tmp\n');
	assert.equal(refused(await box.exec('pwd', { sessionId: SESSIONLESS, cwd: '/missing' }), 500, 'COMMAND_EXECUTION_ERROR').command, 'pwd');
});

// ---- env ----

test('env is for one command and restores what was there', async t => {
	const box = await daemon.box(t);
	await box.out('export KEPT=old; plain=old');
	const values = { KEPT: 'new', plain: 'new', FRESH: 'new', EMPTY: '', ODD: 'a\'b"c $(id) `id` \\ \n\t*ü=;', SKIPPED: null };
	assert.equal(await box.out('printf "%s|" "$KEPT" "$plain" "$FRESH" "${EMPTY-unset}" "$ODD" "${SKIPPED-unset}"', { env: values }), `new|new|new||${values.ODD}|unset|`);
	assert.equal(await box.out('env | grep -c "^FRESH=new$"', { env: { FRESH: 'new' } }), '1\n');
	assert.equal(await box.out('echo $KEPT $plain ${FRESH-unset} ${EMPTY-unset} ${ODD-unset}; env | grep ^KEPT='), 'old old unset unset unset\nKEPT=old\n');
});

test('env is restored after failures, bad directories and unparsable commands', async t => {
	const box = await daemon.box(t);
	await box.out('export A=old');
	await box.run('false', { env: { A: 'new' } });
	await box.run('true', { env: { A: 'new' }, cwd: '/missing' });
	await box.run('echo "', { env: { A: 'new' } });
	await box.exec('sleep 30', { env: { A: 'new' }, timeoutMs: 200 });
	assert.equal(await box.out('echo $A'), 'old\n');
});

test('a read-only variable in env does not cost the session', async t => {
	const box = await daemon.box(t);
	await box.out('readonly FIXED=1; X=kept');
	await box.exec('echo $FIXED', { env: { FIXED: '2' } });
	assert.equal(await box.out('echo $FIXED $X'), '1 kept\n');
});

test('bad names in env are refused before anything runs', async t => {
	const box = await daemon.box(t);
	for (const name of ['', '1A', 'A-B', 'A B', 'A=B', 'A;touch /tmp/ran', 'ü', 'A\n', 'A[0]', 'x'.repeat(100_000)]) {
		refused(await box.exec('touch /tmp/ran', { env: { [name]: 'x' } }), 400, 'VALIDATION_FAILED');
	}
	for (const value of [5, true, {}, []])
		refused(await box.exec('touch /tmp/ran', { env: { A: value } }), 400, 'VALIDATION_FAILED');
	assert.equal((await box.run('ls /tmp/ran')).exitCode, 2);
});

test('a sessionless command sees its env and no session', async t => {
	const box = await daemon.box(t);
	await box.out('export FROM_SESSION=1; cd /tmp');
	assert.equal(await box.out('echo [$FROM_SESSION][$A] $PWD', { sessionId: SESSIONLESS, env: { A: 'x y' } }), '[][x y] /workspace\n');
	assert.equal((await box.run('exit 7', { sessionId: SESSIONLESS })).exitCode, 7);
});

// ---- background jobs ----

test('a background job does not hold the answer and stays a job', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('sleep 1000 & echo started'), 'started\n');
	assert.match(await box.out('jobs'), /Running\s+sleep 1000/);
	assert.equal((await box.run('kill %1; wait %1')).exitCode, 143);
	assert.equal(await box.out('(exit 9) & wait $!; echo $?'), '9\n');
});

test('what a background job writes after the answer is lost, and harms nothing', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate');
	assert.equal(await box.out('{ read x < /tmp/gate; echo late; echo late >&2; touch /tmp/written; } & echo now'), 'now\n');
	const second = await box.run('echo go > /tmp/gate; wait; ls /tmp/written; echo done');
	assert.equal(second.stdout, '/tmp/written\ndone\n');
	assert.equal(second.stderr, '');
});

// ---- ends of a shell ----

test('exit ends the session once, the next call gets a fresh shell', async t => {
	const box = await daemon.box(t);
	await box.out('X=1; cd /tmp');
	const answer = await box.exec('echo lost; exit 3');
	assert.deepEqual([refused(answer, 410, 'SESSION_TERMINATED').sessionId, answer.body.context.exitCode], ['default', 3]);
	assert.match(answer.body.message, /shell exited.*exit code: 3/);
	assert.equal(await box.out('echo [$X] $PWD'), '[] /workspace\n');
});

test('everything that ends a shell is told with its code', async t => {
	const box = await daemon.box(t);
	const ends = [['exit', 0], ['exit 255', 255], ['set -e; false', 1], ['exec true', 0], ['exec sh -c "exit 9"', 9], ['kill -9 $$', 137], ['kill -KILL $BASHPID', 137]];
	for (const [command, code] of ends) {
		const context = refused(await box.exec(command, { sessionId: 's' }), 410, 'SESSION_TERMINATED');
		assert.equal(context.exitCode, code, command);
		assert.equal(await box.out('echo fresh', { sessionId: 's' }), 'fresh\n');
	}
});

test('a shell killed between calls is told once', async t => {
	const box = await daemon.box(t);
	const pid = (await box.out('echo $$', { sessionId: 's' })).trim();
	await box.out(`kill -9 ${pid}; while kill -0 ${pid}; do sleep 0.01; done 2>/dev/null; :`, { sessionId: 'other' });
	assert.equal(refused(await box.exec('echo x', { sessionId: 's' }), 410, 'SESSION_TERMINATED').exitCode, 137);
	assert.equal(await box.out('echo x', { sessionId: 's' }), 'x\n');
});

test('creating a session whose shell died succeeds at once', async t => {
	const box = await daemon.box(t);
	const pid = (await box.out('echo $$', { sessionId: 's' })).trim();
	await box.out(`kill -9 ${pid}; while kill -0 ${pid}; do sleep 0.01; done 2>/dev/null; :`, { sessionId: 'other' });
	await until('create succeeds', async () => (await box.api('POST', '/api/session/create', { id: 's' })).status === 200);
});

test('commands that cannot be parsed answer 2 and keep the session', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept');
	const broken = ['if true; then', ')', '}', 'echo "abc', "echo 'abc", 'echo `abc', 'echo $(abc', 'for', 'case x in', 'a() {', 'echo ${x', '&& true', '| cat', ';;', 'while true; do echo', '((1+', 'echo a; if', 'done'];
	for (const command of broken) {
		const body = await box.run(command, { timeoutMs: 60_000 });
		assert.equal(body.exitCode, 2, `${command}: ${JSON.stringify(body)}`);
		assert.match(body.stderr, /syntax error|unexpected|bad substitution|looking for matching/, command);
		assert.equal(await box.out('echo $X'), 'kept\n', command);
	}
});

test('an unfinished here-document ends with the command', async t => {
	const box = await daemon.box(t);
	const body = await box.run('cat <<EOF\nhi', { timeoutMs: 60_000 });
	assert.match(body.stdout, /^hi\n?$/);
	assert.equal(await box.out('echo next'), 'next\n');
});

test('return outside a function is an ordinary failure', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept');
	const body = await box.run('return 5');
	assert.notEqual(body.exitCode, 0);
	assert.equal(await box.out('echo $X'), 'kept\n');
});

test('break, continue and a failing assignment keep the session', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept; readonly R=1');
	for (const command of ['break', 'continue 5', 'R=2', 'unset R', 'cd /missing', 'let 1/0', 'echo $((1/0))', 'echo ${X:?no}; echo ${NONE:-none}', 'shift 99', 'source /missing'])
		await box.run(command);
	assert.equal(await box.out('echo $X'), 'kept\n');
});

// ---- order ----

test('30 commands on one session run one after the other in the order they came', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate /tmp/ready; : > /tmp/order; inside=0');
	const held = box.run('echo ready > /tmp/ready; read x < /tmp/gate');
	assert.equal(await box.out('cat /tmp/ready', { sessionId: 'other' }), 'ready\n');
	const connections = await Promise.all(Array.from({ length: 30 }, () => daemon.client.raw()));
	t.after(() => connections.forEach(c => c.destroy()));
	for (const connection of connections) { // each is accepted: from here on they are read in the order in which they speak
		connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
		await connection.received(/"ok"/);
	}
	for (const [i, connection] of connections.entries()) {
		const command = `[ $inside = 0 ] || echo overlap >> /tmp/order; inside=1; echo ${i} >> /tmp/order; inside=0`;
		const body = JSON.stringify({ command });
		connection.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
	}
	await box.out('echo go > /tmp/gate', { sessionId: 'other' });
	await held;
	await Promise.all(connections.map(c => c.received(/"exitCode":0/)));
	assert.equal(await box.out('cat /tmp/order'), Array.from({ length: 30 }, (_, i) => `${i}\n`).join(''));
});

test('two sessions run at the same time', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/there /tmp/back');
	const [a, b] = await Promise.all([
		box.out('echo ping > /tmp/there; read x < /tmp/back; echo $x', { sessionId: 'a', timeoutMs: 60_000 }),
		box.out('read x < /tmp/there; echo pong > /tmp/back; echo $x', { sessionId: 'b', timeoutMs: 60_000 }),
	]);
	assert.deepEqual([a, b], ['pong\n', 'ping\n']);
});

test('sessionless commands run beside each other', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/a /tmp/b');
	const outs = await Promise.all([
		box.out('echo 1 > /tmp/a; cat /tmp/b', { sessionId: SESSIONLESS, timeoutMs: 60_000 }),
		box.out('cat /tmp/a; echo 2 > /tmp/b', { sessionId: SESSIONLESS, timeoutMs: 60_000 }),
	]);
	assert.deepEqual(outs, ['2\n', '1\n']);
});

test('a client that goes away does not stop its command', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate');
	const connection = await daemon.client.raw();
	const body = JSON.stringify({ command: 'echo in > /tmp/gate; read x < /tmp/gate; touch /tmp/finished', sessionId: 's' });
	connection.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
	assert.equal(await box.out('cat /tmp/gate'), 'in\n', 'the command runs');
	connection.destroy();
	await connection.closed;
	await box.out('echo out > /tmp/gate');
	assert.equal(await box.out('ls /tmp/finished', { sessionId: 's' }), '/tmp/finished\n', 'the session was busy until it ended');
});

test('a command with very many quotes takes no longer than any other', async t => {
	const box = await daemon.box(t);
	await box.run('X=kept');
	const quotes = "'".repeat(1_000_000);
	for (const options of [{}, { cwd: '/tmp', env: { A: '1' } }])
		assert.equal(await box.out(`echo "${quotes}" | wc -c; echo $X`, options), '1000001\nkept\n');
	const end = await box.run(`echo ${"''".repeat(2000)}x; exit_code() { return 5; }; exit_code`);
	assert.deepEqual([end.stdout, end.exitCode], ['x\n', 5]);
	assert.equal(await box.out('ls /dev/silt | grep -c "[cr]$"; exit_code; echo $?'), '0\n5\n');
});

test('a directory of more than 4096 characters does not lose the session', async t => {
	const box = await daemon.box(t);
	await box.run('X=kept; cd /tmp; n=$(printf "c%.0s" {1..200}); for i in {1..40}; do mkdir -p $n; cd $n; done');
	assert.equal(await box.out('echo $X ${#PWD}'), 'kept 8044\n');
});

test('a sandbox full of daemons that commands left behind still takes commands', async t => {
	const box = await daemon.box(t);
	const leave = () => box.exec('setsid sleep 300 >/dev/null 2>&1 & true', { sessionId: SESSIONLESS });
	for (let round = 0; round < 10; round++)
		await Promise.all(Array.from({ length: 18 }, leave));
	assert.equal(await box.out('echo usable', { sessionId: SESSIONLESS }), 'usable\n');
	assert.equal(await box.out('echo usable', { sessionId: 'new' }), 'usable\n');
});
