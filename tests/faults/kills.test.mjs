// SPDX-License-Identifier: Apache-2.0
// A minute of random kills of every program under load: nothing that was acknowledged is lost, wrong or left over. bench/kills does it for ten.
import '../lib/inside.mjs';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { Kills } from '../lib/kills.mjs';

test('random kills of every program, under load, lose nothing and leave nothing', async t => {
	const seed = Number(process.env.SILT_KILLS_SEED ?? randomInt(2 ** 31));
	t.diagnostic(`SILT_KILLS_SEED=${seed}`);
	const kills = new Kills({ seconds: Number(process.env.SILT_KILLS_SECONDS ?? 60), seed });
	t.diagnostic(JSON.stringify(await kills.run()));
});
