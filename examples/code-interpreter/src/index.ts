// POST /run {"code": "...", "language": "python"}: variables live on from one request to the next; ?session=NAME tells users apart.
import { getSandbox, type Sandbox } from '@cloudflare/sandbox';

export { Sandbox } from '@cloudflare/sandbox';

interface Env {
	Sandbox: DurableObjectNamespace<Sandbox>;
}

const LANGUAGES = ['python', 'javascript', 'typescript'] as const;
type Language = (typeof LANGUAGES)[number];

interface Wanted {
	code: string;
	language: Language;
}

function read(body: unknown): Wanted {
	const { code, language = 'python' } = (body ?? {}) as Partial<Wanted>;
	if (typeof code !== 'string' || code === '')
		throw new TypeError('"code" must be a text');
	if (!LANGUAGES.includes(language))
		throw new TypeError(`"language" must be one of ${LANGUAGES.join(', ')}`);
	return { code, language };
}

async function run(env: Env, session: string, wanted: Wanted): Promise<Response> {
	const sandbox = getSandbox(env.Sandbox, `code-${session}`);
	const contexts = await sandbox.listCodeContexts();
	const context = contexts.find(c => c.language === wanted.language) ?? await sandbox.createCodeContext({ language: wanted.language });
	const { logs, results, error } = await sandbox.runCode(wanted.code, { context });
	return Response.json({ logs, results, error }, { status: error ? 422 : 200 });
}

export default {
	async fetch(request: Request, env: Env): Promise<Response> {
		const url = new URL(request.url);
		if (url.pathname !== '/run' || request.method !== 'POST')
			return new Response('POST /run {"code": "1 + 1"}\n', { status: 404 });
		const session = url.searchParams.get('session') ?? 'default';
		if (!/^[a-z0-9]{1,32}$/.test(session))
			return Response.json({ error: '"session" is [a-z0-9]{1,32}' }, { status: 400 });
		let wanted: Wanted;
		try {
			wanted = read(await request.json());
		} catch (error) {
			return Response.json({ error: String(error) }, { status: 400 });
		}
		return run(env, session, wanted);
	},
};
