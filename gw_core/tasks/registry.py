"""Tasks, the decorators that make them, and the registry that finds one by its identifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack, overload

import msgspec

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import InvalidJobError, TaskLoadError
from gw_core.domain.job.history import MAX_KEEP, NO_OPTIONS, HistoryOptions
from gw_core.domain.job.job import JobSpec
from gw_core.domain.job.task_identifier import note_identifier
from gw_core.execution.signature import compose, plain_function
from gw_core.execution.task import Function, Isolation, Task

if TYPE_CHECKING:
    from gw_core.domain.cron.cron_item import CronItem
    from gw_core.execution.process_protocol import TaskLocation

F = TypeVar("F", bound=Function)

_MARK: Final = "__graphile_task__"
_SCHEDULES: Final = "__graphile_schedules__"
_OPTIONS: Final = "__graphile_options__"


class TaskOptions(TypedDict, total=False):
    """The options of `@task`: see there."""

    timeout: Duration | None
    isolation: Isolation | None
    keep: Duration | None
    result: bool
    keep_payload: bool


class TaskMark(msgspec.Struct, frozen=True):
    """What `@task` leaves on a function for the loader to find; no identifier means the function's name."""

    identifier: str | None


class ScheduleMark(msgspec.Struct, frozen=True):
    """What `@cron` leaves on a function."""

    pattern: str
    options: Mapping[str, Any]


# -- decorators ----------------------------------------------------------------------------------------------------


@overload
def task(identifier: F, /) -> F: ...
@overload
def task(identifier: str | None = None, **options: Unpack[TaskOptions]) -> Callable[[F], F]: ...
def task(identifier: F | str | None = None, **options: Unpack[TaskOptions]) -> F | Callable[[F], F]:
    """Mark a function in a task file as the task `identifier`, by default its own name.

    A run that takes longer than `timeout` (a `timedelta` or seconds) has to stop; its attempt fails when it has
    ended. With `isolation="process"` it runs in a process of its own, which can be killed and leaves the worker's
    interpreter to others. The function stays what it is and can be called as before.

    History keeps the task's jobs for the period `keep` after they end: zero keeps nothing, None is the worker's setting
    `history`. With `result=True` it keeps what the task returns, for `Client.result`, and with `keep_payload=True` the
    payload.
    """
    if callable(identifier):
        return _marked(identifier, None)
    name = None if identifier is None else checked_identifier(identifier)
    given = _checked(options)
    return lambda function: _marked(_with_options(function, given), name)


def cron(pattern: str, **options: Any) -> Callable[[F], F]:
    """Schedule the task that is this function, above or below its `@task`; several schedules may be stacked.

    `pattern` is five fields such as `0 8 * * *`, in UTC or in the zone `tz`; `options` are those of `cron_item`.
    """

    def decorate(function: F) -> F:
        scheduled = _scheduled(function)
        _set(scheduled, _SCHEDULES, (ScheduleMark(pattern, dict(options)), *schedules_of(scheduled)))
        return function

    return decorate


def mark_of(function: object) -> TaskMark | None:
    """Return what `@task` left on the function."""
    mark = getattr(function, _MARK, None)
    return mark if isinstance(mark, TaskMark) else None


def schedules_of(function: object) -> tuple[ScheduleMark, ...]:
    """Return what `@cron` left on the function, in the order it is written."""
    return tuple(getattr(_scheduled(function), _SCHEDULES, ()))


def _scheduled(function: Any) -> Any:
    """Return what holds the schedules of a function: of a task object, which takes no attributes, its own `func`."""
    return function if isinstance(function, partial) else getattr(function, "func", function)


def _marked(function: F, identifier: str | None) -> F:
    if not callable(function):
        raise TaskLoadError(f"@task marks functions, not {type(function).__name__} objects")
    note_identifier(function, identifier or _name_of(function))
    return _set(function, _MARK, TaskMark(identifier))


def _checked(options: TaskOptions) -> TaskOptions:
    """Return the options; raises `TypeError` for an unknown one, as Python does for an unknown keyword."""
    if unknown := options.keys() - TaskOptions.__annotations__.keys():
        raise TypeError(f"a task has no option {min(unknown)!r}; give {', '.join(TaskOptions.__annotations__)}")
    return options


def _with_options(function: F, options: TaskOptions) -> F:
    """Leave the options of `@task` on the function; raises `TaskLoadError` for one that is wrong."""
    given = {name: value for name, value in _fields_of(options).items() if value not in (None, NO_OPTIONS)}
    return _set(function, _OPTIONS, {**getattr(function, _OPTIONS, {}), **given}) if given else function


def _fields_of(options: TaskOptions) -> dict[str, Any]:
    """Return the fields of the `Task` that has these options."""
    timeout, isolation, keep = options.get("timeout"), options.get("isolation"), options.get("keep")
    if timeout is not None:
        timeout = as_duration("the timeout of a task", timeout, TaskLoadError)
        if timeout <= timedelta(0):
            raise TaskLoadError(f"the timeout of a task must be greater than zero, got {timeout}")
    if isolation not in (None, "process"):
        raise TaskLoadError(f"the isolation of a task is 'process' or None, not {isolation!r}")
    if keep is not None:
        keep = as_duration("keep", keep, TaskLoadError)
        if not timedelta(0) <= keep <= MAX_KEEP:
            raise TaskLoadError(f"keep must be at most {MAX_KEEP.days} days and not negative, got {keep}")
    history = HistoryOptions(keep, options.get("result", False), options.get("keep_payload", False))
    return {"timeout": timeout, "isolation": isolation, "history": history}


def _set(function: F, name: str, value: object) -> F:
    try:
        setattr(function, name, value)
    except AttributeError:
        raise TaskLoadError(
            f"{function!r} cannot be decorated, for it takes no attributes; use registry.register(identifier, function)"
        ) from None
    return function


# -- the registry --------------------------------------------------------------------------------------------------


class TaskRegistry:
    """The tasks a worker knows, by identifier.

    Fill it before the worker starts; from then on it is only read, from many threads, without a lock.
    """

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        self.app: str | None = None
        """What `load_app` found it by, if it did."""
        self._tasks: dict[str, Task] = {}
        # Registered with an annotation that was not defined yet; composed when first asked for.
        self.waiting: dict[str, tuple[Function, str]] = {}
        for each in tasks:
            self.add(each)

    @overload
    def task(self, identifier: F, /) -> F: ...
    @overload
    def task(self, identifier: str | None = None, **options: Unpack[TaskOptions]) -> Callable[[F], F]: ...
    def task(self, identifier: F | str | None = None, **options: Unpack[TaskOptions]) -> F | Callable[[F], F]:
        """Register the decorated function as the task `identifier`, by default its own name.

        Also works bare, `@registry.task`. The options are those of the decorator `task`. The function stays what it is
        and can be called as before.
        """
        if callable(identifier):
            self.register(_name_of(identifier), identifier)
            return identifier
        name = None if identifier is None else checked_identifier(identifier)
        given = _checked(options)

        def decorate(function: F) -> F:
            made = _with_options(function, given)
            self.register(_name_of(function) if name is None else name, made)
            return function

        return decorate

    def register(self, identifier: str, function: Function, *, source: str | None = None) -> None:
        """Register a function as a task; `source` is its location when the function itself has none.

        Raises `TaskLoadError` for an identifier that breaks the rules or is taken, and for a function that cannot be
        called with `(payload)` or `(payload, context)`.
        """
        place = source or source_of(function)
        checked_identifier(identifier)
        self._check_free(identifier, place)
        note_identifier(function, identifier)
        try:
            self._tasks[identifier] = self._made(identifier, function, place)
        except NameError:
            # A class defined further down in the same module; `complete` tries again.
            self.waiting[identifier] = (function, place)

    def add(self, made: Task) -> None:
        """Register a task that is already made; raises `TaskLoadError` when its identifier is taken."""
        self._check_free(made.identifier, made.source)
        self._tasks[made.identifier] = made

    def complete(self) -> None:
        """Finish what was registered with an annotation that was not defined at that time.

        Loaders call it, and so does `get`. Raises `TaskLoadError` when the annotation is still not defined.
        """
        for identifier, (function, place) in list(self.waiting.items()):
            try:
                self._tasks[identifier] = self._made(identifier, function, place)
            except NameError as error:
                raise undefined_annotation(identifier, place, error) from error
            self.waiting.pop(identifier, None)

    def get(self, identifier: str) -> Task | None:
        """Return the task, or None when it is not known here."""
        found = self._tasks.get(identifier)
        if found is None and identifier in self.waiting:
            self.complete()
            return self._tasks.get(identifier)
        return found

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The identifiers of all tasks, sorted."""
        return tuple(sorted((*self._tasks, *self.waiting)))

    @property
    def crontab_sources(self) -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
        """(identifier, pattern, options) of every `@cron` on a registered function, by identifier."""
        # Asked late, for @cron may stand above @registry.task and then decorates after it.
        return tuple(
            (identifier, schedule.pattern, schedule.options)
            for identifier in self.identifiers
            for schedule in schedules_of(self._function(identifier))
        )

    @property
    def cron_items(self) -> tuple[CronItem, ...]:
        """The cron items that tasks declare with `@cron`."""
        from gw_core.domain.cron.cron_item import cron_item

        return tuple(cron_item(pattern, task, **options) for task, pattern, options in self.crontab_sources)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._tasks or identifier in self.waiting

    def __iter__(self) -> Iterator[Task]:
        self.complete()
        return iter([self._tasks[identifier] for identifier in self.identifiers])

    def __len__(self) -> int:
        return len(self._tasks) + len(self.waiting)

    def __repr__(self) -> str:
        return f"TaskRegistry({', '.join(self.identifiers)})"

    def check_isolated(self) -> None:
        """Raise `TaskLoadError` when another process could not find a task that is to run in one."""
        for each in self:
            if each.isolation is not None and each.function is not None:
                self._home(each.identifier, each.function)

    def _made(self, identifier: str, function: Function, place: str) -> Task:
        return make_task(identifier, function, place, lambda: self._home(identifier, function))

    def _home(self, identifier: str, function: Function) -> TaskLocation:
        """Return where another process finds the function; asked late, for who loads a registry comes after it."""
        from gw_core.execution.process_pool import module_home
        from gw_core.execution.process_protocol import AppTask

        return module_home(function) if self.app is None else AppTask(self.app, identifier)

    def _function(self, identifier: str) -> Function | None:
        known = self._tasks.get(identifier)
        return self.waiting[identifier][0] if known is None else known.function

    def _check_free(self, identifier: str, place: str) -> None:
        if identifier in self:
            known = self._tasks.get(identifier)
            first = self.waiting[identifier][1] if known is None else known.source
            raise TaskLoadError(
                f"the task {identifier!r} is defined twice, in {first} and in {place}; rename or remove one of them"
            )


def task_of(identifier: str, function: Function, source: str, home: Callable[[], TaskLocation]) -> Task:
    """Return the task; `home` is where another process finds the function. Raises as `compose` does."""
    checked_identifier(identifier)
    invoke = compose(function)
    made = Task(identifier, invoke, source, function, **getattr(function, _OPTIONS, {}))
    if made.isolation is None:
        return made
    from gw_core.execution.process_pool import compose_isolated  # for those who isolate

    return replace(made, invoke=compose_isolated(home, keeps_result=made.history.result))


def make_task(identifier: str, function: Function, source: str, home: Callable[[], TaskLocation]) -> Task:
    """Return the task; raises `TaskLoadError`, or `NameError` for an annotation that is not defined (yet)."""
    checked_identifier(identifier)
    try:
        return task_of(identifier, function, source, home)
    except TaskLoadError as error:
        raise TaskLoadError(f"the function at {source} cannot be the task {identifier!r}: {error}") from error


def undefined_annotation(identifier: str, source: str, error: NameError) -> TaskLoadError:
    """Return the error for a payload annotation that nothing defines."""
    return TaskLoadError(
        f"the function at {source} cannot be the task {identifier!r}: the annotation of its payload is not defined "
        f"({error}); import the type where it runs too, not only under TYPE_CHECKING"
    )


def source_of(function: Function) -> str:
    """Return the file and line where a function is written, or its module and name."""
    code = getattr(plain_function(function), "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    return f"{getattr(function, '__module__', None) or 'builtins'}.{getattr(function, '__qualname__', repr(function))}"


def checked_identifier(identifier: str) -> str:
    """Return the identifier; raises `TaskLoadError` when it breaks the schema's rules, which stand with `JobSpec`."""
    try:
        return JobSpec(task=identifier).task
    except InvalidJobError as error:
        raise TaskLoadError(f"the task identifier {str(identifier)[:80]!r} cannot be used: {error}") from None


def _name_of(function: Function) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise TaskLoadError(
            f"the function of {source_of(function)} has no name; give the identifier: .task('identifier')"
        )
    return name
