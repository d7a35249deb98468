"""OpenTelemetry: spans and metrics for jobs, by the semantic conventions for messaging.

Needs the extra `otel`. Give `OpenTelemetry()` to `Client` and `Runner` as a plugin, or run
`gw run --plugin gw_core.contrib.opentelemetry:OpenTelemetry`. Configure the SDK and its exporters as for any program.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

import msgspec
from opentelemetry import baggage, context as otel_context, metrics, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gw_core import Addition, Events, Job, JobContext, JobSpec, Plugin, RetryAfter, Snooze, __version__
from gw_core.contrib.payload_trace import TRACE, with_trace
from gw_core.events import JobCompleted, JobErrored, JobLockLost, JobReturned, JobSucceeded, PoolStopped

__all__ = ["OpenTelemetry"]

SYSTEM: Final = "graphile-worker"
"""The value of `messaging.system`; graphile_worker_rs uses the same."""

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_PROPAGATOR: Final = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
_NOTHING: Final = Context()


class OpenTelemetry(Plugin):
    """Makes spans for adds, runs and the recording of outcomes, carries their context in `_trace`, and records metrics.

    The span of an add is a child of the current span. With `relation="link"` the span of a run starts a new trace and
    links to the span that added the job; with `"parent"` it continues that trace. A batch job always links to the spans
    of its items. Jobs that SQL or a crontab added have no such span. The outcome of a run is recorded in the database
    after the run, in a child span that begins when the run ends. Without `tracer_provider` and `meter_provider` the
    global ones are used.

    Everyone who can add a job chooses the trace, the sampling and the baggage in its `_trace`. Without `trust_trace`
    the plugin ignores it.

    Example: docs/guide/observability.md
    """

    def __init__(
        self,
        *,
        relation: Literal["link", "parent"] = "link",
        trust_trace: bool = True,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        if relation not in ("link", "parent"):
            raise ValueError(f'relation must be "link" or "parent", not {relation!r}')
        self._continues_trace = relation == "parent"
        self._trusts_trace = trust_trace
        self._tracer = trace.get_tracer(__name__, __version__, tracer_provider)
        self._running: dict[str, _Run] = {}
        """The run on each thread. A thread writes its own key only, so no lock is needed."""
        self._unsettled: dict[tuple[str, int], _Run] = {}
        """The recorded runs whose outcomes are not settled, by the ids of the worker and of the job."""
        meter = metrics.get_meter(__name__, __version__, meter_provider)
        self._operations = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Duration of adding jobs.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._durations = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "Duration of runs.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Jobs added.")
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}", "Runs started.")

    def attach(self, events: Events) -> None:
        """Subscribe to the ends of runs and to what becomes of their outcomes."""
        events.on(JobSucceeded, self._succeeded)
        events.on(JobErrored, self._errored)
        for settled in (JobCompleted, JobReturned, JobLockLost):
            events.on(settled, self._settled)
        events.on(PoolStopped, self._stopped)

    # -- add -------------------------------------------------------------------------------------------------------

    @contextmanager
    def around_add(self, addition: Addition) -> Iterator[None]:
        """Make the span of an add, and write its context into the payloads."""
        count, tasks = len(addition.specs), {spec.task for spec in addition.specs}
        task = tasks.pop() if len(tasks) == 1 else None
        attributes: dict[str, Any] = _attributes("send", task)
        if count > 1:
            attributes["messaging.batch.message_count"] = count
        started = time.perf_counter()
        measured = _attributes("send", task)
        with self._tracer.start_as_current_span(
            "send" if task is None else f"send {task}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            addition.specs = _with_current_trace(addition.specs)
            try:
                yield
            except BaseException as error:
                measured["error.type"] = _name_of(error)
                span.set_attribute("error.type", measured["error.type"])
                raise
            finally:
                self._operations.record(time.perf_counter() - started, measured)
                self._sent.add(count, measured)
            if count == 1 and addition.ids:
                span.set_attribute("messaging.message.id", str(addition.ids[0]))

    # -- run -------------------------------------------------------------------------------------------------------

    def around_run(self, job: Job, context: JobContext, run: Any) -> object:
        """Make the span of a run. It ends when the outcome is known, which can be later, for example for batches."""
        origins = _origins(job) if self._trusts_trace else []
        # Baggage travels in either relation.
        parent = origins[0] if len(origins) == 1 else _NOTHING
        links: Sequence[Link] = ()
        is_batch = job.payload_json.lstrip().startswith("[")
        if origins and (not self._continues_trace or is_batch):
            links = [Link(trace.get_current_span(each).get_span_context()) for each in origins]
            parent = trace.set_span_in_context(trace.INVALID_SPAN, parent)
        span = self._tracer.start_span(
            f"process {job.task}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes=_attributes_of(job, context),
            links=links,
        )
        self._consumed.add(1, _attributes("process", job.task))
        if span is trace.INVALID_SPAN and not baggage.get_all(parent):
            return run()
        self._end(context.thread_name)  # the thread's former run, if it was interrupted
        self._running[context.thread_name] = _Run(span, context.worker_id, job.id)
        token = otel_context.attach(trace.set_span_in_context(span, parent))
        try:
            return run()
        except Snooze as snooze:
            span.add_event("snooze", {"delay_seconds": snooze.delay.total_seconds(), "reason": str(snooze)})
            self._end(context.thread_name)
            raise
        finally:
            otel_context.detach(token)

    def _succeeded(self, event: JobSucceeded) -> None:
        self._durations.record(event.seconds, _attributes("process", event.job.task))
        self._end(event.thread)

    def _errored(self, event: JobErrored) -> None:
        error = event.error
        measured = {**_attributes("process", event.job.task), "error.type": _name_of(error)}
        self._durations.record(event.seconds, measured)
        run = self._running.get(event.thread)
        if run is None:
            return
        span = run.span
        if isinstance(error, RetryAfter):
            span.add_event("retry", {"delay_seconds": error.delay.total_seconds(), "reason": str(error)})
        else:
            span.record_exception(error)
            span.set_attribute("error.type", measured["error.type"])
            span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        self._end(event.thread)

    def _stopped(self, event: PoolStopped) -> None:
        for thread in list(self._running):
            self._end(thread)
        self._unsettled.clear()

    def _end(self, thread: str) -> None:
        run = self._running.pop(thread, None)
        if run is None:
            return
        if run.span.is_recording():
            run.ended_ns = time.time_ns()
            self._unsettled[run.worker_id, run.job_id] = run
        run.span.end()

    def _settled(self, event: JobCompleted | JobReturned | JobLockLost) -> None:
        if not self._unsettled:
            return
        run = self._unsettled.pop((event.worker_id, event.job.id), None)
        if run is None:
            return
        attributes = _attributes("settle", event.job.task)
        attributes["messaging.message.id"] = str(event.job.id)
        attributes["messaging.client.id"] = event.worker_id
        span = self._tracer.start_span(
            f"settle {event.job.task}",
            context=trace.set_span_in_context(run.span, _NOTHING),
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=run.ended_ns,
        )
        if isinstance(event, JobLockLost):
            outcome = "is unknown" if event.in_doubt else "was discarded"
            span.set_status(Status(StatusCode.ERROR, f"the job had lost its lock; the outcome {outcome}"))
        span.end()


class _Run(msgspec.Struct):
    """A run until its outcome is settled."""

    span: Span
    worker_id: str
    job_id: int
    ended_ns: int = 0


# -- attributes ----------------------------------------------------------------------------------------------------


def _attributes(operation: str, task: str | None) -> dict[str, Any]:
    """Return the attributes that spans and metrics share."""
    attributes = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }
    if task is not None:
        attributes["messaging.destination.name"] = task
    return attributes


def _attributes_of(job: Job, context: JobContext) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        **_attributes("process", job.task),
        "messaging.message.id": str(job.id),
        "messaging.client.id": context.worker_id,
        "graphile_worker.job.attempt": job.attempts,
        "graphile_worker.job.max_attempts": job.max_attempts,
    }
    if job.job_key is not None:
        attributes["graphile_worker.job.key"] = job.job_key
    if job.queue_name is not None:
        attributes["graphile_worker.queue.name"] = job.queue_name
    return attributes


def _name_of(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# -- the context in the payload ------------------------------------------------------------------------------------


def _with_current_trace(specs: Sequence[JobSpec]) -> Sequence[JobSpec]:
    """Return the jobs with the current context in their payloads; as they are when there is none."""
    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return specs
    carrier: dict[str, Any] = {
        "flags": int(current.trace_flags),
        "trace_id": trace.format_trace_id(current.trace_id),
        "span_id": trace.format_span_id(current.span_id),
    }
    _PROPAGATOR.inject(carrier)
    return [spec.with_payload(with_trace(spec.payload, carrier)) for spec in specs]


def _origins(job: Job) -> list[Context]:
    """Return the contexts in the job's payload: one at most, or each distinct one of a batch."""
    if f'"{TRACE}"' not in job.payload_json:
        return []
    try:
        payload = job.payload
    except ValueError:
        return []
    if isinstance(payload, dict):
        origin = _origin(payload.get(TRACE))
        return [] if origin is None else [origin]
    items = payload if isinstance(payload, list) else []
    found = [_origin(item.get(TRACE)) for item in items if isinstance(item, dict)]
    return list({_ids_of(each): each for each in found if each is not None}.values())


def _ids_of(context: Context) -> tuple[int, int]:
    span_context = trace.get_current_span(context).get_span_context()
    return span_context.trace_id, span_context.span_id


def _origin(value: Any) -> Context | None:
    """Return the context that a `_trace` describes; None when it is malformed."""
    if not isinstance(value, dict):
        return None
    try:
        parent = f"00-{value['trace_id']}-{value['span_id']}-{value['flags']:02x}".lower()
    except (KeyError, TypeError, ValueError):
        return None
    others = {name: value[name] for name in ("tracestate", "baggage") if isinstance(value.get(name), str)}
    found = _PROPAGATOR.extract({"traceparent": parent, **others}, _NOTHING)
    return found if trace.get_current_span(found).get_span_context().is_valid else None
