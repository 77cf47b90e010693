// SPDX-License-Identifier: Apache-2.0
import { randomInt } from 'node:crypto';
import net from 'node:net';
import { until } from './wait.mjs';

/** Below those that the system gives to who names none: nobody else gets it before it is used. */
export function freePort() {
	return until('a free port', () => {
		const port = randomInt(20_000, 32_000);
		const server = net.createServer();
		return new Promise(resolve => server.once('error', () => resolve(0)).listen(port, '127.0.0.1', () => server.close(() => resolve(port))));
	});
}
