// SPDX-License-Identifier: Apache-2.0
// Makes archives of images by hand: OCI layouts and what `docker save` writes, honest ones and others.
import { createHash } from 'node:crypto';
import zlib from 'node:zlib';
import { tar } from './tar.mjs';

export const sha256 = bytes => createHash('sha256').update(bytes).digest('hex');
const json = value => Buffer.from(JSON.stringify(value));

/** The directories that every root needs, with the machine's /usr to come (kind=host). */
export const SKELETON = [
	...['dev', 'etc', 'home', 'mnt', 'opt', 'proc', 'root', 'run', 'srv', 'sys', 'tmp', 'usr', 'var', 'var/tmp', 'workspace'].map(name => ({ name, type: 'dir', mode: name.endsWith('tmp') ? 0o1777 : 0o755 })),
	...['bin', 'sbin', 'lib', 'lib64'].map(name => ({ name, type: 'symlink', target: `usr/${name}` })),
	{ name: 'etc/passwd', data: 'root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home:/bin/sh\n' },
	{ name: 'etc/group', data: 'root:x:0:\nann:x:1000:\n' },
];

/** layers: lists of tar entries, or the bytes of a tar. pack: what each becomes. change: functions that falsify a part. */
export function parts({ layers = [SKELETON], config = {}, pack = zlib.gzipSync, platform = { architecture: 'amd64', os: 'linux' }, change = {} }) {
	const plain = layers.map(layer => (Buffer.isBuffer(layer) ? layer : tar(layer)));
	const packed = plain.map(pack);
	const whole = json((change.config ?? (x => x))({ ...platform, config, rootfs: { type: 'layers', diff_ids: plain.map(p => `sha256:${sha256(p)}`) }, history: [] }));
	return { plain, packed, config: whole };
}

const descriptor = (mediaType, bytes, more = {}) => ({ mediaType, digest: `sha256:${sha256(bytes)}`, size: bytes.length, ...more });
const blob = bytes => ({ name: `blobs/sha256/${sha256(bytes)}`, data: bytes });

/** The files of a layout, as entries of a tar. */
export function layoutFiles(options = {}) {
	const { packed, config } = parts(options);
	const change = options.change ?? {};
	const manifest = json((change.manifest ?? (x => x))({
		schemaVersion: 2,
		mediaType: 'application/vnd.oci.image.manifest.v1+json',
		config: descriptor('application/vnd.oci.image.config.v1+json', config),
		layers: packed.map(p => descriptor('application/vnd.oci.image.layer.v1.tar+gzip', p)),
	}));
	const annotations = options.ref ? { 'org.opencontainers.image.ref.name': options.ref } : undefined;
	let top = descriptor('application/vnd.oci.image.manifest.v1+json', manifest, { annotations });
	const indexes = [];
	for (let depth = 0; depth < (options.nested ?? 0); depth++) {
		const arm = { ...top, digest: `sha256:${'0'.repeat(64)}`, platform: { architecture: 'arm64', os: 'linux' } };
		const bytes = json({ schemaVersion: 2, manifests: [arm, { ...top, annotations: undefined, platform: { architecture: 'amd64', os: 'linux' } }] });
		indexes.push(blob(bytes));
		top = descriptor('application/vnd.oci.image.index.v1+json', bytes, { annotations });
	}
	const index = json((change.index ?? (x => x))({ schemaVersion: 2, manifests: [top, ...(options.others ?? [])] }));
	return [
		{ name: 'oci-layout', data: '{"imageLayoutVersion":"1.0.0"}' },
		{ name: 'blobs', type: 'dir' }, { name: 'blobs/sha256', type: 'dir' },
		...[...new Map([config, ...packed, manifest].map(bytes => [sha256(bytes), bytes])).values()].map(blob), ...indexes,
		{ name: 'index.json', data: index },
	];
}

export const layout = options => tar((options?.change?.files ?? (x => x))(layoutFiles(options)));

/** As `docker save` wrote until version 24, and podman writes (links: layers are links to files beside). */
export function dockerArchive(options = {}) {
	const { plain, config } = parts(options);
	const ids = plain.map(p => sha256(Buffer.concat([p, Buffer.from('id')])));
	const seen = new Set();
	const files = plain.flatMap((bytes, i) => {
		if (seen.has(ids[i]))
			return [];
		seen.add(ids[i]);
		const layer = options.links
			? [{ name: `${sha256(bytes)}.tar`, data: bytes }, { name: `${ids[i]}/layer.tar`, type: 'symlink', target: `../${sha256(bytes)}.tar` }]
			: [{ name: `${ids[i]}/layer.tar`, data: bytes }];
		return [{ name: `${ids[i]}/`, type: 'dir' }, { name: `${ids[i]}/VERSION`, data: '1.0' }, { name: `${ids[i]}/json`, data: '{}' }, ...layer];
	});
	const name = `${sha256(config)}.json`;
	const list = [{ Config: name, RepoTags: options.tags ?? null, Layers: ids.map(id => `${id}/layer.tar`) }, ...(options.others ?? [])];
	return tar((options.change?.files ?? (x => x))([...files, { name, data: config }, { name: 'manifest.json', data: json((options.change?.manifest ?? (x => x))(list)) }, { name: 'repositories', data: '{}' }]));
}

/** As `docker save` writes since version 25: both forms in one. */
export function dockerBlobs(options = {}) {
	const files = layoutFiles({ pack: x => x, ...options });
	const { plain, config } = parts({ ...options, pack: x => x });
	const list = [{ Config: `blobs/sha256/${sha256(config)}`, RepoTags: options.tags ?? null, Layers: plain.map(p => `blobs/sha256/${sha256(p)}`) }];
	return tar([...files.filter(f => f.name !== 'oci-layout'), { name: 'manifest.json', data: json(list) }, { name: 'oci-layout', data: '{"imageLayoutVersion":"1.0.0"}' }]);
}
