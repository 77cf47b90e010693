#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Types out of docs/openapi.json: generate.mjs OPENAPI OUTPUT. The schemas of its components, and a list of its operations.
import fs from 'node:fs';

const [source, target] = process.argv.slice(2);
const document = JSON.parse(fs.readFileSync(source, 'utf8'));
const key = name => /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);

function objectOf(schema, indent) {
	const more = schema.additionalProperties;
	const lines = Object.entries(schema.properties ?? {}).map(([name, value]) => {
		const note = value.description ? `${indent}\t/** ${value.description.replace(/\s+/g, ' ').replaceAll('*/', '*\\/')} */\n` : '';
		return `${note}${indent}\t${key(name)}${schema.required?.includes(name) ? '' : '?'}: ${typeOf(value, `${indent}\t`)};`;
	});
	if (lines.length === 0)
		return `Record<string, ${more && typeof more === 'object' && Object.keys(more).length > 0 ? typeOf(more, indent) : 'any'}>`;
	return `{\n${lines.join('\n')}\n${indent}}`;
}

function plain(schema, indent) {
	if (schema.$ref)
		return `components['schemas']['${schema.$ref.split('/').at(-1)}']`;
	if (schema.const !== undefined)
		return JSON.stringify(schema.const);
	if (schema.enum)
		return schema.enum.map(value => JSON.stringify(value)).join(' | ');
	for (const [word, sign] of [['oneOf', ' | '], ['anyOf', ' | '], ['allOf', ' & ']])
		if (schema[word])
			return schema[word].map(one => typeOf(one, indent)).map(text => schema[word].length > 1 && /[|&]/.test(text) ? `(${text})` : text).join(sign);
	const types = [schema.type ?? (schema.properties ? 'object' : undefined)].flat();
	return types.map(type => ({
		string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null',
		array: () => `Array<${typeOf(schema.items ?? {}, indent)}>`, object: () => objectOf(schema, indent),
	})[type] ?? 'any').map(value => typeof value === 'function' ? value() : value).join(' | ');
}

function typeOf(schema, indent) {
	return plain(schema, indent) + (schema.nullable ? ' | null' : '');
}

const schemas = Object.entries(document.components.schemas).map(([name, schema]) => `\t\t${key(name)}: ${typeOf(schema, '\t\t')};`);
const operations = Object.entries(document.paths).flatMap(([path, item]) => Object.keys(item).filter(method => item[method].responses).map(method => `\t| '${method.toUpperCase()} ${path}'`));
fs.writeFileSync(target, `// SPDX-License-Identifier: Apache-2.0
// Made by generate.mjs out of docs/openapi.json.

/** The shapes of requests and responses. */
export interface components {
	schemas: {
${schemas.join('\n')}
	};
}

/** Every operation of a server. */
export type Operation =
${operations.join('\n')};
`);
