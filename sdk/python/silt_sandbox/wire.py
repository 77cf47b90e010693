# SPDX-License-Identifier: Apache-2.0
"""What the API says, as models: no input, no output."""
from __future__ import annotations

import base64
import json
from typing import Any, Iterator, Mapping
from urllib.parse import quote, urlencode

from .errors import ContainerUnavailableError, RPCTransportError, SandboxError, error_from
from .models import (CodeError, CodeEvent, Event, Execution, FORMATS, FileEvent, FileInfo, HistoryEntry, Limits, Network,
                     Output, Port, ProcessInfo, Result, SandboxInfo, Snapshot, Undone, Usage, time_of)

JSON = Mapping[str, Any]


def path_of(*parts: str, **query: Any) -> str:
    """/v1/a/b?c=d with every part escaped."""
    path = "/v1/" + "/".join(quote(part, safe="") for part in parts)
    known = {key: value for key, value in query.items() if value is not None}
    return path + ("?" + urlencode(known) if known else "")


def defined(**fields: Any) -> dict[str, Any]:
    """Without the fields that are None."""
    return {key: value for key, value in fields.items() if value is not None}


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))


class Events:
    """Server-sent events from the bytes of a stream: feed() gives the `data` of those that are whole."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                text, self._data = b"\n".join(self._data), []
                yield read_json(text)


def read_json(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise RPCTransportError(f"not an answer of a Silt server: {text[:200]!r}", code="RPC_TRANSPORT_ERROR", status=502)
    return value


def error_of(status: int, text: bytes) -> SandboxError:
    try:
        body = json.loads(text)
    except ValueError:
        body = {}
    if not isinstance(body, dict) or not body:
        body = {"message": f"the server answered {status}: {text[:200].decode('utf-8', 'replace')}"}
    return error_from(body, status)


def unreachable(url: str, cause: Exception) -> SandboxError:
    return ContainerUnavailableError(f"nothing answers at {url}: {cause}", code="CONTAINER_UNAVAILABLE", status=503,
                                     context={"reason": "container_unreachable"},
                                     hint="start the server, or set SILT_URL")


def broken(method: str, path: str, cause: Exception) -> SandboxError:
    return RPCTransportError(f"the connection broke during {method} {path}: {cause or type(cause).__name__}",
                             code="RPC_TRANSPORT_ERROR", status=503, context={"kind": "peer_closed"},
                             hint="find out whether it was done before you try again")


def cut_off(what: str) -> SandboxError:
    return RPCTransportError(f"{what} broke off", code="RPC_TRANSPORT_ERROR", status=503)


def output_of(event: JSON) -> Output:
    encoded = event.get("base64")
    data = base64.b64decode(encoded) if isinstance(encoded, str) else str(event.get("data") or "").encode()
    kind = str(event.get("type"))
    code = event.get("exitCode")
    return Output("exit" if kind == "complete" else kind, data, code if isinstance(code, int) else None,
                  event.get("cursor"), int(event.get("droppedBytes") or 0), event.get("cause"))


def process_of(row: JSON) -> ProcessInfo:
    return ProcessInfo(str(row["id"]), str(row.get("command") or ""), str(row.get("status") or ""), row.get("pid"),
                       row.get("exitCode"), time_of(row.get("startedAt") or row.get("startTime")),
                       str(row.get("kind") or "process"), row.get("cause"))


def file_of(row: JSON) -> FileInfo:
    return FileInfo(str(row["path"]), str(row["type"]), int(row["size"]), str(row["mode"]), int(row["uid"]),
                    int(row["gid"]), time_of(row.get("modifiedAt")), row.get("etag"), row.get("mimeType"))


def change_of(event: JSON) -> FileEvent:
    return FileEvent(str(event.get("eventType") or event.get("event") or event["type"]), str(event.get("path") or ""),
                     bool(event.get("isDirectory")))


def port_of(row: JSON) -> Port:
    return Port(int(row["port"]), str(row["url"]), row.get("name"), bool(row.get("private")))


def sandbox_of(row: JSON) -> SandboxInfo:
    limits, usage, image = row["limits"], row.get("usage"), row.get("image") or {}
    return SandboxInfo(
        str(row["id"]), str(row["state"]), str(image.get("name") or ""), row.get("type"), dict(row.get("labels") or {}),
        Limits(limits.get("cpu"), int(limits["memoryMiB"]), int(limits["diskMiB"]), int(limits["pids"])),
        None if not usage else Usage(int(usage["memoryBytes"]), int(usage["memoryPeakBytes"]), int(usage["cpuMs"]),
                                     int(usage["pids"]), int(usage["diskBytes"])),
        time_of(row.get("createdAt")), time_of(row.get("lastUsedAt")), row.get("lastDeath"), row)


def network_of(row: JSON) -> Network:
    rules = tuple(rule if isinstance(rule, str) else json.dumps(rule) for rule in row.get("allow") or ())
    return Network(str(row["mode"]), rules, tuple(row.get("refused") or ()))


def snapshot_of(row: JSON) -> Snapshot:
    return Snapshot(str(row["id"]), str(row["sandboxId"]), row.get("name"), int(row["bytes"]),
                    time_of(row.get("createdAt")), time_of(row.get("expiresAt")))


def history_of(row: JSON) -> HistoryEntry:
    return HistoryEntry(str(row["command"]), time_of(row.get("at")), row.get("snapshotId"), row.get("exitCode"),
                        row.get("problem"))


def undone_of(row: JSON) -> Undone:
    ended = row["ended"]
    return Undone(str(row["snapshotId"]), [history_of(one) for one in row["undone"]], [*ended["processes"]],
                  int(ended["terminals"]), int(ended["sessions"]), int(ended["contexts"]))


def event_of(row: JSON) -> Event:
    return Event(str(row["type"]), row.get("sandbox"), time_of(row.get("at")), row.get("cursor"), row)


def result_of(row: JSON) -> Result:
    known = (*FORMATS, "chart", "data")
    return Result({name: row[name] for name in known if row.get(name) is not None}, bool(row.get("isMainResult")))


def code_error_of(row: JSON) -> CodeError:
    return CodeError(str(row.get("ename") or row.get("name") or "Error"),
                     str(row.get("evalue") or row.get("value") or row.get("message") or ""),
                     tuple(row.get("traceback") or ()), row.get("lineNumber"))


def code_event_of(row: JSON, run: str | None = None) -> CodeEvent:
    kind = str(row["type"])
    count = row.get("executionCount", row.get("execution_count"))
    if kind == "error" and row.get("code") and not row.get("ename"):
        raise error_from(row, 500)
    return CodeEvent("done" if kind == "execution_complete" else kind, str(row.get("text") or row.get("prompt") or ""),
                     result_of(row) if kind == "result" else None, code_error_of(row) if kind == "error" else None, count,
                     run, row.get("cursor"))


def execution_of(row: JSON) -> Execution:
    logs, error = row.get("logs") or {}, row.get("error")
    return Execution("".join(logs.get("stdout") or ()), "".join(logs.get("stderr") or ()),
                     tuple(result_of(one) for one in row.get("results") or ()),
                     code_error_of(error) if isinstance(error, Mapping) else None,
                     row.get("executionCount", row.get("execution_count")))
