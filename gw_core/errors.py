"""Exceptions. Every exception that gw raises is a `GraphileWorkerError`."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.errors import (
        AuthenticationError as AuthenticationError,
        CrontabError as CrontabError,
        DatabaseError as DatabaseError,
        DatabaseUnavailableError as DatabaseUnavailableError,
        EmbeddedError as EmbeddedError,
        GraphileWorkerError as GraphileWorkerError,
        InvalidInputError as InvalidInputError,
        InvalidJobError as InvalidJobError,
        InvalidSettingError as InvalidSettingError,
        JobFailedError as JobFailedError,
        JobRejectedError as JobRejectedError,
        JobSkipped as JobSkipped,
        LockedJobsError as LockedJobsError,
        LockTimeoutError as LockTimeoutError,
        MigrationError as MigrationError,
        NoConnectionError as NoConnectionError,
        PermissionDeniedError as PermissionDeniedError,
        ReadOnlyError as ReadOnlyError,
        ResultError as ResultError,
        ResultTimeoutError as ResultTimeoutError,
        ResultUnavailableError as ResultUnavailableError,
        SchemaMissingError as SchemaMissingError,
        SchemaTooNewError as SchemaTooNewError,
        SchemaTooOldError as SchemaTooOldError,
        StatementTimeoutError as StatementTimeoutError,
        TaskLoadError as TaskLoadError,
        TransientDatabaseError as TransientDatabaseError,
    )
    from gw_core.domain.job.cancellation import JobCancelledError as JobCancelledError
    from gw_core.execution.executor import BatchError as BatchError
    from gw_core.execution.payloads import PayloadError as PayloadError
    from gw_core.execution.process_protocol import IsolatedTaskError as IsolatedTaskError
    from gw_core.selection.parser import SelectionError as SelectionError
    from gw_core.worker.timeouts import TaskTimeoutError as TaskTimeoutError
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.errors: AuthenticationError CrontabError DatabaseError DatabaseUnavailableError EmbeddedError
        gw_core.domain.errors: GraphileWorkerError InvalidInputError InvalidJobError InvalidSettingError
        gw_core.domain.errors: JobFailedError JobRejectedError JobSkipped LockTimeoutError LockedJobsError
        gw_core.domain.errors: MigrationError NoConnectionError PermissionDeniedError ReadOnlyError ResultError
        gw_core.domain.errors: ResultTimeoutError ResultUnavailableError SchemaMissingError SchemaTooNewError
        gw_core.domain.errors: SchemaTooOldError StatementTimeoutError TaskLoadError TransientDatabaseError
        gw_core.domain.job.cancellation: JobCancelledError
        gw_core.execution.executor: BatchError
        gw_core.execution.payloads: PayloadError
        gw_core.execution.process_protocol: IsolatedTaskError
        gw_core.selection.parser: SelectionError
        gw_core.worker.timeouts: TaskTimeoutError
        """,
    )
