// SPDX-License-Identifier: Apache-2.0
// A reporter for node --test: how many seconds each test file took, a line each.
import path from 'node:path';

export default async function* times(events) {
	for await (const { type, data } of events)
		if (type === 'test:summary' && data.file)
			yield `${(data.duration_ms / 1000).toFixed(1)} s ${process.env.SILT_TEST_STAGE} ${path.basename(data.file, '.test.mjs')}\n`;
}
