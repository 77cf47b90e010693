// SPDX-License-Identifier: Apache-2.0
// scope: what a cell finds around it: require, module, __dirname, node's modules by name, and the process as if a file
// of the working directory had been started.
'use strict';

const path = require('path');
const { createRequire, builtinModules } = require('module');
const { define, keys } = require('./own.cjs');

const FILE = 'cell.js'; // there is no such file; it says where names are looked up

let cwd = null;
let furnished = false;
let lastValue;

function fileName() {
	return path.join(cwd, FILE);
}

/* Replaceable by a declaration or an assignment of any cell. */
function provide(name, value) {
	define(globalThis, name, { configurable: true, enumerable: false, writable: true, value });
}

/* A value that is made when it is first read. */
function provideLater(name, make) {
	define(globalThis, name, {
		configurable: true,
		enumerable: false,
		get() {
			provide(name, make());
			return globalThis[name];
		},
		set: value => provide(name, value),
	});
}

function provideModule() {
	const require = createRequire(fileName());
	const module = { id: '.', path: cwd, filename: fileName(), exports: {}, loaded: false, children: [], paths: require.resolve.paths('x') ?? [] };
	require.main = module; // `if (require.main === module)` is true in a cell
	provide('require', require);
	provide('module', module);
	provide('exports', module.exports);
	provide('__filename', fileName());
	provide('__dirname', cwd);
}

/* `_` is the last value, until user code means something else by it. */
function provideLastValue() {
	define(globalThis, '_', { configurable: true, enumerable: false, get: () => lastValue, set: value => provide('_', value) });
}

/* As in node's own REPL: fs, path and the others by their names. */
function provideBuiltins() {
	for (const name of builtinModules)
		if (!name.includes('/') && !name.startsWith('_') && !(name in globalThis))
			provideLater(name, () => require(name));
}

/* What is the same in every directory. */
function furnish() {
	if (furnished)
		return;
	furnished = true;
	provideBuiltins();
	provideLastValue();
	provideLater('display', () => require('./display.cjs').display);
	define(globalThis, '__silt__', { value: imports, enumerable: false });
}

function pretendProgram() {
	process.argv = [process.execPath, fileName()];
	process.execArgv = []; // our flags are not for children
	process.mainModule = undefined;
}

/* Throws when there is no such directory. */
function enter(directory, env) {
	process.chdir(directory);
	cwd = process.cwd();
	for (const name of keys(env ?? {}))
		process.env[name] = env[name];
	pretendProgram();
	provideModule();
	furnish();
}

/* Names are looked up where the process is now. */
function follow() {
	let now;
	try {
		now = process.cwd();
	} catch {
		return; // the directory was removed: as it was
	}
	if (now === cwd)
		return;
	cwd = now;
	provideModule();
}

/* What imports.cjs writes into cells instead of import, import() and import.meta. */
const imports = {
	import: (specifier, options, names) => require('./imports.cjs').importFrom(fileName(), specifier, options, names),
	get meta() {
		return require('./imports.cjs').metaOf(fileName());
	},
};

module.exports = {
	enter, follow,
	remember(value) {
		lastValue = value;
	},
};
