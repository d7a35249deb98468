"""A task: a function whose calls can be jobs, and what a worker runs for them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, Self, TypeVar, Unpack, overload

import msgspec

from gw_core.domain.errors import InvalidJobError
from gw_core.domain.job.history import NO_OPTIONS, HistoryOptions
from gw_core.domain.job.job import JobOptions, JobSpec, encode_payload
from gw_core.domain.job.task_of_function import TASKS
from gw_core.domain.rules.retry_rules import RetryRules
from gw_core.execution.functions import is_coroutine_function, plain_function, result_reader
from gw_core.execution.payloads import PLAIN, PayloadError, PayloadReader
from gw_core.execution.signature import Invoke, payload_reader

if TYPE_CHECKING:
    from gw_core.execution.context import JobContext, TakesContextByName

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")

Function = Callable[..., object]
Isolation = Literal["process"]

_NULL: Final = msgspec.Raw(b"null")


class Task(Generic[P, R]):
    """A function whose calls can be jobs; `@task` makes one. It is called as the function itself.

    `job` makes the `JobSpec` of a job, which `add`, `add_many`, groups, cron items and assertions accept:
    `queue.add(charge.job(Charge(amount=5), priority=1))`. Type checkers check the payload, and so does gw.

    Example: docs/guide/adding-jobs.md
    """

    # The dict holds what decorators leave on a function; `functools.wraps` copies it to the function that wraps this.
    __slots__ = (
        *("__dict__", "__weakref__", "_identifier", "_job_options", "_readers", "_run_options", "function"),
        *("_is_coroutine", "_is_coroutine_marker"),  # by which frameworks know coroutine functions
    )

    def __init__(self, function: Callable[P, R], identifier: str | None = None) -> None:
        update_wrapper(self, function)
        self.__dict__[TASKS] = (self,)
        self.function = function
        """The function itself."""
        self._identifier = identifier
        self._job_options: Mapping[str, Any] = {}
        self._run_options: Mapping[str, Any] = {}
        self._readers: dict[str, PayloadReader | None] = {}
        if is_coroutine_function(function):
            _mark_coroutine_function(self)

    def _with(self, job_options: Mapping[str, Any], run_options: Mapping[str, Any]) -> Self:
        """Give it the defaults of its jobs, and the fields of its `LoadedTask`; return the task."""
        self._job_options, self._run_options = job_options, run_options
        return self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; no job is added."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: object = None) -> Any:
        """Bind a method, as a function does."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__dict__["__qualname__"])  # by its name, as functions are pickled

    def __repr__(self) -> str:
        return f"<Task {self._identifier or self.__dict__.get('__qualname__', self.function)!s}>"

    # -- the identifier --------------------------------------------------------------------------------------------

    @property
    def identifier(self) -> str:
        """The identifier of its jobs.

        Raises `InvalidJobError` for a function that only its file in a task folder names, where no worker loaded it.
        """
        known = self._identifier or _named_by_files.get(_place_of(self.function)) or self._own_name
        if known is not None:
            return known
        name = self.__dict__["__name__"]
        raise InvalidJobError(
            f"{name} has no identifier here: it is named like its file, so the path of the file in the task folder is "
            f'its identifier; give it one with @task("{name}")'
        )

    @property
    def _own_name(self) -> str | None:
        """The name of the function; None if it is named like its file, so that the path of the file counts."""
        name: str | None = self.__dict__.get("__name__")
        return None if name in names_of_file(_place_of(self.function)[0]) else name

    def _named(self, identifier: str, registered: Function) -> Task[..., Any]:
        """Return this task under an identifier; `registered` is its function, the task itself, or what wraps it."""
        _named_by_files[_place_of(self.function)] = identifier
        self._identifier = self._identifier or identifier
        if registered is self and self._identifier == identifier:
            return self
        function: Any = self.function if registered is self else registered
        return Task(function, identifier)._with(self._job_options, self._run_options)

    # -- jobs ------------------------------------------------------------------------------------------------------

    @overload
    def job(self: Callable[[], Any], **options: Unpack[JobOptions]) -> JobSpec: ...
    @overload
    def job(self: Callable[[T], Any], payload: T, **options: Unpack[JobOptions]) -> JobSpec: ...
    @overload
    def job(  # type: ignore[misc] # for the tasks that are such functions
        self: Callable[[T, JobContext], Any], payload: T, **options: Unpack[JobOptions]
    ) -> JobSpec: ...
    @overload
    def job(self: TakesContextByName[T, Any], payload: T, **options: Unpack[JobOptions]) -> JobSpec: ...
    def job(self: Any, payload: Any = None, **options: Unpack[JobOptions]) -> JobSpec:
        """Return a job of this task; the options replace those of `@task`.

        Raises `InvalidJobError` when the task could not read the payload.
        """
        task: Task[..., Any] = self
        if stored := task._check(payload):
            return JobSpec(task=task.identifier, **task._options_of_jobs(options)).with_payload(stored)
        return JobSpec(task=task.identifier, payload=payload, **task._options_of_jobs(options))

    def _options_of_jobs(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options of `@task`, replaced by those of one job."""
        if not self._job_options:
            return options
        defaults = {**self._job_options}
        if "queue_name" in options or "slots" in options:  # a job has one of them
            defaults.pop("queue_name", None)
            defaults.pop("slots", None)
        return {**defaults, **options}

    def _check(self, payload: Any) -> msgspec.Raw | None:
        """Raise `InvalidJobError` for a payload that the task cannot read; return the JSON to store in its place."""
        reader = self._reader("payload", payload_reader)
        if reader is None or reader is PLAIN:
            return None
        if payload is None and _reads(reader, "null"):
            return _NULL  # and not the `{}` of jobs without a payload
        try:
            reader.read(encode_payload(payload))
        except PayloadError as error:
            raise InvalidJobError(f"{error} (task {self.identifier})") from None
        return None

    def _read_result(self, text: str) -> Any:
        """Return what the function returned, from its JSON text, as annotated; raises `PayloadError`."""
        reader = self._reader("result", result_reader)
        try:
            return (reader or PLAIN).read(text)
        except PayloadError as error:
            raise PayloadError(str(error).replace("the payload", "the result", 1)) from None

    def _reader(self, of: str, made: Callable[[Function], PayloadReader | None]) -> PayloadReader | None:
        if of not in self._readers:
            try:
                self._readers[of] = made(self.function)
            except NameError as error:
                raise InvalidJobError(f"the annotation of the {of} of {self!r} is not defined: {error}") from error
        return self._readers[of]


def _mark_coroutine_function(task: Task[..., Any]) -> None:
    """Let `inspect`, or `asyncio` before Python 3.12, see the function as `async def`, as it is."""
    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(task)
    else:
        import asyncio.coroutines

        task._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined] # neither is typed


def _reads(reader: PayloadReader, text: str) -> bool:
    try:
        reader.decode(text)
    except Exception:  # noqa: BLE001 - whatever a model's validators raise
        return False
    return True


_named_by_files: Final[dict[tuple[str, str], str]] = {}
"""The identifiers of functions that loaders named, by file and name: a program may import the same file again."""


def _place_of(function: Function) -> tuple[str, str]:
    plain = plain_function(function)
    file = getattr(getattr(plain, "__code__", None), "co_filename", "")
    return file and os.path.realpath(file), getattr(plain, "__qualname__", "")


def names_of_file(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the names of functions that the path of their file in a task folder names."""
    return os.path.basename(path).removesuffix(".py").replace("-", "_"), "run"


# -- what a worker runs --------------------------------------------------------------------------------------------


class LoadedTask(msgspec.Struct, frozen=True):
    """What a worker runs for the jobs of one identifier: a function, or an executable file."""

    identifier: str
    invoke: Invoke
    source: str
    """Where it is written, for messages: a file and line, or a module."""
    function: Function | None = None
    """What was registered; None for an executable file."""
    timeout: timedelta | None = None
    """How long a run may take before its attempt fails; None: as long as it likes."""
    isolation: Isolation | None = None
    """"process" when it runs in a process of its own."""
    history: HistoryOptions = NO_OPTIONS
    """What history keeps of its jobs."""
    retry: RetryRules = ()
    """What becomes of an attempt that fails with a certain exception."""


def called_function(registered: Function) -> Function:
    """Return what a run calls: the function of a task object, without the object around it."""
    return registered.function if isinstance(registered, Task) else registered
