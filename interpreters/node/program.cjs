// SPDX-License-Identifier: Apache-2.0
// program: which node a shell would start. It may have been replaced while this process waited for its context.
'use strict';

const fs = require('fs');
const path = require('path');

const statOf = file => fs.statSync(file, { throwIfNoEntry: false });

let before = null; // what it was when the wait began

/* As a shell finds it: the first in PATH. It need not be ours, but something that starts ours. */
function find() {
	for (const directory of String(process.env.PATH).split(path.delimiter)) {
		const found = statOf(path.join(directory, 'node'));
		if (found?.isFile() && found.mode & 0o111)
			return found;
	}
	return null;
}

function remember() {
	before = find();
}

/* Whether a context that begins now would have been started with the same program. */
function isCurrent() {
	const now = before && find();
	return before === null || (now !== null && ['dev', 'ino', 'size', 'mtimeMs'].every(what => now[what] === before[what]));
}

module.exports = { remember, isCurrent };
