"""Exceptions. Every exception that gw raises is a `GraphileWorkerError`."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.errors import (
        CrontabError as CrontabError,
        DatabaseError as DatabaseError,
        DatabaseUnavailableError as DatabaseUnavailableError,
        GraphileWorkerError as GraphileWorkerError,
        InvalidInputError as InvalidInputError,
        InvalidJobError as InvalidJobError,
        InvalidSettingError as InvalidSettingError,
        JobFailedError as JobFailedError,
        JobRejectedError as JobRejectedError,
        JobSkipped as JobSkipped,
        MigrationError as MigrationError,
        PermissionDeniedError as PermissionDeniedError,
        ResultError as ResultError,
        ResultTimeoutError as ResultTimeoutError,
        ResultUnavailableError as ResultUnavailableError,
        SchemaMissingError as SchemaMissingError,
        TransientDatabaseError as TransientDatabaseError,
    )
    from gw_core.domain.job.cancellation import JobCancelledError as JobCancelledError
    from gw_core.execution.executor import BatchError as BatchError
    from gw_core.execution.payloads import PayloadError as PayloadError
    from gw_core.selection.parser import SelectionError as SelectionError
    from gw_core.worker.timeouts import TaskTimeoutError as TaskTimeoutError
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.errors: CrontabError DatabaseError DatabaseUnavailableError GraphileWorkerError InvalidInputError
        gw_core.domain.errors: InvalidJobError InvalidSettingError JobFailedError JobRejectedError JobSkipped
        gw_core.domain.errors: MigrationError PermissionDeniedError ResultError ResultTimeoutError
        gw_core.domain.errors: ResultUnavailableError SchemaMissingError TransientDatabaseError
        gw_core.domain.job.cancellation: JobCancelledError
        gw_core.execution.executor: BatchError
        gw_core.execution.payloads: PayloadError
        gw_core.selection.parser: SelectionError
        gw_core.worker.timeouts: TaskTimeoutError
        """,
    )
