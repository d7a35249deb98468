"""Sentry: an event for each failed attempt, spans for adds and runs, and check-ins of recurring tasks.

Needs the extra `sentry`. Give `Sentry()` to `Client` and `Runner` as a plugin, or set `SENTRY_DSN` and run
`gw run --plugin gw_core.contrib.sentry:Sentry`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import sentry_sdk
from sentry_sdk.crons import capture_checkin
from sentry_sdk.integrations.logging import ignore_logger
from sentry_sdk.scope import (
    Scope,
    add_global_event_processor,
    global_event_processors,
    use_isolation_scope,
    use_scope,
)
from sentry_sdk.tracing_utils import has_tracing_enabled
from sentry_sdk.utils import current_stacktrace, event_from_exception

from gw_core import Addition, CronItem, Events, GiveUp, Job, JobContext, Plugin, RetryAfter, Snooze
from gw_core.contrib.payload_trace import with_trace
from gw_core.errors import BatchError, JobCancelledError
from gw_core.events import JobErrored, JobSucceeded, PoolStopped
from gw_core.front_ends import CronSchedule, CronStarting

if TYPE_CHECKING:
    from sentry_sdk.types import Event, Hint

__all__ = ["Sentry"]

ORIGIN: Final = "auto.queue.graphile_worker"
SYSTEM: Final = "graphile-worker"

_OWN_PACKAGES: Final = frozenset({"gw_core", "gw_cli", "gw_tui"})
_DRIVERS: Final = frozenset({"psycopg", "psycopg_pool", "psycopg2", "asyncpg", "sqlalchemy", "django"})
_MECHANISM: Final = {"type": "graphile_worker", "handled": False}


class _CheckIn(msgspec.Struct):
    """A check-in that is in progress."""

    id: str | None
    slug: str


class _Run(msgspec.Struct):
    """What Sentry knows about a run until its outcome is known."""

    isolation_scope: Scope
    scope: Scope
    transaction: Any = None
    span: Any = None
    check_in: _CheckIn | None = None


class Sentry(Plugin):
    """Reports failed attempts, traces adds and runs if the client's tracing is on, and checks in for recurring tasks.

    `attempts` selects the failed attempts that become events: `"all"`, `"last"`, or a function of the job and the
    error. Attempts before the last have the level warning. `RetryAfter`, `Snooze` and cancellations by operators are no
    events. `monitor` has settings of the cron monitors, such as `checkin_margin`; with None there are no check-ins.
    Payloads are not sent: events of a run have no local variables, unless `include_local_variables` is true, and those
    of gw's own frames are never sent. Without `trust_trace`, the trace context in a payload is ignored.
    If `SENTRY_DSN` is set and the SDK is not initialized, the plugin initializes it.

    Example: docs/guide/observability.md
    """

    def __init__(
        self,
        *,
        attempts: Literal["all", "last"] | Callable[[Job, BaseException], bool] = "all",
        monitor: Mapping[str, Any] | None = MappingProxyType({"checkin_margin": 5}),
        include_local_variables: bool = False,
        trust_trace: bool = True,
    ) -> None:
        if not callable(attempts) and attempts not in ("all", "last"):
            raise ValueError(f'attempts must be "all", "last" or a function, not {attempts!r}')
        if os.environ.get("SENTRY_DSN") and not sentry_sdk.is_initialized():
            sentry_sdk.init()
        self._attempts = attempts
        self._monitor = monitor
        self._clears_run = not include_local_variables
        self._trusts_trace = trust_trace
        self._items: dict[str, CronItem] = {}
        self._runs: dict[str, _Run] = {}
        """The run on each thread. A thread writes its own key only, so no lock is needed."""
        # gw logs each failure as well, on another thread, where Sentry's deduplication does not see it.
        for name in ("", ".core", ".cron", ".supervisor", ".tasks", ".worker"):  # not ".job", which tasks use
            ignore_logger(f"graphile_worker{name}")
        # For each event of the process: an add can fail in a request, whose event is not made here.
        if _clear_own_frames not in global_event_processors:
            add_global_event_processor(_clear_own_frames)

    def attach(self, events: Events) -> None:
        """Subscribe to the ends of runs and to the items of crontabs."""
        events.on(JobSucceeded, self._succeeded)
        events.on(JobErrored, self._errored)
        events.on(PoolStopped, self._stopped)
        if self._monitor is not None:
            events.on(CronStarting, self._know_items)
            events.on(CronSchedule, self._know_items)

    # -- add -------------------------------------------------------------------------------------------------------

    @contextmanager
    def around_add(self, addition: Addition) -> Iterator[None]:
        """Make the span of an add, and write its context into the payloads."""
        if not _is_tracing():
            yield
            return
        tasks = {spec.task for spec in addition.specs}
        task = tasks.pop() if len(tasks) == 1 else "several tasks"
        with sentry_sdk.start_span(op="queue.publish", name=task, origin=ORIGIN) as span:
            span.set_data("messaging.system", SYSTEM)
            span.set_data("messaging.destination.name", task)
            carrier = _carrier()
            if carrier is not None:
                addition.specs = [spec.with_payload(with_trace(spec.payload, carrier)) for spec in addition.specs]
            yield
            if len(addition.ids) == 1:
                span.set_data("messaging.message.id", str(addition.ids[0]))

    # -- run -------------------------------------------------------------------------------------------------------

    def around_run(self, job: Job, context: JobContext, run: Any) -> object:
        """Give the run a scope of its own, which is kept until the outcome is known."""
        if not sentry_sdk.get_client().is_active():
            return run()
        self._finish(context.thread_name, "aborted")  # the thread's former run, if it was interrupted
        with sentry_sdk.isolation_scope() as scope:
            self._describe(scope, job)
            known = _Run(scope, sentry_sdk.get_current_scope())
            if _is_tracing():
                _start_spans(known, job, _headers(context.trace) if self._trusts_trace else {})
            known.check_in = self._check_in(job, context)
            self._runs[context.thread_name] = known
            try:
                return run()
            except Snooze:
                self._finish(context.thread_name, "aborted")
                raise

    def _describe(self, scope: Scope, job: Job) -> None:
        """Set what every event of the run has, and what it lacks."""
        _name_job(scope, job)
        if self._clears_run:
            scope.add_event_processor(_clear_all_frames)

    def _succeeded(self, event: JobSucceeded) -> None:
        self._finish(event.thread, "ok", event.seconds)

    def _errored(self, event: JobErrored) -> None:
        known, error = self._runs.get(event.thread), event.error
        if known is None:
            with sentry_sdk.isolation_scope() as scope:  # the job was cancelled before its task started
                self._describe(scope, event.job)
                self._capture(event.job, error)
            return
        with use_isolation_scope(known.isolation_scope), use_scope(known.scope):
            self._capture(event.job, error)
        self._finish(event.thread, "aborted" if isinstance(error, RetryAfter) else "internal_error", event.seconds)

    def _stopped(self, event: PoolStopped) -> None:
        for thread in list(self._runs):
            self._finish(thread, "aborted")

    def _capture(self, job: Job, error: BaseException) -> None:
        """Capture the event of a failed attempt, if it counts."""
        is_last = isinstance(error, GiveUp) or job.is_last_attempt
        if isinstance(error, RetryAfter | JobCancelledError):
            return
        if not (self._attempts(job, error) if callable(self._attempts) else self._attempts == "all" or is_last):
            return
        shown = BaseExceptionGroup(str(error), [*error.errors.values()]) if isinstance(error, BatchError) else error
        client = sentry_sdk.get_client()
        event, hint = event_from_exception(shown, client_options=client.options, mechanism=dict(_MECHANISM))
        event["level"] = "error" if is_last else "warning"
        sentry_sdk.capture_event(event, hint=hint)

    def _finish(self, thread: str, status: str, seconds: float | None = None) -> None:
        known = self._runs.pop(thread, None)
        if known is None or (known.transaction is None and known.check_in is None):
            return
        with use_isolation_scope(known.isolation_scope), use_scope(known.scope):
            if known.transaction is not None:
                for span in (known.span, known.transaction):
                    span.set_status(status)
                    span.finish()
            if known.check_in is not None and status != "aborted":
                result = "ok" if status == "ok" else "error"
                capture_checkin(known.check_in.slug, known.check_in.id, result, seconds)

    # -- recurring tasks -------------------------------------------------------------------------------------------

    def _know_items(self, event: CronStarting | CronSchedule) -> None:
        self._items.update((item.identifier, item) for item in event.items)

    def _check_in(self, job: Job, context: JobContext) -> _CheckIn | None:
        """Check in for the run of a recurring task; None for other jobs and for backfilled runs."""
        if not self._items or self._monitor is None or (cron := context.cron) is None or cron.backfilled:
            return None
        due = [item for item in self._items.values() if item.task == job.task]
        due = [item for item in due if item.schedule.matches(cron.ts)] if len(due) > 1 else due
        if len(due) != 1:  # two items add the same task in the same minute
            return None
        (item,) = due
        slug = re.sub(r"[^a-z0-9_-]+", "-", item.identifier.lower())[:50].strip("-") or "cron"
        schedule = {"type": "crontab", "value": str(item.schedule)}
        config: Any = {"schedule": schedule, "timezone": item.schedule.tz, **self._monitor}
        return _CheckIn(capture_checkin(slug, status="in_progress", monitor_config=config), slug)


# -- scope ---------------------------------------------------------------------------------------------------------


def _name_job(scope: Scope, job: Job) -> None:
    """Say in every event of the run which job it is."""
    scope.clear_breadcrumbs()
    scope.set_transaction_name(job.task, source="task")
    current = sentry_sdk.get_current_scope()
    if current.span is None:  # else this would rename the transaction; without one, the name of an earlier one is left
        current.set_transaction_name(job.task, source="task")
    scope.fingerprint = ["{{ default }}", job.task]
    scope.set_tag("task", job.task)
    if job.queue_name is not None:
        scope.set_tag("queue", job.queue_name)
    numbers = {"id": job.id, "attempt": job.attempts, "max_attempts": job.max_attempts}
    scope.set_context("job", {**numbers, "key": job.job_key})


# -- local variables -----------------------------------------------------------------------------------------------


def _clear_own_frames(event: Event, hint: Hint) -> Event:
    """Remove the local variables of gw's frames, and of the database drivers that they call."""
    for frames in _stacks_of(event):
        is_called_by_gw = False
        for frame in frames:  # the caller first
            package = str(frame.get("module") or "").split(".")[0]
            is_called_by_gw = package in _OWN_PACKAGES or (is_called_by_gw and package in _DRIVERS)
            if is_called_by_gw:
                frame.pop("vars", None)
    return event


def _clear_all_frames(event: Event, hint: Hint) -> Event:
    """Remove all local variables: in a task's frames, they are the payload or parts of it."""
    for frames in _stacks_of(event):
        for frame in frames:
            frame.pop("vars", None)
    return event


def _stacks_of(event: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield the frames of each stack of the event."""
    options = sentry_sdk.get_client().options
    if options.get("attach_stacktrace") and not event.keys() & {"type", "exception", "stacktrace", "threads"}:
        # The SDK would add this one later, with variables.
        event["threads"] = {"values": [{"stacktrace": current_stacktrace(False), "crashed": False, "current": True}]}
    holders = [
        event,
        *(each for name in ("exception", "threads") for each in (event.get(name) or {}).get("values") or ()),
    ]
    for holder in holders:
        yield (holder.get("stacktrace") or {}).get("frames") or []


# -- spans ---------------------------------------------------------------------------------------------------------


def _is_tracing() -> bool:
    """True with classic spans; span streaming has an API of its own, which this plugin does not use."""
    options = sentry_sdk.get_client().options
    is_streaming = (options.get("_experiments") or {}).get("trace_lifecycle") or options.get("trace_lifecycle")
    return has_tracing_enabled(options) and is_streaming != "stream"


def _start_spans(known: _Run, job: Job, headers: dict[str, str]) -> None:
    """Start the transaction of a run, in the trace of these headers, and the span that queue insights read."""
    transaction = sentry_sdk.start_transaction(
        sentry_sdk.continue_trace(
            headers,
            op="queue.task.graphile_worker",
            name=job.task,
            source="task",
            origin=ORIGIN,
        )
    )
    known.transaction = transaction
    known.span = transaction.start_child(op="queue.process", name=job.task, origin=ORIGIN)
    latency = max(0.0, time.time() - max(job.run_at, job.created_at).timestamp()) * 1000
    for name, value in (
        ("messaging.system", SYSTEM),
        ("messaging.destination.name", job.task),
        ("messaging.message.id", str(job.id)),
        ("messaging.message.receive.latency", latency),
        ("messaging.message.retry.count", job.attempts - 1),
    ):
        known.span.set_data(name, value)
    known.scope.span = known.span


def _carrier() -> dict[str, Any] | None:
    """Return the current context as a payload's `_trace`."""
    found = re.fullmatch(r"([0-9a-f]{32})-([0-9a-f]{16})(?:-([01]))?", sentry_sdk.get_traceparent() or "")
    if found is None:
        return None
    carrier: dict[str, Any] = {"flags": int(found[3] or 0), "trace_id": found[1], "span_id": found[2]}
    baggage = sentry_sdk.get_baggage()
    return {**carrier, "baggage": baggage} if baggage else carrier


def _headers(trace: Any) -> dict[str, str]:
    """Return a payload's `_trace` as the headers that Sentry reads; empty when it is missing or malformed."""
    if not isinstance(trace, dict) or not isinstance(trace.get("flags"), int):
        return {}
    header = f"{trace.get('trace_id')}-{trace.get('span_id')}-{trace['flags'] & 1}"
    if re.fullmatch(r"[0-9a-f]{32}-[0-9a-f]{16}-[01]", header) is None:
        return {}
    baggage = trace.get("baggage")
    return {"sentry-trace": header, **({"baggage": baggage} if isinstance(baggage, str) else {})}
