// SPDX-License-Identifier: Apache-2.0
// redeclare: V8's REPL mode takes a name again that was declared the same way: let, const and class are one way, var and
// function the other. A cell that it refuses for that gets the other word; it has not begun to run then.
'use strict';

const { exec } = require('./own.cjs');
const { parse, apply } = require('./imports.cjs');

const DECLARED = /^SyntaxError: Identifier '(.+)' has already been declared/;
const CHANGES_MAX = 100; // in one cell

/* The names that a pattern binds. */
function namesIn(pattern) {
	switch (pattern?.type) {
	case 'Identifier':
		return [pattern.name];
	case 'ObjectPattern':
		return pattern.properties.flatMap(property => namesIn(property.value ?? property.argument));
	case 'ArrayPattern':
		return pattern.elements.flatMap(namesIn);
	case 'AssignmentPattern':
		return namesIn(pattern.left);
	case 'RestElement':
		return namesIn(pattern.argument);
	default:
		return [];
	}
}

const declares = (node, name) => node.id?.name === name
	|| (node.type === 'VariableDeclaration' && node.declarations.some(each => namesIn(each.id).includes(name)));

/* Lines stay; a function is there from its line on only, as any other value. */
function changesOf(node) {
	switch (node.type) {
	case 'VariableDeclaration':
		return [[node.start, node.start + node.kind.length, (node.kind === 'var' ? 'let' : 'var').padEnd(node.kind.length)]];
	case 'FunctionDeclaration':
		return [[node.start, node.start, `let ${node.id.name} = `], [node.end, node.end, ';']];
	case 'ClassDeclaration':
		return [[node.start, node.start, `var ${node.id.name} = `], [node.end, node.end, ';']];
	default:
		return [];
	}
}

function statementsOf(code) {
	try {
		return parse(code).body;
	} catch {
		return []; // V8 said it better
	}
}

/** For one cell: a function from what V8 says to other code, or null when there is none. */
function redeclarer(code) {
	let left = null;
	const changes = [];
	return details => {
		const name = exec(DECLARED, details?.exception?.description ?? '')?.[1];
		if (!name || changes.length >= CHANGES_MAX)
			return null;
		left ??= statementsOf(code);
		const node = left.find(each => declares(each, name));
		if (!node)
			return null;
		left = left.filter(each => each !== node);
		changes.push(...changesOf(node));
		return apply(code, changes);
	};
}

module.exports = { redeclarer };
