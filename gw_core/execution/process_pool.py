"""Run tasks in processes of their own, which can be killed and do not hold up the worker's threads."""

from __future__ import annotations

import ast
import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never

from gw_core.domain.errors import GraphileWorkerError, TaskLoadError
from gw_core.domain.job.cancellation import StopReason
from gw_core.domain.rules.plugins import Skip
from gw_core.domain.rules.supervision import exit_description
from gw_core.execution.child_process import LeaderProcess
from gw_core.execution.daemon_executor import DaemonExecutor
from gw_core.execution.executor import items_of
from gw_core.execution.process_groups import GROUPS
from gw_core.execution.process_protocol import (
    FROM_PROCESS,
    MAIN_OF_TASKS,
    Add,
    AddedMessage,
    Channel,
    ChannelClosedError,
    FinishedMessage,
    GarbledMessageError,
    LogMessage,
    ModuleTask,
    PasswordMessage,
    ReadPassword,
    RunJob,
    Setup,
    StartedMessage,
    StopJob,
    TaskLocation,
    error_of,
    failure_of,
    given_of,
)
from gw_core.execution.signature import Invoke
from gw_core.runtime import forks
from gw_core.runtime.loggers import JOB_LOGGER
from gw_core.runtime.signals import ENDING, blocked

if TYPE_CHECKING:
    from gw_core.domain.job.job import Job
    from gw_core.execution.context import JobContext
    from gw_core.postgres.connection.database import Database

KILL_AFTER: Final = timedelta(seconds=1)
"""How long a task may take to end once nothing it does will count, before its process and group are killed."""

KEPT_IDLE: Final = timedelta(seconds=60)
"""How long a process without work is kept for the next job."""

_TICK: Final = 0.2
"""Seconds between two checks whether the job should stop."""

_END: Final = 1.0
"""Seconds an idle process may take to end before it is killed."""

UNGUARDED: Final = (
    "the process of an isolated task runs this program again from its first line; start the worker below "
    "if __name__ == '__main__':"
)

_BOOTSTRAP: Final = "import sys; sys.path[:] = {path!r}; from gw_core.processes.task_process import serve; serve({pid})"


class IsolatedProcessError(GraphileWorkerError):
    """The process in which a task ran ended before the task did: killed, crashed, or ended by the task itself."""


def compose_isolated(location: Callable[[], TaskLocation], *, keeps_result: bool = False) -> Invoke:
    """Return the call that runs a task in a process of its own; `location` is asked at each run."""
    return lambda job, context: run_isolated(location(), job, context, keeps_result=keeps_result)


def run_isolated(location: TaskLocation, job: Job, context: JobContext, *, keeps_result: bool = False) -> object:
    """Run the task to its end in another process, and return or raise what it came to.

    The task is notified when the job should stop. One second after its result can no longer be recorded, its process
    and its children are killed. Raises `IsolatedProcessError` when the process ends before the task.
    """
    while True:
        process, is_fresh = PROCESSES.acquire(location, context)
        session = _ProcessSession(process, context)
        try:
            ended = session.until_the_end(
                RunJob(
                    location,
                    job,
                    context.worker_id,
                    context.thread_name,
                    context.logger.getEffectiveLevel(),
                    keeps_result,
                )
            )
        except ChannelClosedError:
            how = process.end()
            if is_fresh or session.has_begun or context.should_stop.forced:
                raise IsolatedProcessError(f"the task's process {how}") from None
            continue  # it died while it had nothing to do; the task never began
        except BaseException as error:
            process.kill()
            process.end()
            if isinstance(error, GarbledMessageError):
                raise IsolatedProcessError(f"the task's process wrote to the worker's own line: {error}") from None
            raise
        if context.should_stop.forced:
            process.kill()
            process.end()
        else:
            PROCESSES.release(process)
        return _result(ended, job)


def module_home(function: Any) -> TaskLocation:
    """Return where another process finds a function of a module; raises `TaskLoadError` when it could not."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(str(module))
    for step in name.split("."):
        found = getattr(found, step, None)
    if module == MAIN_OF_TASKS:
        raise TaskLoadError(UNGUARDED)  # a process of a task loads the program, which starts a worker
    plain = getattr(function, "function", function)
    if found is None or module is None or (found is not function and found is not plain):
        raise TaskLoadError(
            f"an isolated process cannot find {name or repr(function)} of {module}; define it with def at the top of "
            "a module under its own name, or load the registry with --app"
        )
    if found is not function and "retry" in function._run_options:
        raise TaskLoadError(f"an isolated process cannot find the retry rules of {name}; write @task above its def")
    return ModuleTask(module, name, _main() if module == "__main__" else None)


def _main() -> tuple[str, str]:
    main = sys.modules["__main__"]
    file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if file is None:
        raise TaskLoadError("an isolated process cannot find what was typed into an interactive session; use a module")
    if not _is_guarded(Path(file)):
        raise TaskLoadError(UNGUARDED)
    return ("file", str(file)) if spec is None else ("module", str(spec.name))


def _is_guarded(file: Path) -> bool:
    """Return whether a program has statements for its start only; true if its source is missing."""
    try:
        statements = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return True
    tests = [each.test for each in statements if isinstance(each, ast.If)]
    return any(isinstance(node, ast.Name) and node.id == "__name__" for test in tests for node in ast.walk(test))


def _result(ended: FinishedMessage, job: Job) -> object:
    if ended.failure is not None:
        raise error_of(ended.failure)
    if not ended.items:
        return ended.result
    # As the task returned it: the executor keeps the items that failed.
    return [error_of(ended.items[n]) if n in ended.items else None for n in range(len(items_of(job.payload_json)))]


# -- one process -----------------------------------------------------------------------------------------------------


class IsolatedProcess(LeaderProcess):
    """A process that runs one job at a time."""

    def __init__(self, program: object, setup: Setup) -> None:
        self.program = program
        """What it has loaded; it can run other tasks of the same."""
        self.setup = setup
        self.idle_since = 0.0
        own_end, child_end = Pipe()
        self.line = Channel(own_end, FROM_PROCESS)
        GROUPS.start()
        with child_end, blocked(ENDING):  # until the process handles them, see `task_process.serve`
            process = subprocess.Popen(  # noqa: S603 - our own module in our own interpreter, without a shell
                [
                    sys.executable,
                    "-c",
                    _BOOTSTRAP.format(path=sys.path, pid=os.getpid()),
                    "gw isolated task",
                ],
                stdin=child_end.fileno(),
                # A session, and so a group, of its own: it can be killed with all it started, and Ctrl-C is ours.
                start_new_session=True,
            )
        super().__init__(process)
        GROUPS.add(self)
        with contextlib.suppress(ChannelClosedError):  # the next message to it fails as well
            self.line.send(setup)

    def end(self) -> str:
        """Close the channel, wait for the exit, and describe it."""
        self.line.close()
        deadline = time.monotonic() + _END
        while (exit_code := self.exit_code()) is None:
            if time.monotonic() > deadline:
                self.kill()
            time.sleep(0.002)
        self.kill_leftovers()
        GROUPS.remove(self)
        return exit_description(exit_code)


class _ProcessSession:
    """One job: receives the process's messages and forwards stop requests, all in the worker's thread."""

    def __init__(self, process: IsolatedProcess, context: JobContext) -> None:
        self._process = process
        self._line = process.line
        self._context = context
        self._sent_stop: StopJob | None = None
        self.has_begun = False

    def until_the_end(self, order: RunJob) -> FinishedMessage:
        """Return how the job ended; raises `ChannelClosedError` when the process is gone first."""
        stop = self._context.should_stop
        stop.on_force = self._kill_soon
        try:
            if stop.forced:
                self._kill_soon()
            return self._received(order)
        finally:
            stop.on_force = None

    def _received(self, order: RunJob) -> FinishedMessage:
        self._line.send(order)
        while True:
            message = self._line.receive(_TICK)
            self._check_stop()
            match message:
                case None:
                    continue
                case StartedMessage():
                    self.has_begun = True
                case LogMessage():
                    self._log(message)
                case Add():
                    self._line.send(self._added(message))
                case ReadPassword():
                    self._line.send(self._password())
                case FinishedMessage():
                    if message.has_steps:
                        self._context._note_steps()
                    return message
                case _:
                    assert_never(message)

    def _check_stop(self) -> None:
        stop, request = self._context.should_stop, None
        if stop.is_set():
            request = StopJob(stop.forced, stop.reason or StopReason.SHUTDOWN, stop.keeps_attempts)
        elif self._context.is_stopping:
            request = StopJob()
        if request is not None and request != self._sent_stop:
            self._sent_stop = request
            self._line.send(request)

    def _kill_soon(self) -> None:
        # Not in this thread, which waits for the rest of a message when the process has sent the first part.
        timer = threading.Timer(KILL_AFTER.total_seconds(), self._process.kill)
        timer.daemon = True
        timer.start()

    def _log(self, message: LogMessage) -> None:
        """Log a record of the task's process as this process's own, with the fields of the job."""
        adapter = self._context.logger
        logger = adapter.logger if message.logger == JOB_LOGGER else logging.getLogger(message.logger)
        if logger.isEnabledFor(message.level):
            error = None if message.failure is None else error_of(message.failure)
            fields = {**message.fields, **(adapter.extra or {})}
            logger.handle(
                logger.makeRecord(
                    logger.name,
                    message.level,
                    "(isolated task)",
                    0,
                    "%s",
                    (message.message,),
                    None if error is None else (type(error), error, error.__traceback__),
                    extra=fields,
                )
            )

    def _added(self, order: Add) -> AddedMessage:
        try:
            specs = [given_of(spec) for spec in order.specs]
            if order.together:
                return AddedMessage(ids=self._context.add_many(specs))
            added = self._context.try_add(specs[0])
            return AddedMessage(skipped=added.reason) if isinstance(added, Skip) else AddedMessage(job=added)
        except Exception as error:  # noqa: BLE001 - it is raised again in the task
            return AddedMessage(failure=failure_of(error))

    def _password(self) -> PasswordMessage:
        try:
            return PasswordMessage(self._context.database.read_password())
        except Exception as error:  # noqa: BLE001 - it is raised again in the task
            return PasswordMessage(failure=failure_of(error))


# -- all processes ---------------------------------------------------------------------------------------------------


class ProcessPool:
    """The isolated processes of this process: each runs one job at a time, and stays idle for a while for the next.

    `_lock` guards `_idle`. Processes are started by threads that live as
    long as this process: the system ends a process with the thread that started it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[IsolatedProcess] = []
        self._starters = DaemonExecutor("gw-isolation")
        forks.abandon_in_children(self)

    def acquire(self, location: TaskLocation, context: JobContext) -> tuple[IsolatedProcess, bool]:
        """Return a process for the job, and whether it was started for it."""
        setup = _setup(context.database)
        while True:
            with self._lock:
                found = next(
                    (each for each in reversed(self._idle) if (each.program, each.setup) == (location.program, setup)),
                    None,
                )
                if found is not None:
                    self._idle.remove(found)
            if found is None:
                return self._started(location, setup), True
            if found.exit_code() is None:
                return found, False
            found.end()

    def release(self, process: IsolatedProcess) -> None:
        """Keep a process for the next job; end those that have been idle for too long."""
        now = time.monotonic()
        process.idle_since = now
        with self._lock:
            self._idle.append(process)
            old = [each for each in self._idle if now - each.idle_since > KEPT_IDLE.total_seconds()]
        for each in old:
            self._end_if_idle(each)

    def end_idle(self) -> None:
        """End those that have nothing to do."""
        with self._lock:
            idle = list(self._idle)
        for each in idle:
            self._end_if_idle(each)

    def abandon(self) -> None:
        """In a forked child: these processes are the parent's."""
        self._lock = threading.Lock()
        self._idle = []
        self._starters = DaemonExecutor("gw-isolation")

    def _started(self, location: TaskLocation, setup: Setup) -> IsolatedProcess:
        try:
            return self._starters.submit(IsolatedProcess, location.program, setup).result()
        except OSError as error:
            raise IsolatedProcessError(f"no process can be started for the task: {error.strerror or error}") from error

    def _end_if_idle(self, process: IsolatedProcess) -> None:
        with self._lock:
            if process not in self._idle:
                return
            self._idle.remove(process)
        process.end()


@lru_cache(maxsize=8)
def _setup(database: Database) -> Setup:
    """Return what a process needs to reach the database; cached, because libpq parses a connection string slowly."""
    conninfo = database.conninfo_without_password("task")
    return Setup(conninfo, database.schema, database.prepared_statements, database.password is not None)


PROCESSES: Final = ProcessPool()
"""Those of this process."""
