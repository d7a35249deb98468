"""Tasks, the decorators that make them, and the registry that finds one by its identifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypedDict, TypeVar, Unpack, overload

import msgspec

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import InvalidJobError, TaskLoadError
from gw_core.domain.job.history import MAX_KEEP, HistoryOptions
from gw_core.domain.job.job import JobSpec
from gw_core.domain.job.slots import SlotLimit
from gw_core.domain.job.task_of_function import note_task, tasks_of
from gw_core.domain.rules.retry_rules import RetryRule, checked_rules
from gw_core.execution.functions import plain_function
from gw_core.execution.signature import compose
from gw_core.execution.task import Function, Isolation, LoadedTask, Task, called_function

if TYPE_CHECKING:
    from gw_core.domain.cron.cron_item import CronItem
    from gw_core.execution.process_protocol import TaskLocation

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

_SCHEDULES: Final = "__graphile_schedules__"


class TaskOptions(TypedDict, total=False):
    """The options of `@task`: see there.

    Example: docs/api/types.md
    """

    timeout: Duration | None
    isolation: Isolation | None
    keep: Duration | None
    result: bool
    keep_payload: bool
    retry: Mapping[type[BaseException], RetryRule] | None
    max_attempts: int | None
    queue_name: str | None
    priority: int | None
    flags: Sequence[str]
    slots: str | None


_JOB_OPTIONS: Final = ("max_attempts", "queue_name", "priority", "flags", "slots")
"""The options of a task that are defaults of its jobs."""


class ScheduleMark(msgspec.Struct, frozen=True):
    """What `@cron` leaves on a function."""

    pattern: str
    options: Mapping[str, Any]


# -- decorators ----------------------------------------------------------------------------------------------------


@overload
def task(identifier: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(identifier: str | None = None, **options: Unpack[TaskOptions]) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def task(identifier: Function | str | None = None, **options: Unpack[TaskOptions]) -> Any:
    """Make a function of a task file the task `identifier`, by default its own name.

    The `Task` is called as the function itself, and `Task.job` makes jobs for the client.

    A run that takes longer than `timeout` (a `timedelta` or seconds) has to stop; its attempt fails when it has
    ended. With `isolation="process"` it runs in a process of its own, which can be killed and leaves the worker's
    interpreter to others. `retry` maps exceptions to what follows the failure: `GiveUp` for no further attempt, the
    delay of the next one, or a function of the attempt's number that returns one of these.

    History keeps the task's jobs for the period `keep` after they end: zero keeps nothing, None is the worker's setting
    `history`. With `result=True` it keeps what the task returns, for `Client.result`, and with `keep_payload=True` the
    payload.

    `max_attempts`, `queue_name`, `priority`, `flags` and `slots` are the defaults of jobs that a program adds by this
    object, and of its `@cron` schedules.

    Example: docs/guide/writing-tasks.md
    """
    if callable(identifier):
        return _made(identifier, None, {})
    name = None if identifier is None else checked_identifier(identifier)
    _check_names(options)
    return lambda function: _made(function, name, options)


def cron(pattern: str, **options: Any) -> Callable[[T], T]:
    """Schedule the task that is this function, above or below its `@task`; several schedules may be stacked.

    `pattern` is five fields such as `0 8 * * *`, in UTC or in the zone `tz`; `options` are those of `cron_item`.

    Example: docs/guide/recurring-tasks.md
    """

    def decorate(function: T) -> T:
        scheduled = _scheduled(function)
        marks = (ScheduleMark(pattern, dict(options)), *schedules_of(scheduled))
        try:
            setattr(scheduled, _SCHEDULES, marks)
        except AttributeError:
            raise TaskLoadError(
                f"{function!r} cannot be scheduled, for it takes no attributes; put @cron above its @task"
            ) from None
        return function

    return decorate


def schedules_of(function: object) -> tuple[ScheduleMark, ...]:
    """Return what `@cron` left on the function, in the order it is written."""
    return tuple(getattr(_scheduled(function), _SCHEDULES, ()))


def _scheduled(function: Any) -> Any:
    """Return what holds the schedules of a function: of a task object of Django's, its own `func`."""
    called = called_function(function)
    return function if isinstance(called, partial) else getattr(called, "func", function)


def _made(function: Any, identifier: str | None, options: TaskOptions) -> Task[..., Any]:
    """Return the task that `@task` makes; raises `TaskLoadError` for an option that is wrong."""
    if not callable(function):
        raise TaskLoadError(f"@task marks functions, not {type(function).__name__} objects")
    inner = _inner_task(function)
    given: Mapping[str, Any] = {name: value for name, value in options.items() if name in _JOB_OPTIONS}
    run_options = _run_options(options)
    if inner is not None:
        given = inner._options_of_jobs(given)
        run_options = {**inner._run_options, **run_options}
        identifier = identifier or inner._identifier
    _check_defaults(given)
    if identifier is None:
        _name_of(function)
    made: Task[..., Any] = Task(called_function(function), identifier)._with(given, run_options)
    note_task(made.function, made)  # for `task("name")(function)`, whose result nothing holds
    return made


def _inner_task(function: Function) -> Task[..., Any] | None:
    """Return the task of another `@task` below, also below other decorators."""
    known = tasks_of(function)
    return known[0] if known and known[0].function is not function else None


def _check_names(options: TaskOptions) -> None:
    """Raise `TypeError` for an unknown option, as Python does for an unknown keyword."""
    if unknown := options.keys() - TaskOptions.__annotations__.keys():
        raise TypeError(f"a task has no option {min(unknown)!r}; give {', '.join(TaskOptions.__annotations__)}")


def _check_defaults(options: Mapping[str, Any]) -> None:
    """Raise `TaskLoadError` for a default of jobs that breaks the schema's rules."""
    try:
        if options.get("slots") is not None and options.get("queue_name") is None:
            SlotLimit.parse(str(options["slots"]))  # its queue depends on the payload
            options = {**options, "slots": None}
        JobSpec(task="task", **options)
    except InvalidJobError as error:
        raise TaskLoadError(f"@task: {error}") from None


def _run_options(options: TaskOptions) -> dict[str, Any]:
    """Return the fields of the `LoadedTask` that these options set."""
    timeout, isolation, keep = options.get("timeout"), options.get("isolation"), options.get("keep")
    fields: dict[str, Any] = {}
    if timeout is not None:
        fields["timeout"] = as_duration("the timeout of a task", timeout, TaskLoadError)
        if fields["timeout"].total_seconds() <= 0:
            raise TaskLoadError(f"the timeout of a task must be greater than zero, got {fields['timeout']}")
    if isolation is not None:
        if isolation != "process":
            raise TaskLoadError(f"the isolation of a task is 'process' or None, not {isolation!r}")
        fields["isolation"] = isolation
    if keep is not None:
        keep = as_duration("keep", keep, TaskLoadError)
        if not 0 <= keep.total_seconds() <= MAX_KEEP.total_seconds():
            raise TaskLoadError(f"keep must be at most {MAX_KEEP.days} days and not negative, got {keep}")
    if keep is not None or options.get("result") or options.get("keep_payload"):
        fields["history"] = HistoryOptions(keep, options.get("result", False), options.get("keep_payload", False))
    if (rules := options.get("retry")) is not None:
        fields["retry"] = checked_rules(rules)
    return fields


# -- the registry --------------------------------------------------------------------------------------------------


class TaskRegistry:
    """The tasks a worker knows, by identifier.

    Fill it before the worker starts; from then on it is only read, from many threads, without a lock.

    Example: docs/api/index.md
    """

    def __init__(self, tasks: Iterable[LoadedTask] = ()) -> None:
        self.app: str | None = None
        """What `load_app` found it by, if it did."""
        self._tasks: dict[str, LoadedTask] = {}
        # Registered with an annotation that was not defined yet; composed when first asked for.
        self.waiting: dict[str, tuple[Function, Task[..., Any], str]] = {}
        for each in tasks:
            self.add(each)

    @overload
    def task(self, identifier: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self, identifier: str | None = None, **options: Unpack[TaskOptions]
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(self, identifier: Function | str | None = None, **options: Unpack[TaskOptions]) -> Any:
        """Register the decorated function as the task `identifier`, by default its own name.

        Also works bare, `@registry.task`. The options and the `Task` that is returned are those of the decorator
        `task`.
        """
        if callable(identifier):
            return self._register_made(identifier, None, {})
        name = None if identifier is None else checked_identifier(identifier)
        _check_names(options)
        return lambda function: self._register_made(function, name, options)

    def _register_made(self, function: Function, identifier: str | None, options: TaskOptions) -> Task[..., Any]:
        made = _made(function, identifier, options)
        return self.register(made._identifier or _name_of(function), made, source=source_of(function))

    def register(self, identifier: str, function: Callable[P, R], *, source: str | None = None) -> Task[P, R]:
        """Register a function as a task, and return that; `source` is its location when the function has none.

        Raises `TaskLoadError` for an identifier that breaks the rules or is taken, and for a function that cannot be
        called with `(payload)` or `(payload, context)`.
        """
        place = source or source_of(function)
        checked_identifier(identifier)
        self._check_free(identifier, place)
        task: Task[P, R] = named_task(identifier, function)
        try:
            self._tasks[identifier] = self._loaded(identifier, function, task, place)
        except NameError:
            # A class defined further down in the same module; `complete` tries again.
            self.waiting[identifier] = (function, task, place)
        return task

    def add(self, made: LoadedTask) -> None:
        """Register a task that is already made; raises `TaskLoadError` when its identifier is taken."""
        self._check_free(made.identifier, made.source)
        self._tasks[made.identifier] = made

    def complete(self) -> None:
        """Finish what was registered with an annotation that was not defined at that time.

        Loaders call it, and so does `get`. Raises `TaskLoadError` when the annotation is still not defined.
        """
        for identifier, (registered, task, place) in list(self.waiting.items()):
            try:
                self._tasks[identifier] = self._loaded(identifier, registered, task, place)
            except NameError as error:
                raise undefined_annotation(identifier, place, error) from error
            self.waiting.pop(identifier, None)

    def get(self, identifier: str) -> LoadedTask | None:
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
        sources = self.crontab_sources
        if not sources:  # without importing what reads schedules, which takes 2 ms of each start
            return ()
        from gw_core.domain.cron.cron_item import cron_item

        return tuple(cron_item(pattern, self._to_schedule(task), **options) for task, pattern, options in sources)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._tasks or identifier in self.waiting

    def __iter__(self) -> Iterator[LoadedTask]:
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

    def _loaded(self, identifier: str, registered: Function, task: Task[..., Any], place: str) -> LoadedTask:
        return load_task(identifier, registered, task, place, lambda: self._home(identifier, registered))

    def _home(self, identifier: str, function: Function) -> TaskLocation:
        """Return where another process finds the function; asked late, for who loads a registry comes after it."""
        from gw_core.execution.process_pool import module_home
        from gw_core.execution.process_protocol import AppTask

        return module_home(function) if self.app is None else AppTask(self.app, identifier)

    def _function(self, identifier: str) -> Function | None:
        known = self._tasks.get(identifier)
        return self.waiting[identifier][0] if known is None else known.function

    def _to_schedule(self, identifier: str) -> Any:
        """Return the task of the function, with the defaults of its jobs."""
        known = tasks_of(self._function(identifier))
        return next((each for each in known if each._identifier == identifier), identifier)

    def _check_free(self, identifier: str, place: str) -> None:
        if identifier in self:
            known = self._tasks.get(identifier)
            first = self.waiting[identifier][-1] if known is None else known.source
            raise TaskLoadError(
                f"the task {identifier!r} is defined twice, in {first} and in {place}; rename or remove one of them"
            )


def named_task(identifier: str, registered: Function) -> Any:
    """Return the `Task` of this identifier: with the options of `@task`, also below other decorators."""
    if isinstance(registered, Task):
        return registered._named(identifier, registered)
    for known in tasks_of(registered):
        if known.function is not registered or known._identifier in (None, identifier):
            return known._named(identifier, registered)
    made: Task[..., Any] = Task(registered, identifier)
    note_task(registered, made)
    return made


def composed_task(
    identifier: str, registered: Function, task: Task[..., Any], source: str, home: Callable[[], TaskLocation]
) -> LoadedTask:
    """Return what a worker runs; `home` is where another process finds the function. Raises as `compose` does."""
    checked_identifier(identifier)
    invoke = compose(task.function)
    options = task._run_options
    if "isolation" in options:
        from gw_core.execution.process_pool import compose_isolated  # for those who isolate

        history = options.get("history")
        invoke = compose_isolated(home, keeps_result=history is not None and history.result)
    return LoadedTask(identifier, invoke, source, registered, **options)


def load_task(
    identifier: str, registered: Function, task: Task[..., Any], source: str, home: Callable[[], TaskLocation]
) -> LoadedTask:
    """As `composed_task`; raises `TaskLoadError`, or `NameError` for an annotation that is not defined (yet)."""
    try:
        return composed_task(identifier, registered, task, source, home)
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
