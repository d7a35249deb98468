"""What user code may put between a job and its road: interceptors, brought along by plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gw_core.domain.errors import JobRejectedError
from gw_core.domain.events import Events
from gw_core.domain.job import Job, JobSpec
from gw_core.domain.recovery import Decision


@dataclass(frozen=True, slots=True)
class Skip:
    """Returned by an interceptor: do not add this job; or, around a run: end the job as completed without running."""

    reason: str = "skipped by a plugin"


@dataclass(frozen=True, slots=True)
class Reject:
    """Returned by `before_add`: raise `JobRejectedError` to the one who adds."""

    reason: str


RunTask = Callable[[], object]
BeforeAdd = Callable[[JobSpec], "JobSpec | Skip | Reject | None"]
AroundRun = Callable[[Job, Any, RunTask], object]


class Plugin:
    """Derive from this and override what you need; one object may do all of it.

    Plugins are asked in the order given. They run in the thread that adds or runs the job; what they raise is the
    adder's error, or the attempt's failure.
    """

    def attach(self, events: Events) -> None:
        """Subscribe to events; called once when the client or runner is made."""

    def before_add(self, spec: JobSpec) -> JobSpec | Skip | Reject | None:
        """Look at a job before it is added.

        Return the spec, changed with `dataclasses.replace` or as it is (`None` means as it is), to continue; `Skip` to
        add nothing; `Reject` to raise `JobRejectedError`.
        """
        return spec

    def around_run(self, job: Job, context: Any, run: RunTask) -> object:
        """Wrap the run of a job: call `run()` and return its result to continue, return `Skip` to end the job as
        completed without running it, raise to fail the attempt.
        """
        return run()

    def on_recovery(self, job: Job, dead_worker: str, reason: str) -> Decision | None:
        """Decide what becomes of a job whose worker went silent, in the thread that sweeps.

        Return `Reschedule`, `FailWithBackoff` or `SkipRecovery`; `None` and `DefaultRecovery` give the job back with
        its attempt uncounted. The first plugin that decides otherwise wins; what one raises is reported and changes
        nothing.
        """
        return None


class Interceptors:
    """The overriding methods of all plugins, in order; empty tuples when nobody intercepts, so asking is free."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.before_add: Final = tuple(p.before_add for p in plugins if _overrides(p, "before_add"))
        self.around_run: Final = tuple(p.around_run for p in plugins if _overrides(p, "around_run"))
        self.on_recovery: Final = tuple(p.on_recovery for p in plugins if _overrides(p, "on_recovery"))

    def admit(self, spec: JobSpec) -> JobSpec | None:
        """Return the spec to add, or None when a plugin skips it; raises `JobRejectedError`."""
        for ask in self.before_add:
            answer = ask(spec)
            if isinstance(answer, Skip):
                return None
            if isinstance(answer, Reject):
                raise JobRejectedError(answer.reason)
            spec = spec if answer is None else answer
        return spec

    def run(self, job: Job, context: Any, run: RunTask) -> object:
        """Run the task inside all wrappers, the first plugin outermost."""
        for wrap in reversed(self.around_run):
            run = _wrapped(wrap, job, context, run)
        return run()


def _wrapped(wrap: AroundRun, job: Job, context: Any, inner: RunTask) -> RunTask:
    return lambda: wrap(job, context, inner)


def _overrides(plugin: Plugin, method: str) -> bool:
    return getattr(type(plugin), method, None) is not getattr(Plugin, method)
