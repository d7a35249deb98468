from gw_core.domain.cancellation import JobCancelledError as JobCancelledError
from gw_core.domain.crontab import CrontabLineError as CrontabLineError
from gw_core.domain.errors import (
    AuthenticationError as AuthenticationError,
    ConnectionSettingsError as ConnectionSettingsError,
    CrontabError as CrontabError,
    DatabaseError as DatabaseError,
    DatabaseUnavailableError as DatabaseUnavailableError,
    DeadlockError as DeadlockError,
    EmbeddedError as EmbeddedError,
    GraphileWorkerError as GraphileWorkerError,
    InvalidInputError as InvalidInputError,
    InvalidJobError as InvalidJobError,
    InvalidSettingError as InvalidSettingError,
    JobFailedError as JobFailedError,
    JobRejectedError as JobRejectedError,
    LockedJobsError as LockedJobsError,
    LockTimeoutError as LockTimeoutError,
    MigrationError as MigrationError,
    NoConnectionError as NoConnectionError,
    PermissionDeniedError as PermissionDeniedError,
    PluginLoadError as PluginLoadError,
    ReadOnlyError as ReadOnlyError,
    ResultError as ResultError,
    ResultTimeoutError as ResultTimeoutError,
    ResultUnavailableError as ResultUnavailableError,
    SchemaMissingError as SchemaMissingError,
    SchemaTooNewError as SchemaTooNewError,
    SchemaTooOldError as SchemaTooOldError,
    ServerTooOldError as ServerTooOldError,
    StatementTimeoutError as StatementTimeoutError,
    TaskLoadError as TaskLoadError,
    TransientDatabaseError as TransientDatabaseError,
)
from gw_core.execution.executables import ExecutableError as ExecutableError
from gw_core.execution.executor import BatchError as BatchError, TaskResultError as TaskResultError
from gw_core.execution.payloads import PayloadError as PayloadError
from gw_core.execution.process_pool import IsolatedProcessError as IsolatedProcessError
from gw_core.execution.process_protocol import IsolatedTaskError as IsolatedTaskError
from gw_core.selection import SelectionError as SelectionError
from gw_core.tasks.loading import TaskFileError as TaskFileError
from gw_core.worker.timeouts import TaskTimeoutError as TaskTimeoutError
