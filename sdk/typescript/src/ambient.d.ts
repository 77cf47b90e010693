// SPDX-License-Identifier: Apache-2.0
// What a Worker's runtime offers, as far as it is used here.
declare module 'cloudflare:workers' {
	export class DurableObject<Env = unknown> {
		constructor(context: object, env: Env);
		fetch(request: Request): Promise<Response>;
	}
	export class WorkerEntrypoint<Env = unknown> {
		constructor(context: object, env: Env);
		fetch(request: Request): Promise<Response>;
	}
	export const env: unknown;
}
