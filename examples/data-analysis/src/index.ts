// POST / with a CSV file and a question (multipart form): a model writes the analysis while we stream its answer, it runs beside the file, the chart comes back.
import Anthropic from '@anthropic-ai/sdk';
import { getSandbox, type Sandbox } from '@cloudflare/sandbox';

export { Sandbox } from '@cloudflare/sandbox';

interface Env {
	Sandbox: DurableObjectNamespace<Sandbox>;
	ANTHROPIC_API_KEY: string;
	ANTHROPIC_BASE_URL?: string;
	MODEL?: string;
}

const CSV = '/workspace/data.csv';
const LARGEST = 10 << 20;

/** The first lines tell the model which columns there are. */
const prompt = (head: string, question: string) =>
	`${CSV} begins with:\n\n${head}\n\nWrite Python with pandas and matplotlib that answers: ${question}\nPrint the findings and draw one figure. Answer with one block of code.`;

async function write(env: Env, head: string, question: string): Promise<string> {
	const model = new Anthropic({ apiKey: env.ANTHROPIC_API_KEY, baseURL: env.ANTHROPIC_BASE_URL, maxRetries: 3 });
	const message = await model.messages.stream({
		model: env.MODEL ?? 'claude-sonnet-4-5',
		max_tokens: 2048,
		messages: [{ role: 'user', content: prompt(head, question) }],
	}).finalMessage();
	const text = message.content.map(block => block.type === 'text' ? block.text : '').join('');
	const code = /```(?:python)?\n([\s\S]*?)```/.exec(text)?.[1];
	if (!code)
		throw new Error('the model wrote no code');
	return code;
}

async function analyse(env: Env, csv: string, question: string): Promise<Response> {
	const sandbox = getSandbox(env.Sandbox, `data-${crypto.randomUUID()}`);
	try {
		const [code] = await Promise.all([write(env, csv.split('\n', 5).join('\n'), question), sandbox.writeFile(CSV, csv)]);
		const context = await sandbox.createCodeContext({ language: 'python' });
		const { logs, results, error } = await sandbox.runCode(code, { context });
		if (error)
			return Response.json({ code, error: `${error.name}: ${error.message}` }, { status: 422 });
		return Response.json({ code, output: logs.stdout.join(''), chart: results.find(result => result.png)?.png });
	} finally {
		await sandbox.destroy();
	}
}

export default {
	async fetch(request: Request, env: Env): Promise<Response> {
		if (request.method !== 'POST')
			return new Response('POST a form with the fields "file" (CSV) and "question"\n', { status: 405 });
		const form = await request.formData().catch(() => undefined);
		const file = form?.get('file') as unknown;
		const question = form?.get('question');
		if (!(file instanceof File) || typeof question !== 'string' || question === '')
			return Response.json({ error: 'a form with the fields "file" and "question" is needed' }, { status: 400 });
		if (file.size > LARGEST)
			return Response.json({ error: `the file is larger than ${LARGEST} bytes` }, { status: 413 });
		return analyse(env, await file.text(), question).catch(error => Response.json({ error: String(error) }, { status: 502 }));
	},
};
