// Two routes, the two things that everybody needs first: a command and a file.
import { getSandbox, type Sandbox } from '@cloudflare/sandbox';

export { Sandbox } from '@cloudflare/sandbox';

interface Env {
	Sandbox: DurableObjectNamespace<Sandbox>;
}

export default {
	async fetch(request: Request, env: Env): Promise<Response> {
		const sandbox = getSandbox(env.Sandbox, 'minimal');
		switch (new URL(request.url).pathname) {
		case '/run': {
			const { stdout, stderr, exitCode, success } = await sandbox.exec('echo "2 + 2 = $((2 + 2))"');
			return Response.json({ stdout, stderr, exitCode, success });
		}
		case '/file': {
			await sandbox.writeFile('/workspace/hello.txt', 'Hello from a file\n');
			const { content } = await sandbox.readFile('/workspace/hello.txt');
			return Response.json({ content });
		}
		default:
			return new Response('Try /run or /file\n', { status: 404 });
		}
	},
};
