# SPDX-License-Identifier: Apache-2.0
"""The library against a real server: SILT_URL and SILT_TOKEN name it."""
import asyncio
import io
import os
import pathlib
import pickle
import socket
import tempfile
import threading
import time
import unittest
from typing import Any

from silt_sandbox import AsyncSandbox, AsyncServer, Sandbox, Server, errors, wire
from silt_sandbox.config import find

IMAGE = os.environ.get("SILT_TEST_IMAGE", "base")


class Blocking(unittest.TestCase):
    box: Sandbox

    @classmethod
    def setUpClass(cls) -> None:
        cls.box = Sandbox.create(image=IMAGE, labels={"made": "by-python"})

    @classmethod
    def tearDownClass(cls) -> None:
        cls.box.destroy()
        cls.box.close()

    def test_a_session_keeps_its_directory_and_variables(self) -> None:
        self.assertTrue(self.box.exec("cd /tmp; export A='b c'; greet() { echo hello $1; }").ok)
        result = self.box.exec("pwd; echo $A; greet you; echo oops >&2; (exit 3)")
        self.assertEqual((result.exit_code, result.stdout, result.stderr, result.ok),
                         (3, "/tmp\nb c\nhello you\n", "oops\n", False))
        other = self.box.session("other")
        self.assertEqual(other.exec("pwd; echo [$A]").stdout, "/workspace\n[]\n")
        self.assertEqual(self.box.exec("pwd; echo [$A]", session=None).stdout, "/workspace\n[]\n")
        made = self.box.create_session("made", cwd="/usr", env={"B": "5"})
        self.assertEqual(made.exec("pwd; echo $B").stdout, "/usr\n5\n")
        with self.assertRaises(errors.SessionAlreadyExistsError):
            self.box.create_session("made")
        made.delete()

    def test_a_list_is_a_program_with_its_arguments(self) -> None:
        result = self.box.exec(["printf", "%s|", "a b", "$HOME", "it's"], cwd="/usr", env={"X": "1"})
        self.assertEqual(result.stdout, "a b|$HOME|it's|")
        self.assertEqual(self.box.exec(["id", "-un"], user="nobody").stdout, "nobody\n")

    def test_standard_input_of_any_size_arrives(self) -> None:
        data = os.urandom(3_000_000)
        self.assertEqual(self.box.exec("wc -c", stdin=data).stdout.strip(), "3000000")
        self.assertEqual(self.box.exec("cat", stdin="text").stdout, "text")
        self.assertEqual(self.box.exec("true", stdin=data).exit_code, 0)

    def test_failures_are_typed(self) -> None:
        with self.assertRaises(errors.CommandError) as failed:
            self.box.exec("echo why >&2; (exit 4)", check=True)
        self.assertEqual(failed.exception.context["exitCode"], 4)
        with self.assertRaises(errors.SessionTerminatedError):
            self.box.exec("exit 3", session="ends")
        self.assertEqual(self.box.exec("echo on", session="ends").stdout, "on\n")
        with self.assertRaises(errors.CommandError):
            self.box.exec("sleep 60", timeout=0.2, session="slow")
        with self.assertRaises(errors.FileNotFoundError) as missing:
            self.box.files.read("/nope")
        self.assertEqual((missing.exception.code, missing.exception.status), ("FILE_NOT_FOUND", 404))
        copy = pickle.loads(pickle.dumps(missing.exception))
        self.assertEqual((type(copy), copy.code, copy.context),
                         (errors.FileNotFoundError, "FILE_NOT_FOUND", missing.exception.context))
        with self.assertRaises(errors.SandboxNotFoundError):
            Sandbox.connect("never-made-by-python")
        with self.assertRaises(errors.SandboxAlreadyExistsError):
            Sandbox.create(self.box.id)

    def test_output_streams_while_the_command_runs(self) -> None:
        seen = []
        command = "echo one; until [ -e /tmp/go-on ]; do sleep 0.02; done; printf 'h\\303\\244\\377'; exit 4"
        for event in self.box.stream(command):
            seen.append(event)
            if event.data == b"one\n":
                self.box.files.write("/tmp/go-on", "")
        self.assertEqual(b"".join(event.data for event in seen if event.type == "stdout"), b"one\nh\xc3\xa4\xff")
        self.assertEqual((seen[-1].type, seen[-1].exit_code), ("exit", 4))

    def test_a_process_runs_by_itself(self) -> None:
        process = self.box.start("echo ready on 8080; read -r line; echo got $line; exit 7", stdin=True, id="python-process")
        self.assertEqual(process.wait_for_line("ready"), "ready on 8080")
        self.assertIn("python-process", [info.id for info in self.box.processes()])
        process.send_stdin("word\n", close=True)
        self.assertEqual(process.wait(timeout=20), 7)
        self.assertEqual(process.logs(), b"ready on 8080\ngot word\n")
        self.assertEqual([event.type for event in process.stream()][-1], "exit")
        self.assertEqual((process.info().status, process.info().exit_code), ("failed", 7))
        slow = self.box.start(["sleep", "1000"])
        with self.assertRaises(errors.ProcessReadyTimeoutError):
            slow.wait(timeout=0.2)
        slow.kill()
        self.assertEqual(slow.info().status, "killed")
        with self.assertRaises(errors.ProcessExitedBeforeReadyError):
            slow.wait_for_line("never")

    def test_files_go_in_and_out(self) -> None:
        files = self.box.files
        data = os.urandom(2_500_000)
        heard: list[tuple[int, Any]] = []
        files.write("/workspace/a/b.bin", io.BytesIO(data), mode=0o600,
                    progress=lambda done, total: heard.append((done, total)))
        self.assertEqual(files.read("/workspace/a/b.bin"), data)
        self.assertEqual(heard[-1], (len(data), len(data)))
        info = files.stat("/workspace/a/b.bin")
        self.assertEqual((info.name, info.size, info.type, info.mode[-3:]), ("b.bin", len(data), "file", "600"))
        files.write("note.txt", "häl\nneedle\n")
        self.assertEqual(files.read_text("/workspace/note.txt"), "häl\nneedle\n")
        found = files.search("needle", "/workspace")
        self.assertEqual([(match.line, match.text.strip()) for match in found], [(2, "needle")])
        files.move("note.txt", "moved.txt")
        files.symlink("moved.txt", "link")
        self.assertEqual(files.readlink("link"), "moved.txt")
        files.mkdir("d/e")
        self.assertLessEqual({"moved.txt", "link", "d"}, {entry.name for entry in files.list("/workspace")})
        files.remove("d", recursive=True)
        self.assertEqual((files.exists("d"), files.exists("moved.txt")), (False, True))
        with tempfile.TemporaryDirectory() as here:
            files.download("/workspace/a/b.bin", os.path.join(here, "b.bin"))
            self.assertEqual(pathlib.Path(here, "b.bin").read_bytes(), data)
            with self.assertRaises(errors.FileNotFoundError):
                files.download("/nope", os.path.join(here, "nope"))
            self.assertEqual(os.listdir(here), ["b.bin"])
            files.upload(here, "/workspace/up")
        self.assertEqual(files.stat("/workspace/up/b.bin").size, len(data))

    def test_changes_are_watched(self) -> None:
        self.box.files.mkdir("/workspace/watched")
        for event in self.box.files.watch("/workspace/watched"):
            if event.type == "watching":
                self.box.files.write("/workspace/watched/new.txt", "x")
            elif event.path.endswith("new.txt"):
                break

    def test_ports_and_network(self) -> None:
        server = self.box.start(["python3", "-m", "http.server", "8123"])
        server.wait_for_port(8123)
        self.box.wait_for_port(8123, mode="tcp")
        port = self.box.expose(8123, name="web")
        self.assertEqual([(one.port, one.name, one.url) for one in self.box.ports()], [(8123, "web", port.url)])
        self.assertIn("silt-proof=", self.box.sign(8123))
        self.box.unexpose(8123)
        self.assertEqual(self.box.ports(), [])
        with self.assertRaises(errors.ProcessReadyTimeoutError):
            self.box.wait_for_port(8199, mode="tcp", timeout=0.2)
        server.kill()
        self.assertEqual(self.box.set_network("none").mode, "none")
        self.assertEqual(self.box.network().mode, "none")

    def test_its_life_is_told(self) -> None:
        with Sandbox.create(image=IMAGE, labels={"made": "first"}) as box:
            box.files.write("/workspace/kept", "x")
            self.assertEqual(box.pause().state, "paused")
            self.assertEqual(box.resume().state, "running")
            self.assertEqual(box.stop().state, "stopped")
            self.assertEqual(box.restart().state, "running")
            self.assertEqual(box.files.read("/workspace/kept"), b"x")
            with box.fork() as copy:
                copy.exec("echo other > /workspace/kept")
                self.assertEqual((copy.files.read("/workspace/kept"), box.files.read("/workspace/kept")), (b"other\n", b"x"))
            self.assertNotEqual(copy.id, box.id)
            taken = box.snapshot("before")
            self.assertEqual([(one.id, one.name, one.sandbox) for one in box.snapshots()], [(taken.id, "before", box.id)])
            self.assertTrue(box.delete_snapshot(taken.id))
            self.assertEqual((box.snapshots(), box.delete_snapshot(taken.id)), ([], False))
            self.assertEqual(box.update(labels={"made": "anew"}, memory_mib=512).limits.memory_mib, 512)
            self.assertEqual([info.id for info in Sandbox.list(labels={"made": "anew"})], [box.id])
            kinds = [event.type for event in Sandbox.events(cursor="0", follow=False, sandbox=box.id)]
            self.assertLessEqual({"created", "started", "paused", "stopped"}, set(kinds))

    def test_with_destroys_what_it_has_made_and_nothing_else(self) -> None:
        with Sandbox.create(image=IMAGE, cpu=0.5, memory_mib=256) as made:
            self.assertEqual((made.info().limits.cpu, made.info().limits.memory_mib), (0.5, 256))
            with Sandbox.connect(made.id) as known, Sandbox.get(made.id) as again:
                self.assertEqual(known.exec("echo x").stdout, again.exec("echo x").stdout)
            self.assertEqual(made.info().state, "running")
        with self.assertRaises(errors.SandboxNotFoundError):
            Sandbox.connect(made.id)


class Interpreters(unittest.TestCase):
    def test_code_keeps_its_variables_and_shows_results(self) -> None:
        with Sandbox.create(image="base") as box:
            run = box.run_code("import sys\nx = 20\nprint('hi')\nprint('no', file=sys.stderr)\nx + 1")
            self.assertEqual((run.stdout, run.stderr, run.text, run.count, run.ok), ("hi\n", "no\n", "21", 1, True))
            self.assertEqual(run._repr_mimebundle_(), {"text/plain": "21"})
            heard: list[str] = []
            again = box.run_code("print(x)\nx * 2", on_output=heard.append)
            self.assertEqual((again.text, heard), ("40", ["20\n"]))
            failed = box.run_code("1 / 0")
            assert failed.error is not None
            self.assertEqual((failed.error.name, failed.error.value), ("ZeroDivisionError", "division by zero"))
            with self.assertRaises(errors.CodeExecutionError):
                failed.raise_error()
            with box.create_context("javascript", env={"Q": "7"}) as context:
                self.assertEqual(context.run("const y = process.env.Q * 6; y").text, "42")
                kinds = [event.type for event in context.stream("console.log(y); y")]
                seen = list(context.stream("console.log('one'); console.log('two'); y"))
                later = list(context.resume(str(seen[0].run), seen[0].cursor))
                self.assertEqual([event.cursor for event in later], [event.cursor for event in seen[1:]])
                self.assertEqual(later[-1].type, "done")
                with self.assertRaises(errors.SandboxError) as gone:
                    list(context.resume("run-none"))
                self.assertEqual(gone.exception.code, "RUN_NOT_FOUND")
                self.assertEqual(kinds, ["stdout", "result", "done"])
            with self.assertRaises(errors.ContextNotFoundError):
                context.run("1")
            shown = box.run_code("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
            self.assertIn("text/html", shown.results[-1]._repr_mimebundle_())


class Awaited(unittest.IsolatedAsyncioTestCase):
    async def test_many_at_once(self) -> None:
        server = AsyncServer()
        async with await AsyncSandbox.create(image=IMAGE, server=server) as box:
            results = await asyncio.gather(*(box.exec(f"echo {i}", session=None) for i in range(10)))
            self.assertEqual([result.stdout for result in results], [f"{i}\n" for i in range(10)])
            seen = [event async for event in box.stream("echo a; echo b >&2; (exit 5)")]
            self.assertEqual(seen[-1].exit_code, 5)
            process = await box.start("cat", stdin=True)
            await process.send_stdin(b"bytes", close=True)
            self.assertEqual((await process.wait(20), await process.logs()), (0, b"bytes"))
            await box.files.write("x.bin", io.BytesIO(b"abc"))
            self.assertEqual(await box.files.read("x.bin"), b"abc")
            self.assertIn(box.id, [info.id async for info in AsyncSandbox.list(server=server)])
            with self.assertRaises(errors.FileNotFoundError):
                await box.files.read_text("/nope")
            task = asyncio.create_task(box.exec("sleep 600", session="slow"))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual((await box.exec("echo on")).stdout, "on\n")
        with self.assertRaises(errors.SandboxNotFoundError):
            await AsyncSandbox.connect(box.id, server=server)
        await server.close()


class Wire(unittest.TestCase):
    """What needs no sandbox."""

    def test_events_are_cut_anywhere(self) -> None:
        text = b": comment\r\nevent: a\ndata: {\"n\":1}\n\ndata: {\ndata: \"n\":2}\r\n\r\n"
        for size in (1, 2, 7, len(text)):
            parser = wire.Events()
            found: list[Any] = []
            for at in range(0, len(text), size):
                found += parser.feed(text[at:at + size])
            self.assertEqual(found, [{"n": 1}, {"n": 2}])

    def test_an_error_of_an_unknown_kind_is_a_sandbox_error(self) -> None:
        error = wire.error_of(418, b'{"code":"TEAPOT","message":"short and stout","suggestion":"pour"}')
        self.assertEqual((type(error), error.code, error.status, str(error)),
                         (errors.SandboxError, "TEAPOT", 418, "short and stout (pour)"))
        self.assertIn("answered 502", str(wire.error_of(502, b"<html>")))

    def test_a_server_that_is_not_there_is_named(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            with self.assertRaises(errors.ContainerUnavailableError):
                Sandbox.connect("x", url=f"127.0.0.1:{taken.getsockname()[1]}")

    def test_a_post_that_breaks_off_is_not_sent_again_and_has_no_delay(self) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.settimeout(10)
        seen: list[bytes] = []

        def serve() -> None:
            connection, _peer = listening.accept()
            seen.append(connection.recv(65536))
            connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        server = Server(f"127.0.0.1:{listening.getsockname()[1]}", "t")
        with self.assertRaises(errors.RPCTransportError):
            server.call("POST", "/v1/sandboxes", json={})
        thread.join(10)
        self.assertEqual(len(seen), 1)
        listening.settimeout(0.2)
        with self.assertRaises(TimeoutError):
            listening.accept()
        server.close()
        listening.close()

    def test_small_requests_leave_at_once(self) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        options: list[int] = []
        server = Server(f"127.0.0.1:{listening.getsockname()[1]}", "t")
        inner: Any = server._client._transport._pool._network_backend  # type: ignore[attr-defined]
        stream = inner.connect_tcp(*listening.getsockname())
        options.append(stream.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        stream.close()
        server.close()
        listening.close()
        self.assertEqual([bool(option) for option in options], [True])

    def test_where_the_server_is(self) -> None:
        before = dict(os.environ)
        try:
            with tempfile.TemporaryDirectory() as home:
                for name in ("SILT_URL", "SILT_SERVER", "SILT_TOKEN", "SILT_CONTEXT"):
                    os.environ.pop(name, None)
                os.environ["XDG_CONFIG_HOME"] = home
                os.mkdir(f"{home}/silt")
                pathlib.Path(home, "silt/contexts.json").write_text(
                    '{"current":"prod","contexts":{"prod":{"url":"https://silt.example","token":"stored"}}}')
                self.assertEqual((find().url, find().token), ("https://silt.example", "stored"))
                self.assertNotIn("stored", repr(find()))
                os.environ["SILT_URL"], os.environ["SILT_TOKEN"] = "box:1/", "t"
                self.assertEqual((find().url, find().token), ("http://box:1", "t"))
                self.assertEqual((find("/run/x.sock").url, find("https://a", "u").token), ("unix:/run/x.sock", "u"))
        finally:
            os.environ.clear()
            os.environ.update(before)


if __name__ == "__main__":
    unittest.main()
