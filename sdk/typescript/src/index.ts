// SPDX-License-Identifier: Apache-2.0
// The library, in Node, Bun, Deno and browsers.
export * from './main.js';
export { Sandbox } from './sandbox.js';
