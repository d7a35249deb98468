"""What a worker and its isolated processes say to each other, and how it travels."""

from __future__ import annotations

import select
import threading
from collections.abc import Mapping
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from gw_core.domain import errors as known_errors
from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.cancellation import StopReason
from gw_core.domain.job.history import EncodedResult
from gw_core.domain.job.job import Job, JobSpec, encode_payload
from gw_core.domain.job.outcome import GiveUp, RetryAfter, Snooze, error_message, error_type_of, storable, traceback_of
from gw_core.domain.rules.retry_rules import DECIDED
from gw_core.execution.error_details import DETAILS, error_details
from gw_core.runtime import forks

Plain = str | int | float | bool | None

# -- where a function is ---------------------------------------------------------------------------------------------


class FileTask(msgspec.Struct, frozen=True, tag=True):
    """In a file of a task folder, as it was when the folder was read for the `reading`th time."""

    root: str
    path: str
    identifier: str
    reading: int

    @property
    def program(self) -> tuple[object, ...]:
        """What a process has loaded that can run this; others of the same program share the process."""
        return (self.root, self.reading)


class AppTask(msgspec.Struct, frozen=True, tag=True):
    """In the registry that `--app` names."""

    spec: str
    identifier: str

    @property
    def program(self) -> tuple[object, ...]:
        return (self.spec,)


MAIN_OF_TASKS: Final = "__mp_main__"
"""The name of the worker's main module in the process of a task, as in `multiprocessing`."""


class ModuleTask(msgspec.Struct, frozen=True, tag=True):
    """At the top of a module; `main` is how the program was started when the module is the main one."""

    module: str
    name: str
    main: tuple[str, str] | None = None

    @property
    def program(self) -> tuple[object, ...]:
        return (self.module, self.main)


TaskLocation = FileTask | AppTask | ModuleTask
"""Where another process finds the function of a task."""


# -- errors ----------------------------------------------------------------------------------------------------------


class Failure(msgspec.Struct, frozen=True):
    """An exception, as far as it can leave its process."""

    kind: str
    """Its class, as history has it."""
    message: str
    meaning: str | None = None
    """What it requests from the worker: the name of `GiveUp`, `RetryAfter`, `Snooze` or `SystemExit`."""
    arguments: tuple[Plain, ...] = ()
    """Those of the exception that requests it."""
    trace: str = ""
    details: str = ""
    """What `last_error` contains after the message."""
    retried: float | bool | None = None
    """The delay of the next attempt as the rules of the task decided; False for none, None without a rule."""


class IsolatedTaskError(Exception):
    """Stands for what a task raised in a process of its own: its class has that class's name and module.

    The traceback of the other process is the text of its cause.
    """


class RemoteError(Exception):
    """The traceback of an exception in another process, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


_REQUESTS: Final[Mapping[str, type[BaseException]]] = {
    each.__name__: each for each in (GiveUp, RetryAfter, Snooze, SystemExit)
}


def failure_of(error: BaseException, *, delay: timedelta | None = None, permanent: bool = False) -> Failure:
    """Return what the protocol transfers of an exception, with what the rules of its task decided."""
    text = str(error) if isinstance(error, Snooze) else error_message(error)
    message = storable(text.removeprefix(type(error).__name__).removeprefix(": "))
    meaning = next((name for name, each in _REQUESTS.items() if isinstance(error, each)), None)
    arguments: tuple[Plain, ...] = (message,)
    if isinstance(error, RetryAfter | Snooze):
        arguments = (error.delay.total_seconds(), message)
    elif isinstance(error, SystemExit):
        code = error.code
        arguments = (code if isinstance(code, int | None) else storable(code if isinstance(code, str) else repr(code)),)
    decided = False if permanent else None if delay is None else delay.total_seconds()
    kind, details = error_type_of(error), storable(error_details(error))
    return Failure(kind, message, meaning, arguments, traceback_of(error), details, decided)


def error_of(failure: Failure) -> BaseException:
    """Return the exception that stands for a failure, ready to be raised."""
    error: BaseException
    if failure.meaning is None:
        module, _, name = failure.kind.rpartition(".")
        error = type(name, (IsolatedTaskError,), {"__module__": module})(failure.message)
        seconds = failure.retried
        decided = GiveUp if seconds is False else None if seconds is None else timedelta(seconds=seconds)
        setattr(error, DECIDED, decided)
    else:
        error = _REQUESTS[failure.meaning](*failure.arguments)
    setattr(error, DETAILS, failure.details)
    if failure.trace:
        error.__cause__ = RemoteError(failure.trace)
    return error


def our_error_of(failure: Failure) -> Exception:
    """Return the exception for what a method of ours raised in the other process; of its class, where that is ours."""
    name = failure.kind.rpartition(".")[2]
    kind = getattr(known_errors, name, None)
    if isinstance(kind, type) and issubclass(kind, GraphileWorkerError):
        return kind(failure.message)
    return GraphileWorkerError(f"{name}: {failure.message}")


# -- a job to add ----------------------------------------------------------------------------------------------------


Spec = dict[str, Any]
"""The fields of a `JobSpec`: its payload as JSON text, and times that count from now in seconds."""


def spec_of(given: JobSpec) -> Spec:
    """Return what travels of a job to add."""
    fields = {
        name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in vars(given).items()
    }
    return {**fields, "payload": encode_payload(given.payload)}


def given_of(spec: Spec) -> JobSpec:
    """Return the job to add."""
    payload = msgspec.json.decode(spec["payload"])
    fields = {name: timedelta(seconds=value) if isinstance(value, float) else value for name, value in spec.items()}
    given = JobSpec(**{**fields, "payload": payload})
    return given if payload is not None else given.with_payload(msgspec.Raw(b"null"))  # without a payload it is {}


# -- messages of the worker ------------------------------------------------------------------------------------------


@hides("conninfo")
class Setup(msgspec.Struct, frozen=True, tag=True):
    """The first message: how the task can reach the database. Not on the command line, because it has a password."""

    conninfo: str
    """Without a password that can change: the process asks for that with `ReadPassword`."""
    schema: str
    prepared_statements: bool
    asks_password: bool


class RunJob(msgspec.Struct, frozen=True, tag=True):
    """Run this job."""

    location: TaskLocation
    job: Job
    worker_id: str
    thread_name: str
    level: int
    """The lowest level of log records that the worker writes."""
    keeps_result: bool = False
    """Whether history keeps what the task returns."""


class StopJob(msgspec.Struct, frozen=True, tag=True):
    """The job should end, and why; when `forced`, nothing it still does will count.

    Without a reason, the worker stops and the job may go on: its next step ends it. With `keeps_attempts`, a cancelled
    job is tried again.
    """

    forced: bool = False
    reason: StopReason | None = None
    keeps_attempts: bool = False


class AddedMessage(msgspec.Struct, frozen=True, tag=True):
    """What became of jobs to add; without a job, why a plugin skipped it."""

    job: Job | None = None
    skipped: str = ""
    ids: list[int] = []
    failure: Failure | None = None


@hides("password")
class PasswordMessage(msgspec.Struct, frozen=True, tag=True):
    """The current password of the database, or why it cannot be read."""

    password: str = ""
    failure: Failure | None = None


# -- messages of the process -----------------------------------------------------------------------------------------


class StartedMessage(msgspec.Struct, frozen=True, tag=True):
    """The job begins now; what was sent before cannot have run."""


class LogMessage(msgspec.Struct, frozen=True, tag=True):
    """A log record: its logger, level, message and fields, and the exception it carries."""

    logger: str
    level: int
    message: str
    fields: Mapping[str, Plain]
    failure: Failure | None = None


@hides("specs")
class Add(msgspec.Struct, frozen=True, tag=True):
    """Add these jobs and answer."""

    specs: list[Spec]
    together: bool


class ReadPassword(msgspec.Struct, frozen=True, tag=True):
    """Read the current password of the database and answer; for each new connection."""


class FinishedMessage(msgspec.Struct, frozen=True, tag=True):
    """The job has ended; with `items` those of a batch that failed, by index."""

    failure: Failure | None = None
    items: dict[int, Failure] = {}
    result: EncodedResult | None = None
    """What the task returned, if that is kept."""
    has_steps: bool = False


Answer = AddedMessage | PasswordMessage
ToProcess = Setup | RunJob | StopJob | Answer
FromProcess = StartedMessage | LogMessage | Add | ReadPassword | FinishedMessage


# -- how it travels --------------------------------------------------------------------------------------------------

MAX_MESSAGE_BYTES: Final = 1 << 29
"""Bytes; text that a task writes to the connection by mistake reads as the length of a longer message."""

_encode: Final = msgspec.msgpack.Encoder().encode
TO_PROCESS: Final = msgspec.msgpack.Decoder(ToProcess)
FROM_PROCESS: Final = msgspec.msgpack.Decoder(FromProcess)


class ChannelClosedError(Exception):
    """The other end of the channel is closed."""


class GarbledMessageError(GraphileWorkerError):
    """The received bytes are not a message."""


class Channel:
    """One end of the channel. Several threads may send, one receives."""

    def __init__(self, end: Connection, decoder: msgspec.msgpack.Decoder[Any]) -> None:
        self._end = end
        # `Connection.poll` makes a selector for each call, and a job took twice as long with it.
        self._ready = select.poll()
        self._ready.register(end, select.POLLIN)
        forks.close_in_children(end)  # otherwise the other side would not notice our exit while a child lives
        self._decoder = decoder
        self._sending = threading.Lock()  # keeps the messages of two threads apart
        self._is_abandoned = False
        forks.abandon_in_children(self)

    def abandon(self) -> None:
        """In a forked child: the channel is the parent's, and a thread of the parent may hold its lock."""
        self._sending = threading.Lock()
        self._is_abandoned = True

    def send(self, message: ToProcess | FromProcess) -> None:
        """Send a message; raises `ChannelClosedError`, or `GraphileWorkerError` for one that is too long."""
        body = _encode(message)
        if len(body) > MAX_MESSAGE_BYTES:
            raise GraphileWorkerError(
                f"a message of {len(body)} bytes is too large for an isolated task; "
                f"the limit is {MAX_MESSAGE_BYTES} bytes"
            )
        if self._is_abandoned:  # its descriptor leads nowhere here, and accepts everything
            raise ChannelClosedError
        try:
            with self._sending:
                self._end.send_bytes(body)
        except OSError as error:
            raise ChannelClosedError from error

    def receive(self, timeout: float | None = None) -> Any:
        """Return the next message, or None when none came within `timeout` seconds.

        Raises `ChannelClosedError`, and `GarbledMessageError` when something else was written to the channel.
        """
        try:
            if timeout is not None and not self._ready.poll(timeout * 1000):
                return None
            return self._decoder.decode(self._end.recv_bytes(MAX_MESSAGE_BYTES))
        except msgspec.MsgspecError as error:
            raise GarbledMessageError(f"received no message but {error}") from None
        except (EOFError, OSError) as error:
            if not self._end.closed and not self._end.readable:  # after an impossible length
                raise GarbledMessageError("received data that is no message") from None
            raise ChannelClosedError from error

    def close(self) -> None:
        """Close this end."""
        self._end.close()


def plain_of(values: Mapping[str, object]) -> dict[str, Plain]:
    """Return the values as they can travel."""
    return {
        storable(str(key)): value if isinstance(value, int | float | bool | None) else storable(_text(value))
        for key, value in values.items()
    }


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - user code's __str__
        return f"({type(value).__name__})"
