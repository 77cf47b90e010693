// SPDX-License-Identifier: Apache-2.0
// Every error of a Silt server as a class, chosen by its `code`. Unknown codes are plain SandboxErrors.

/** The body of an error response. */
export interface ErrorResponse<C = Record<string, unknown>> {
	code: string;
	message: string;
	context: C;
	httpStatus: number;
	operation?: string;
	suggestion?: string;
	timestamp: string;
	documentation?: string;
}

/** An error that a server reported, or that the client found in its place. */
export class SandboxError<C = Record<string, any>> extends Error {
	/** The body of the response, as it came. */
	readonly errorResponse!: ErrorResponse<C>;

	constructor(body: ErrorResponse<C> | string, options?: ErrorOptions) {
		const whole = typeof body === 'string' ? { code: 'UNKNOWN_ERROR', message: body, context: {} as C, httpStatus: 500, timestamp: new Date().toISOString() } : body;
		super(whole.message, options);
		this.name = new.target.className ?? new.target.name;
		Object.defineProperty(this, 'errorResponse', { value: whole });
		Object.defineProperty(this, 'code', { value: whole.code, enumerable: true });
	}

	/** The name of the class; bundlers may rename classes. */
	static className = 'SandboxError';
	/** What happened, for programs. */
	readonly code!: string;
	/** Details, by code. */
	get context(): C { return this.errorResponse.context; }
	/** The HTTP status. */
	get status(): number { return this.errorResponse.httpStatus; }
	/** The HTTP status. */
	get httpStatus(): number { return this.errorResponse.httpStatus; }
	/** What to do about it, where the server knows. */
	get hint(): string | undefined { return this.errorResponse.suggestion; }
	/** What to do about it, where the server knows. */
	get suggestion(): string | undefined { return this.errorResponse.suggestion; }
	/** The operation that failed. */
	get operation(): string | undefined { return this.errorResponse.operation; }
	/** When it happened. */
	get timestamp(): string { return this.errorResponse.timestamp; }
	/** A page about it. */
	get documentation(): string | undefined { return this.errorResponse.documentation; }

	/** A plain object with all of the above. */
	toJSON(): Record<string, unknown> {
		return { name: this.name, ...this.errorResponse, stack: this.stack };
	}
}

/** @internal The field of the context that a getter shows. */
const from = (error: SandboxError, name: string): any => error.context?.[name];

/** A path does not exist. */
export class FileNotFoundError extends SandboxError { static override className = 'FileNotFoundError'; get path(): string { return from(this, 'path'); } }
/** A path exists already. */
export class FileExistsError extends SandboxError { static override className = 'FileExistsError'; get path(): string { return from(this, 'path'); } }
/** A file is too large to be read at once. */
export class FileTooLargeError extends SandboxError { static override className = 'FileTooLargeError'; get path(): string { return from(this, 'path'); } }
/** The user of the sandbox may not do that. */
export class PermissionDeniedError extends SandboxError { static override className = 'PermissionDeniedError'; get path(): string { return from(this, 'path'); } }
/** Another failure of a file operation. */
export class FileSystemError extends SandboxError {
	static override className = 'FileSystemError';
	get path(): string { return from(this, 'path'); }
	get stderr(): string | undefined { return from(this, 'stderr'); }
	get exitCode(): number | undefined { return from(this, 'exitCode'); }
}
/** A program does not exist. */
export class CommandNotFoundError extends SandboxError { static override className = 'CommandNotFoundError'; get command(): string { return from(this, 'command'); } }
/** A command could not be run, or ran out of time. */
export class CommandError extends SandboxError {
	static override className = 'CommandError';
	get command(): string { return from(this, 'command'); }
	get exitCode(): number | undefined { return from(this, 'exitCode'); }
	get stdout(): string | undefined { return from(this, 'stdout'); }
	get stderr(): string | undefined { return from(this, 'stderr'); }
}
/** No process has that id. */
export class ProcessNotFoundError extends SandboxError { static override className = 'ProcessNotFoundError'; get processId(): string { return from(this, 'processId') ?? from(this, 'process'); } }
/** A process could not be started or changed. */
export class ProcessError extends SandboxError {
	static override className = 'ProcessError';
	get processId(): string { return from(this, 'processId'); }
	get pid(): number | undefined { return from(this, 'pid'); }
	get exitCode(): number | undefined { return from(this, 'exitCode'); }
	get stderr(): string | undefined { return from(this, 'stderr'); }
}
/** A process did not get ready in time. */
export class ProcessReadyTimeoutError extends SandboxError {
	static override className = 'ProcessReadyTimeoutError';
	get processId(): string { return from(this, 'processId'); }
	get command(): string { return from(this, 'command'); }
	get condition(): string { return from(this, 'condition'); }
	get timeout(): number { return from(this, 'timeout'); }
}
/** A process ended before it was ready. */
export class ProcessExitedBeforeReadyError extends SandboxError {
	static override className = 'ProcessExitedBeforeReadyError';
	get processId(): string { return from(this, 'processId'); }
	get command(): string { return from(this, 'command'); }
	get condition(): string { return from(this, 'condition'); }
	get exitCode(): number { return from(this, 'exitCode'); }
}
/** A session of that name lives already. */
export class SessionAlreadyExistsError extends SandboxError {
	static override className = 'SessionAlreadyExistsError';
	get sessionId(): string { return from(this, 'sessionId'); }
	get containerPlacementId(): string | undefined { return from(this, 'containerPlacementId'); }
}
/** The session was deleted while a command ran. */
export class SessionDestroyedError extends SandboxError { static override className = 'SessionDestroyedError'; get sessionId(): string { return from(this, 'sessionId'); } }
/** The shell of the session ended; the next command gets a new one. */
export class SessionTerminatedError extends SandboxError {
	static override className = 'SessionTerminatedError';
	get sessionId(): string { return from(this, 'sessionId'); }
	get exitCode(): number | undefined { return from(this, 'exitCode'); }
}
/** An operation on a port failed. */
export class PortError extends SandboxError {
	static override className = 'PortError';
	get port(): number { return from(this, 'port'); }
	get portName(): string | undefined { return from(this, 'portName'); }
	get reason(): string | undefined { return from(this, 'reason'); }
	get stderr(): string | undefined { return from(this, 'stderr'); }
}
/** A port is exposed already. */
export class PortAlreadyExposedError extends PortError { static override className = 'PortAlreadyExposedError'; }
/** A port is not exposed. */
export class PortNotExposedError extends PortError { static override className = 'PortNotExposedError'; }
/** A port cannot be exposed. */
export class InvalidPortError extends PortError { static override className = 'InvalidPortError'; }
/** A token belongs to another port. */
export class PortInUseError extends PortError { static override className = 'PortInUseError'; }
/** Nothing answers on a port. */
export class ServiceNotRespondingError extends PortError { static override className = 'ServiceNotRespondingError'; }
/** Preview URLs cannot be below workers.dev. */
export class CustomDomainRequiredError extends PortError { static override className = 'CustomDomainRequiredError'; }
/** A git operation failed. */
export class GitError extends SandboxError {
	static override className = 'GitError';
	get repository(): string { return from(this, 'repository'); }
	get branch(): string | undefined { return from(this, 'branch'); }
	get targetDir(): string | undefined { return from(this, 'targetDir'); }
	get stderr(): string | undefined { return from(this, 'stderr'); }
	get exitCode(): number | undefined { return from(this, 'exitCode'); }
}
/** The repository does not exist. */
export class GitRepositoryNotFoundError extends GitError { static override className = 'GitRepositoryNotFoundError'; }
/** The server wants other credentials. */
export class GitAuthenticationError extends GitError { static override className = 'GitAuthenticationError'; }
/** The branch does not exist. */
export class GitBranchNotFoundError extends GitError { static override className = 'GitBranchNotFoundError'; }
/** The server cannot be reached, or took too long. */
export class GitNetworkError extends GitError { static override className = 'GitNetworkError'; }
/** Cloning failed. */
export class GitCloneError extends GitError { static override className = 'GitCloneError'; }
/** Checking out failed. */
export class GitCheckoutError extends GitError { static override className = 'GitCheckoutError'; }
/** That is no URL of a repository. */
export class InvalidGitUrlError extends SandboxError { static override className = 'InvalidGitUrlError'; get validationErrors(): unknown { return from(this, 'validationErrors'); } }
/** No interpreter is ready yet. */
export class InterpreterNotReadyError extends SandboxError {
	static override className = 'InterpreterNotReadyError';
	get retryAfter(): number | undefined { return from(this, 'retryAfter'); }
	get progress(): number | undefined { return from(this, 'progress'); }
}
/** No context has that id. */
export class ContextNotFoundError extends SandboxError { static override className = 'ContextNotFoundError'; get contextId(): string { return from(this, 'contextId') ?? from(this, 'context'); } }
/** Code could not be run. */
export class CodeExecutionError extends SandboxError {
	static override className = 'CodeExecutionError';
	get contextId(): string | undefined { return from(this, 'contextId'); }
	get ename(): string | undefined { return from(this, 'ename'); }
	get evalue(): string | undefined { return from(this, 'evalue'); }
	get traceback(): string[] | undefined { return from(this, 'traceback'); }
}
/** No backup has that id. */
export class BackupNotFoundError extends SandboxError { static override className = 'BackupNotFoundError'; get backupId(): string { return from(this, 'backupId'); } }
/** The backup is too old. */
export class BackupExpiredError extends SandboxError {
	static override className = 'BackupExpiredError';
	get backupId(): string { return from(this, 'backupId'); }
	get expiredAt(): string | undefined { return from(this, 'expiredAt'); }
}
/** A backup cannot be made that way. */
export class InvalidBackupConfigError extends SandboxError { static override className = 'InvalidBackupConfigError'; get reason(): string { return from(this, 'reason'); } }
/** Making a backup failed. */
export class BackupCreateError extends SandboxError {
	static override className = 'BackupCreateError';
	get dir(): string { return from(this, 'dir'); }
	get backupId(): string | undefined { return from(this, 'backupId'); }
}
/** Restoring a backup failed. */
export class BackupRestoreError extends SandboxError {
	static override className = 'BackupRestoreError';
	get dir(): string { return from(this, 'dir'); }
	get backupId(): string { return from(this, 'backupId'); }
}
/** The server refused what the request says. */
export class ValidationFailedError extends SandboxError { static override className = 'ValidationFailedError'; get validationErrors(): unknown { return from(this, 'validationErrors'); } }
/** The server cannot be reached, or cannot start the sandbox now. Try again. */
export class ContainerUnavailableError extends SandboxError {
	static override className = 'ContainerUnavailableError';
	get reason(): string { return from(this, 'reason'); }
	get retryAfterMs(): number | undefined { return from(this, 'retryAfterMs'); }
}
/** The connection broke, or what came through it is not ours. */
export class RPCTransportError extends SandboxError {
	static override className = 'RPCTransportError';
	get kind(): string { return from(this, 'kind'); }
	get originalMessage(): string | undefined { return from(this, 'originalMessage'); }
}
/** The operation was cut off; its outcome is not known. */
export class OperationInterruptedError extends SandboxError { static override className = 'OperationInterruptedError'; get reason(): string { return from(this, 'reason'); } }

/** Mounting a bucket failed. */
export class BucketMountError extends Error {
	readonly code: string;
	constructor(message: string, code = 'BUCKET_MOUNT_ERROR') {
		super(message);
		this.name = 'BucketMountError';
		this.code = code;
	}
}
/** Unmounting a bucket failed. */
export class BucketUnmountError extends BucketMountError { constructor(message: string) { super(message, 'BUCKET_UNMOUNT_ERROR'); this.name = 'BucketUnmountError'; } }
/** The program that mounts a bucket failed. */
export class S3FSMountError extends BucketMountError { constructor(message: string) { super(message, 'S3FS_MOUNT_ERROR'); this.name = 'S3FSMountError'; } }
/** No credentials for a bucket. */
export class MissingCredentialsError extends BucketMountError { constructor(message: string) { super(message, 'MISSING_CREDENTIALS'); this.name = 'MissingCredentialsError'; } }
/** A bucket cannot be mounted that way. */
export class InvalidMountConfigError extends BucketMountError { constructor(message: string) { super(message, 'INVALID_MOUNT_CONFIG'); this.name = 'InvalidMountConfigError'; } }

/** An argument that is refused before anything is sent. */
export class SandboxSecurityError extends Error {
	readonly code: string | undefined;
	constructor(message: string, code?: string) {
		super(message);
		this.name = 'SandboxSecurityError';
		this.code = code;
	}
}
/** An OpenCode server did not start. */
export class OpencodeStartupError extends Error {
	readonly code = 'OPENCODE_STARTUP_FAILED';
	readonly context: Record<string, unknown>;
	constructor(message: string, context: Record<string, unknown> = {}, options?: ErrorOptions) {
		super(message, options);
		this.name = 'OpencodeStartupError';
		this.context = context;
	}
}

type ErrorClass = new (body: ErrorResponse<any>, options?: ErrorOptions) => SandboxError;

/** The class of each code. */
export const ERROR_CLASSES: Readonly<Record<string, ErrorClass>> = {
	FILE_NOT_FOUND: FileNotFoundError, FILE_EXISTS: FileExistsError, FILE_TOO_LARGE: FileTooLargeError, PERMISSION_DENIED: PermissionDeniedError,
	IS_DIRECTORY: FileSystemError, NOT_DIRECTORY: FileSystemError, NAME_TOO_LONG: FileSystemError, READ_ONLY: FileSystemError, RESOURCE_BUSY: FileSystemError,
	NO_SPACE: FileSystemError, DISK_FULL: FileSystemError, TOO_MANY_FILES: FileSystemError, TOO_MANY_LINKS: FileSystemError, FILESYSTEM_ERROR: FileSystemError,
	COMMAND_NOT_FOUND: CommandNotFoundError, COMMAND_PERMISSION_DENIED: CommandError, INVALID_COMMAND: CommandError, COMMAND_EXECUTION_ERROR: CommandError, STREAM_START_ERROR: CommandError,
	PROCESS_NOT_FOUND: ProcessNotFoundError, PROCESS_PERMISSION_DENIED: ProcessError, PROCESS_ERROR: ProcessError,
	PROCESS_READY_TIMEOUT: ProcessReadyTimeoutError, PROCESS_EXITED_BEFORE_READY: ProcessExitedBeforeReadyError,
	SESSION_ALREADY_EXISTS: SessionAlreadyExistsError, SESSION_DESTROYED: SessionDestroyedError, SESSION_TERMINATED: SessionTerminatedError,
	PORT_ALREADY_EXPOSED: PortAlreadyExposedError, PORT_NOT_EXPOSED: PortNotExposedError, INVALID_PORT: InvalidPortError, INVALID_PORT_NUMBER: InvalidPortError,
	PORT_IN_USE: PortInUseError, SERVICE_NOT_RESPONDING: ServiceNotRespondingError, PORT_OPERATION_ERROR: PortError, CUSTOM_DOMAIN_REQUIRED: CustomDomainRequiredError,
	GIT_REPOSITORY_NOT_FOUND: GitRepositoryNotFoundError, GIT_AUTH_FAILED: GitAuthenticationError, GIT_BRANCH_NOT_FOUND: GitBranchNotFoundError, GIT_NETWORK_ERROR: GitNetworkError,
	INVALID_GIT_URL: InvalidGitUrlError, GIT_CLONE_FAILED: GitCloneError, GIT_CHECKOUT_FAILED: GitCheckoutError, GIT_OPERATION_FAILED: GitError,
	INTERPRETER_NOT_READY: InterpreterNotReadyError, CONTEXT_NOT_FOUND: ContextNotFoundError, CODE_EXECUTION_ERROR: CodeExecutionError,
	BACKUP_NOT_FOUND: BackupNotFoundError, BACKUP_EXPIRED: BackupExpiredError, INVALID_BACKUP_CONFIG: InvalidBackupConfigError,
	BACKUP_CREATE_FAILED: BackupCreateError, BACKUP_RESTORE_FAILED: BackupRestoreError,
	VALIDATION_FAILED: ValidationFailedError, CONTAINER_UNAVAILABLE: ContainerUnavailableError, RPC_TRANSPORT_ERROR: RPCTransportError, OPERATION_INTERRUPTED: OperationInterruptedError,
};

/** The error of a response's body; also of an `error` event of a stream. */
export function errorFrom(body: Partial<ErrorResponse> & { message?: string }, options?: ErrorOptions): SandboxError {
	const code = body.code ?? 'UNKNOWN_ERROR';
	const whole: ErrorResponse = { ...body, code, message: body.message ?? code, context: body.context ?? {}, httpStatus: body.httpStatus ?? 500, timestamp: body.timestamp ?? new Date().toISOString() };
	return new (ERROR_CLASSES[code] ?? SandboxError)(whole, options);
}

/** @internal An error that the client itself found. */
export function clientError(code: string, httpStatus: number, message: string, context: Record<string, unknown> = {}, suggestion?: string, cause?: unknown): SandboxError {
	return errorFrom({ code, httpStatus, message, context, ...(suggestion ? { suggestion } : {}) }, cause === undefined ? undefined : { cause });
}

const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error);

/** Whether a platform lost the connection to an object: the call may be made again. */
export function isPlatformTransientError(error: unknown): boolean {
	const flags = error as { retryable?: boolean; overloaded?: boolean } | undefined;
	return flags?.retryable === true && flags.overloaded !== true || isDurableObjectCodeUpdateReset(error)
		|| /network connection lost|internal error in durable object storage|durable object reset|cannot resolve durable object due to transient/i.test(messageOf(error));
}

/** Whether a new version of a Worker replaced its object. */
export function isDurableObjectCodeUpdateReset(error: unknown): boolean {
	return /durable object reset because its code was updated/i.test(messageOf(error));
}
