// SPDX-License-Identifier: Apache-2.0
// Malformed and oversized requests, one table. `accepted` are honest ones; whatever is in `refused` could be read in two ways by two servers, or costs too much.

/** host: what Host says; get, path: what GET and POST ask for; fields: more of a POST's. */
export function requests({ host, get, path, fields = '' }) {
	const HOST = `Host: ${host}\r\n`;
	const GET = `GET ${get} HTTP/1.1\r\n`;
	const CHUNKED = 'Transfer-Encoding: chunked\r\n';
	const LAST = '0\r\n\r\n';
	const post = rest => `POST ${path} HTTP/1.1\r\n${HOST}${fields}${rest}`;

	const accepted = {
		'a plain GET': `${GET}${HOST}\r\n`,
		'a body with a length': post('Content-Length: 2\r\n\r\n{}'),
		'a chunked body': post(`${CHUNKED}\r\n2\r\n{}\r\n${LAST}`),
		'field names in any case, values with blanks around': `${GET}hOsT: \t ${host} \t\r\n\r\n`,
		'a chunk size in upper case with leading zeros': post(`${CHUNKED}\r\n0002\r\n{}\r\n${LAST}`),
	};

	const refused = {
		'length and chunked': post(`Content-Length: 5\r\n${CHUNKED}\r\n${LAST}`),
		'chunked and length': post(`${CHUNKED}Content-Length: 5\r\n\r\n${LAST}`),
		'two lengths that differ': post('Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x'),
		'two lengths that agree': post('Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}'),
		'a list of lengths': post('Content-Length: 2, 2\r\n\r\n{}'),
		'length +2': post('Content-Length: +2\r\n\r\n{}'),
		'length 0x2': post('Content-Length: 0x2\r\n\r\n{}'),
		'length -1': post('Content-Length: -1\r\n\r\n{}'),
		'length 2^64+2': post('Content-Length: 18446744073709551618\r\n\r\n{}'),
		'length "2 3"': post('Content-Length: 2 3\r\n\r\n{}'),
		'an empty length': post('Content-Length: \r\n\r\n{}'),
		'length 2.0': post('Content-Length: 2.0\r\n\r\n{}'),
		'transfer coding xchunked': post(`Transfer-Encoding: xchunked\r\n\r\n${LAST}`),
		'transfer codings chunked, identity': post(`Transfer-Encoding: chunked, identity\r\n\r\n${LAST}`),
		'transfer codings identity, chunked': post(`Transfer-Encoding: identity, chunked\r\n\r\n${LAST}`),
		'transfer coding gzip, chunked': post(`Transfer-Encoding: gzip, chunked\r\n\r\n${LAST}`),
		'two transfer codings': post(`${CHUNKED}Transfer-Encoding: identity\r\n\r\n${LAST}`),
		'chunked twice': post(`${CHUNKED}${CHUNKED}\r\n${LAST}`),
		'a vertical tab before chunked': post(`Transfer-Encoding: \x0bchunked\r\n\r\n${LAST}`),
		'a blank before the colon': post(`Transfer-Encoding : chunked\r\n\r\n${LAST}`),
		'an empty transfer coding': post(`Transfer-Encoding: \r\n\r\n${LAST}`),
		'chunked in HTTP/1.0': `POST ${path} HTTP/1.0\r\n${HOST}${fields}${CHUNKED}\r\n${LAST}`,
		'a folded line': `${GET}${HOST}X-A: a\r\n b\r\n\r\n`,
		'bare LF lines': `GET ${get} HTTP/1.1\nHost: ${host}\n\n`,
		'one bare LF': `${GET}${HOST}X-A: a\nX-B: b\r\n\r\n`,
		'a bare CR in a value': `${GET}${HOST}X-A: a\rb\r\n\r\n`,
		'a NUL in a value': `${GET}${HOST}X-A: a\0b\r\n\r\n`,
		'a DEL in a value': `${GET}${HOST}X-A: a\x7fb\r\n\r\n`,
		'a parenthesis in a name': `${GET}${HOST}X(A): b\r\n\r\n`,
		'a byte above 127 in a name': `${GET}${HOST}X\xe4: b\r\n\r\n`,
		'an empty name': `${GET}${HOST}: b\r\n\r\n`,
		'a line without a colon': `${GET}${HOST}XA\r\n\r\n`,
		'a blank before the first field': `${GET} X: y\r\n${HOST}\r\n`,
		'no Host': `${GET}\r\n`,
		'two Hosts': `${GET}${HOST}Host: y\r\n\r\n`,
		'two equal Hosts': `${GET}${HOST}${HOST}\r\n`,
		'an empty request line': `\r\n\r\n\r\n${HOST}\r\n`,
		'HTTP/1.2': `GET ${get} HTTP/1.2\r\n${HOST}\r\n`,
		'HTTP/2.0': `GET ${get} HTTP/2.0\r\n${HOST}\r\n`,
		'HTTP/9.9': `GET ${get} HTTP/9.9\r\n${HOST}\r\n`,
		'http/1.1 in lower case': `GET ${get} http/1.1\r\n${HOST}\r\n`,
		'HTTP/1.10': `GET ${get} HTTP/1.10\r\n${HOST}\r\n`,
		'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
		'two blanks in the request line': `GET  ${get} HTTP/1.1\r\n${HOST}\r\n`,
		'a tab in the request line': `GET\t${get}\tHTTP/1.1\r\n${HOST}\r\n`,
		'a blank at the end of the request line': `GET ${get} HTTP/1.1 \r\n${HOST}\r\n`,
		'HTTP/0.9': 'GET ${get}\r\n\r\n',
		'a method with odd bytes': `G(T ${get} HTTP/1.1\r\n${HOST}\r\n`,
		'a target that is no path': `GET x${get} HTTP/1.1\r\n${HOST}\r\n`,
		'a fragment in the target': `GET ${get}#x HTTP/1.1\r\n${HOST}\r\n`,
		'CONNECT': `CONNECT x:443 HTTP/1.1\r\n${HOST}\r\n`,
		'a greeting of TLS': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
		'chunk size 0x2': post(`${CHUNKED}\r\n0x2\r\n{}\r\n${LAST}`),
		'chunk lines that end in LF': post(`${CHUNKED}\r\n2\n{}\n0\n\n`),
		'chunk size 2^64+2': post(`${CHUNKED}\r\n10000000000000002\r\n{}\r\n${LAST}`),
		'chunk size -2': post(`${CHUNKED}\r\n-2\r\n{}\r\n${LAST}`),
		'chunk size with a blank before': post(`${CHUNKED}\r\n 2\r\n{}\r\n${LAST}`),
		'chunk size with a blank behind': post(`${CHUNKED}\r\n2 \r\n{}\r\n${LAST}`),
		'an empty chunk size': post(`${CHUNKED}\r\n\r\n{}\r\n${LAST}`),
		'more data than the chunk says': post(`${CHUNKED}\r\n2\r\n{}XX${LAST}`),
		'a chunk extension with LF': post(`${CHUNKED}\r\n2;\n\r\n{}\r\n${LAST}`),
		'an endless chunk extension': post(`${CHUNKED}\r\n2;${'a'.repeat(100_000)}\r\n{}\r\n${LAST}`),
		'an endless chunk size': post(`${CHUNKED}\r\n${'0'.repeat(100_000)}2\r\n{}\r\n${LAST}`),
		'endless trailers': post(`${CHUNKED}\r\n2\r\n{}\r\n0\r\n${'X-T: y\r\n'.repeat(20_000)}\r\n`),
		'a field of 64 KB': `${GET}${HOST}X: ${'a'.repeat(65_536)}\r\n\r\n`,
		'2,000 fields': `${GET}${HOST}${Array.from({ length: 2000 }, (_, i) => `X-${i}: y\r\n`).join('')}\r\n`,
		'a target of 64 KB': `GET /${'a'.repeat(65_536)} HTTP/1.1\r\n${HOST}\r\n`,
		'an upgrade to h2c with a body': post(`Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n${CHUNKED}Content-Length: 2\r\n\r\n{}`),
	};
	return { accepted, refused };
}
