// POST /ask {"question": "..."}: a model writes a Python program that answers, the program runs in a sandbox of its own.
import Anthropic from '@anthropic-ai/sdk';
import { getSandbox, type Sandbox } from '@cloudflare/sandbox';

export { Sandbox } from '@cloudflare/sandbox';

interface Env {
	Sandbox: DurableObjectNamespace<Sandbox>;
	ANTHROPIC_API_KEY: string;
	ANTHROPIC_BASE_URL?: string;
	MODEL?: string;
}

const TOOL: Anthropic.Tool = {
	name: 'run_python',
	description: 'Runs a Python 3 program. What it prints is the answer to the question.',
	input_schema: { type: 'object', properties: { code: { type: 'string', description: 'the whole program' } }, required: ['code'] },
};

async function write(env: Env, question: string): Promise<string> {
	const model = new Anthropic({ apiKey: env.ANTHROPIC_API_KEY, baseURL: env.ANTHROPIC_BASE_URL, maxRetries: 3 });
	const message = await model.messages.create({
		model: env.MODEL ?? 'claude-sonnet-4-5',
		max_tokens: 2048,
		tools: [TOOL],
		tool_choice: { type: 'tool', name: TOOL.name },
		messages: [{ role: 'user', content: question }],
	});
	const use = message.content.find(block => block.type === 'tool_use');
	const code = (use?.input as { code?: unknown } | undefined)?.code;
	if (typeof code !== 'string')
		throw new Error('the model wrote no program');
	return code;
}

/** A sandbox that nobody else has, gone when the answer is there: the program is a stranger's. */
async function execute(env: Env, code: string) {
	const sandbox = getSandbox(env.Sandbox, `ask-${crypto.randomUUID()}`);
	try {
		await sandbox.writeFile('/workspace/program.py', code);
		return await sandbox.exec('timeout 20 python3 /workspace/program.py');
	} finally {
		await sandbox.destroy();
	}
}

export default {
	async fetch(request: Request, env: Env): Promise<Response> {
		if (new URL(request.url).pathname !== '/ask' || request.method !== 'POST')
			return new Response('POST /ask {"question": "What is the 100th Fibonacci number?"}\n', { status: 404 });
		const { question } = await request.json<{ question?: unknown }>().catch(() => ({ question: undefined }));
		if (typeof question !== 'string' || question === '')
			return Response.json({ error: '"question" must be a text' }, { status: 400 });
		try {
			const code = await write(env, question);
			const { stdout, stderr, exitCode, success } = await execute(env, code);
			return Response.json({ question, code, output: stdout, error: success ? undefined : stderr, exitCode }, { status: success ? 200 : 422 });
		} catch (error) {
			return Response.json({ error: String(error) }, { status: 502 });
		}
	},
};
