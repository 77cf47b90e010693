// POST /agents/NAME {"message": "..."}: an agent with a computer of its own. The talk is kept in its Durable Object, files and shell in its sandbox: both are there
// when it is asked again tomorrow.
import { DurableObject } from 'cloudflare:workers';
import Anthropic from '@anthropic-ai/sdk';
import { getSandbox, type Sandbox } from '@cloudflare/sandbox';

export { Sandbox } from '@cloudflare/sandbox';

interface Env {
	Sandbox: DurableObjectNamespace<Sandbox>;
	Agent: DurableObjectNamespace<Agent>;
	ANTHROPIC_API_KEY: string;
	ANTHROPIC_BASE_URL?: string;
	MODEL?: string;
}

const TURNS = 10; // of the model, for one message
const LONGEST = 10_000; // characters of output that the model is shown

const SHELL: Anthropic.Tool = {
	name: 'shell',
	description: 'Runs a bash command on your computer. Folder, variables and files stay from one command to the next.',
	input_schema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
};

export class Agent extends DurableObject<Env> {
	#last: Promise<unknown> = Promise.resolve();

	/** One message at a time: the next one sees what this one has done. */
	ask(name: string, text: string): Promise<string> {
		const answer = this.#last.then(() => this.#answer(name, text));
		this.#last = answer.catch(() => {});
		return answer;
	}

	async #answer(name: string, text: string): Promise<string> {
		const talk = await this.ctx.storage.get<Anthropic.MessageParam[]>('talk') ?? [];
		talk.push({ role: 'user', content: text });
		const model = new Anthropic({ apiKey: this.env.ANTHROPIC_API_KEY, baseURL: this.env.ANTHROPIC_BASE_URL, maxRetries: 3 });
		for (let turn = 0; turn < TURNS; turn++) {
			const { content, stop_reason } = await model.messages.create({ model: this.env.MODEL ?? 'claude-sonnet-4-5', max_tokens: 2048, tools: [SHELL], messages: talk });
			talk.push({ role: 'assistant', content });
			if (stop_reason !== 'tool_use') {
				await this.ctx.storage.put('talk', talk);
				return content.map(block => block.type === 'text' ? block.text : '').join('');
			}
			talk.push({ role: 'user', content: await this.#use(name, content) });
		}
		throw new Error(`no answer after ${TURNS} turns`);
	}

	async #use(name: string, content: Anthropic.ContentBlock[]): Promise<Anthropic.ToolResultBlockParam[]> {
		const sandbox = getSandbox(this.env.Sandbox, `agent-${name}`);
		const results: Anthropic.ToolResultBlockParam[] = [];
		for (const block of content) {
			if (block.type !== 'tool_use')
				continue;
			const { stdout, stderr, exitCode } = await sandbox.exec(String((block.input as { command?: unknown }).command), { timeout: 20_000 });
			results.push({ type: 'tool_result', tool_use_id: block.id, is_error: exitCode !== 0, content: `${stdout}${stderr}`.slice(-LONGEST) || `exit code ${exitCode}` });
		}
		return results;
	}
}

export default {
	async fetch(request: Request, env: Env): Promise<Response> {
		const name = /^\/agents\/([a-z0-9]{1,32})$/.exec(new URL(request.url).pathname)?.[1];
		if (!name || request.method !== 'POST')
			return new Response('POST /agents/NAME {"message": "..."}\n', { status: 404 });
		const { message } = await request.json<{ message?: unknown }>().catch(() => ({ message: undefined }));
		if (typeof message !== 'string' || message === '')
			return Response.json({ error: '"message" must be a text' }, { status: 400 });
		try {
			return Response.json({ answer: await env.Agent.get(env.Agent.idFromName(name)).ask(name, message) });
		} catch (error) {
			return Response.json({ error: String(error) }, { status: 502 });
		}
	},
};
