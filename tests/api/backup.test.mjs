// SPDX-License-Identifier: Apache-2.0
// Backups: a directory becomes an archive, an archive a directory again, and parts of one go to a storage: a real HTTPS server inside the sandbox.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

const ARCHIVE = '/var/backups/one.sqsh';
const CA = '/root/storage.pem';
const PORT = 8443;

let daemon, box;
before(async () => {
	daemon = await startDaemon({ flags: { image: 'base' } });
	box = await daemon.box(undefined, { env: { CURL_CA_BUNDLE: CA } });
});
after(() => daemon?.stop());

const create = (body, b = box) => b.api('POST', '/api/backup/create', { dir: '/workspace/app', archivePath: ARCHIVE, ...body }, { deadline: 120_000 });
const restore = (body, b = box) => b.api('POST', '/api/backup/restore', { dir: '/workspace/app', archivePath: ARCHIVE, ...body }, { deadline: 120_000 });
const upload = (body, b = box) => b.api('POST', '/api/backup/upload-parts', { archivePath: ARCHIVE, ...body }, { deadline: 120_000 });

async function good(answering) {
	const answer = await answering;
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body;
}

/** All that a tree is: names, types, modes, owners, times, contents. */
const tree = dir => box.out(`cd ${dir} && find . -printf '%P %y %m %U:%G %Ts %s %l\\n' | sed 's/\\(.* d .*\\) [0-9]* $/\\1/' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum`, { sessionId: 'tree' });

const MAKE = `rm -rf /workspace/app && mkdir -p /workspace/app/src/deep "/workspace/app/odd 'name' \\$(x)" && cd /workspace/app &&
	echo one > src/a && echo two > src/deep/b && ln -s ../src/a link && ln src/a hard && chmod 750 src && chown 1000:1001 src/deep/b && : > "odd 'name' \\$(x)/-rf" && echo .h > .hidden && touch -d 2020-01-02T03:04:05Z src/a`;

test('what is packed is what comes back, in another directory too', async () => {
	await box.out(MAKE, { sessionId: 'make' });
	const before = await tree('/workspace/app');
	const body = await good(create());
	assert.deepEqual(Object.keys(body), ['success', 'sizeBytes', 'archivePath']);
	assert.deepEqual([body.success, body.archivePath, body.sizeBytes], [true, ARCHIVE, Number(await box.out(`stat -c %s ${ARCHIVE}`))]);
	assert.equal(await box.out('ls /var/backups | grep one'), 'one.sqsh\n', 'nothing half made is left');
	assert.deepEqual(await good(restore({ dir: '/home/elsewhere/app' })), { success: true, dir: '/home/elsewhere/app' });
	assert.equal(await tree('/home/elsewhere/app'), before);
});

test('a restore leaves nothing of what was there, but open files and shells that stand in the directory live on', async () => {
	await box.out(MAKE, { sessionId: 'make' });
	await good(create());
	await box.out('cd /workspace/app && echo other > src/a && echo more > later && rm -rf src/deep', { sessionId: 'shell' });
	await box.out('exec 7</workspace/app/later 8</workspace/app/src/a', { sessionId: 'shell' });
	await good(restore());
	assert.equal(await box.out('cat <&7; cat <&8; pwd; LC_ALL=C ls -A; cat src/deep/b', { sessionId: 'shell' }), "more\nother\n/workspace/app\n.hidden\nhard\nlink\nodd 'name' $(x)\nsrc\ntwo\n");
});

test('forty mebibytes that do not compress, with each format', { timeout: 300_000 }, async () => {
	await box.out('mkdir -p /tmp/large && head -c 41943040 /dev/urandom > /tmp/large/bytes', {}, { deadline: 60_000 });
	const sum = await box.out('sha256sum < /tmp/large/bytes');
	for (const format of ['lz4', 'gzip', 'zstd']) {
		const { sizeBytes } = await good(create({ dir: '/tmp/large', compression: { format, threads: 2 } }));
		assert.ok(sizeBytes > 41_900_000, format);
		await box.out('echo other > /tmp/large/bytes');
		await good(restore({ dir: '/tmp/large' }));
		assert.equal(await box.out('sha256sum < /tmp/large/bytes'), sum, format);
	}
	await box.out('rm -rf /tmp/large');
});

/** The names that are in an archive. */
async function names(body) {
	await good(create(body));
	return (await box.out(`unsquashfs -l ${ARCHIVE} | sed -n 's,^squashfs-root/,,p'`)).trim().split('\n').sort();
}

test('excludes', async () => {
	await box.out('rm -rf /workspace/app && mkdir -p /workspace/app/a/node_modules/x /workspace/app/node_modules /workspace/app/dist/keep && cd /workspace/app && touch a/one.log two.log dist/keep/z a/node_modules/x/y \'#c\' "it\'s"', { sessionId: 'make' });
	assert.deepEqual(await names({ excludes: ['node_modules', '*.log', "it's", '#c'] }), ['a', 'dist', 'dist/keep', 'dist/keep/z']);
	assert.deepEqual(await names({ excludes: ['**/node_modules/**', '**', 'dist/**/z', 'dist/**/keep/**', '', '**/**/*.log'] }), ['#c', 'a', 'dist', "it's"]);
	assert.ok((await names({ excludes: ['$(touch /tmp/pwned)', "'; touch /tmp/pwned; '", '`touch /tmp/pwned`'] })).includes('two.log'));
	assert.equal(await box.out('ls /tmp/pwned 2>/dev/null || echo none'), 'none\n');
});

test('what git ignores', async () => {
	await box.out(`rm -rf /workspace/app && mkdir -p /workspace/app/sub/build /workspace/app/build && cd /workspace/app && git init -q . && printf 'build/\\n*.tmp\\n!sub/build/\\n' > .gitignore &&
		touch build/out sub/build/kept 'x[1].tmp' x1.tmpl file && git add -f sub/build/kept`, { sessionId: 'make' });
	const all = (await names({ gitignore: true })).filter(name => !name.startsWith('.git/'));
	assert.deepEqual(all, ['.git', '.gitignore', 'file', 'sub', 'sub/build', 'sub/build/kept', 'x1.tmpl']);
	await box.out('rm -rf .git', { sessionId: 'make' });
	assert.ok((await names({ gitignore: true })).includes('build/out'), 'without a repository nothing is ignored');
});

/** Starts a storage that keeps each PUT as a file /tmp/storage/PATH, fails the first `fails` of each, and tells no ETag for /silent. */
async function storage() {
	await box.out(`mkdir -p /tmp/storage && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout /tmp/key.pem -out ${CA} 2>/dev/null`, { sessionId: 'storage' });
	await box.out(`cat > /tmp/storage.js <<'EOF'
const fs = require('fs'), crypto = require('crypto'), failed = new Set();
require('https').createServer({ key: fs.readFileSync('/tmp/key.pem'), cert: fs.readFileSync('${CA}') }, (q, s) => {
	const hash = crypto.createHash('md5'), name = q.url.split('?')[0], parts = [];
	q.on('data', d => { hash.update(d); parts.push(d); }).on('end', () => {
		fs.appendFileSync('/tmp/storage.log', JSON.stringify([q.method, q.url, q.headers['content-length'], q.headers['transfer-encoding'], q.headers['content-type']]) + '\\n');
		if (name.startsWith('/broken') || (name.startsWith('/shaky') && !failed.has(name) && failed.add(name))) { s.statusCode = 500; return s.end('no'); }
		fs.writeFileSync('/tmp/storage' + name, Buffer.concat(parts));
		if (name !== '/silent') s.setHeader('ETag', '"' + hash.digest('hex') + '"');
		s.end();
	});
}).listen(${PORT});
EOF
nohup node /tmp/storage.js >/tmp/storage.out 2>&1 &`, { sessionId: 'storage' });
	await until('the storage', async () => (await box.run(`curl -s -o /dev/null --cacert ${CA} https://localhost:${PORT}/up`)).exitCode === 0, 60_000);
}

test('parts', { timeout: 300_000 }, async t => {
	await storage();
	await box.out(`head -c 12000000 /dev/urandom > ${ARCHIVE}`);
	const url = name => `https://localhost:${PORT}/${name}?partNumber=1&X-Amz-Signature='$(touch%20/tmp/pwned)'&a=[1-3]`;

	await t.test('go each to its place, at once, and are told by their number', async () => {
		const sizes = [5_000_000, 5_000_000, 2_000_000];
		const parts = sizes.map((size, i) => ({ partNumber: i + 1, url: url(i ? `part${i}` : 'shaky'), offset: i * 5_000_000, size })).reverse();
		const { parts: told, success } = await good(upload({ parts }));
		assert.ok(success);
		const sums = (await box.out(`cd /tmp/storage && md5sum shaky part1 part2 | cut -c1-32 && cat shaky part1 part2 | cmp - ${ARCHIVE}`)).trim().split('\n');
		assert.deepEqual(told, sums.map((sum, i) => ({ partNumber: i + 1, etag: `"${sum}"` })));
		const log = (await box.out('cat /tmp/storage.log')).trim().split('\n').map(JSON.parse).filter(([method]) => method === 'PUT');
		assert.ok(log.some(([, path, length, encoding, type]) => path === `/part2?partNumber=1&X-Amz-Signature='$(touch%20/tmp/pwned)'&a=[1-3]` && length === '2000000' && encoding === null && type === 'application/octet-stream'), JSON.stringify(log));
		assert.equal(await box.out('ls /tmp/pwned 2>/dev/null || echo none'), 'none\n');
	});
	await t.test('more than are sent at once', async () => {
		const parts = Array.from({ length: 30 }, (_, i) => ({ partNumber: i + 1, url: url(`many${i}`), offset: i * 400_000, size: 400_000 }));
		assert.deepEqual((await good(upload({ parts }))).parts.map(part => part.partNumber), parts.map(part => part.partNumber));
		assert.equal(await box.out(`cd /tmp/storage && cat ${parts.map((_, i) => `many${i}`).join(' ')} | cmp - ${ARCHIVE} && echo same`), 'same\n');
	});
	await t.test('fail', async () => {
		const one = { partNumber: 1, url: url('a'), offset: 0, size: 10 };
		for (const [part, message] of [[{ ...one, url: url('broken') }, /curl failed: .*500/], [{ ...one, url: url('silent') }, /ETag/], [{ ...one, size: 12_000_001 }, /ends before/], [{ ...one, url: 'https://localhost:1/' }, /curl failed/]]) {
			const answer = await upload({ parts: [part] });
			assert.equal(refused(answer, 500, 'BACKUP_CREATE_FAILED').archivePath, ARCHIVE);
			assert.match(answer.body.message, message);
		}
		assert.deepEqual(refused(await upload({ archivePath: '/var/backups/none', parts: [one] }), 500, 'BACKUP_CREATE_FAILED'), { archivePath: '/var/backups/none' });
	});
	await box.out('rm -rf /tmp/storage*; pkill -f storage.js; :', { sessionId: 'storage' });
});

test('what fails says so', async () => {
	const told = (answer, code, operation) => {
		const context = refused(answer, 500, code);
		assert.equal(answer.body.operation, operation);
		assert.equal(typeof answer.body.suggestion, 'string');
		return context;
	};
	assert.deepEqual(told(await create({ dir: '/workspace/none' }), 'BACKUP_CREATE_FAILED', 'backup.create'), { dir: '/workspace/none' });
	assert.deepEqual(told(await restore({ archivePath: '/var/backups/none' }), 'BACKUP_RESTORE_FAILED', 'backup.restore'), { dir: '/workspace/app', archivePath: '/var/backups/none' });
	await box.out(`rm -rf /workspace/app && mkdir -p /workspace/app && echo kept > /workspace/app/file && head -c 10000 /dev/urandom > ${ARCHIVE}`);
	const context = told(await restore(), 'BACKUP_RESTORE_FAILED', 'backup.restore');
	assert.ok(context.exitCode > 0 && context.stderr.length > 0, JSON.stringify(context));
	assert.equal(await box.out('cat /workspace/app/file; ls -A /workspace/app'), 'kept\nfile\n');
	await box.out('mkdir -p /workspace/app && echo x > /workspace/app/file');
	assert.ok(told(await create({ excludes: ['/absolute'] }), 'BACKUP_CREATE_FAILED', 'backup.create').exitCode > 0);
	assert.equal(await box.out('ls /var/backups | grep -c one'), '1\n', 'nothing half made is left');
});

test('an archive that is cut off changes nothing', async () => {
	await box.out(MAKE, { sessionId: 'make' });
	await good(create());
	await box.out(`truncate -s 300 ${ARCHIVE}; echo later > /workspace/app/later; touch -d 2020-01-02 /workspace/app`);
	const before = await tree('/workspace/app');
	refused(await restore(), 500, 'BACKUP_RESTORE_FAILED');
	assert.equal(await tree('/workspace/app'), before);
});

test('programs that an image lacks are named', async t => {
	const bare = await daemon.box(t);
	await bare.out('rm -f /usr/bin/mksquashfs /usr/bin/unsquashfs /usr/bin/curl; mkdir -p /workspace/app; : > /var/backups/one.sqsh');
	for (const [answer, code, binaryPath, named] of [
		[await create({}, bare), 'BACKUP_CREATE_FAILED', '/usr/bin/mksquashfs', /mksquashfs.*squashfs-tools/],
		[await restore({}, bare), 'BACKUP_RESTORE_FAILED', '/usr/bin/unsquashfs', /unsquashfs.*squashfs-tools/],
		[await upload({ parts: [{ partNumber: 1, url: 'https://x/', offset: 0, size: 1 }] }, bare), 'BACKUP_CREATE_FAILED', '/usr/bin/curl', /curl/],
	]) {
		assert.equal(refused(answer, 500, code).binaryPath, binaryPath);
		assert.match(answer.body.message, named);
	}
});

test('garbage is refused before anything runs', async () => {
	const long = `/workspace/${'x'.repeat(4100)}`;
	const part = { partNumber: 1, url: 'https://x/', offset: 0, size: 1 };
	const paths = [undefined, null, 5, '', 'workspace', '/workspace/../etc', '/workspace/a\0b', long];
	const bad = [
		...paths.flatMap(dir => [['create', { dir }], ['restore', { dir }]]),
		...[undefined, null, 5, '', '/tmp/x', '/var/backups', '/var/backups/', '/var/backups/../x', '/var/backups/a\0b', `/var/backups/${'x'.repeat(4100)}`].flatMap(archivePath => [['create', { archivePath }], ['restore', { archivePath }], ['upload-parts', { archivePath, parts: [part] }]]),
		...[null, 'true', 1].map(gitignore => ['create', { gitignore }]),
		...[null, 'x', {}, [5], [null], ['a\nb'], ['a\0b'], ['x'.repeat(4097)], Array(1025).fill('x')].map(excludes => ['create', { excludes }]),
		...[null, 'lz4', 5, { format: 'xz' }, { format: null }, { format: 'lz4 -no-xattrs' }, { threads: 0 }, { threads: -1 }, { threads: 1.5 }, { threads: '8' }].map(compression => ['create', { compression }]),
		...[undefined, null, [], {}, 'x', [null], [5], Array(1001).fill(part)].map(parts => ['upload-parts', { parts }]),
		...[{ partNumber: 0 }, { partNumber: '1' }, { partNumber: 1.5 }, { url: undefined }, { url: 5 }, { url: 'http://x/' }, { url: 'https://' }, { url: 'https:///x' }, { url: 'file:///etc/passwd' }, { url: '-o/etc/passwd' }, { url: 'https://x/\n' }, { url: 'https://x/ -o y' }, { url: `https://x/${'a'.repeat(9000)}` }, { offset: -1 }, { offset: 0.5 }, { size: 0 }, { size: -1 }, { size: 1e300 }].map(fault => ['upload-parts', { parts: [{ ...part, ...fault }] }]),
	];
	for (const [route, fault] of bad) {
		const answer = await box.api('POST', `/api/backup/${route}`, { dir: '/workspace/app', archivePath: ARCHIVE, ...fault });
		assert.deepEqual(refused(answer, 400, 'INVALID_BACKUP_CONFIG'), {}, JSON.stringify(fault).slice(0, 200));
		assert.equal(answer.body.operation, route === 'restore' ? 'backup.restore' : 'backup.create');
	}
	for (const dir of ['/', '/etc', '/workspaces', '/workspacex/y', '//workspace', '/var', '/var/tmpx', '/root'])
		for (const route of [create, restore])
			assert.deepEqual(refused(await route({ dir }), 400, 'INVALID_BACKUP_CONFIG'), { dir, archivePath: ARCHIVE });
	for (const body of ['{', '[]', '5', ''])
		refused(await box.api('POST', '/api/backup/create', body), 400, 'VALIDATION_FAILED');
	refused(await create({ sessionId: 5 }), 400, 'VALIDATION_FAILED');
});
