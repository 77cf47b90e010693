// SPDX-License-Identifier: Apache-2.0
// Where the server is and what lets us in: the argument, SILT_URL and SILT_TOKEN, the files of a server on this machine.
import { fileText, variable } from './runtime.js';
import { SandboxSecurityError } from './errors.js';

/** How to reach a server. */
export interface ServerOptions {
	/** Its address, such as `http://127.0.0.1:7458`. Default: SILT_URL. */
	url?: string | undefined;
	/** Its token. Default: SILT_TOKEN. */
	token?: string | undefined;
	/** Goes before every id. Default: SILT_PREFIX. */
	prefix?: string | undefined;
}

/** The same, with everything known. */
export interface Place {
	url: string;
	token: string | undefined;
	prefix: string;
}

/** Finds the server. */
export function findServer(options: ServerOptions = {}): Place {
	const url = options.url ?? variable('SILT_URL') ?? variable('SILT_SERVER') ?? fileText('/run/silt/address');
	if (!url)
		throw new SandboxSecurityError('no Silt server is known: pass `url`, or set SILT_URL and SILT_TOKEN', 'NO_SERVER');
	const token = options.token ?? variable('SILT_TOKEN') ?? fileText('/etc/silt/token');
	return { url: (/^https?:\/\//.test(url) ? url : `http://${url}`).replace(/\/+$/, ''), token, prefix: options.prefix ?? variable('SILT_PREFIX') ?? '' };
}
