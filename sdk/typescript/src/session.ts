// SPDX-License-Identifier: Apache-2.0
// Sessions: a shell each, with its directory, variables and functions.
import { Backups } from './backups.js';
import { LINK, type Link } from './core.js';
import type { SandboxError } from './errors.js';

/** One shell of a sandbox. Everything it offers runs in that shell, or begins in its directory. */
export class ExecutionSession extends Backups {
	/** Sets variables of its shell, undefined unsets. */
	override async setEnvVars(variables: Record<string, string | undefined>): Promise<void> {
		const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, value ?? null]));
		try {
			await this[LINK].call('PATCH', '/v1/sandboxes/{id}/sessions/{session}', { path: { session: this.id }, json: { env } });
		} catch (error) {
			if (!['SESSION_NOT_FOUND', 'VALIDATION_FAILED'].includes((error as SandboxError).code))
				throw error;
			await super.setEnvVars(variables); // its first command makes it; or the shell names the variable
		}
	}

	/** Its directory, and whether a command runs in it. */
	getState(): Promise<{ id: string; cwd: string | null; busy: boolean }> {
		return this[LINK].call('GET', '/v1/sandboxes/{id}/sessions/{session}', { path: { session: this.id } });
	}

	/** Its name in the sandbox. */
	readonly id: string;

	/** @internal */
	constructor(link: Link, id: string) {
		super(link, id);
		this.id = id;
	}

	/** Its id: older code takes a session for one. */
	override toString(): string {
		return this.id;
	}

	[Symbol.toPrimitive](): string {
		return this.id;
	}
}
