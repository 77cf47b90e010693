// SPDX-License-Identifier: Apache-2.0
// Every route of the router, by hand: the OpenAPI document and the router must both agree with this list.

export const ROUTES = [
	['GET', '/healthz'],
	['GET', '/metrics'],
	['GET', '/v1/openapi.json'],
	['GET', '/v1/sandboxes'],
	['POST', '/v1/sandboxes'],
	['GET', '/v1/sandboxes/{id}'],
	['DELETE', '/v1/sandboxes/{id}'],
	['GET', '/v1/images'],
	['PUT', '/v1/images/{name}'],
	['DELETE', '/v1/images/{name}'],
	['GET', '/sandboxes/{id}/'],
	['GET', '/sandboxes/{id}/api/ping'],
	['GET', '/sandboxes/{id}/api/version'],
	['GET', '/sandboxes/{id}/api/commands'],
	['POST', '/sandboxes/{id}/api/session/create'],
	['GET', '/sandboxes/{id}/api/session/list'],
	['POST', '/sandboxes/{id}/api/session/delete'],
	['POST', '/sandboxes/{id}/api/execute'],
	['POST', '/sandboxes/{id}/api/execute/stream'],
	['POST', '/sandboxes/{id}/api/watch'],
	['POST', '/sandboxes/{id}/api/watch/check'],
	['POST', '/v1/sandboxes/{id}/watch'],
];
