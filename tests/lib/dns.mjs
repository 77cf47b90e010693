// SPDX-License-Identifier: Apache-2.0
// A DNS server's answers for a small zone: enough for getaddrinfo and nothing more.

const A = 1;
const AAAA = 28;

export const ZONE = {
	'www.example.test': { [A]: ['93.184.215.14'], [AAAA]: ['2606:4700::1111'] },
	'four.example.test': { [A]: ['93.184.215.14'] },
	'metadata.example.test': { [A]: ['169.254.169.254'] },
	'metadata6.example.test': { [AAAA]: ['fd00:ec2::254'] },
	'long.example.test': { [A]: Array.from({ length: 100 }, (_, i) => `93.184.215.${i + 1}`) }, // does not fit into one datagram
};

function bytesOf(address) {
	if (address.includes('.'))
		return Buffer.from(address.split('.').map(Number));
	const [head, tail] = address.split('::').map(part => part.split(':').filter(Boolean));
	const words = [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail];
	return Buffer.from(words.flatMap(word => [Number.parseInt(word, 16) >> 8, Number.parseInt(word, 16) & 255]));
}

function question(query) {
	const labels = [];
	let at = 12;
	while (query[at] !== 0) {
		labels.push(query.toString('latin1', at + 1, at + 1 + query[at]));
		at += 1 + query[at];
	}
	return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

export function answer(query, wide = false) {
	const { name, type, end } = question(query);
	const records = ZONE[name]?.[type] ?? [];
	const head = Buffer.from(query.subarray(0, 12));
	const body = records.map(address => {
		const bytes = bytesOf(address);
		const record = Buffer.alloc(12);
		record.writeUInt16BE(0xc00c, 0); // the name in the question
		record.writeUInt16BE(type, 2);
		record.writeUInt16BE(1, 4);
		record.writeUInt32BE(60, 6);
		record.writeUInt16BE(bytes.length, 10);
		return Buffer.concat([record, bytes]);
	});
	const cut = !wide && body.reduce((sum, one) => sum + one.length, end) > 512;
	head.writeUInt16BE(0x8180 | (cut ? 0x200 : 0) | (name in ZONE ? 0 : 3), 2); // recursion available; truncated; no such name
	head.writeUInt16BE(1, 4);
	head.writeUInt16BE(cut ? 0 : records.length, 6);
	head.fill(0, 8, 12);
	return Buffer.concat([head, query.subarray(12, end), ...(cut ? [] : body)]);
}
