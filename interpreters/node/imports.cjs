// SPDX-License-Identifier: Apache-2.0
// imports: cells are no modules to V8, so import and export are rewritten. Declarations move to the front of the first
// line, as the language runs them first; lines stay where they are.
'use strict';

const { then, keys, isArray, push } = require('./own.cjs');
const { Refusal } = require('./trouble.cjs');

const importers = new Map(); // by the file that is imported from
let acorn = null;

/* ---- while a cell runs ---- */

/* node resolves names from the file that a script says it is. */
function importerOf(file) {
	if (!importers.has(file)) {
		const { Script, constants } = require('vm');
		const script = new Script('(specifier, options) => import(specifier, options)', {
			filename: file,
			importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
		});
		importers.set(file, script.runInThisContext());
	}
	return importers.get(file);
}

/* node calls this way of importing an experiment when it is first used: nothing that the user did. */
function withoutWarning(work) {
	const { emitWarning } = process;
	process.emitWarning = () => undefined;
	try {
		return work();
	} finally {
		process.emitWarning = emitWarning;
	}
}

function importFrom(file, specifier, options, names = []) {
	const text = `${specifier}`; // may be user code, which may warn
	const promise = withoutWarning(() => importerOf(file)(text, options));
	if (!names.length)
		return promise;
	return then(promise, namespace => {
		for (let i = 0; i < names.length; i++)
			if (!(names[i] in namespace))
				throw new SyntaxError(`The requested module '${specifier}' does not provide an export named '${names[i]}'`);
		return namespace;
	});
}

function metaOf(file) {
	const { pathToFileURL } = require('url');
	const require_ = require('module').createRequire(file);
	return {
		dirname: require('path').dirname(file),
		filename: file,
		url: pathToFileURL(file).href,
		main: true,
		resolve(specifier) {
			if (/^[a-z]+:/i.test(specifier))
				return specifier;
			const path = /^\.{0,2}\//.test(specifier) ? require('path').resolve(file, '..', specifier) : require_.resolve(specifier);
			return path.startsWith('/') ? pathToFileURL(path).href : `node:${path}`;
		},
	};
}

/* ---- before it runs ---- */

/* Scripts, not modules: a cell is not strict, and may still import. */
function parse(code) {
	acorn ??= require('acorn');
	try {
		return acorn.parse(code, { ecmaVersion: 'latest', sourceType: 'script', allowImportExportEverywhere: true, allowAwaitOutsideFunction: true, allowHashBang: true });
	} catch (error) {
		if (!error.loc)
			throw error;
		throw new Refusal(error.message.replace(/ \(\d+:\d+\)$/, ''), error.loc.line, error.loc.column + 1);
	}
}

function optionsOf(node) {
	if (!node.attributes?.length)
		return 'undefined';
	const pairs = node.attributes.map(attribute => `${attribute.key.raw ?? attribute.key.name}: ${attribute.value.raw}`);
	return `{with: {${pairs.join(', ')}}}`;
}

function fetchOf(node, names) {
	const quoted = names.map(name => JSON.stringify(name));
	return `await __silt__.import(${node.source.raw}, ${optionsOf(node)}, [${quoted.join(', ')}])`;
}

/* A type that is imported without the word type is a name that does not exist: fine in TypeScript. */
function declarationOf(node, isTypeScript) {
	const pairs = [];
	const names = [];
	let whole = null;
	for (const specifier of node.specifiers) {
		if (specifier.type === 'ImportNamespaceSpecifier') {
			whole = specifier.local.name;
			continue;
		}
		const name = specifier.type === 'ImportDefaultSpecifier' ? 'default' : specifier.imported.name ?? specifier.imported.value;
		pairs.push(`${JSON.stringify(name)}: ${specifier.local.name}`);
		names.push(name);
	}
	const fetched = fetchOf(node, isTypeScript ? [] : names);
	const pattern = pairs.length ? `{${pairs.join(', ')}}` : null;
	if (whole)
		return `const ${whole} = ${fetched}${pattern ? `, ${pattern} = ${whole}` : ''}; `;
	return pattern ? `const ${pattern} = ${fetched}; ` : `void ${fetched}; `;
}

const blank = text => text.replace(/[^\n\r\u2028\u2029]/g, ' ');

/* cut: [start, end, text instead]. Text of undefined leaves blanks. */
function withoutExport(node, cuts) {
	const { declaration } = node;
	if (!declaration)
		return cuts.push([node.start, node.end]);
	const isStatement = declaration.type.endsWith('Declaration') && (declaration.id || declaration.type === 'VariableDeclaration');
	if (isStatement)
		return cuts.push([node.start, declaration.start]);
	cuts.push([node.start, declaration.start, `${blank(node.code).slice(0, declaration.start - node.start - 1)}(`]);
	return cuts.push([declaration.end, declaration.end, ')']);
}

function rewriteStatement(node, code, state) {
	switch (node.type) {
	case 'ImportDeclaration':
		state.front += declarationOf(node, state.isTypeScript);
		state.cuts.push([node.start, node.end]);
		break;
	case 'ExportAllDeclaration':
		state.front += `void ${fetchOf(node, [])}; `;
		state.cuts.push([node.start, node.end]);
		break;
	case 'ExportNamedDeclaration':
	case 'ExportDefaultDeclaration':
		if (node.source)
			state.front += `void ${fetchOf(node, [])}; `;
		withoutExport({ ...node, code: code.slice(node.start, node.end) }, state.cuts);
		break;
	}
}

/* Not recursive: generated code can be deep. */
function rewriteExpressions(program, cuts) {
	const todo = [program];
	while (todo.length) {
		const node = todo.pop();
		if (node.type === 'ImportExpression')
			cuts.push([node.start, node.start + 'import'.length, '__silt__.import']);
		if (node.type === 'MetaProperty' && node.meta.name === 'import')
			cuts.push([node.start, node.end, '__silt__.meta']);
		for (const name of keys(node)) {
			const child = node[name];
			for (const each of isArray(child) ? child : [child])
				if (typeof each?.type === 'string')
					push(todo, each);
		}
	}
}

function apply(code, cuts) {
	let rewritten = '';
	let at = 0;
	for (const [start, end, text] of cuts.sort((a, b) => a[0] - b[0])) {
		rewritten += code.slice(at, start) + (text ?? blank(code.slice(start, end)));
		at = end;
	}
	return rewritten + code.slice(at);
}

function rewrite(code, isTypeScript) {
	const program = parse(code);
	const state = { front: '', cuts: [], isTypeScript };
	for (const node of program.body)
		rewriteStatement(node, code, state);
	rewriteExpressions(program, state.cuts);
	return state.cuts.length ? state.front + apply(code, state.cuts) : code;
}

module.exports = { rewrite, importFrom, metaOf, parse, apply };
