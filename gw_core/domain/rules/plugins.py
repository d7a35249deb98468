"""Plugins: user code that inspects, changes or wraps jobs when they are added, run and recovered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Final, Self

import msgspec

from gw_core.domain.errors import InvalidSettingError, JobRejectedError
from gw_core.domain.job.job import Job, JobSpec
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.sweep_rules import Decision


class Skip(msgspec.Struct, frozen=True):
    """Returned by an interceptor: do not add this job; or, around a run: end the job as completed without running.

    Example: docs/api/gw_core.md
    """

    reason: str = "skipped by a plugin"


class Reject(msgspec.Struct, frozen=True):
    """Returned by `before_add`: the call that adds the job raises `JobRejectedError`.

    Example: docs/api/index.md
    """

    reason: str


class Addition(msgspec.Struct):
    """Jobs that one call adds: one for `add` and `add_batch`, one or more for `add_many`.

    Example: docs/api/gw_core.md
    """

    specs: Sequence[JobSpec]
    ids: Sequence[int] = ()
    """The ids once the jobs are inserted; those of `add_many` are in no particular order."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


RunTask = Callable[[], Any]
"""Runs the task, or what the next plugin wraps around it, and returns its result; awaited by an `async def`.

Example: docs/api/types.md
"""
AroundRun = Callable[[Job, Any, RunTask], object]


class Plugin:
    """Derive from this and override what you need; one object may do all of it.

    Plugins are called in the order given, in the thread that adds or runs the job. What they raise is raised to the
    caller that adds the job, or fails the attempt. `on_start`, `on_stop` and `around_run` may be `async def`; they run
    on the loop of the async tasks.

    Example: docs/api/index.md
    """

    def attach(self, events: Events) -> None:
        """Subscribe to events; called once when the client or runner is made."""

    def on_start(self) -> object:
        """Open what tasks need; called once when a runner starts, before it claims its first job.

        `async def` runs on the loop of the async tasks. What it raises ends the start.
        """

    def on_stop(self) -> object:
        """Close what `on_start` opened; called when the last job of a runner has ended. `async def` works, too."""

    def before_add(self, spec: JobSpec) -> JobSpec | Skip | Reject | None:
        """Inspect a job before it is added. Its payload is plain JSON values, and `{}` if the caller gave none.

        Return the spec, changed with `dataclasses.replace` or as it is (`None` means as it is), to continue; `Skip` to
        add nothing; `Reject` to raise `JobRejectedError`.
        """
        return spec

    def around_add(self, addition: Addition) -> AbstractContextManager[object]:
        """Return a context manager in which jobs that passed `before_add` are inserted.

        It is entered before the insert, can replace `addition.specs` with as many others, and finds `addition.ids`
        when it is left. It sees the error of a failed insert and must not suppress it. Jobs that the scheduler of
        recurring tasks adds are not wrapped.
        """
        return nullcontext()

    def around_run(self, job: Job, context: Any, run: RunTask) -> object:
        """Wrap the run of a job: call `run()` and return its result to continue, return `Skip` to end the job as
        completed without running it, raise to fail the attempt. `async def around_run` awaits `run()`; a task that is
        no coroutine still runs in its thread.
        """
        return run()

    def on_recovery(self, job: Job, dead_worker: str, reason: str, recovered_by: str | None) -> Decision | None:
        """Decide what happens to a job whose worker is dead, in the thread that sweeps.

        `recovered_by` is the id of the worker that sweeps, or None for a sweep by `gw sweep` or a client.

        Return `Reschedule`, `FailWithBackoff` or `SkipRecovery`; `None` returns the job to the queue with its attempt
        not counted, to run after the recovery delay. The first plugin that decides otherwise wins; what one raises is
        reported and changes nothing.
        """
        return None


class Interceptors:
    """The overriding methods of all plugins, in order; empty tuples without interceptors, so the check is cheap."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        for plugin in plugins:
            _reject_async(plugin)
        self.before_add: Final = tuple(p.before_add for p in plugins if overrides(p, "before_add"))
        self.around_add: Final = tuple(p.around_add for p in plugins if overrides(p, "around_add"))
        self.around_run: Final = tuple(p.around_run for p in plugins if overrides(p, "around_run"))
        self.on_recovery: Final = tuple(p.on_recovery for p in plugins if overrides(p, "on_recovery"))

    @classmethod
    def attached(cls, plugins: Sequence[Plugin], events: Events) -> Self:
        """Return the interceptors of the plugins, which subscribe to events."""
        made = cls(plugins)
        for plugin in plugins:
            plugin.attach(events)
        return made

    @property
    def see_payloads(self) -> bool:
        """True when a plugin takes part in adding jobs."""
        return bool(self.before_add or self.around_add)

    @contextmanager
    def adding(self, specs: Sequence[JobSpec]) -> Iterator[Addition]:
        """Enter the wrappers of all plugins, the first one outermost, for the insert of these jobs."""
        addition = Addition(specs)
        with ExitStack() as stack:
            for wrap in self.around_add:
                stack.enter_context(wrap(addition))
            yield addition

    def admit(self, spec: JobSpec) -> JobSpec | Skip:
        """Return the spec to add, or what a plugin returned to skip it; raises `JobRejectedError`."""
        if spec.payload is None and self.see_payloads:
            spec = spec.with_payload({})
        for ask in self.before_add:
            answer = ask(spec)
            if isinstance(answer, Skip):
                return answer
            if isinstance(answer, Reject):
                raise JobRejectedError(answer.reason)
            spec = spec if answer is None else answer
        return spec


def run_wrapped(wrappers: Sequence[AroundRun], job: Job, context: Any, run: RunTask) -> object:
    """Run the task inside all wrappers, the first one outermost."""
    for wrap in reversed(wrappers):
        run = _wrapped(wrap, job, context, run)
    return run()


def _wrapped(wrap: AroundRun, job: Job, context: Any, inner: RunTask) -> RunTask:
    return lambda: wrap(job, context, inner)


def _reject_async(plugin: Plugin) -> None:
    """Raise `InvalidSettingError` for an async method that is called where no event loop runs."""
    for name in _SYNCHRONOUS:
        method = inspect.unwrap(getattr(plugin, name, None))  # type: ignore[arg-type] # None stays None
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise InvalidSettingError(
                f"{name} of the plugin {type(plugin).__name__} must not be async: it is called in threads, too; "
                f"write it with def ({', '.join(_MAY_BE_ASYNC)} may be async)"
            )


_MAY_BE_ASYNC: Final = ("on_start", "on_stop", "around_run")
_SYNCHRONOUS: Final = ("attach", "before_add", "around_add", "on_recovery")


def overrides(plugin: Plugin, method: str) -> bool:
    """Return whether the plugin has a method of its own with this name."""
    return getattr(type(plugin), method, None) is not getattr(Plugin, method)
