// SPDX-License-Identifier: Apache-2.0
// Runs test files, several at a time: node run.mjs TAP TIMES CONCURRENCY FILE...
// As `node --test`, which would start them in the order of their names: a slow file that begins last runs alone at the end.
import fs from 'node:fs';
import path from 'node:path';
import { finished } from 'node:stream/promises';
import { run } from 'node:test';
import { tap } from 'node:test/reporters';
import times from './times.mjs';

// Whose files take longest, first: of every stage.
const SLOW = ['sdk', 'engine', 'network-allow', 'zygote', 'contexts-long', 'files-hostile', 'leak', 'network-world', 'contexts-inner', 'contexts-limits',
	'build', 'files-large', 'contexts', 'contexts-edges', 'engine-restart', 'contexts-derived', 'wrangler', 'restart', 'kernel'];
const MINUTES = 60_000;

const [tapFile, timesFile, concurrency, ...files] = process.argv.slice(2);
const rank = file => (SLOW.indexOf(path.basename(file, '.test.mjs')) + SLOW.length + 1) % (SLOW.length + 1);
files.sort((a, b) => rank(a) - rank(b));
const events = run({ files, concurrency: Number(concurrency), timeout: 10 * MINUTES });
events.on('test:fail', () => { process.exitCode = 1; });
await Promise.all([[tap, tapFile], [times, timesFile]].map(([reporter, file]) => finished(events.compose(reporter).pipe(fs.createWriteStream(file)))));
