"""Exceptions. Every exception that gw raises is a `GraphileWorkerError`."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.cron.crontab import CrontabLineError as CrontabLineError
    from gw_core.domain.errors import *
    from gw_core.domain.job.cancellation import JobCancelledError as JobCancelledError
    from gw_core.execution.executables import ExecutableError as ExecutableError
    from gw_core.execution.executor import BatchError as BatchError, TaskResultError as TaskResultError
    from gw_core.execution.payloads import PayloadError as PayloadError
    from gw_core.execution.process_pool import IsolatedProcessError as IsolatedProcessError
    from gw_core.execution.process_protocol import IsolatedTaskError as IsolatedTaskError
    from gw_core.selection.parser import SelectionError as SelectionError
    from gw_core.tasks.loading import TaskFileError as TaskFileError
    from gw_core.worker.timeouts import TaskTimeoutError as TaskTimeoutError
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.cron.crontab: CrontabLineError
        gw_core.domain.errors: GraphileWorkerError InvalidInputError InvalidJobError InvalidSettingError
        gw_core.domain.errors: JobRejectedError TaskLoadError PluginLoadError CrontabError ResultError JobFailedError
        gw_core.domain.errors: ResultTimeoutError ResultUnavailableError DatabaseError NoConnectionError
        gw_core.domain.errors: DatabaseUnavailableError AuthenticationError ConnectionSettingsError
        gw_core.domain.errors: PermissionDeniedError TransientDatabaseError DeadlockError LockTimeoutError
        gw_core.domain.errors: StatementTimeoutError ReadOnlyError SchemaMissingError EmbeddedError MigrationError
        gw_core.domain.errors: SchemaTooNewError SchemaTooOldError LockedJobsError ServerTooOldError
        gw_core.domain.job.cancellation: JobCancelledError
        gw_core.execution.executables: ExecutableError
        gw_core.execution.executor: BatchError TaskResultError
        gw_core.execution.payloads: PayloadError
        gw_core.execution.process_pool: IsolatedProcessError
        gw_core.execution.process_protocol: IsolatedTaskError
        gw_core.selection.parser: SelectionError
        gw_core.tasks.loading: TaskFileError
        gw_core.worker.timeouts: TaskTimeoutError
        """,
    )
