"""Traces and metrics of jobs, and the trace context that travels in their payloads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr
from support.call_count import calls_in
from support.queue_fixture import QueueFixture, RunRecord

from gw_core import AsyncClient, Client, Events, Job, JobSpec, RetryAfter, Snooze
from gw_core.errors import BatchError, InvalidJobError
from gw_core.events import JobCompleted, JobSucceeded

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import baggage, context, propagate, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from gw_core.contrib.opentelemetry import OpenTelemetry

CHECKOUT = Path(__file__).resolve().parents[2]
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
RUST_TRACE = {"flags": 1, "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}


class Telemetry:
    """A plugin whose traces and metrics stay in memory."""

    def __init__(self, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.tracer = provider.get_tracer("test")
        self.plugin = OpenTelemetry(
            tracer_provider=provider, meter_provider=MeterProvider([self._metrics], shutdown_on_exit=False), **options
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def points(self, name: str) -> list[Any]:
        """Return the data points of a metric."""
        data = self._metrics.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@dataclass
class Adding:
    client: Client
    telemetry: Telemetry


@pytest.fixture
def adding(site: QueueFixture, telemetry: Telemetry) -> Iterator[Adding]:
    with Client(site.url, plugins=[telemetry.plugin]) as client:
        yield Adding(client, telemetry)


def ids(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def payload_of(site: QueueFixture, number: int = 0) -> Any:
    return site.jobs()[number]["payload"]


def carried(trace_of_job: dict[str, Any]) -> tuple[int, int]:
    return int(trace_of_job["trace_id"], 16), int(trace_of_job["span_id"], 16)


def linked(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


# -- add -----------------------------------------------------------------------------------------------------------


def test_an_add_is_a_producer_span_whose_context_is_in_the_payload(site: QueueFixture, adding: Adding) -> None:
    with adding.telemetry.tracer.start_as_current_span("request") as request:
        job = adding.client.add("work", {"n": 1})

    span = adding.telemetry.span("send work")
    assert job is not None
    assert (span.kind, span.parent) == (SpanKind.PRODUCER, request.get_span_context())
    assert dict(span.attributes or {}) == {
        "messaging.system": "graphile-worker",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "work",
        "messaging.message.id": str(job.id),
    }
    trace_id, span_id = ids(span)
    assert span.context is not None
    flags = int(span.context.trace_flags)
    assert payload_of(site) == {
        "n": 1,
        "_trace": {
            "flags": flags,
            "trace_id": f"{trace_id:032x}",
            "span_id": f"{span_id:016x}",
            "traceparent": f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}",
        },
    }


def test_a_bulk_is_one_span_and_its_context_is_in_every_payload(site: QueueFixture, adding: Adding) -> None:
    adding.client.add_many([JobSpec(task="work"), JobSpec(task="work", payload={"n": 2})])
    adding.client.add_many([JobSpec(task="work"), JobSpec(task="mail")])

    same, mixed = adding.telemetry.span("send work"), adding.telemetry.span("send")
    assert (same.attributes or {})["messaging.batch.message_count"] == 2
    assert "messaging.destination.name" not in (mixed.attributes or {})
    assert [carried(job["payload"]["_trace"]) for job in site.jobs()] == [ids(same)] * 2 + [ids(mixed)] * 2


def test_objects_in_a_list_and_of_a_class_carry_the_context_and_scalars_stay(
    site: QueueFixture, adding: Adding
) -> None:
    @dataclass
    class Mail:
        to: str

    adding.client.add_many(
        [JobSpec(task="work", payload=each) for each in (Mail("ann"), [{"n": 1}, Mail("bob"), 3], 7, "text")]
    )

    mail, batch, number, text = [job["payload"] for job in site.jobs()]
    assert (mail.pop("_trace"), mail) == (batch[0]["_trace"], {"to": "ann"})
    assert (set(batch[0]), set(batch[1]), batch[2]) == ({"n", "_trace"}, {"to", "_trace"}, 3)
    assert (number, text) == (7, "text")


class Line(BaseModel):
    sku: str


class Card(BaseModel):
    number: SecretStr


@dataclass
class Order:
    lines: list[Line]


PAYLOADS: dict[str, Any] = {
    "models in a list": [Line(sku="a"), Line(sku="b")],
    "a model in a dict": {"line": Line(sku="a")},
    "models in a dataclass": Order([Line(sku="a")]),
    "a model beside values": [Line(sku="a"), {"n": 1}, None, 3],
    "a date": {"day": date(2026, 1, 1)},
    "a set": {"tags": {"a"}},
    "a secret": Card(number=SecretStr("4111")),
    "a secret in a list": [Card(number=SecretStr("4111"))],
    "no number": {"n": float("nan")},
    "a zero byte": ["a\0b"],
    "an object": [object()],
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_what_a_payload_may_be_does_not_depend_on_tracing(site: QueueFixture, adding: Adding, payload: Any) -> None:
    outcomes = []
    for client in (site.client, adding.client):
        try:
            client.add("work", payload)
        except InvalidJobError as error:
            outcomes.append(re.sub("0x[0-9a-f]+", "0x", str(error)))
        else:
            outcomes.append(without_trace(payload_of(site, -1)))

    assert outcomes[0] == outcomes[1]


def without_trace(payload: Any) -> Any:
    if isinstance(payload, list):
        return [without_trace(each) for each in payload]
    return {key: value for key, value in payload.items() if key != "_trace"} if isinstance(payload, dict) else payload


def test_a_context_that_is_in_the_payload_stays(site: QueueFixture, adding: Adding) -> None:
    adding.client.add("work", {"_trace": RUST_TRACE})

    assert payload_of(site) == {"_trace": RUST_TRACE}


def test_tracestate_and_baggage_travel(site: QueueFixture, adding: Adding, telemetry: Telemetry) -> None:
    request = propagate.extract({"traceparent": TRACEPARENT, "tracestate": "vendor=1", "baggage": "tenant=acme"})
    token = context.attach(request)
    try:
        adding.client.add("work")
    finally:
        context.detach(token)
    seen: list[object] = []
    site.run_once({"work": lambda payload: seen.append(baggage.get_baggage("tenant"))}, plugins=[telemetry.plugin])

    assert seen == ["acme"]
    (link,) = telemetry.span("process work").links
    assert link.context.trace_state.get("vendor") == "1"


def test_the_traceparent_of_a_request_is_carried_without_a_provider(site: QueueFixture) -> None:
    token = context.attach(propagate.extract({"traceparent": TRACEPARENT}))
    try:
        with Client(site.url, plugins=[OpenTelemetry(tracer_provider=trace.NoOpTracerProvider())]) as client:
            client.add("work")
    finally:
        context.detach(token)

    assert payload_of(site)["_trace"]["traceparent"] == TRACEPARENT


def test_an_add_on_an_event_loop_belongs_to_its_request(site: QueueFixture, telemetry: Telemetry) -> None:
    import asyncio

    async def handle(name: str) -> None:
        async with AsyncClient(site.url, plugins=[telemetry.plugin]) as client:
            with telemetry.tracer.start_as_current_span(name):
                await client.add(name)

    async def both() -> None:
        await asyncio.gather(handle("one"), handle("two"))

    asyncio.run(both())
    for name in ("one", "two"):
        assert telemetry.span(f"send {name}").parent == telemetry.span(name).context


def test_a_failed_add_is_an_error(adding: Adding) -> None:
    with pytest.raises(InvalidJobError):
        adding.client.add("work", {"n": float("nan")})

    span = adding.telemetry.span("send work")
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "gw_core.domain.errors.InvalidJobError"


# -- run -----------------------------------------------------------------------------------------------------------


def run(site: QueueFixture, telemetry: Telemetry, task: Callable[..., object], **options: Any) -> ReadableSpan:
    site.let_retries_wait()
    site.run_once({"work": task}, plugins=[telemetry.plugin], **options)
    return telemetry.span("process work")


def test_a_run_is_a_consumer_span_in_a_new_trace_that_links_to_the_add(site: QueueFixture, adding: Adding) -> None:
    job = adding.client.add("work", job_key="k", queue_name="q")
    assert job is not None
    inner: list[Any] = []
    site.run_once(
        {"work": lambda payload: inner.append(trace.get_current_span().get_span_context())},
        plugins=[adding.telemetry.plugin],
    )

    send, process = adding.telemetry.span("send work"), adding.telemetry.span("process work")
    assert (process.kind, process.parent, linked(process)) == (SpanKind.CONSUMER, None, [ids(send)])
    assert inner == [process.context]
    attributes = dict(process.attributes or {})
    assert attributes.pop("messaging.client.id")
    assert attributes == {
        "messaging.system": "graphile-worker",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "work",
        "messaging.message.id": str(job.id),
        "graphile_worker.job.attempt": 1,
        "graphile_worker.job.max_attempts": 25,
        "graphile_worker.job.key": "k",
        "graphile_worker.queue.name": "q",
    }


def test_a_run_can_continue_the_trace(site: QueueFixture) -> None:
    telemetry = Telemetry(relation="parent")
    with Client(site.url, plugins=[telemetry.plugin]) as client:
        client.add("work")
    process = run(site, telemetry, lambda payload: None)

    assert process.parent is not None
    assert (process.parent.trace_id, process.parent.span_id) == ids(telemetry.span("send work"))
    assert process.links == ()


@pytest.mark.parametrize("relation", ["link", "parent"])
def test_the_trace_of_a_payload_can_be_ignored(site: QueueFixture, relation: str) -> None:
    telemetry = Telemetry(relation=relation, trust_trace=False)
    site.add(payload={"_trace": {**RUST_TRACE, "flags": 0, "baggage": "tenant=acme"}})
    seen: list[Any] = []
    span = run(site, telemetry, lambda payload: seen.append(baggage.get_all()))

    assert (span.parent, span.links, seen) == (None, (), [{}])


def test_the_outcome_of_each_run_is_settled_in_a_child_span(site: QueueFixture, telemetry: Telemetry) -> None:
    def work(payload: dict[str, str]) -> None:
        match payload["end"]:
            case "failure":
                raise ValueError("no")
            case "snooze":
                raise Snooze(3600)

    for end in ("success", "failure", "snooze"):
        site.add(payload={"end": end})
    site.let_retries_wait()
    site.run_once({"work": work}, plugins=[telemetry.plugin])

    runs = {ids(span): span for span in telemetry.spans if span.name == "process work"}
    settled = [span for span in telemetry.spans if span.name == "settle work"]
    assert {(span.parent.trace_id, span.parent.span_id) for span in settled if span.parent} == set(runs)
    for span in settled:
        assert span.parent is not None
        run = runs[span.parent.trace_id, span.parent.span_id]
        same = [(each.attributes or {}).get("messaging.message.id") for each in (run, span)]
        assert same[0] == same[1]
        assert (span.kind, (span.attributes or {})["messaging.operation.type"]) == (SpanKind.CLIENT, "settle")
        assert (run.end_time or 0) <= (span.end_time or 0)
    assert len(settled) == 3


def test_an_outcome_that_is_discarded_is_an_error(site: QueueFixture, telemetry: Telemetry) -> None:
    site.add()
    run(site, telemetry, lambda payload: site.run("update _private_jobs set locked_by = 'another'"))

    assert telemetry.span("settle work").status.status_code is StatusCode.ERROR


def test_another_relation_is_rejected() -> None:
    with pytest.raises(ValueError, match='must be "link" or "parent"'):
        OpenTelemetry(relation="child")  # type: ignore[arg-type]


def test_a_job_from_rust_is_linked(site: QueueFixture, telemetry: Telemetry) -> None:
    site.add(payload={"n": 1, "_trace": {**RUST_TRACE, "unknown": True}})

    assert linked(run(site, telemetry, RunRecord())) == [carried(RUST_TRACE)]


def test_a_batch_links_to_each_distinct_origin(site: QueueFixture) -> None:
    telemetry = Telemetry(relation="parent")
    other = {**RUST_TRACE, "span_id": "1122334455667788"}
    site.add(payload=[{"_trace": RUST_TRACE}, {"_trace": other}, {"_trace": RUST_TRACE}, 5])
    process = run(site, telemetry, lambda payload: None)

    assert (process.parent, linked(process)) == (None, [carried(RUST_TRACE), carried(other)])


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        [],
        {},
        {**RUST_TRACE, "flags": 256},
        {**RUST_TRACE, "flags": "1"},
        {**RUST_TRACE, "trace_id": "0" * 32},
        {**RUST_TRACE, "trace_id": "xyz"},
        {**RUST_TRACE, "span_id": 7},
    ],
    ids=repr,
)
def test_a_malformed_context_is_ignored(site: QueueFixture, telemetry: Telemetry, value: Any) -> None:
    site.add(payload={"_trace": value})

    process = run(site, telemetry, lambda payload: None)
    assert (process.parent, process.links) == (None, ())


def test_a_job_added_by_sql_is_a_trace_of_its_own(site: QueueFixture, telemetry: Telemetry) -> None:
    site.fill(1)

    process = run(site, telemetry, lambda payload: None)
    assert (process.parent, process.links) == (None, ())


def test_a_job_that_a_task_adds_belongs_to_its_run(site: QueueFixture, telemetry: Telemetry) -> None:
    site.add()
    process = run(site, telemetry, lambda payload, context: context.add("later", run_at=_tomorrow()))

    assert telemetry.span("send later").parent == process.context


def _tomorrow() -> Any:
    from datetime import timedelta

    return timedelta(days=1)


def test_the_span_of_a_coroutine_ends_after_it_and_is_current_in_it(site: QueueFixture, telemetry: Telemetry) -> None:
    async def work(payload: Any) -> None:
        with telemetry.tracer.start_as_current_span("inner"):
            pass

    site.add()
    process, inner = run(site, telemetry, work), telemetry.span("inner")
    assert inner.parent == process.context
    assert (process.end_time or 0) >= (inner.end_time or 0)


# -- outcomes ------------------------------------------------------------------------------------------------------


def raising(error: BaseException) -> Callable[[Any], None]:
    def work(payload: Any) -> None:
        raise error

    return work


def test_a_failed_attempt_is_an_error_with_its_exception(site: QueueFixture, telemetry: Telemetry) -> None:
    site.add()
    process = run(site, telemetry, raising(KeyError("no such order")))

    assert (process.status.status_code, (process.attributes or {})["error.type"]) == (StatusCode.ERROR, "KeyError")
    (event,) = process.events
    assert (event.attributes or {})["exception.type"] == "KeyError"
    assert "in work" in str((event.attributes or {})["exception.stacktrace"])


@pytest.mark.parametrize(("error", "event"), [(Snooze(9000), "snooze"), (RetryAfter(9000), "retry")])
def test_a_task_that_asks_for_another_time_is_no_error(
    site: QueueFixture, telemetry: Telemetry, error: BaseException, event: str
) -> None:
    site.add()
    process = run(site, telemetry, raising(error))

    assert process.status.status_code is StatusCode.UNSET
    assert [(each.name, (each.attributes or {})["delay_seconds"]) for each in process.events] == [(event, 9000.0)]


def test_a_batch_with_a_failed_item_is_an_error(site: QueueFixture, telemetry: Telemetry) -> None:
    async def fails() -> None:
        raise ValueError("the second item")

    site.add(payload=[1, 2])
    process = run(site, telemetry, lambda payload: [None, fails()])

    assert process.status.status_code is StatusCode.ERROR
    assert (process.attributes or {})["error.type"] == f"{BatchError.__module__}.BatchError"


# -- metrics -------------------------------------------------------------------------------------------------------


def test_the_metrics_count_adds_and_runs(site: QueueFixture, adding: Adding) -> None:
    adding.client.add_many([JobSpec(task="work", payload={"n": n}) for n in range(3)])
    site.let_retries_wait()

    def work(payload: Any) -> None:
        if payload["n"] == 0:
            raise KeyError(payload["n"])

    site.run_once({"work": work}, plugins=[adding.telemetry.plugin])

    points = adding.telemetry.points
    assert [point.value for point in points("messaging.client.sent.messages")] == [3]
    assert [point.count for point in points("messaging.client.operation.duration")] == [1]
    assert [point.value for point in points("messaging.client.consumed.messages")] == [3]
    durations = {point.attributes.get("error.type"): point.count for point in points("messaging.process.duration")}
    assert durations == {None: 2, "KeyError": 1}
    assert points("messaging.process.duration")[0].explicit_bounds[-1] == 10


# -- across processes ----------------------------------------------------------------------------------------------

TRACED = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from gw_core.contrib.opentelemetry import OpenTelemetry

provider = TracerProvider()
file = open("spans", "a", buffering=1)
exporter = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(None) + "\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
plugin = OpenTelemetry(relation="parent", tracer_provider=provider)
"""


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["one process", "two processes"])
def test_one_trace_goes_from_a_request_to_a_run_in_another_process(
    site: QueueFixture, adding: Adding, tmp_path: Path, options: tuple[str, ...]
) -> None:
    with adding.telemetry.tracer.start_as_current_span("request") as request:
        adding.client.add("work")
    site.add(payload={"_trace": RUST_TRACE})
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "work.py").write_text("def work(payload):\n    pass\n")
    (tmp_path / "traced.py").write_text(TRACED)
    subprocess.run(
        [sys.executable, "-m", "gw_cli", "run", "--once", "-c", site.url, "--plugin", "traced:plugin", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        check=True,
        capture_output=True,
        timeout=200,
    )

    lines = (tmp_path / "spans").read_text().splitlines()
    spans = [json.loads(line) for line in lines]
    settled = {span["parent_id"] for span in spans if span["name"] == "settle work"}
    runs = [span for span in spans if span["name"] == "process work" and span["context"]["span_id"] in settled]
    chains = {int(run["context"]["trace_id"], 16): int(run["parent_id"], 16) for run in runs}
    send = ids(adding.telemetry.span("send work"))
    assert chains == {request.get_span_context().trace_id: send[1], carried(RUST_TRACE)[0]: carried(RUST_TRACE)[1]}
    assert len(spans) == 4


# -- cost ----------------------------------------------------------------------------------------------------------


def test_a_run_without_a_provider_costs_little() -> None:
    """`python -m bench.plugin_costs` measures the time; this bound only notices work that should not be there."""
    plugin, events = OpenTelemetry(tracer_provider=trace.NoOpTracerProvider()), Events()
    plugin.attach(events)
    job = Job(1, "work", '{"n": 1}', 1, 25, 0, 0.0, 0.0, 0.0, 0)
    about: Any = SimpleNamespace(worker_id="gw-host-1", thread_name="gw-worker-1")

    def succeed() -> None:
        plugin.around_run(job, about, lambda: None)
        events.emit(JobSucceeded(worker_id="gw-host-1", thread="gw-worker-1", job=job, seconds=0.0))
        events.emit(JobCompleted(worker_id="gw-host-1", job=job, error=None))

    succeed()
    assert calls_in(succeed) < 60
