// SPDX-License-Identifier: Apache-2.0
// A small validator for the part of OpenAPI's schemas that our document uses. A keyword it does not know is an error.

const KNOWN = new Set(['type', 'required', 'properties', 'additionalProperties', 'items', 'enum', 'const', 'oneOf', 'anyOf', 'allOf', 'nullable', '$ref',
	'description', 'title', 'example', 'examples', 'default', 'format', 'pattern', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'deprecated']);

export class Schemas {
	constructor(document) {
		this.document = document;
	}

	resolve(node) {
		while (node?.$ref) {
			if (!node.$ref.startsWith('#/'))
				throw new Error(`${node.$ref}: only references into the document`);
			node = node.$ref.slice(2).split('/').reduce((at, key) => at?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], this.document);
		}
		if (!node)
			throw new Error('a reference leads nowhere');
		return node;
	}

	/** What is wrong with the value, as a list of sentences. */
	check(schema, value, at = '$') {
		schema = this.resolve(schema);
		for (const key of Object.keys(schema)) {
			if (!KNOWN.has(key) && !key.startsWith('x-'))
				return [`${at}: the validator does not know ${key}`];
		}
		if (value === null && (schema.nullable || types(schema).includes('null')))
			return [];
		return [...this.#kind(schema, value, at), ...this.#choice(schema, value, at), ...this.#object(schema, value, at), ...this.#array(schema, value, at), ...bounds(schema, value, at)];
	}

	#kind(schema, value, at) {
		if (schema.type && !types(schema).some(type => isA(type, value)))
			return [`${at}: ${JSON.stringify(value)?.slice(0, 80)} is not ${types(schema).join(' or ')}`];
		if (schema.enum && !schema.enum.includes(value))
			return [`${at}: ${JSON.stringify(value)} is not one of ${schema.enum.join(', ')}`];
		if ('const' in schema && schema.const !== value)
			return [`${at}: ${JSON.stringify(value)} is not ${JSON.stringify(schema.const)}`];
		return [];
	}

	#choice(schema, value, at) {
		const fitting = list => list.filter(s => this.check(s, value, at).length === 0).length;
		const wrong = (schema.allOf ?? []).flatMap(s => this.check(s, value, at));
		if (schema.oneOf && fitting(schema.oneOf) !== 1)
			wrong.push(`${at}: fits ${fitting(schema.oneOf)} of oneOf`);
		if (schema.anyOf && fitting(schema.anyOf) === 0)
			wrong.push(`${at}: fits none of anyOf`);
		return wrong;
	}

	#object(schema, value, at) {
		if (!isA('object', value))
			return [];
		const wrong = (schema.required ?? []).filter(key => !(key in value)).map(key => `${at}.${key}: missing`);
		for (const [key, member] of Object.entries(value)) {
			const known = schema.properties?.[key];
			if (known)
				wrong.push(...this.check(known, member, `${at}.${key}`));
			else if (schema.additionalProperties === false)
				wrong.push(`${at}.${key}: not in the schema`);
			else if (isA('object', schema.additionalProperties))
				wrong.push(...this.check(schema.additionalProperties, member, `${at}.${key}`));
		}
		return wrong;
	}

	#array(schema, value, at) {
		return Array.isArray(value) && schema.items ? value.flatMap((item, i) => this.check(schema.items, item, `${at}[${i}]`)) : [];
	}
}

function types(schema) {
	return [schema.type ?? []].flat();
}

function isA(type, value) {
	switch (type) {
	case 'object': return value !== null && typeof value === 'object' && !Array.isArray(value);
	case 'array': return Array.isArray(value);
	case 'integer': return Number.isInteger(value);
	case 'null': return value === null;
	default: return typeof value === type;
	}
}

function bounds(schema, value, at) {
	const wrong = [];
	if (typeof value === 'string') {
		if (schema.pattern && !new RegExp(schema.pattern, 'u').test(value))
			wrong.push(`${at}: ${JSON.stringify(value)} does not match ${schema.pattern}`);
		if (schema.format === 'date-time' && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value))
			wrong.push(`${at}: ${value} is no time`);
	}
	if (typeof value === 'number' && (value < (schema.minimum ?? -Infinity) || value > (schema.maximum ?? Infinity)))
		wrong.push(`${at}: ${value} is out of bounds`);
	return wrong;
}
