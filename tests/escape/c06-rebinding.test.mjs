// SPDX-License-Identifier: Apache-2.0
// C6: an allowed name that leads inside, from the start or at the second question.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { HOST, NETWORK } from '../lib/internet.mjs';
import { INSIDE, SITES, Services } from '../lib/services.mjs';
import { reached, request, talk } from '../lib/talk.mjs';

export const without = ['net_answers', 'net_closed'];

const services = await Services.start();
after(() => services.stop());

const NAME = 'rebind.example.test';
const TARGETS = ['10.1.2.3', '169.254.169.254', '192.168.7.7', 'fd00:ec2::254'];

export async function attack(box) {
	const worked = [];
	for (const target of TARGETS) {
		const honest = SITES['www.example.test'][target.includes(':') ? 6 : 4];
		await services.point(NAME, honest);
		assert.match(await box.out(`getent ahosts ${NAME}`), new RegExp(`^${honest} `), 'it begins honestly');
		await services.point(NAME, target);
		const { stdout } = await box.run(`curl -sS -m 20 http://${NAME}/ 2>&1`);
		if (stdout.includes(INSIDE))
			worked.push(target);
		await services.point(NAME, honest, target); // both at once
		await box.run(`getent ahosts ${NAME}`);
		const said = await talk(box, [{ name: target, to: [target, 80], send: [request(NAME)] }]);
		worked.push(...reached(said, INSIDE).map(name => `${name} by address`));
	}
	for (const target of ['127.0.0.1', HOST[4], HOST[6]]) { // nobody is there, or the host itself: no answer tells of it
		await services.point(NAME, target);
		const { stdout } = await box.run(`getent ahosts ${NAME}`);
		if (stdout.includes(target))
			worked.push(`${target} is told`);
	}
	return { succeeded: worked.length > 0, worked };
}

bothWays('C6 an allowed name that leads inside', {
	without,
	attack,
	daemon: NETWORK,
	sandbox: { network: { mode: 'allow', allow: [NAME] } },
	broken(evidence) {
		for (const target of TARGETS)
			assert.ok(evidence.worked.includes(target) && evidence.worked.includes(`${target} by address`), `${target}: ${evidence.worked}`);
	},
});
