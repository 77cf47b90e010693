// SPDX-License-Identifier: Apache-2.0
// An agent in one file: a model that has a shell in a sandbox. node agent.ts "How many lines has /etc/passwd?"
// ANTHROPIC_API_KEY is yours; SILT_URL and SILT_TOKEN say where the sandboxes are.
import { Sandbox } from 'silt-sandbox';

const URL = process.env.ANTHROPIC_BASE_URL ?? 'https://api.anthropic.com';
const TOOLS = [{
	name: 'shell',
	description: 'Runs a bash command in your sandbox. Directory and variables stay from one command to the next.',
	input_schema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
}];
const TURNS = 20; // at most
const LONGEST = 20_000; // characters of a result

interface Block { type: string; id?: string; text?: string; input?: { command?: string } }

/** One turn of the model; an overloaded server is asked again. */
async function ask(messages: object[]): Promise<{ content: Block[]; stop_reason: string }> {
	for (let tries = 1; ; tries++) {
		const answer = await fetch(`${URL}/v1/messages`, {
			method: 'POST',
			headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', 'x-api-key': process.env.ANTHROPIC_API_KEY ?? '' },
			body: JSON.stringify({ model: process.env.MODEL ?? 'claude-sonnet-4-5', max_tokens: 4096, tools: TOOLS, messages }),
		});
		if (answer.ok)
			return answer.json();
		if (tries === 4 || answer.status !== 429 && answer.status < 500)
			throw new Error(`the model answered ${answer.status}: ${await answer.text()}`);
		await new Promise(resolve => setTimeout(resolve, 250 * 2 ** tries));
	}
}

/** Does what the model wants until it has an answer. */
async function answer(sandbox: Sandbox, question: string): Promise<string> {
	const messages: object[] = [{ role: 'user', content: question }];
	for (let turn = 0; turn < TURNS; turn++) {
		const { content, stop_reason } = await ask(messages);
		messages.push({ role: 'assistant', content });
		if (stop_reason !== 'tool_use')
			return content.map(block => block.text ?? '').join('');
		const results = [];
		for (const block of content.filter(one => one.type === 'tool_use')) {
			console.error(`$ ${block.input?.command}`);
			const run = await sandbox.exec(String(block.input?.command), { timeout: 120_000 }).catch((error: Error) => ({ stdout: '', stderr: error.message, exitCode: 1 }));
			results.push({ type: 'tool_result', tool_use_id: block.id, content: `${run.stdout}${run.stderr}`.slice(0, LONGEST) || `(exit code ${run.exitCode})` });
		}
		messages.push({ role: 'user', content: results });
	}
	throw new Error(`no answer after ${TURNS} turns`);
}

await using sandbox = await Sandbox.create({ sleepAfter: '5m', ttl: '1h' });
console.log(await answer(sandbox, process.argv[2] ?? 'What is in your sandbox?'));
