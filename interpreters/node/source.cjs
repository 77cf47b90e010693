// SPDX-License-Identifier: Apache-2.0
// source: from what the user wrote to what V8 runs, without moving lines.
'use strict';

const { test } = require('./own.cjs');

const OBJECT = /^\s*\{(?:[^]*[^\s;])?\s*$/;
const MODULE_WORDS = /\b(?:import|export)\b/;

const nameOf = (count, language) => `cell-${count}.${language === 'typescript' ? 'ts' : 'js'}`;

function isExpression(code) {
	const { Script } = require('vm');
	try {
		return Boolean(new Script(`(async()=>(${code}\n))`));
	} catch {
		return false;
	}
}

/* `{a: 1}` is a block with a label to the language, and an object to everybody who types it. */
function asObject(code, works) {
	return test(OBJECT, code) && works(code) ? `(${code}\n)` : code;
}

function prepare(code, language, name) {
	if (language === 'typescript')
		code = require('./typescript.cjs').toJavaScript(code, name, asObject);
	else
		code = asObject(code, isExpression);
	if (test(MODULE_WORDS, code))
		code = require('./imports.cjs').rewrite(code, language === 'typescript');
	return `${code}\n//# sourceURL=${name}`;
}

module.exports = { nameOf, prepare };
