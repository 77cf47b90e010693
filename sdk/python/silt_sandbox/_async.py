# SPDX-License-Identifier: Apache-2.0
"""AsyncSandbox and its nouns. _sync.py is made of this file by make_sync.py."""
from __future__ import annotations

import asyncio
import io
import os
import tarfile
import tempfile
import time
import uuid
from types import TracebackType
from typing import IO, Any, AsyncIterator, Callable, Iterable, List, Mapping, Sequence, Union
from urllib.parse import urlencode

from . import wire
from ._async_transport import AsyncServer
from .errors import (CommandError, FileNotFoundError, ProcessExitedBeforeReadyError, ProcessReadyTimeoutError,
                     SandboxAlreadyExistsError, error_from)
from .models import (CodeEvent, Event, ExecResult, Execution, FileEvent, FileInfo, HistoryEntry, Match, Network,
                     Output, Port, ProcessInfo, Result, SandboxInfo, Snapshot, Undone)
from .wire import defined, milliseconds, path_of

Command = Union[str, Sequence[str]]
Progress = Callable[[int, "int | None"], None]
DEFAULT = "default"
PIECE = 1 << 20
LONGEST_WAIT = 300.0
CODE_EVENTS = ("stdout", "stderr", "result", "input", "error", "execution_complete")


def _spoken(command: Command) -> dict[str, Any]:
    return {"command": command} if isinstance(command, str) else {"argv": list(command)}


class AsyncProcess:
    """A background process of a sandbox."""

    def __init__(self, box: AsyncSandbox, id: str) -> None:
        self._box = box
        #: Its id.
        self.id = id

    def _path(self, *parts: str, **query: Any) -> str:
        return self._box._path("processes", self.id, *parts, **query)

    async def info(self) -> ProcessInfo:
        """How it is now."""
        return wire.process_of(await self._box._server.call("GET", self._path()))

    async def logs(self, stream: str | None = None) -> bytes:
        """What it has written and is still kept: all of it, or only `stdout` or `stderr`."""
        response = await self._box._server.open("GET", self._path("logs", stream=stream))
        try:
            return await response.aread()
        finally:
            await response.aclose()

    async def stream(self, cursor: int | None = None) -> AsyncIterator[Output]:
        """Its output from the beginning, or behind a cursor, until it ends. The last event is `exit`."""
        async for event in self._box._server.events("GET", self._path("stream", cursor=cursor)):
            if event.get("type") == "error":
                raise error_from(event, 500)
            if event.get("type") != "process_info":
                yield wire.output_of(event)

    async def wait(self, timeout: float | None = None) -> int | None:
        """Waits for its end; the exit code, None if it could not be started.

        :raises ProcessReadyTimeoutError: it still runs after `timeout` seconds
        """
        answer = await self._wait_for("exit", timeout)
        code = answer.get("exitCode")
        return code if isinstance(code, int) else None

    async def wait_for_line(self, text: str | None = None, pattern: str | None = None,
                            timeout: float | None = 30) -> str:
        """Waits for a line that contains a text, or matches a pattern with * and ?."""
        return str((await self._wait_for("line", timeout, text=text, pattern=pattern)).get("line", ""))

    async def wait_for_port(self, port: int, *, mode: str | None = None, path: str | None = None,
                            timeout: float | None = 30) -> None:
        """Waits until the port answers HTTP, or with mode `tcp` takes connections."""
        await self._wait_for("port", timeout, port=port, mode=mode, path=path)

    async def _wait_for(self, what: str, timeout: float | None, **query: Any) -> dict[str, Any]:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LONGEST_WAIT if end is None else min(LONGEST_WAIT, max(0.001, end - time.monotonic()))
            answer = await self._box._server.call("GET", self._path(
                "wait", **{"for": what}, timeoutMs=milliseconds(left), **query), slow=True)
            if answer.get("reached"):
                return answer
            if answer.get("reason") == "exited":
                raise ProcessExitedBeforeReadyError(f"process {self.id} ended first", code="PROCESS_EXITED_BEFORE_READY",
                                                    context={"processId": self.id, "exitCode": answer.get("exitCode")})
            if end is not None and time.monotonic() >= end:
                raise ProcessReadyTimeoutError(f"process {self.id}: no {what} within {timeout} s", status=408,
                                               code="PROCESS_READY_TIMEOUT", context={"processId": self.id})

    async def kill(self, signal: str | None = None, grace: float | None = None) -> None:
        """Ends it and all that it started: SIGTERM, after 5 s SIGKILL; or with a signal."""
        await self._box._server.call("DELETE", self._path(signal=signal, graceMs=milliseconds(grace)), slow=True)

    async def send_signal(self, signal: str) -> None:
        """Only sends a signal, such as SIGHUP."""
        await self._box._server.call("POST", self._path("signal"), json={"signal": signal})

    async def send_stdin(self, data: Union[bytes, str], close: bool = False) -> None:
        """Writes its standard input. It must have been started with stdin=True."""
        content = data.encode() if isinstance(data, str) else data
        await self._box._server.call("PUT", self._path("stdin", close="true" if close else None), content=content, slow=True)

    async def close_stdin(self) -> None:
        """Ends its standard input."""
        await self.send_stdin(b"", close=True)


class AsyncContext:
    """An interpreter that keeps its variables."""

    def __init__(self, box: AsyncSandbox, id: str, language: str) -> None:
        self._box = box
        #: Its id, or its language for the default one.
        self.id = id
        #: python, javascript or typescript
        self.language = language

    async def __aenter__(self) -> AsyncContext:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    def _path(self, *parts: str, **query: Any) -> str:
        return self._box._path("contexts", self.id, *parts, **query)

    async def stream(self, code: str, timeout: float | None = None) -> AsyncIterator[CodeEvent]:
        """Runs code and gives what it writes and shows, while it runs. The last event is `done` or `error`."""
        body = defined(code=code, timeoutMs=milliseconds(timeout))
        run: str | None = None
        async for event in self._box._server.events("POST", self._path("run"), json=body):
            if event.get("type") == "start":
                run = str(event["runId"])
            elif event.get("type") in CODE_EVENTS:
                yield wire.code_event_of(event, run)

    async def resume(self, run: str, cursor: int | None = None) -> AsyncIterator[CodeEvent]:
        """The events of a run behind a cursor, or all that are kept, up to its end: after a connection broke.

        :raises SandboxError: `RUN_NOT_FOUND`: ten minutes after its end, events are no longer kept
        """
        async for event in self._box._server.events("GET", self._path("runs", run, "stream", cursor=cursor)):
            if event.get("type") in CODE_EVENTS:
                yield wire.code_event_of(event, run)

    async def run(self, code: str, timeout: float | None = None, *,
                  on_output: Callable[[str], None] | None = None,
                  on_result: Callable[[Result], None] | None = None) -> Execution:
        """Runs code and waits for its end; callbacks hear of output at once. Its exceptions are part of the result."""
        if on_output is None and on_result is None:
            body = defined(code=code, timeoutMs=milliseconds(timeout))
            return wire.execution_of(await self._box._server.call("POST", self._path("run"), json=body, slow=True))
        written: dict[str, list[str]] = {"stdout": [], "stderr": []}
        results: list[Result] = []
        async for event in self.stream(code, timeout):
            if event.type in written:
                written[event.type].append(event.text)
                if on_output is not None:
                    on_output(event.text)
            elif event.result is not None:
                results.append(event.result)
                if on_result is not None:
                    on_result(event.result)
            elif event.type in ("done", "error"):
                return Execution("".join(written["stdout"]), "".join(written["stderr"]), tuple(results), event.error,
                                 event.count)
        raise wire.cut_off("the stream of the code")

    async def interrupt(self) -> bool:
        """As Ctrl-C: the code stops, variables stay. False: nothing ran."""
        return bool((await self._box._server.call("POST", self._path("interrupt"), slow=True)).get("interrupted"))

    async def restart(self) -> None:
        """A new interpreter under the same id, without variables."""
        await self._box._server.call("POST", self._path("restart"), slow=True)

    async def close(self) -> None:
        """Ends it and all that it started."""
        await self._box._server.call("DELETE", self._path(), slow=True)


class AsyncSession:
    """A shell that keeps its directory, variables and functions."""

    def __init__(self, box: AsyncSandbox, name: str) -> None:
        self._box = box
        #: Its name.
        self.name = name

    async def exec(self, command: str, **options: Any) -> ExecResult:
        """As AsyncSandbox.exec, in this session."""
        return await self._box.exec(command, session=self.name, **options)

    async def stream(self, command: str, **options: Any) -> AsyncIterator[Output]:
        """As AsyncSandbox.stream, in a copy of this session."""
        async for event in self._box.stream(command, session=self.name, **options):
            yield event

    async def delete(self) -> None:
        """Ends the shell, its processes and what its commands have left."""
        await self._box._server.call("DELETE", self._box._path("sessions", self.name), slow=True)


class AsyncFiles:
    """The files of a sandbox. Relative paths begin at /workspace."""

    def __init__(self, box: AsyncSandbox) -> None:
        self._box = box

    async def _do(self, what: str, **body: Any) -> dict[str, Any]:
        return await self._box._server.call("POST", self._box._path("files", what), json=defined(**body), slow=True)

    async def read(self, path: str) -> bytes:
        """The bytes of a file."""
        response = await self._box._server.open("GET", self._box._path("files", path=path))
        try:
            return await response.aread()
        finally:
            await response.aclose()

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """A file as text."""
        return (await self.read(path)).decode(encoding)

    async def chunks(self, path: str) -> AsyncIterator[bytes]:
        """The bytes of a file, piece by piece."""
        response = await self._box._server.open("GET", self._box._path("files", path=path), slow=True)
        try:
            async for piece in response.aiter_raw():
                yield piece
        finally:
            await response.aclose()

    async def write(self, path: str, data: Union[bytes, str, IO[bytes]], *, mode: int | None = None,
                    progress: Progress | None = None) -> None:
        """Writes a file as a whole or not at all; missing directories are made. `data` may be an open file."""
        if isinstance(data, (bytes, str)):
            content: Any = data.encode() if isinstance(data, str) else data
        else:
            content = _pieces(data, progress)
        query = self._box._path("files", path=path, mode=None if mode is None else f"{mode:04o}")
        await self._box._server.call("PUT", query, content=content, slow=True,
                                     headers={"Content-Type": "application/octet-stream"})

    async def write_files(self, files: Mapping[str, Union[bytes, str]]) -> None:
        """Writes several files."""
        for path, data in files.items():
            await self.write(path, data)

    async def upload(self, local: Union[str, os.PathLike[str]], path: str, *, progress: Progress | None = None) -> None:
        """Copies a file or directory of this machine; `progress` gets the bytes sent and their total."""
        if not os.path.isdir(local):
            with open(local, "rb") as file:
                await self.write(path, file, mode=os.fstat(file.fileno()).st_mode & 0o777, progress=progress)
            return
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(local, arcname=".")
            packed.seek(0)
            await self._box._server.call("PUT", self._box._path("files", path=path), slow=True,
                                         content=_pieces(packed, progress), headers={"Content-Type": "application/x-tar"})

    async def download(self, path: str, local: Union[str, os.PathLike[str]], *, progress: Progress | None = None) -> None:
        """Copies a file to this machine, where it appears when it is complete."""
        total = (await self.stat(path)).size
        done = 0
        target = os.path.abspath(os.fspath(local))
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(target), delete=False) as file:
            try:
                async for piece in self.chunks(path):
                    file.write(piece)
                    done += len(piece)
                    if progress is not None:
                        progress(done, total)
                file.flush()
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise

    async def list(self, path: str = ".", *, recursive: bool = False, hidden: bool = True) -> List[FileInfo]:
        """What is in a directory."""
        answer = await self._do("list", path=path, recursive=recursive, includeHidden=hidden)
        return [wire.file_of(row) for row in answer["entries"]]

    async def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """One file, directory or link."""
        return wire.file_of(await self._do("stat", path=path, followLinks=follow))

    async def exists(self, path: str) -> bool:
        """Whether something is there."""
        try:
            await self.stat(path, follow=False)
        except FileNotFoundError:
            return False
        return True

    async def mkdir(self, path: str, *, parents: bool = True, mode: int | None = None) -> None:
        """Makes a directory."""
        await self._do("mkdir", path=path, recursive=parents, mode=None if mode is None else f"{mode:04o}")

    async def move(self, path: str, to: str) -> None:
        """Renames or moves."""
        await self._do("move", path=path, to=to)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file, or with `recursive` a directory and all in it."""
        await self._box._server.call("DELETE", self._box._path(
            "files", path=path, recursive="true" if recursive else None), slow=True)

    async def chmod(self, path: str, mode: int) -> None:
        """Sets the permissions, such as 0o644."""
        await self._do("chmod", path=path, mode=f"{mode:04o}")

    async def symlink(self, target: str, path: str) -> None:
        """Makes a link at `path` that leads to `target`."""
        await self._do("symlink", path=path, target=target)

    async def readlink(self, path: str) -> str:
        """Where a link leads."""
        return str((await self._do("readlink", path=path))["target"])

    async def search(self, text: str, path: str = ".", *, glob: str | None = None, ignore_case: bool = False,
                     limit: int | None = None) -> List[Match]:
        """Lines that contain a text."""
        answer = await self._do("search", path=path, text=text, glob=glob, ignoreCase=ignore_case, limit=limit)
        return [Match(row["path"], row["line"], row["column"], row["text"]) for row in answer["matches"]]

    async def watch(self, path: str = ".", *, recursive: bool = True, include: Iterable[str] | None = None,
                    exclude: Iterable[str] | None = None) -> AsyncIterator[FileEvent]:
        """Changes below a path, until the iteration is left. The first event is `watching`."""
        body = defined(path=path, recursive=recursive, include=None if include is None else [*include],
                       exclude=None if exclude is None else [*exclude])
        async for event in self._box._server.events("POST", self._box._path("watch"), json=body):
            if event.get("type") in ("error", "stopped"):
                raise error_from({**event, "message": event.get("error") or event.get("reason")}, 500)
            yield wire.change_of(event)


class AsyncSandbox:
    """An isolated Linux computer. Use AsyncSandbox.create(), get() or connect()."""

    def __init__(self, server: AsyncServer, id: str, *, owned: bool, own_server: bool) -> None:
        #: Its id.
        self.id = id
        #: Its files.
        self.files = AsyncFiles(self)
        self._server = server
        self._owned = owned
        self._own_server = own_server

    @classmethod
    async def create(cls, id: str | None = None, *, image: str | None = None, type: str | None = None,
                     env: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None,
                     cpu: float | None = None, memory_mib: int | None = None, disk_mib: int | None = None,
                     pids: int | None = None, network: str | None = None, allow: Iterable[str] | None = None,
                     sleep_after: Union[str, float, None] = None, stop_after: Union[str, float, None] = None,
                     ttl: Union[str, float, None] = None, keep_alive: bool | None = None, ephemeral: bool | None = None,
                     auto_snapshot: str | None = None,
                     url: str | None = None, token: str | None = None, server: AsyncServer | None = None) -> AsyncSandbox:
        """Creates a sandbox; an id is made if none is given. As a context manager it is destroyed at the end.

        :raises SandboxAlreadyExistsError: the id is taken
        """
        limits = defined(cpu=cpu, memoryMiB=memory_mib, diskMiB=disk_mib, pids=pids)
        policy = None if network is None and allow is None else defined(
            mode=network or "allow", allow=None if allow is None else [*allow])
        body = defined(id=id, image=image, type=type, env=None if env is None else dict(env), ephemeral=ephemeral,
                       labels=None if labels is None else dict(labels), limits=limits or None, network=policy,
                       sleepAfter=sleep_after, stopAfter=stop_after, ttl=ttl, keepAlive=keep_alive,
                       autoSnapshot=auto_snapshot)
        own = server is None
        server = server or AsyncServer(url, token)
        try:
            row = await server.call("POST", "/v1/sandboxes", json=body, slow=True)
        except BaseException:
            if own:
                await server.close()
            raise
        return cls(server, str(row["id"]), owned=True, own_server=own)

    @classmethod
    async def connect(cls, id: str, *, url: str | None = None, token: str | None = None,
                      server: AsyncServer | None = None) -> AsyncSandbox:
        """A sandbox that exists. As a context manager it is left alone at the end.

        :raises SandboxNotFoundError: there is none
        """
        own = server is None
        box = cls(server or AsyncServer(url, token), id, owned=False, own_server=own)
        try:
            await box.info()
        except BaseException:
            await box.close()
            raise
        return box

    @classmethod
    async def get(cls, id: str, **options: Any) -> AsyncSandbox:
        """The sandbox of an id, created if there is none. As a context manager it is left alone at the end."""
        try:
            box = await cls.create(id, **options)
        except SandboxAlreadyExistsError:
            return await cls.connect(id, **{key: options[key] for key in ("url", "token", "server") if key in options})
        box._owned = False
        return box

    @classmethod
    async def list(cls, *, labels: Mapping[str, str] | None = None, url: str | None = None, token: str | None = None,
                   server: AsyncServer | None = None) -> AsyncIterator[SandboxInfo]:
        """Every sandbox of a server, without its usage."""
        own = server is None
        server = server or AsyncServer(url, token)
        after: str | None = None
        chosen = "".join("&" + urlencode({"label": f"{key}={value}"}) for key, value in (labels or {}).items())
        try:
            while True:
                page = await server.call("GET", path_of("sandboxes", limit=200, after=after) + chosen)
                for row in page["sandboxes"]:
                    yield wire.sandbox_of(row)
                after = page.get("next")
                if not after:
                    return
        finally:
            if own:
                await server.close()

    @classmethod
    async def events(cls, *, cursor: str | None = None, follow: bool = True, types: Iterable[str] | None = None,
                     sandbox: str | None = None, url: str | None = None, token: str | None = None,
                     server: AsyncServer | None = None) -> AsyncIterator[Event]:
        """What happens to the sandboxes of a server, from now on or behind a cursor; `0` is the oldest that is kept."""
        own = server is None
        server = server or AsyncServer(url, token)
        query = path_of("events", cursor=cursor, follow=None if follow else "false", sandbox=sandbox,
                        types=None if types is None else ",".join(types))
        try:
            async for row in server.events("GET", query):
                yield wire.event_of(row)
        finally:
            if own:
                await server.close()

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        try:
            if self._owned:
                await self.destroy()
        finally:
            await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def _path(self, *parts: str, **query: Any) -> str:
        return path_of("sandboxes", self.id, *parts, **query)

    async def close(self) -> None:
        """Closes the connections; the sandbox goes on."""
        if self._own_server:
            await self._server.close()

    # ---- commands ----

    def _body(self, command: Command, session: str | None, cwd: str | None, env: Mapping[str, str] | None,
              user: str | None, timeout: float | None) -> dict[str, Any]:
        body = defined(cwd=cwd, env=None if env is None else dict(env), user=user, timeoutMs=milliseconds(timeout))
        body.update(_spoken(command))
        alone = not isinstance(command, str) or user is not None
        body["sessionId"] = None if session is None or (alone and session == DEFAULT) else session
        return body

    async def exec(self, command: Command, *, session: str | None = DEFAULT, cwd: str | None = None,
                   env: Mapping[str, str] | None = None, user: str | None = None, timeout: float | None = None,
                   stdin: Union[bytes, str, None] = None, check: bool = False) -> ExecResult:
        """Runs a command to its end. Text is for bash, in a session that keeps its directory and variables, or with
        session=None in a shell of its own; a list is a program and its arguments, beside every session.

        :raises CommandError: its time was over, or with check=True it failed
        :raises SessionTerminatedError: it ended the session's shell
        """
        if stdin is not None:
            return await self._fed(command, session, cwd, env, user, timeout, stdin, check)
        body = self._body(command, session, cwd, env, user, timeout)
        row = await self._server.call("POST", self._path("exec"), json=body, slow=True)
        return _checked(ExecResult(command if isinstance(command, str) else tuple(command), int(row["exitCode"]),
                                   str(row["stdout"]), str(row["stderr"]), row.get("cause")), check)

    async def _fed(self, command: Command, session: str | None, cwd: str | None, env: Mapping[str, str] | None,
                   user: str | None, timeout: float | None, stdin: Union[bytes, str], check: bool) -> ExecResult:
        process = await self.start(command, session=session, cwd=cwd, env=env, user=user, timeout=timeout, stdin=True)
        try:
            await process.send_stdin(stdin, close=True)
        except Exception as error:
            if getattr(error, "code", "") not in ("STDIN_CLOSED", "COMMAND_NOT_FOUND", "RESOURCE_BUSY"):
                raise
        code = await process.wait()
        out, err, info = await process.logs("stdout"), await process.logs("stderr"), await process.info()
        return _checked(ExecResult(command if isinstance(command, str) else tuple(command), -1 if code is None else code,
                                   out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), info.cause), check)

    async def stream(self, command: Command, *, session: str | None = DEFAULT, cwd: str | None = None,
                     env: Mapping[str, str] | None = None, user: str | None = None,
                     timeout: float | None = None) -> AsyncIterator[Output]:
        """Runs a command, in a copy of the session's shell, and gives its output while it runs. The last event is
        `exit`. Who leaves the iteration leaves the command running."""
        body = self._body(command, session, cwd, env, user, timeout)
        async for event in self._server.events("POST", self._path("exec"), json=body):
            kind = event.get("type")
            if kind == "error":
                raise error_from(event, 500)
            if kind != "start":
                yield wire.output_of(event)
            if kind == "complete":
                return
        raise wire.cut_off("the stream of the command")

    def session(self, name: str) -> AsyncSession:
        """A session by its name; its first command makes it."""
        return AsyncSession(self, name)

    async def create_session(self, name: str | None = None, *, cwd: str | None = None,
                             env: Mapping[str, str] | None = None) -> AsyncSession:
        """A new session.

        :raises SessionAlreadyExistsError: the name is taken
        """
        body = defined(id=name, cwd=cwd, env=None if env is None else dict(env))
        row = await self._server.call("POST", self._path("sessions"), json=body, slow=True)
        return AsyncSession(self, str(row["id"]))

    # ---- processes ----

    async def start(self, command: Command, *, id: str | None = None, session: str | None = None,
                    cwd: str | None = None, env: Mapping[str, str] | None = None, user: str | None = None,
                    timeout: float | None = None, stdin: bool = False) -> AsyncProcess:
        """Starts a process with a log that goes on by itself."""
        body = self._body(command, session, cwd, env, user, timeout)
        if body["sessionId"] is None:
            del body["sessionId"]
        body.update(defined(processId=id, stdin=stdin or None))
        row = await self._server.call("POST", self._path("processes"), json=body, slow=True)
        return AsyncProcess(self, str(row["id"]))

    def process(self, id: str) -> AsyncProcess:
        """A process by its id."""
        return AsyncProcess(self, id)

    async def processes(self) -> List[ProcessInfo]:
        """All that run or are remembered, also what commands have left behind."""
        return [wire.process_of(row) for row in (await self._server.call("GET", self._path("processes")))["processes"]]

    async def kill_all(self) -> int:
        """Ends every process but idle shells and interpreters; how many."""
        return int((await self._server.call("DELETE", self._path("processes"), slow=True))["count"])

    # ---- code ----

    def context(self, language: str = "python") -> AsyncContext:
        """The default interpreter of a language, started by its first run, or one by its id."""
        return AsyncContext(self, language, language)

    async def create_context(self, language: str = "python", *, cwd: str | None = None,
                             env: Mapping[str, str] | None = None, timeout: float | None = None) -> AsyncContext:
        """An interpreter of its own. `timeout` is for each run that has none."""
        body = defined(language=language, cwd=cwd, env=None if env is None else dict(env), timeoutMs=milliseconds(timeout))
        row = await self._server.call("POST", self._path("contexts"), json=body, slow=True)
        return AsyncContext(self, str(row.get("contextId") or row["id"]), str(row["language"]))

    async def run_code(self, code: str, language: str = "python", **options: Any) -> Execution:
        """Runs code in the default interpreter of its language, which keeps its variables."""
        return await self.context(language).run(code, **options)

    # ---- ports and network ----

    async def expose(self, port: int, *, name: str | None = None, token: str | None = None,
                     private: bool = False) -> Port:
        """Gives a port a URL."""
        body = defined(port=port, name=name, token=token, private=private or None)
        return wire.port_of(await self._server.call("POST", self._path("ports"), json=body))

    async def unexpose(self, port: int) -> None:
        """Removes the URL of a port."""
        await self._server.call("DELETE", self._path("ports", str(port)))

    async def ports(self) -> List[Port]:
        """The ports that have a URL."""
        return [wire.port_of(row) for row in (await self._server.call("GET", self._path("ports")))["ports"]]

    async def sign(self, port: int, expires_in: int = 3600) -> str:
        """A URL that works for so many seconds, also for a private port."""
        body = {"expiresIn": expires_in}
        return str((await self._server.call("POST", self._path("ports", str(port), "sign"), json=body))["url"])

    async def wait_for_port(self, port: int, *, mode: str | None = None, path: str | None = None,
                            timeout: float = 30) -> None:
        """Waits until something answers on a port.

        :raises ProcessReadyTimeoutError: nothing does within `timeout` seconds
        """
        body = defined(port=port, mode=mode, path=path, timeoutMs=milliseconds(timeout))
        answer = await self._server.call("POST", self._path("ports", "wait"), json=body, slow=True)
        if not answer.get("reached"):
            raise ProcessReadyTimeoutError(f"nothing answers on port {port} within {timeout} s", status=408,
                                           code="PROCESS_READY_TIMEOUT", context={"port": port})

    async def network(self) -> Network:
        """What it may reach, and what was refused."""
        return wire.network_of(await self._server.call("GET", self._path("network")))

    async def set_network(self, mode: str = "allow", allow: Iterable[str] | None = None) -> Network:
        """Changes what it may reach: `none`, `public`, or what the rules of `allow` name."""
        body = defined(mode=mode, allow=[*allow] if allow is not None else [] if mode == "allow" else None)
        return wire.network_of(await self._server.call("PUT", self._path("network"), json=body))

    # ---- git ----

    async def git_clone(self, url: str, path: str | None = None, *, branch: str | None = None,
                        depth: int | None = None, timeout: float | None = None,
                        progress: Callable[[str], None] | None = None) -> str:
        """Clones a repository and gives its directory."""
        body = defined(repoUrl=url, targetDir=path, branch=branch, depth=depth, timeoutMs=milliseconds(timeout))
        async for event in self._server.events("POST", self._path("git", "clone"), json=body):
            if event.get("type") == "progress" and progress is not None:
                progress(str(event.get("text") or ""))
            elif event.get("type") == "error":
                raise error_from(event, 500)
            elif event.get("type") == "complete":
                return str(event["targetDir"])
        raise wire.cut_off("the clone")

    # ---- life ----

    async def info(self) -> SandboxInfo:
        """How it is now. Does not wake it."""
        return wire.sandbox_of(await self._server.call("GET", self._path()))

    async def update(self, *, env: Mapping[str, str | None] | None = None, labels: Mapping[str, str] | None = None,
                     cpu: float | None = None, memory_mib: int | None = None, disk_mib: int | None = None,
                     pids: int | None = None, sleep_after: Union[str, float, None] = None,
                     stop_after: Union[str, float, None] = None, ttl: Union[str, float, None] = None,
                     keep_alive: bool | None = None, auto_snapshot: str | None = None) -> SandboxInfo:
        """Changes what is given; limits at once."""
        limits = defined(cpu=cpu, memoryMiB=memory_mib, diskMiB=disk_mib, pids=pids)
        body = defined(env=None if env is None else dict(env), labels=None if labels is None else dict(labels),
                       limits=limits or None, sleepAfter=sleep_after, stopAfter=stop_after, ttl=ttl, keepAlive=keep_alive,
                       autoSnapshot=auto_snapshot)
        return wire.sandbox_of(await self._server.call("PATCH", self._path(), json=body, slow=True))

    async def _change(self, what: str) -> SandboxInfo:
        return wire.sandbox_of(await self._server.call("POST", self._path(what), slow=True))

    async def stop(self) -> SandboxInfo:
        """Ends its processes and keeps its files. The next use starts it."""
        return await self._change("stop")

    async def start_up(self) -> SandboxInfo:
        """Starts it, or resumes it."""
        return await self._change("start")

    async def restart(self) -> SandboxInfo:
        """Stops and starts it."""
        return await self._change("restart")

    async def pause(self) -> SandboxInfo:
        """Freezes its processes; the next use resumes them."""
        return await self._change("pause")

    async def resume(self) -> SandboxInfo:
        """Lets its processes go on."""
        return await self._change("resume")

    async def fork(self, id: str | None = None) -> AsyncSandbox:
        """A sandbox of its own that begins with the files of this one as they are now; an id is made if none is given.
        As a context manager it is destroyed at the end."""
        body = {"ids": [id or f"{self.id[:100]}-{uuid.uuid4().hex[:12]}"]}
        row = (await self._server.call("POST", self._path("fork"), json=body, slow=True))["sandboxes"][0]
        return AsyncSandbox(self._server, str(row["id"]), owned=True, own_server=False)

    async def snapshot(self, name: str | None = None, *, ttl: Union[str, float, None] = None) -> Snapshot:
        """Keeps its files as they are now."""
        body = defined(name=name, ttl=ttl)
        return wire.snapshot_of(await self._server.call("POST", self._path("snapshots"), json=body, slow=True))

    async def snapshots(self) -> List[Snapshot]:
        """The snapshots that were taken of it."""
        return [wire.snapshot_of(row) for row in (await self._server.call("GET", self._path("snapshots")))["snapshots"]]

    async def rollback(self, snapshot: str) -> SandboxInfo:
        """Gives it the files of one of its snapshots, and ends its processes."""
        body = {"snapshot": snapshot}
        return wire.sandbox_of(await self._server.call("POST", self._path("rollback"), json=body, slow=True))

    async def history(self) -> List[HistoryEntry]:
        """Its last commands since it keeps snapshots before them, the newest last."""
        return [wire.history_of(row) for row in (await self._server.call("GET", self._path("history")))["history"]]

    async def undo(self, steps: int = 1) -> Undone:
        """Gives it the files from before its last commands, and ends its processes."""
        return wire.undone_of(await self._server.call("POST", self._path("undo"), json={"steps": steps}, slow=True))

    async def delete_snapshot(self, id: str) -> bool:
        """Deletes a snapshot; whether it was there."""
        return bool((await self._server.call("DELETE", path_of("snapshots", id), slow=True)).get("deleted"))

    async def commit(self, name: str) -> str:
        """Makes an image of it with what it has written; the digest."""
        return str((await self._server.call("POST", self._path("image"), json={"name": name}, slow=True))["digest"])

    async def destroy(self) -> None:
        """Ends it and removes its files."""
        self._owned = False
        await self._server.call("DELETE", self._path(), slow=True)


def _checked(result: ExecResult, check: bool) -> ExecResult:
    if check and result.exit_code != 0:
        raise CommandError(f"the command failed with {result.exit_code}: {result.stderr.strip()[-500:]}",
                           code="COMMAND_FAILED", context={"exitCode": result.exit_code, "stdout": result.stdout,
                                                           "stderr": result.stderr, "command": result.command})
    return result


async def _pieces(file: IO[bytes], progress: Progress | None) -> AsyncIterator[bytes]:
    done = 0
    try:
        at = file.tell()
        total: int | None = file.seek(0, io.SEEK_END) - at
        file.seek(at)
    except (OSError, io.UnsupportedOperation):
        total = None
    while True:
        piece = file.read(PIECE)
        if not piece:
            return
        yield piece
        done += len(piece)
        if progress is not None:
            progress(done, total)
