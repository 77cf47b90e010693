// SPDX-License-Identifier: Apache-2.0
// The pages of the HTTP API: renders the OpenAPI document of this daemon. ?compatible shows the compatible routes.
(() => {
	'use strict';
	const METHODS = ['get', 'put', 'post', 'patch', 'delete'];
	const DEPTH = 6; // of schemas in schemas
	const source = new URLSearchParams(location.search).has('compatible') ? '/v1/openapi-compat.json' : '/v1/openapi.json';
	const main = document.getElementById('operations');
	let api;

	/** An element with attributes and children; texts are texts, never markup. */
	function make(name, attributes = {}, ...children) {
		const element = document.createElement(name);
		for (const [key, value] of Object.entries(attributes))
			element.setAttribute(key, value);
		element.append(...children.filter(child => child !== undefined && child !== null));
		return element;
	}

	function resolve(node) {
		while (node?.$ref)
			node = node.$ref.slice(2).split('/').reduce((at, key) => at?.[key], api);
		return node ?? {};
	}

	/** What a value is, in a few words. */
	function kind(schema) {
		schema = resolve(schema);
		if ('const' in schema)
			return JSON.stringify(schema.const);
		if (schema.enum)
			return schema.enum.map(value => JSON.stringify(value)).join(' | ');
		for (const choice of ['oneOf', 'anyOf']) {
			if (schema[choice])
				return schema[choice].map(kind).join(' | ');
		}
		if (schema.allOf)
			return 'object';
		const types = [schema.type ?? 'any'].flat().map(type => type === 'array' ? `list of ${kind(schema.items ?? {})}` : type);
		return types.join(' | ');
	}

	/** The members of an object, of the objects in a list, or of each choice. */
	function members(schema, depth = 0) {
		schema = resolve(schema);
		if (depth > DEPTH)
			return [];
		if (schema.items)
			return members(schema.items, depth);
		const inner = ['allOf', 'oneOf', 'anyOf'].flatMap(key => schema[key] ?? []).filter(choice => members(choice, depth + 1).length > 0);
		const lists = inner.map(choice => table(choice, depth + 1));
		const own = Object.entries(schema.properties ?? {}).map(([name, value]) => make('tr', {},
			make('td', {}, make('code', {}, name), schema.required?.includes(name) ? ' (required)' : ''),
			make('td', {}, kind(value)),
			make('td', {}, resolve(value).description ?? '', ...members(value, depth + 1).length > 0 ? [table(value, depth + 1)] : [])));
		return own.length > 0 ? [make('table', {}, make('tbody', {}, ...own)), ...lists] : lists;
	}

	const table = (schema, depth) => make('div', {}, ...members(schema, depth));

	function contents(content) {
		return Object.entries(content ?? {}).flatMap(([type, { schema, example }]) => [
			make('p', {}, make('code', {}, type), schema ? `: ${schema['x-silt-stream'] ? 'events, each ' : ''}${kind(schema)}` : ''),
			...example === undefined ? [] : [make('pre', {}, JSON.stringify(example, null, 2))],
			...schema ? members(schema) : [],
		]);
	}

	function parameters(list) {
		const rows = list.map(resolve).map(p => make('tr', {}, make('td', {}, make('code', {}, p.name), ` in ${p.in}`, p.required ? ' (required)' : ''), make('td', {}, kind(p.schema ?? {})), make('td', {}, p.description ?? '')));
		return rows.length > 0 ? [make('h4', {}, 'Parameters'), make('table', {}, make('tbody', {}, ...rows))] : [];
	}

	function operation(method, path, op, shared) {
		const body = op.requestBody && resolve(op.requestBody);
		const answers = Object.entries(op.responses).map(([status, response]) => [status, resolve(response)]);
		const element = make('details', { id: op.operationId, ...op.deprecated && { class: 'deprecated' } },
			make('summary', {}, make('span', { class: 'method' }, method.toUpperCase()), make('span', { class: 'path' }, path), ` — ${op.summary}`));
		element.addEventListener('toggle', () => { // large: made when it is looked at
			if (element.open && element.children.length === 1) {
				element.append(make('div', {},
					make('p', {}, op.description ?? ''),
					...parameters([...shared, ...op.parameters ?? []]),
					...body ? [make('h4', {}, 'Body'), ...contents(body.content)] : [],
					make('h4', {}, 'Answers'),
					...answers.map(([status, response]) => make('details', {}, make('summary', {}, make('code', {}, status), ` ${response.description}`), make('div', {}, ...contents(response.content))))));
			}
		});
		element.dataset.words = `${method} ${path} ${op.operationId} ${op.summary}`.toLowerCase();
		return element;
	}

	function show() {
		const groups = new Map(api.tags.map(tag => [tag.name, make('section', { id: tag.name }, make('h2', {}, tag.name), make('p', {}, tag.description))]));
		for (const [path, item] of Object.entries(api.paths)) {
			for (const method of METHODS.filter(name => name in item))
				groups.get(item[method].tags[0]).append(operation(method, path, item[method], item.parameters ?? []));
		}
		main.replaceChildren(make('p', {}, api.info.description), ...groups.values());
		document.getElementById('tags').replaceChildren(...[...groups.keys()].map(name => make('a', { href: `#${name}` }, name)));
		const chosen = location.hash && document.getElementById(location.hash.slice(1));
		if (chosen) {
			chosen.open = true;
			chosen.scrollIntoView();
		}
	}

	document.getElementById('source').href = source;
	document.getElementById('search').addEventListener('input', event => {
		const words = event.target.value.toLowerCase().split(/\s+/);
		for (const element of main.querySelectorAll('section > details'))
			element.hidden = !words.every(word => element.dataset.words.includes(word));
		for (const section of main.querySelectorAll('section'))
			section.hidden = !section.querySelector('details:not([hidden])');
	});
	fetch(source).then(async response => {
		api = await response.json();
		show();
	}).catch(error => main.replaceChildren(make('p', { role: 'alert' }, `The document could not be loaded: ${error.message}`)));
})();
