# SPDX-License-Identifier: Apache-2.0
"""Every error of a Silt server as a class, chosen by its `code`. Unknown codes are plain SandboxErrors."""
from __future__ import annotations

from typing import Any, Mapping


class SandboxError(Exception):
    """An error that a server reported, or that the client found in its place."""

    def __init__(self, message: str, *, code: str = "UNKNOWN_ERROR", status: int = 500,
                 context: Mapping[str, Any] | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        #: What happened, for people.
        self.message = message
        #: What happened, for programs.
        self.code = code
        #: The HTTP status.
        self.status = status
        #: Details, by code.
        self.context: dict[str, Any] = dict(context or {})
        #: What to do about it, where the server knows.
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.message, self.code, self.status, self.context, self.hint)


def _again(kind: type[SandboxError], message: str, code: str, status: int, context: dict[str, Any],
           hint: str | None) -> SandboxError:
    return kind(message, code=code, status=status, context=context, hint=hint)


class SandboxNotFoundError(SandboxError):
    """No sandbox has that id."""


class SandboxAlreadyExistsError(SandboxError):
    """A sandbox of that id exists."""


class UnauthorizedError(SandboxError):
    """The token is missing or wrong."""


class LimitReachedError(SandboxError):
    """A limit of the server or of the sandbox."""


class FileNotFoundError(SandboxError):  # noqa: A001
    """A path does not exist."""


class FileExistsError(SandboxError):  # noqa: A001
    """A path exists already."""


class FileTooLargeError(SandboxError):
    """A file is too large to be read at once."""


class PermissionDeniedError(SandboxError):
    """The user of the sandbox may not do that."""


class FileSystemError(SandboxError):
    """Another failure of a file operation."""


class CommandNotFoundError(SandboxError):
    """A program does not exist."""


class CommandError(SandboxError):
    """A command could not be run, ran out of time, or failed where that was not allowed."""


class ProcessNotFoundError(SandboxError):
    """No process has that id."""


class ProcessError(SandboxError):
    """A process could not be started or changed."""


class ProcessReadyTimeoutError(SandboxError):
    """A process did not get ready in time."""


class ProcessExitedBeforeReadyError(SandboxError):
    """A process ended before it was ready."""


class SessionAlreadyExistsError(SandboxError):
    """A session of that name lives already."""


class SessionDestroyedError(SandboxError):
    """The session was deleted while a command ran."""


class SessionTerminatedError(SandboxError):
    """The shell of the session ended; the next command gets a new one."""


class PortError(SandboxError):
    """An operation on a port failed."""


class PortAlreadyExposedError(PortError):
    """A port is exposed already."""


class PortNotExposedError(PortError):
    """A port is not exposed."""


class InvalidPortError(PortError):
    """A port cannot be exposed."""


class PortInUseError(PortError):
    """A token belongs to another port."""


class ServiceNotRespondingError(PortError):
    """Nothing answers on a port."""


class GitError(SandboxError):
    """A git operation failed."""


class GitRepositoryNotFoundError(GitError):
    """The repository does not exist."""


class GitAuthenticationError(GitError):
    """The server wants other credentials."""


class GitBranchNotFoundError(GitError):
    """The branch does not exist."""


class GitNetworkError(GitError):
    """The server cannot be reached, or took too long."""


class GitCloneError(GitError):
    """Cloning failed."""


class GitCheckoutError(GitError):
    """Checking out failed."""


class InvalidGitUrlError(SandboxError):
    """That is no URL of a repository."""


class InterpreterNotReadyError(SandboxError):
    """No interpreter is ready yet, or the image has none."""


class ContextNotFoundError(SandboxError):
    """No context has that id."""


class CodeExecutionError(SandboxError):
    """Code could not be run."""


class BackupNotFoundError(SandboxError):
    """No backup has that id."""


class ValidationFailedError(SandboxError):
    """The server refused what the request says."""


class ContainerUnavailableError(SandboxError):
    """The server cannot be reached, or cannot start the sandbox now. Try again."""


class RPCTransportError(SandboxError):
    """The connection broke, or what came through it is not ours."""


class OperationInterruptedError(SandboxError):
    """The operation was cut off; its outcome is not known."""


#: The class of each code.
ERROR_CLASSES: Mapping[str, type[SandboxError]] = {
    "SANDBOX_NOT_FOUND": SandboxNotFoundError, "SANDBOX_ALREADY_EXISTS": SandboxAlreadyExistsError,
    "UNAUTHORIZED": UnauthorizedError, "LIMIT_REACHED": LimitReachedError,
    "FILE_NOT_FOUND": FileNotFoundError, "FILE_EXISTS": FileExistsError, "FILE_TOO_LARGE": FileTooLargeError,
    "PERMISSION_DENIED": PermissionDeniedError, "IS_DIRECTORY": FileSystemError, "NOT_DIRECTORY": FileSystemError,
    "NAME_TOO_LONG": FileSystemError, "READ_ONLY": FileSystemError, "NO_SPACE": FileSystemError,
    "DISK_FULL": FileSystemError, "TOO_MANY_FILES": FileSystemError, "TOO_MANY_LINKS": FileSystemError,
    "FILESYSTEM_ERROR": FileSystemError,
    "COMMAND_NOT_FOUND": CommandNotFoundError, "COMMAND_PERMISSION_DENIED": CommandError,
    "INVALID_COMMAND": CommandError, "COMMAND_EXECUTION_ERROR": CommandError, "STREAM_START_ERROR": CommandError,
    "PROCESS_NOT_FOUND": ProcessNotFoundError, "PROCESS_PERMISSION_DENIED": ProcessError, "PROCESS_ERROR": ProcessError,
    "PROCESS_READY_TIMEOUT": ProcessReadyTimeoutError, "PROCESS_EXITED_BEFORE_READY": ProcessExitedBeforeReadyError,
    "SESSION_ALREADY_EXISTS": SessionAlreadyExistsError, "SESSION_DESTROYED": SessionDestroyedError,
    "SESSION_TERMINATED": SessionTerminatedError,
    "PORT_ALREADY_EXPOSED": PortAlreadyExposedError, "PORT_NOT_EXPOSED": PortNotExposedError,
    "INVALID_PORT": InvalidPortError, "INVALID_PORT_NUMBER": InvalidPortError, "PORT_IN_USE": PortInUseError,
    "SERVICE_NOT_RESPONDING": ServiceNotRespondingError, "PORT_OPERATION_ERROR": PortError,
    "GIT_REPOSITORY_NOT_FOUND": GitRepositoryNotFoundError, "GIT_AUTH_FAILED": GitAuthenticationError,
    "GIT_BRANCH_NOT_FOUND": GitBranchNotFoundError, "GIT_NETWORK_ERROR": GitNetworkError,
    "INVALID_GIT_URL": InvalidGitUrlError, "GIT_CLONE_FAILED": GitCloneError,
    "GIT_CHECKOUT_FAILED": GitCheckoutError, "GIT_OPERATION_FAILED": GitError,
    "INTERPRETER_NOT_READY": InterpreterNotReadyError, "PYTHON_NOT_AVAILABLE": InterpreterNotReadyError,
    "JAVASCRIPT_NOT_AVAILABLE": InterpreterNotReadyError,
    "CONTEXT_NOT_FOUND": ContextNotFoundError, "CODE_EXECUTION_ERROR": CodeExecutionError,
    "BACKUP_NOT_FOUND": BackupNotFoundError,
    "VALIDATION_FAILED": ValidationFailedError, "CONTAINER_UNAVAILABLE": ContainerUnavailableError,
    "RPC_TRANSPORT_ERROR": RPCTransportError, "OPERATION_INTERRUPTED": OperationInterruptedError,
}


def error_from(body: Mapping[str, Any], status: int) -> SandboxError:
    """The error of a response's body; also of an `error` event of a stream."""
    code = str(body.get("code") or "UNKNOWN_ERROR")
    context = body.get("context")
    hint = body.get("suggestion")
    kind = ERROR_CLASSES.get(code, SandboxError)
    return kind(str(body.get("message") or body.get("error") or code), code=code, status=status,
                context=context if isinstance(context, Mapping) else None,
                hint=hint if isinstance(hint, str) else None)
