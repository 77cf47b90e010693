// POST / {"repository": "https://…", "branch": "main"}: clones, finds out what it is (Node, Python, Go), installs, tests, and streams the output as it comes.
import { getSandbox, parseSSEStream, type ExecEvent, type Sandbox } from '@cloudflare/sandbox';

export { Sandbox } from '@cloudflare/sandbox';

interface Env {
	Sandbox: DurableObjectNamespace<Sandbox>;
}

const FOLDER = '/workspace/repo';
const KINDS = [
	{ kind: 'node', file: 'package.json', steps: ['npm install --no-audit --no-fund', 'npm test'] },
	{ kind: 'go', file: 'go.mod', steps: ['go test ./...'] },
	{ kind: 'python', file: 'requirements.txt', steps: ['python3 -m pip install --break-system-packages -r requirements.txt', 'python3 -m unittest discover -v'] },
	{ kind: 'python', file: 'pyproject.toml', steps: ['python3 -m unittest discover -v'] },
];

type Tell = (event: object) => Promise<void>;

/** Runs one step; what it prints is told at once. Returns its exit code. */
async function step(sandbox: Sandbox, command: string, tell: Tell): Promise<number> {
	await tell({ step: command });
	const stream = await sandbox.execStream(`cd ${FOLDER} && ${command}`);
	for await (const event of parseSSEStream<ExecEvent>(stream)) {
		if (event.type === 'stdout' || event.type === 'stderr')
			await tell({ output: event.data });
		else if (event.type === 'complete')
			return event.exitCode ?? 1;
		else if (event.type === 'error')
			throw new Error(event.error);
	}
	throw new Error(`${command} ended without a result`);
}

async function pipeline(sandbox: Sandbox, repository: string, branch: string | undefined, tell: Tell): Promise<void> {
	await sandbox.gitCheckout(repository, { branch, depth: 1, targetDir: FOLDER });
	const { files } = await sandbox.listFiles(FOLDER);
	const kind = KINDS.find(k => files.some(file => file.name === k.file));
	if (!kind)
		throw new Error(`nothing to test: none of ${KINDS.map(k => k.file).join(', ')} is there`);
	await tell({ kind: kind.kind });
	for (const command of kind.steps) {
		const exitCode = await step(sandbox, command, tell);
		if (exitCode !== 0)
			return tell({ passed: false, failed: command, exitCode });
	}
	await tell({ passed: true });
}

/** One line of JSON an event. */
function stream(work: (tell: Tell) => Promise<void>): Response {
	const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
	const writer = writable.getWriter();
	const tell: Tell = event => writer.write(new TextEncoder().encode(`${JSON.stringify(event)}\n`));
	void work(tell).catch(error => tell({ passed: false, error: String(error) })).finally(() => writer.close()).catch(() => {}); // whoever asked has gone
	return new Response(readable, { headers: { 'content-type': 'application/x-ndjson' } });
}

export default {
	async fetch(request: Request, env: Env): Promise<Response> {
		if (request.method !== 'POST')
			return new Response('POST {"repository": "https://…", "branch": "main"}\n', { status: 405 });
		const { repository, branch } = await request.json<{ repository?: unknown; branch?: unknown }>().catch(() => ({ repository: undefined, branch: undefined }));
		if (typeof repository !== 'string' || !/^https?:\/\//.test(repository) || (branch !== undefined && typeof branch !== 'string'))
			return Response.json({ error: '"repository" must be an http(s) URL, "branch" a text' }, { status: 400 });
		return stream(async tell => {
			const sandbox = getSandbox(env.Sandbox, `test-${crypto.randomUUID()}`);
			try {
				await pipeline(sandbox, repository, branch as string | undefined, tell);
			} finally {
				await sandbox.destroy();
			}
		});
	},
};
