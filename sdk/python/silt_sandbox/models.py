# SPDX-License-Identifier: Apache-2.0
"""What calls return: plain dataclasses."""
from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, List, Mapping

#: Formats of a result, the best first.
FORMATS: Mapping[str, str] = {
    "html": "text/html", "png": "image/png", "jpeg": "image/jpeg", "svg": "image/svg+xml", "latex": "text/latex",
    "markdown": "text/markdown", "javascript": "application/javascript", "json": "application/json",
    "text": "text/plain",
}


def time_of(value: Any) -> datetime | None:
    """A time of the API, as `2026-01-02T03:04:05.678Z`."""
    if not isinstance(value, str) or not value:
        return None
    return datetime.strptime(value[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class ExecResult:
    """A command that has ended."""
    command: str | tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    #: Why it was ended from outside: oom, timeout, pids, signal; None: it ended by itself.
    cause: str | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def __str__(self) -> str:
        return self.stdout


@dataclass(frozen=True)
class Output:
    """An event of a command or process: a piece of output, or its end."""
    #: stdout, stderr, gap (output that is no longer kept) or exit
    type: str
    data: bytes = b""
    exit_code: int | None = None
    #: Where a later stream of the same process goes on.
    cursor: int | None = None
    dropped_bytes: int = 0
    cause: str | None = None

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class ProcessInfo:
    """A process as the server lists it."""
    id: str
    command: str
    #: starting, running, completed, failed, killed or error
    status: str
    pid: int | None
    exit_code: int | None
    started_at: datetime | None
    #: process, or who owns one without a record: leftover, command, context, terminal
    kind: str
    cause: str | None = None


@dataclass(frozen=True)
class FileInfo:
    """A file, directory or link."""
    path: str
    #: file, directory, symlink or other
    type: str
    size: int
    mode: str
    uid: int
    gid: int
    modified_at: datetime | None
    etag: str | None = None
    mime_type: str | None = None

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    @property
    def is_dir(self) -> bool:
        return self.type == "directory"


@dataclass(frozen=True)
class Match:
    """A line that a search found."""
    path: str
    line: int
    column: int
    text: str


@dataclass(frozen=True)
class FileEvent:
    """A change of a file: create, modify, delete, move_from, move_to or attrib; overflow: some are missing."""
    type: str
    path: str
    is_dir: bool = False


@dataclass(frozen=True)
class Port:
    """A port with a URL."""
    port: int
    url: str
    name: str | None = None
    private: bool = False


@dataclass(frozen=True)
class Limits:
    """What a sandbox may use. None: no ceiling."""
    cpu: float | None
    memory_mib: int
    disk_mib: int
    pids: int


@dataclass(frozen=True)
class Usage:
    """What a sandbox uses now."""
    memory_bytes: int
    memory_peak_bytes: int
    cpu_ms: int
    pids: int
    disk_bytes: int


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as the server knows it."""
    id: str
    #: running, paused or stopped
    state: str
    image: str
    #: size: lite, basic, standard-1 to standard-4; None: limits of its own
    type: str | None
    labels: Mapping[str, str]
    limits: Limits
    usage: Usage | None
    created_at: datetime | None
    last_used_at: datetime | None
    #: why its processes ended last time, as the API says it
    last_death: Mapping[str, Any] | None
    #: everything, as the API says it
    raw: Mapping[str, Any] = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class Network:
    """What a sandbox may reach."""
    #: none, public or allow
    mode: str
    allow: tuple[str, ...] = ()
    #: the last denials, as the API says them
    refused: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Event:
    """Something that happened to a sandbox: created, started, paused, died..."""
    type: str
    sandbox: str | None
    at: datetime | None
    cursor: str | None
    raw: Mapping[str, Any] = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """The files of a sandbox at one point in time."""
    id: str
    sandbox: str
    name: str | None
    size: int
    created_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True)
class HistoryEntry:
    """A command of a sandbox that keeps snapshots before them."""
    command: str
    at: datetime | None
    snapshot: str | None
    exit_code: int | None
    problem: str | None


@dataclass(frozen=True)
class Undone:
    """What an undo took back, and what it ended."""
    snapshot: str
    commands: List[HistoryEntry]
    processes: List[str]
    terminals: int
    sessions: int
    contexts: int


@dataclass(frozen=True)
class CodeError:
    """An exception of the code."""
    name: str
    value: str
    traceback: tuple[str, ...] = ()
    line: int | None = None

    def __str__(self) -> str:
        return "\n".join(self.traceback) or f"{self.name}: {self.value}"


@dataclass(frozen=True)
class Result:
    """A value that code has shown, in all its formats. A notebook displays it."""
    #: text, html, png, jpeg (both base64), svg, latex, markdown, javascript, json, chart, data
    formats: Mapping[str, Any]
    #: the value of the last expression, not one that was displayed
    is_main: bool = False

    def __getattr__(self, name: str) -> Any:
        if name in FORMATS or name in ("chart", "data"):
            return self.formats.get(name)
        raise AttributeError(name)

    def image(self) -> bytes | None:
        """The picture as bytes, PNG or JPEG."""
        text = self.formats.get("png") or self.formats.get("jpeg")
        return base64.b64decode(text) if isinstance(text, str) else None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = {FORMATS[name]: value for name, value in self.formats.items() if name in FORMATS}
        if include:
            bundle = {kind: value for kind, value in bundle.items() if kind in include}
        return {kind: value for kind, value in bundle.items() if kind not in (exclude or ())}


@dataclass(frozen=True)
class Execution:
    """Code that has run. An exception of the code is part of it, not an error of the call."""
    stdout: str
    stderr: str
    results: tuple[Result, ...]
    error: CodeError | None
    count: int | None

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def text(self) -> str | None:
        """The value of the last expression as text."""
        for result in reversed(self.results):
            if result.is_main:
                return result.text if isinstance(result.text, str) else None
        return None

    def raise_error(self) -> Execution:
        """Raises what the code raised; returns itself otherwise."""
        from .errors import CodeExecutionError
        if self.error is not None:
            raise CodeExecutionError(f"{self.error.name}: {self.error.value}", code="CODE_EXECUTION_ERROR",
                                     context={"traceback": list(self.error.traceback)})
        return self

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        for result in reversed(self.results):
            if result.is_main:
                return result._repr_mimebundle_(include, exclude)
        return {"text/plain": (self.stdout + (str(self.error) if self.error else "")) or ""}


@dataclass(frozen=True)
class CodeEvent:
    """An event of code that runs: stdout, stderr, result, input, done or error."""
    type: str
    text: str = ""
    result: Result | None = None
    error: CodeError | None = None
    count: int | None = None
    #: The run and the place behind the event, for `resume` of its context.
    run: str | None = None
    cursor: int | None = None
