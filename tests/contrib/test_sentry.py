"""Sentry: what its transport receives from failed attempts, runs, adds and recurring tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.call_count import calls_in
from support.queue_fixture import QueueFixture, a_registry

from gw_core import Client, Events, GiveUp, Job, JobSpec, RetryAfter, Runner, Snooze
from gw_core.errors import GraphileWorkerError
from gw_core.events import JobErrored, JobSucceeded
from gw_core.front_ends import CronStarted, RunnerStopped

pytest.importorskip("sentry_sdk")

import sentry_sdk
from sentry_sdk.integrations.logging import LoggingIntegration

from gw_core.contrib.sentry import Sentry

CHECKOUT = Path(__file__).resolve().parents[2]
RUST_TRACE = {"flags": 1, "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}


class Captured(sentry_sdk.Transport):  # type: ignore[misc] # the package is optional
    """Keeps what would be sent."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.items: list[tuple[str, Any]] = []

    def capture_envelope(self, envelope: Any) -> None:
        self.items += [(item.type, item.payload.json) for item in envelope.items]

    def of(self, kind: str) -> list[Any]:
        return [payload for each, payload in self.items if each == kind]


@pytest.fixture
def start() -> Iterator[Callable[..., Captured]]:
    """Initialize the SDK with a transport that keeps everything."""

    def init(**options: Any) -> Captured:
        transport = Captured()
        sentry_sdk.init(
            dsn="https://key@localhost/1",
            transport=transport,
            auto_enabling_integrations=False,
            # The fixture's logger has a name of its own, which the plugin does not know.
            disabled_integrations=[LoggingIntegration()],
            **options,
        )
        return transport

    yield init
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)


@pytest.fixture
def sent(start: Callable[..., Captured]) -> Captured:
    return start()


@pytest.fixture
def traced(start: Callable[..., Captured]) -> Captured:
    return start(traces_sample_rate=1.0)


def run(site: QueueFixture, task: Callable[..., object], plugin: Sentry | None = None, **options: Any) -> None:
    site.let_retries_wait()
    site.run_once({"work": task, "mail": task}, plugins=[plugin or Sentry()], **options)


def fail(payload: Any) -> None:
    try:
        raise KeyError("stock")
    except KeyError as error:
        raise ValueError("order 7") from error


# -- failed attempts -----------------------------------------------------------------------------------------------


def test_a_failed_attempt_is_one_event_with_cause_stack_and_job(site: QueueFixture, sent: Captured) -> None:
    job_id = site.add(queue_name="q", job_key="k")
    run(site, fail)

    (event,) = sent.of("event")
    cause, error = event["exception"]["values"]
    assert (cause["type"], error["type"], error["value"]) == ("KeyError", "ValueError", "order 7")
    assert [frame["function"] for frame in error["stacktrace"]["frames"]][-1] == "fail"
    assert error["mechanism"]["type"] == "graphile_worker"
    assert error["mechanism"]["handled"] is False
    assert (event["level"], event["transaction"]) == ("warning", "work")
    assert (event["tags"]["task"], event["tags"]["queue"]) == ("work", "q")
    assert event["contexts"]["job"] == {"id": job_id, "attempt": 10, "max_attempts": 34, "key": "k"}


def test_an_event_has_the_name_of_the_task_after_a_transaction_of_the_program(
    site: QueueFixture, traced: Captured
) -> None:
    with sentry_sdk.start_transaction(name="request"):
        site.add()
    run(site, fail)

    assert [event["transaction"] for event in traced.of("event")] == ["work"]


def test_two_tasks_are_two_groups(site: QueueFixture, sent: Captured) -> None:
    for task in ("work", "mail"):
        site.add(task)
    run(site, fail)

    assert sorted(event["fingerprint"] for event in sent.of("event")) == [
        ["{{ default }}", "mail"],
        ["{{ default }}", "work"],
    ]


@pytest.mark.parametrize(("error", "attempts"), [(ValueError(), 1), (GiveUp("no"), 25)], ids=["last", "given up"])
def test_the_last_attempt_is_an_error(site: QueueFixture, sent: Captured, error: BaseException, attempts: int) -> None:
    def work(payload: Any) -> None:
        raise error

    site.add(max_attempts=attempts)
    site.run_once({"work": work}, plugins=[Sentry()])

    assert [event["level"] for event in sent.of("event")] == ["error"]


@pytest.mark.parametrize("error", [Snooze(9000), RetryAfter(9000)], ids=["snooze", "retry"])
def test_a_task_that_asks_for_another_time_is_no_event(
    site: QueueFixture, sent: Captured, error: BaseException
) -> None:
    def work(payload: Any) -> None:
        raise error

    site.add()
    run(site, work)
    assert sent.of("event") == []


def test_the_attempts_that_count_can_be_chosen(site: QueueFixture, sent: Captured) -> None:
    site.add(max_attempts=2)
    run(site, fail, Sentry(attempts="last"))
    assert sent.of("event") == []
    site.run("update _private_jobs set run_at = now()")
    run(site, fail, Sentry(attempts=lambda job, error: job.attempts > 1 and isinstance(error, ValueError)))
    assert len(sent.of("event")) == 1
    with pytest.raises(ValueError, match='"all", "last" or a function'):
        Sentry(attempts="first")  # type: ignore[arg-type]


def test_a_payload_that_does_not_fit_and_a_timeout_are_events(site: QueueFixture, sent: Captured) -> None:
    from gw_core import task

    def typed(payload: int) -> None: ...

    @task(timeout=0.05)
    def slow(payload: Any, context: Any) -> None:
        context.should_stop.wait(30)

    site.add("typed", {"n": 1})
    site.add("slow")
    site.let_retries_wait()
    site.run_once({"typed": typed, "slow": slow}, plugins=[Sentry()])

    found = {event["transaction"]: event["exception"]["values"][-1]["type"] for event in sent.of("event")}
    assert found == {"typed": "PayloadError", "slow": "TaskTimeoutError"}


def test_the_failed_items_of_a_batch_are_shown(site: QueueFixture, sent: Captured) -> None:
    site.add(payload=[1, 2, 3])
    run(site, lambda payload: [None, ValueError("two"), KeyError("three")])

    (event,) = sent.of("event")
    assert {"ValueError", "KeyError"} < {each["type"] for each in event["exception"]["values"]}


def test_breadcrumbs_stay_with_their_job(site: QueueFixture, sent: Captured) -> None:
    async def work(payload: Any) -> None:
        sentry_sdk.add_breadcrumb(message=f"job {payload['n']}")
        raise ValueError(payload["n"])

    site.fill(20)
    run(site, work, concurrency=4)

    events = sent.of("event")
    assert len(events) == 20
    for event in events:
        number = event["exception"]["values"][-1]["value"]
        assert [crumb["message"] for crumb in event["breadcrumbs"]["values"]] == [f"job {number}"]


# -- local variables -----------------------------------------------------------------------------------------------

PAYLOAD = {"card": "4242424242424242"}


def charge(payload: Any) -> None:
    card = payload["card"]
    raise ValueError(f"card of {len(card)} digits refused")


def variables(event: Any) -> dict[str, Any]:
    """Return the local variables of each function in the event's stack."""
    frames = event["exception"]["values"][-1]["stacktrace"]["frames"]
    return {frame["function"]: frame["vars"] for frame in frames if frame.get("vars")}


def test_an_event_of_a_run_has_no_local_variables(site: QueueFixture, sent: Captured) -> None:
    site.add(payload=PAYLOAD)
    run(site, charge)

    (event,) = sent.of("event")
    assert variables(event) == {}


def test_local_variables_of_the_task_are_sent_if_asked_for(site: QueueFixture, sent: Captured) -> None:
    site.add(payload=PAYLOAD)
    run(site, charge, Sentry(include_local_variables=True))

    (event,) = sent.of("event")
    assert variables(event) == {"charge": {"payload": {"card": f"'{PAYLOAD['card']}'"}, "card": f"'{PAYLOAD['card']}'"}}


def test_a_failed_add_sends_no_payload(site: QueueFixture, sent: Captured) -> None:
    site.run("alter table _private_jobs add constraint refused check (task_id < 0) not valid")

    def request(client: Client) -> None:
        try:
            client.add("work", PAYLOAD)
        except GraphileWorkerError:
            sentry_sdk.capture_exception()

    try:
        with Client(site.url, plugins=[Sentry()]) as client:
            request(client)
    finally:
        site.run("alter table _private_jobs drop constraint refused")

    (event,) = sent.of("event")
    assert "work" in json.dumps(event)
    assert "4242" not in json.dumps(event)
    assert list(variables(event)) == ["request"]


# -- traces --------------------------------------------------------------------------------------------------------


def test_one_trace_has_the_request_the_add_and_the_run(site: QueueFixture, traced: Captured) -> None:
    plugin = Sentry()
    with (
        Client(site.url, plugins=[plugin]) as client,
        sentry_sdk.start_transaction(name="request", op="http.server"),
    ):
        job = client.add("work", {"n": 1})
    assert job is not None
    run(site, lambda payload: sentry_sdk.start_span(op="db", name="inner").finish(), plugin)

    request, process = traced.of("transaction")
    (publish,) = request["spans"]
    assert (publish["op"], publish["description"]) == ("queue.publish", "work")
    assert publish["data"]["messaging.message.id"] == str(job.id)
    assert process["contexts"]["trace"]["trace_id"] == request["contexts"]["trace"]["trace_id"]
    assert process["contexts"]["trace"]["parent_span_id"] == publish["span_id"]
    assert process["contexts"]["trace"]["op"] == "queue.task.graphile_worker"
    assert (process["transaction"], process["transaction_info"]["source"]) == ("work", "task")
    queue, inner = process["spans"]
    assert (queue["op"], queue["status"], inner["parent_span_id"]) == ("queue.process", "ok", queue["span_id"])
    data = queue["data"]
    assert data["messaging.destination.name"] == "work"
    assert data["messaging.message.retry.count"] == 9
    assert 0 <= data["messaging.message.receive.latency"] < 600_000


def test_a_failed_run_has_its_status_and_its_event_the_same_trace(site: QueueFixture, traced: Captured) -> None:
    site.add(payload={"_trace": RUST_TRACE})
    run(site, fail)

    (event,), (process,) = traced.of("event"), traced.of("transaction")
    assert process["spans"][0]["status"] == "internal_error"
    assert process["contexts"]["trace"]["trace_id"] == RUST_TRACE["trace_id"]
    assert event["contexts"]["trace"]["trace_id"] == RUST_TRACE["trace_id"]


def test_the_trace_of_a_payload_can_be_ignored(site: QueueFixture, traced: Captured) -> None:
    site.add(payload={"_trace": {**RUST_TRACE, "flags": 0}})
    run(site, fail, Sentry(trust_trace=False))

    (process,) = traced.of("transaction")  # a parent that is not sampled would suppress it
    assert process["contexts"]["trace"]["trace_id"] != RUST_TRACE["trace_id"]


def test_without_tracing_payloads_stay_as_they_are(site: QueueFixture, sent: Captured) -> None:
    with Client(site.url, plugins=[Sentry()]) as client:
        client.add_many([JobSpec(task="work"), JobSpec(task="work", payload=[1])])
    run(site, lambda payload: None)

    assert sent.items == []


# -- recurring tasks -----------------------------------------------------------------------------------------------


def this_minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)


def cron_payload(*, backfilled: bool = False, **fields: Any) -> dict[str, Any]:
    return {**fields, "_cron": {"ts": this_minute().isoformat(), "backfilled": backfilled}}


def work_or_fail(payload: Any) -> None:
    if payload.get("fail"):
        raise ValueError("report")


def test_a_recurring_task_checks_in(site: QueueFixture, sent: Captured) -> None:
    crontab = "0 4 1 1 * work ?id=Nightly_Report\n"
    with site.running({"work": work_or_fail}, plugins=[Sentry()], crontab=crontab, concurrency=1) as running:
        running.recorded.wait_for(CronStarted)
        site.add(payload=cron_payload())
        site.add(payload=cron_payload(fail=True), max_attempts=1)
        site.add(payload=cron_payload(backfilled=True))
        site.add(payload={"n": 1})
        running.recorded.wait_for(JobSucceeded, count=3)
        running.recorded.wait_for(JobErrored)
        running.stop()
        running.recorded.wait_for(RunnerStopped)

    started, ended, started_again, failed = sent.of("check_in")
    assert [each["status"] for each in sent.of("check_in")] == ["in_progress", "ok", "in_progress", "error"]
    assert {each["monitor_slug"] for each in sent.of("check_in")} == {"nightly_report"}
    assert (ended["check_in_id"], failed["check_in_id"]) == (started["check_in_id"], started_again["check_in_id"])
    assert ended["duration"] >= 0
    assert started["monitor_config"] == {
        "schedule": {"type": "crontab", "value": "0 4 1 1 *"},
        "timezone": "UTC",
        "checkin_margin": 5,
    }


def test_a_missed_minute_is_seen_by_the_monitor(site: QueueFixture, sent: Captured) -> None:
    """Sentry marks a minute as missed if no check-in comes within the margin after it."""
    now = site.run("select date_trunc('minute', now()) as now")[0]["now"]
    site.run(
        "insert into _private_known_crontabs values ('report', %s, %s)",
        now - timedelta(hours=1),
        now - timedelta(minutes=10),
    )
    ran: list[datetime] = []
    registry = a_registry({"work": lambda payload, context: ran.append(context.cron.ts)})
    crontab = "* * * * * work ?id=report&fill=1h\n"

    runner = Runner(site.url, tasks=registry, plugins=[Sentry()], crontab=crontab, migrate=False, handle_signals=False)
    runner.run_once(cron=True)
    assert len(ran) >= 9  # backfilled, long after their minutes
    assert sent.of("check_in") == []

    with site.running({"work": work_or_fail}, plugins=[Sentry()], crontab=crontab) as running:
        running.recorded.wait_for(CronStarted)
        site.add(payload=cron_payload())
        running.recorded.wait_for(JobSucceeded)
    config = sent.of("check_in")[0]["monitor_config"]
    assert (config["schedule"]["value"], config["checkin_margin"]) == ("* * * * *", 5)


# -- the command line ----------------------------------------------------------------------------------------------

REPORTING = """
import json, logging
import sentry_sdk
from gw_core.contrib.sentry import Sentry

class ToFile(sentry_sdk.Transport):
    def capture_envelope(self, envelope):
        lines = [json.dumps([item.type, item.payload.json]) + "\\n" for item in envelope.items]
        with open("sent", "ab", buffering=0) as file:  # two processes write: each envelope at one go
            file.write("".join(lines).encode())

sentry_sdk.init(dsn="https://key@localhost/1", transport=ToFile())
plugin = Sentry()
"""
TASKS = """
from gw_core import task

@task
def pay(payload):
    raise ValueError("card refused")

@task
def ship(payload):
    raise ValueError("card refused")
"""


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), marks=pytest.mark.slow, id="one process"),
        pytest.param(("--processes", "2"), id="two processes"),
    ],
)
def test_gw_run_sends_one_event_for_each_failed_job(
    site: QueueFixture, tmp_path: Path, options: tuple[str, ...]
) -> None:
    for task in ("pay", "ship"):
        site.add(task, max_attempts=1)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "shop.py").write_text(TASKS)
    (tmp_path / "reporting.py").write_text(REPORTING)
    ended = subprocess.run(
        [sys.executable, "-m", "gw_cli", "run", "--once", "-c", site.url, "--plugin", "reporting:plugin", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        timeout=200,
        check=True,
    )

    assert b"card refused" in ended.stderr
    lines = [json.loads(line) for line in (tmp_path / "sent").read_text().splitlines()]
    events = {payload["transaction"]: payload for kind, payload in lines if kind == "event"}
    assert ([kind for kind, _ in lines], set(events)) == (["event", "event"], {"pay", "ship"})
    assert events["pay"]["tags"]["task"] == "pay"
    error = events["pay"]["exception"]["values"][-1]
    assert (error["type"], error["stacktrace"]["frames"][-1]["function"]) == ("ValueError", "pay")
    assert events["pay"]["fingerprint"] != events["ship"]["fingerprint"]


# -- cost ----------------------------------------------------------------------------------------------------------


def test_a_run_that_succeeds_costs_little(sent: Captured) -> None:
    """`python -m bench.plugin_costs` measures the time; this bound only notices work that should not be there."""
    plugin, events = Sentry(), Events()
    plugin.attach(events)
    job = Job(1, "work", "{}", 1, 25, 0, 0.0, 0.0, 0.0, 0)
    about: Any = SimpleNamespace(worker_id="gw-host-1", thread_name="gw-worker-1", cron=None, trace=None)

    def succeed() -> None:
        plugin.around_run(job, about, lambda: None)
        events.emit(JobSucceeded(worker_id="w", thread="gw-worker-1", job=job, seconds=0.0))

    succeed()
    assert calls_in(succeed) < 200
