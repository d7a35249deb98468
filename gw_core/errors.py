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
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
