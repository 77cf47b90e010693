// SPDX-License-Identifier: Apache-2.0
// Measures the library and a bare client by turns: sdk.mjs LIBRARY SERVER TOKEN COUNT MIB

import http from 'node:http';

const [, , file, address, token, count, mib] = process.argv;
const [host, port] = address.split(':');
const { getSandbox } = await import(file);
const sandbox = getSandbox('bench', { url: address, token });
const agent = new http.Agent({ keepAlive: true });
const ROUNDS = 5; // of transfers

const request = (method, path, body, read) => new Promise((resolve, reject) => {
	const sent = http.request({ agent, host, port, method, path: `/v1/sandboxes/bench${path}`, headers: { Authorization: `Bearer ${token}`, ...(body ? { 'Content-Length': body.length } : {}) } }, response => {
		let text = '';
		let bytes = 0;
		response.on('data', piece => { bytes += piece.length; if (!read) text += piece; }).on('end', () => resolve(read ? bytes : JSON.parse(text))).on('error', reject);
	}).on('error', reject);
	sent.end(body);
});
const bareExec = () => request('POST', '/exec', Buffer.from('{"command":"/bin/true","sessionId":"default"}'));
const bareDownload = () => request('GET', '/files?path=/workspace/large', undefined, true);
async function libraryDownload() {
	let bytes = 0;
	for await (const piece of (await sandbox.readFile('/workspace/large', { encoding: 'none' })).content)
		bytes += piece.length;
	return bytes;
}

const timed = async work => {
	const began = process.hrtime.bigint();
	await work();
	return Number(process.hrtime.bigint() - began) / 1e6;
};
const at = (numbers, share) => numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))];
const say = fields => console.log(JSON.stringify(fields));
const round = number => Math.round(number * 1000) / 1000;

try {
	await sandbox.exec('true');
	for (let i = 0; i < 50; i++) {
		await bareExec();
		await sandbox.exec('/bin/true');
	}
	const library = [], bare = [];
	for (let i = 0; i < count; i++) {
		bare.push(await timed(bareExec));
		library.push(await timed(() => sandbox.exec('/bin/true')));
	}
	say({ name: '/bin/true, node:http', p50_ms: round(at(bare, 0.5)), p99_ms: round(at(bare, 0.99)) });
	say({ name: '/bin/true, silt-sandbox', p50_ms: round(at(library, 0.5)), p99_ms: round(at(library, 0.99)), ratio: round(at(library, 0.5) / at(bare, 0.5)), goal: '<= 1.4' });

	await sandbox.exec(`head -c ${mib}M /dev/zero > /workspace/large`);
	await bareDownload();
	const rates = { library: [], bare: [] };
	let growth = 0;
	for (let i = 0; i < ROUNDS; i++) {
		rates.bare.push(mib / await timed(bareDownload) * 1000);
		globalThis.gc();
		const before = process.memoryUsage.rss();
		let most = before;
		const watch = setInterval(() => { most = Math.max(most, process.memoryUsage.rss()); }, 20);
		rates.library.push(mib / await timed(libraryDownload) * 1000);
		clearInterval(watch);
		growth = Math.max(growth, most - before);
	}
	say({ name: `${mib} MiB down, node:http`, MiB_s: Math.round(at(rates.bare, 0.5)) });
	say({ name: `${mib} MiB down, silt-sandbox`, MiB_s: Math.round(at(rates.library, 0.5)), ratio: round(at(rates.library, 0.5) / at(rates.bare, 0.5)), goal: '>= 0.9', growth_MiB: Math.round(growth / 2 ** 20), growth_goal: '<= 64' });
} finally {
	await sandbox.destroy();
	agent.destroy();
}
