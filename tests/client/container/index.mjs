// SPDX-License-Identifier: Apache-2.0
// The Worker of the container tests: ctx.container without any client library. POST /run/NAME runs a scenario in an object of its own, POST /object/NAME/METHOD
// calls a method of the object of that name, for what lasts longer than one Worker.

import assert from 'node:assert/strict';
import { DurableObject, WorkerEntrypoint } from 'cloudflare:workers';

const MS = 90_000;
const SERVER = `require('http').createServer((q, r) => r.end(JSON.stringify({ url: q.url, who: process.env.WHO, pid: process.pid }))).listen(8080, '127.0.0.1')`;

async function until(what, find) {
	for (const end = Date.now() + MS; ;) {
		const found = await find();
		if (found)
			return found;
		assert.ok(Date.now() < end, `${what}: not within ${MS} ms`);
		await scheduler.wait(20);
	}
}

async function run(container, ...words) {
	const { stdout, stderr, exitCode } = await (await container.exec(words)).output();
	return { exitCode, text: new TextDecoder().decode(stdout), error: new TextDecoder().decode(stderr) };
}

/** What containers say to the world comes here. */
export class World extends WorkerEntrypoint {
	async fetch(request) {
		return new Response(`caught ${request.method} ${request.url}\n`);
	}

	async connect(socket) {
		const writer = socket.writable.getWriter();
		await writer.write(new TextEncoder().encode('speaks first\n'));
		for await (const piece of socket.readable)
			await writer.write(new TextEncoder().encode(new TextDecoder().decode(piece).toUpperCase()));
		await writer.close();
	}
}

const scenarios = {
	async exitOfTheProgram(container) {
		container.start({ entrypoint: ['sh', '-c', 'exit 3'] });
		await assert.rejects(container.monitor(), error => error.exitCode === 3 || /3/.test(error.message));
		container.start({ entrypoint: ['true'] });
		await container.monitor();
		assert.equal(container.running, false);
	},

	async serviceAndVariables(container) {
		container.start({ entrypoint: ['node', '-e', SERVER], env: { WHO: 'me' } });
		const answer = await until('the service', () => container.getTcpPort(8080).fetch('http://x/a?b').catch(() => undefined));
		assert.deepEqual(await answer.json().then(({ url, who }) => [url, who]), ['/a?b', 'me']);
		await assert.rejects(container.getTcpPort(8081).fetch('http://x/'), /not listening/);
	},

	async rawConnection(container) {
		container.start({ entrypoint: ['node', '-e', `require('net').createServer({ allowHalfOpen: true }, s => s.pipe(s)).listen(7000)`] });
		const socket = await until('the service', async () => {
			const tried = container.getTcpPort(7000).connect('10.0.0.1:7000');
			return tried.opened.then(() => tried, () => undefined);
		});
		const writer = socket.writable.getWriter();
		await writer.write(new TextEncoder().encode('there and back'));
		await writer.close();
		assert.equal(await new Response(socket.readable).text(), 'there and back');
	},

	async signals(container) {
		container.start({ entrypoint: ['sh', '-c', 'trap "exit 9" USR1; touch /tmp/ready; while :; do sleep 0.1; done'] });
		await until('the trap', async () => (await (await container.exec(['test', '-e', '/tmp/ready'])).exitCode) === 0);
		const end = container.monitor();
		container.signal(10);
		await assert.rejects(end, error => error.exitCode === 9 || /9/.test(error.message));
	},

	async destroy(container) {
		container.start({ entrypoint: ['sleep', '100'] });
		const end = container.monitor().then(() => 'ended', () => 'failed');
		await container.destroy();
		assert.ok(['ended', 'failed'].includes(await end));
		assert.equal(container.running, false);
	},

	async exec(container) {
		container.start({ entrypoint: ['sleep', '100'], env: { OUTER: 'o' } });
		const process = await container.exec(['sh', '-c', 'echo "$OUTER $INNER $PWD"; echo err >&2; cat; exit 5'], { env: { INNER: 'i' }, cwd: '/usr', stdin: 'pipe' });
		const writer = process.stdin.getWriter();
		await writer.write(new TextEncoder().encode('typed\n'));
		await writer.close();
		assert.ok(process.pid > 0);
		const { stdout, stderr, exitCode } = await process.output();
		const text = bytes => new TextDecoder().decode(bytes);
		assert.deepEqual([text(stdout), text(stderr), exitCode], ['o i /usr\ntyped\n', 'err\n', 5]);
	},

	async execMuchOutput(container) {
		container.start({ entrypoint: ['sleep', '100'] });
		const process = await container.exec(['head', '-c', String(64 << 20), '/dev/zero'], { stderr: 'ignore' });
		let size = 0;
		for await (const piece of process.stdout)
			size += piece.byteLength;
		assert.equal(size, 64 << 20);
		assert.equal(await process.exitCode, 0);
	},

	async execKill(container) {
		container.start({ entrypoint: ['sleep', '100'] });
		const process = await container.exec(['sleep', '100']);
		process.kill(15);
		assert.equal(await process.exitCode, 143);
	},

	async execAsUser(container) {
		container.start({ entrypoint: ['sleep', '100'] });
		const { stdout } = await (await container.exec(['id', '-un'], { user: 'nobody' })).output();
		assert.equal(new TextDecoder().decode(stdout), 'nobody\n');
	},

	async execTerminal(container) {
		container.start({ entrypoint: ['sleep', '100'] });
		const process = await container.exec(['bash', '--norc'], { pty: { cols: 90, rows: 20 }, stdin: 'pipe' });
		assert.equal(process.isPty, true);
		const writer = process.stdin.getWriter();
		let shown = '';
		const over = (async () => {
			for await (const piece of process.stdout.pipeThrough(new TextDecoderStream()))
				shown += piece;
		})();
		const type = text => writer.write(new TextEncoder().encode(text));
		await type('stty size\r');
		await until('the size', () => shown.includes('20 90'));
		process.resize(70, 30);
		await until('the new size', async () => { // what is typed and what is resized go different ways
			await type('stty size\r');
			await scheduler.wait(200);
			return shown.includes('30 70');
		});
		await type('exit 4\r');
		assert.equal(await process.exitCode, 4);
		await over;
	},

	async outboundHttp(container, { world }) {
		await container.interceptOutboundHttp('11.22.33.44', world);
		await container.interceptOutboundHttp('shop.example', world);
		container.start({ entrypoint: ['sleep', '100'], enableInternet: false });
		const out = (...words) => run(container, ...words);
		assert.equal((await out('curl', '-sS', '--max-time', '20', 'http://11.22.33.44/a')).text, 'caught GET http://11.22.33.44/a\n');
		assert.equal((await out('curl', '-sS', '--max-time', '20', 'http://shop.example/b')).text, 'caught GET http://shop.example/b\n');
		assert.notEqual((await out('curl', '-sS', '--max-time', '20', 'http://11.22.33.55/')).exitCode, 0);
		assert.notEqual((await out('curl', '-sS', '--max-time', '20', 'http://other.example/')).exitCode, 0);
	},

	async outboundHttps(container, { world }) {
		await container.interceptOutboundHttps('bank.example', world);
		container.start({ entrypoint: ['sleep', '100'], enableInternet: false });
		const { stdout, stderr } = await (await container.exec(['curl', '-sS', '--max-time', '20', '--cacert', '/etc/cloudflare/certs/cloudflare-containers-ca.crt', 'https://bank.example/vault'])).output();
		assert.equal(new TextDecoder().decode(stdout), 'caught GET https://bank.example/vault\n', new TextDecoder().decode(stderr));
	},

	async outboundHttpAll(container, { world }) {
		container.start({ entrypoint: ['sleep', '100'], enableInternet: false });
		assert.notEqual((await run(container, 'curl', '-sS', '--max-time', '20', 'http://11.22.33.44/')).exitCode, 0);
		await container.interceptAllOutboundHttp(world); // also while it runs
		assert.equal((await run(container, 'curl', '-sS', '--max-time', '20', 'http://any.example/c')).text, 'caught GET http://any.example/c\n');
	},

	async outboundTcp(container, { world }) {
		await container.interceptOutboundTcp('11.22.33.44:7', world);
		await container.interceptOutboundTcp('22.0.0.0/8:9', world);
		container.start({ entrypoint: ['sleep', '100'], enableInternet: false });
		const talk = (address, port) => run(container, 'bash', '-c', `exec 3<>/dev/tcp/${address}/${port} && read -r -t 20 -u 3 first && echo "$first" && echo hello >&3 && read -r -t 20 -u 3 second && echo "$second"`);
		assert.equal((await talk('11.22.33.44', 7)).text, 'speaks first\nHELLO\n');
		assert.equal((await talk('22.1.2.3', 9)).text, 'speaks first\nHELLO\n');
		assert.notEqual((await talk('11.22.33.44', 8)).exitCode, 0);
	},

	async names(container, { world }) {
		await container.interceptOutboundHttp('shop.example', world);
		container.start({ entrypoint: ['sleep', '100'], enableInternet: false });
		assert.match((await run(container, 'getent', 'ahostsv4', 'shop.example')).text, /^11\.0\.0\.1 /);
		assert.equal((await run(container, 'getent', 'ahosts', 'www.example.test')).exitCode, 2);
		await container.destroy();
		container.start({ entrypoint: ['sleep', '100'], enableInternet: true });
		assert.match((await run(container, 'getent', 'ahostsv4', 'www.example.test')).text, /^93\.184\.215\.14 /);
		assert.match((await run(container, 'curl', '-sS', '--max-time', '20', 'http://www.example.test/')).text, /^world /);
		assert.equal((await run(container, 'getent', 'ahosts', 'none.example.test')).exitCode, 2);
	},

	async snapshotOfTheContainer(container) {
		container.start({ entrypoint: ['sleep', '100'] });
		assert.equal(await (await container.exec(['sh', '-c', 'echo kept > /root/file'])).exitCode, 0);
		const snapshot = await container.snapshotContainer({ name: 'first' });
		assert.ok(snapshot.id && snapshot.size >= 0);
		await container.destroy();
		container.start({ entrypoint: ['sleep', '100'], containerSnapshot: snapshot });
		const { stdout } = await (await container.exec(['cat', '/root/file'])).output();
		assert.equal(new TextDecoder().decode(stdout), 'kept\n');
	},

	async snapshotOfADirectory(container) {
		container.start({ entrypoint: ['sleep', '100'] });
		assert.equal(await (await container.exec(['sh', '-c', 'mkdir -p /data/deep && echo one > /data/deep/file'])).exitCode, 0);
		const snapshot = await container.snapshotDirectory({ dir: '/data' });
		await container.destroy();
		container.start({ entrypoint: ['sleep', '100'], directorySnapshots: [{ snapshot, mountPoint: '/restored' }] });
		const { stdout } = await (await container.exec(['cat', '/restored/deep/file'])).output();
		assert.equal(new TextDecoder().decode(stdout), 'one\n');
		assert.equal((await run(container, 'sh', '-c', 'echo two > /restored/deep/file')).exitCode, 0);
		await container.destroy();
		container.start({ entrypoint: ['sleep', '100'], directorySnapshots: [{ snapshot, mountPoint: '/a/b' }, { snapshot, mountPoint: '/a' }] });
		assert.equal((await run(container, 'cat', '/a/deep/file', '/a/b/deep/file')).text, 'one\none\n'); // what was done with one is not in the next
	},

	async inspect(container) {
		assert.equal(await container.inspect(), null);
		container.start({ entrypoint: ['sleep', '100'], labels: { team: 'tests' } });
		const info = await container.inspect();
		assert.deepEqual([typeof info.image, info.labels.team], ['string', 'tests']);
		await container.setLabels({ team: 'others' });
		assert.equal((await container.inspect()).labels.team, 'others');
	},
};

export class Box extends DurableObject {
	async scenario(name) {
		try {
			await scenarios[name](this.ctx.container, { world: this.env.WORLD });
		} finally {
			await this.ctx.container.destroy();
		}
	}

	/** Starts a container that stays and serves, and leaves a mark in it. */
	async leave() {
		this.ctx.container.start({ entrypoint: ['node', '-e', SERVER], enableInternet: false });
		return (await this.ctx.container.exec(['sh', '-c', 'echo here > /tmp/mark'])).exitCode;
	}

	/** What an earlier Worker has left, and whether the ways in and out lead to this one. */
	async find() {
		const { container } = this.ctx;
		if (!container.running)
			return 'not running';
		await container.interceptOutboundHttp('11.22.33.44', this.env.WORLD);
		const served = await until('the service', () => container.getTcpPort(8080).fetch('http://x/in').catch(() => undefined));
		return {
			mark: (await run(container, 'cat', '/tmp/mark')).text,
			served: (await served.json()).url,
			caught: (await run(container, 'curl', '-sS', '--max-time', '20', 'http://11.22.33.44/out')).text,
			refused: (await run(container, 'curl', '-sS', '--max-time', '20', 'http://11.22.33.55/')).exitCode !== 0,
		};
	}

	/** What curl says when nothing can leave the container. */
	async reach() {
		const { container } = this.ctx;
		await container.interceptOutboundHttp('11.22.33.44', this.env.WORLD);
		await container.interceptOutboundHttps('bank.example', this.env.WORLD);
		container.start({ entrypoint: ['sleep', '100'], enableInternet: true });
		try {
			const intercepted = await run(container, 'curl', '-sS', '--max-time', '25', 'http://11.22.33.44/');
			const secret = await run(container, 'curl', '-sS', '--max-time', '25', 'https://bank.example/');
			return { intercepted: intercepted.error, secret: secret.error };
		} finally {
			await container.destroy();
		}
	}

	destroy() {
		return this.ctx.container.destroy();
	}
}

export default {
	async fetch(request, env) {
		const { pathname } = new URL(request.url);
		if (pathname === '/scenarios')
			return Response.json(Object.keys(scenarios));
		const [, name] = /^\/run\/(\w+)$/.exec(pathname) ?? [];
		const [, object, method] = /^\/object\/(\w+)\/(leave|find|reach|destroy)$/.exec(pathname) ?? [];
		if (!(name in scenarios) && !method)
			return new Response('no such scenario\n', { status: 404 });
		const stub = env.Box.get(env.Box.idFromName(object ?? crypto.randomUUID()));
		try {
			return Response.json(await (method ? stub[method]() : stub.scenario(name)) ?? null);
		} catch (error) {
			return Response.json({ error: `${error.stack ?? error}` }, { status: 500 });
		}
	},
};
