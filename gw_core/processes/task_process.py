"""The process in which an isolated task runs: receives a job, runs it, reports the outcome."""

from __future__ import annotations

import importlib
import io
import logging
import os
import queue
import runpy
import signal
import sys
import threading
from collections.abc import Sequence
from contextvars import copy_context
from functools import cache
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, assert_never

from msgspec import structs

from gw_core.domain.errors import GraphileWorkerError, JobSkipped, TaskLoadError
from gw_core.domain.job.history import EncodedResult, HistoryOptions
from gw_core.domain.job.job import Job, JobSpec, job_specs
from gw_core.domain.job.outcome import Completed, Failed, Returned, Snooze, storable
from gw_core.domain.rules.plugins import Skip
from gw_core.execution.context import JobContext
from gw_core.execution.executor import BatchError, execute
from gw_core.execution.process_protocol import (
    MAIN_OF_TASKS,
    TO_PROCESS,
    Add,
    AddedMessage,
    Answer,
    AppTask,
    Channel,
    ChannelClosedError,
    FileTask,
    FinishedMessage,
    FromProcess,
    LogMessage,
    ModuleTask,
    PasswordMessage,
    ReadPassword,
    RunJob,
    Setup,
    StartedMessage,
    StopJob,
    TaskLocation,
    failure_of,
    our_error_of,
    plain_of,
    spec_of,
)
from gw_core.execution.signature import compose
from gw_core.execution.task import LoadedTask, called_function
from gw_core.runtime import forks
from gw_core.runtime.current_job import RUN
from gw_core.runtime.loggers import record_fields
from gw_core.runtime.signals import ENDING, Signals

if TYPE_CHECKING:
    from gw_core.postgres.connection.connections import ConnectionPool

MAX_CONNECTIONS: Final = 4
"""Connections a task may have open from its own process at the same time."""

_LOADED: Final[dict[TaskLocation, LoadedTask]] = {}


def serve(parent: int) -> None:
    """Run jobs for the worker at the other end of stdin until it hangs up."""
    end = Connection(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    _die_with(parent)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what a task prints appears while this process is kept
    # A signal that a service manager sends to every process is for the worker, which decides when the task ends.
    with Signals(lambda name: None):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)  # blocked since before this process was started
        _Server(Channel(end, TO_PROCESS)).serve()


def _die_with(parent: int) -> None:
    """End when the worker is killed, also while native code keeps every thread of ours from noticing."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


class _Server:
    """Receives in one thread and runs jobs in the main one; offers their contexts what `TaskResources` does.

    `_lock` guards `_context`, the job that runs, and `_connections`: two threads must not both make them.
    """

    logger = None
    steps = None
    loop = None
    results = None

    def __init__(self, line: Channel) -> None:
        self._line = line
        self._orders: queue.SimpleQueue[RunJob | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._asking = threading.Lock()  # one question at a time, or two threads would take each other's answers
        self._lock = threading.Lock()
        self._context: JobContext | None = None
        self._setup: Setup | None = None
        self._connections: ConnectionPool | None = None
        self._password: str | None = None
        self._stops = False
        self.with_steps: set[int] = set()
        self.adder = self
        forks.abandon_in_children(self)

    def abandon(self) -> None:
        """Replace a lock that a thread of the parent process may hold while it waits for an answer."""
        self._asking = threading.Lock()

    def serve(self) -> None:
        """Run what is asked for until the other end hangs up."""
        threading.Thread(target=self._receive, name="gw-line", daemon=True).start()
        logging.getLogger().addHandler(_ToWorker(self))
        logging.captureWarnings(True)
        while (order := self._orders.get()) is not None:
            self._run(order)

    # -- receiving ---------------------------------------------------------------------------------------------------

    def _receive(self) -> None:
        try:
            while True:
                self._take(self._line.receive())
        except ChannelClosedError:
            self._orders.put(None)
            with self._lock:
                is_busy = self._context is not None
            if is_busy:
                # The worker is gone, and nothing that the task still does will count.
                os.killpg(0, signal.SIGKILL)

    def _take(self, message: Any) -> None:
        match message:
            case Setup():
                self._setup = message
            case RunJob():
                self._stops = False
                self._orders.put(message)
            case StopJob():
                self._stop(message)
            case AddedMessage() | PasswordMessage():
                self._answers.put(message)
            case _:
                assert_never(message)

    def _stop(self, order: StopJob) -> None:
        self._stops = True
        with self._lock:
            context = self._context
        if context is not None and order.reason is not None:
            stop = context.should_stop
            stop.keeps_attempts = order.keeps_attempts
            (stop.force if order.forced else stop.set)(order.reason)

    def is_stopping(self) -> bool:
        """Return whether the worker stops, or the job should end."""
        return self._stops

    # -- running -----------------------------------------------------------------------------------------------------

    def _run(self, order: RunJob) -> None:
        context = JobContext(
            order.job,
            self,  # type: ignore[arg-type] # as far as a context needs
            worker_id=order.worker_id,
            thread_name=order.thread_name,
        )
        logging.getLogger().setLevel(order.level)
        with self._lock:
            self._context = context
        try:
            ended = copy_context().run(self._ended, order, context)
            self._line.send(structs.replace(ended, has_steps=order.job.id in self.with_steps))
        except ChannelClosedError:
            return
        finally:
            with self._lock:
                self._context = None

    def _ended(self, order: RunJob, context: JobContext) -> FinishedMessage:
        try:
            task = _loaded(order.location)
        except BaseException as error:  # noqa: BLE001 - whatever loading raises, sys.exit() included
            return FinishedMessage(failure_of(error))
        self._line.send(StartedMessage())
        RUN.set(context)
        if order.keeps_result:
            task = structs.replace(task, history=HistoryOptions(result=True))
        outcome = execute(order.job, task, context)
        match outcome:
            case Completed():
                kept = EncodedResult(outcome.result, outcome.result_error) if order.keeps_result else None
                return FinishedMessage(result=kept)
            case Returned():
                return FinishedMessage(failure_of(Snooze(outcome.delay, outcome.reason)))
            case Failed():
                return _failed(outcome)
            case _:
                assert_never(outcome)

    # -- for the context ---------------------------------------------------------------------------------------------

    def send(self, message: FromProcess) -> None:
        """Report to the worker; ignored when it is gone."""
        try:
            self._line.send(message)
        except ChannelClosedError:
            return

    def add(self, spec: JobSpec, *, conn: object | None = None) -> Job:
        """Let the worker add a job, past its plugins and events; raises `JobSkipped`."""
        added = self.try_add(spec, conn=conn)
        if isinstance(added, Skip):
            raise JobSkipped(added.reason)
        return added

    def try_add(self, spec: JobSpec, *, conn: object | None = None) -> Job | Skip:
        """Let the worker add a job, or return why a plugin skipped it."""
        added = self._added([spec], conn, together=False)
        return Skip(added.skipped) if added.job is None else added.job

    def add_many(self, specs: Sequence[JobSpec], *, conn: object | None = None) -> list[int]:
        """Let the worker add several jobs, all or none; returns their ids."""
        return self._added(specs, conn, together=True).ids

    def _added(self, specs: Sequence[JobSpec], conn: object, *, together: bool) -> AddedMessage:
        if conn is not None:
            raise GraphileWorkerError(
                "an isolated task's jobs are added by the worker's process, which cannot use a connection of this one; "
                "leave conn out, or call the schema's add_job() in your transaction"
            )
        added: AddedMessage = self._ask(Add([spec_of(spec) for spec in job_specs(specs)], together))
        return added

    def _ask(self, question: Add | ReadPassword) -> Any:
        """Return the worker's answer; raises the error it came to instead."""
        with self._asking:
            self._line.send(question)
            answer = self._answers.get()
        if answer.failure is not None:
            raise our_error_of(answer.failure)
        return answer

    @property
    def connections(self) -> ConnectionPool:
        """The connections of this process, made when a task first asks: most tasks in here compute."""
        from gw_core.postgres.connection.connections import ConnectionPool
        from gw_core.postgres.connection.database import Database

        setup = self._setup
        if setup is None:
            raise GraphileWorkerError("this process does not know how to reach the database")
        with self._lock:
            if self._connections is None:
                database = Database(
                    setup.conninfo,
                    schema=setup.schema,
                    prepared_statements=setup.prepared_statements,
                    password=self._read_password if setup.asks_password else None,
                )
                self._connections = ConnectionPool(database, max_size=MAX_CONNECTIONS, role="task")
            return self._connections

    def _read_password(self) -> str:
        """Return the database's current password; in a forked child, which has no channel, the last one."""
        try:
            self._password = self._ask(ReadPassword()).password
        except ChannelClosedError:
            if self._password is None:
                raise GraphileWorkerError(
                    "a process that an isolated task forks cannot ask for the password; connect before the fork"
                ) from None
        return self._password


def _failed(outcome: Failed) -> FinishedMessage:
    error = outcome.error
    if isinstance(error, BatchError):
        return FinishedMessage(items={index: failure_of(each) for index, each in error.errors.items()})
    return FinishedMessage(failure_of(error, delay=outcome.delay, permanent=outcome.permanent))


class _ToWorker(logging.Handler):
    """Passes log records to the worker."""

    def __init__(self, server: _Server) -> None:
        super().__init__()
        self._server = server

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record; its exception travels as a `Failure`."""
        try:
            error = record.exc_info[1] if record.exc_info else None
            failure = None if error is None else failure_of(error)
            fields = plain_of(record_fields(record))
            message = storable(record.getMessage())
            self._server.send(LogMessage(record.name, record.levelno, message, fields, failure))
        except Exception:  # noqa: BLE001 - logging must not fail the task
            self.handleError(record)


# -- loading ---------------------------------------------------------------------------------------------------------


def _loaded(home: TaskLocation) -> LoadedTask:
    """Return the task that runs in this process, loaded when it is first asked for."""
    if home not in _LOADED:
        found = _found(home)
        if found.function is None:
            raise TaskLoadError(f"the task {found.identifier!r} is not a function")
        _LOADED[home] = structs.replace(found, invoke=compose(called_function(found.function)), isolation=None)
    return _LOADED[home]


def _found(home: TaskLocation) -> LoadedTask:
    from gw_core.tasks import loading, references, registry

    match home:
        case FileTask():
            return loading.load_one(Path(home.path), Path(home.root), home.identifier)
        case AppTask():
            task = references.load_app(home.spec).get(home.identifier)
            if task is None:
                raise TaskLoadError(f"{home.spec} no longer defines task {home.identifier!r}")
            return task
        case ModuleTask():
            function = attrgetter(home.name)(_module(home))
            return registry.load_task(home.name, function, registry.named_task(home.name, function), home.module, _home)
        case _:
            assert_never(home)


def _home() -> TaskLocation:
    raise TaskLoadError("the task of this process runs in it")


def _module(home: ModuleTask) -> ModuleType:
    return importlib.import_module(home.module) if home.main is None else _main(*home.main)


@cache
def _main(kind: str, where: str) -> ModuleType:
    # Not as "__main__": what the program does when it is started must not happen again.
    run = runpy.run_module if kind == "module" else runpy.run_path
    main = ModuleType(MAIN_OF_TASKS)
    main.__dict__.update(run(where, run_name=MAIN_OF_TASKS))
    sys.modules["__main__"] = sys.modules[MAIN_OF_TASKS] = main
    return main
