# SPDX-License-Identifier: Apache-2.0
"""Isolated Linux computers of a Silt server.

>>> with Sandbox.create() as box:            # doctest: +SKIP
...     print(box.exec("uname -a").stdout)
"""
from . import errors
from ._async import AsyncContext, AsyncFiles, AsyncProcess, AsyncSandbox, AsyncSession
from ._async_transport import AsyncServer
from ._sync import Context, Files, Process, Sandbox, Session
from ._transport import Server
from .errors import SandboxError
from .models import (CodeError, CodeEvent, Event, ExecResult, Execution, FileEvent, FileInfo, HistoryEntry, Limits, Match,
                     Network, Output, Port, ProcessInfo, Result, SandboxInfo, Snapshot, Undone, Usage)

__version__ = "0.1.0"
__all__ = [
    "AsyncContext", "AsyncFiles", "AsyncProcess", "AsyncSandbox", "AsyncServer", "AsyncSession", "CodeError",
    "CodeEvent", "Context", "Event", "ExecResult", "Execution", "FileEvent", "FileInfo", "Files", "HistoryEntry",
    "Limits", "Match",
    "Network", "Output", "Port", "Process", "ProcessInfo", "Result", "Sandbox", "SandboxError", "SandboxInfo", "Server",
    "Session", "Snapshot", "Undone", "Usage", "errors",
]
