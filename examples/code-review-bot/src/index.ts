// POST /webhook: a pull request was opened. Its branch is cloned into a sandbox, what changed goes to a model, the review becomes a comment.
import Anthropic from '@anthropic-ai/sdk';
import { Octokit } from '@octokit/rest';
import { getSandbox, type Sandbox } from '@cloudflare/sandbox';

export { Sandbox } from '@cloudflare/sandbox';

interface Env {
	Sandbox: DurableObjectNamespace<Sandbox>;
	ANTHROPIC_API_KEY: string;
	ANTHROPIC_BASE_URL?: string;
	MODEL?: string;
	GITHUB_TOKEN: string;
	GITHUB_API_URL?: string;
	WEBHOOK_SECRET: string;
}

interface PullRequest {
	action: string;
	number: number;
	repository: { name: string; owner: { login: string }; clone_url: string };
	pull_request: { head: { ref: string }; base: { ref: string } };
}

const LARGEST = 100_000; // characters of a diff that a model is shown

/** Compares in constant time: a signature is a secret until it is right. */
async function signed(secret: string, signature: string | null, body: ArrayBuffer): Promise<boolean> {
	const hex = /^sha256=([0-9a-f]{64})$/.exec(signature ?? '')?.[1];
	if (!hex)
		return false;
	const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
	return crypto.subtle.verify('HMAC', key, Uint8Array.from(hex.match(/../g) as string[], byte => parseInt(byte, 16)), body);
}

/** A branch is named by a stranger: it reaches the shell as one word, whatever is in it. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

async function changes(env: Env, event: PullRequest): Promise<string> {
	const sandbox = getSandbox(env.Sandbox, `review-${crypto.randomUUID()}`);
	try {
		await sandbox.gitCheckout(event.repository.clone_url, { branch: event.pull_request.head.ref, targetDir: '/workspace/repo' });
		const base = quoted(`origin/${event.pull_request.base.ref}...HEAD`);
		const diff = await sandbox.exec(`git -C /workspace/repo fetch -q origin && git -C /workspace/repo diff ${base}`);
		if (!diff.success)
			throw new Error(`git diff: ${diff.stderr}`);
		return diff.stdout.slice(0, LARGEST);
	} finally {
		await sandbox.destroy();
	}
}

async function review(env: Env, diff: string): Promise<string> {
	const model = new Anthropic({ apiKey: env.ANTHROPIC_API_KEY, baseURL: env.ANTHROPIC_BASE_URL, maxRetries: 3 });
	const message = await model.messages.create({
		model: env.MODEL ?? 'claude-sonnet-4-5',
		max_tokens: 2048,
		system: 'You review code. Name bugs and risks, each with file and line. Be brief.',
		messages: [{ role: 'user', content: diff }],
	});
	return message.content.map(block => block.type === 'text' ? block.text : '').join('');
}

/** The code host fails now and then: what it answers with 5xx is tried again. */
async function comment(env: Env, event: PullRequest, body: string): Promise<void> {
	const host = new Octokit({ auth: env.GITHUB_TOKEN, baseUrl: env.GITHUB_API_URL });
	const where = { owner: event.repository.owner.login, repo: event.repository.name, issue_number: event.number };
	for (let tries = 1; ; tries++) {
		try {
			await host.rest.issues.createComment({ ...where, body });
			return;
		} catch (error) {
			if (tries === 3 || ((error as { status?: number }).status ?? 0) < 500)
				throw error;
			await new Promise(resolve => setTimeout(resolve, 200 * tries));
		}
	}
}

export default {
	async fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response> {
		if (new URL(request.url).pathname !== '/webhook' || request.method !== 'POST')
			return new Response('POST /webhook\n', { status: 404 });
		const body = await request.arrayBuffer();
		if (!await signed(env.WEBHOOK_SECRET, request.headers.get('x-hub-signature-256'), body))
			return Response.json({ error: 'the signature is wrong' }, { status: 401 });
		if (request.headers.get('x-github-event') !== 'pull_request')
			return Response.json({ ignored: 'not a pull request' });
		const event = JSON.parse(new TextDecoder().decode(body)) as PullRequest;
		if (!['opened', 'synchronize', 'reopened'].includes(event.action))
			return Response.json({ ignored: event.action });
		// Hooks are answered within seconds; a review takes longer.
		ctx.waitUntil((async () => comment(env, event, await review(env, await changes(env, event))))().catch(error => console.error('review failed:', error)));
		return Response.json({ accepted: event.number }, { status: 202 });
	},
};
