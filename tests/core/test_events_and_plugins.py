"""The events that user code receives, and the plugins that it installs."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pydantic
import pytest
from support.queue_fixture import EventRecorder, QueueFixture, RunRecord, a_registry, ms
from support.waiting import wait_until

from gw_core import Addition, AsyncClient, Client, Events, Job, JobSpec, Plugin, Reject, Runner, Skip, run_once
from gw_core.errors import InvalidJobError, JobRejectedError, JobSkipped
from gw_core.events import JobAdded, JobCompleted, JobErrored, JobFailed, JobStarted, JobSucceeded, PoolStarted
from gw_core.front_ends import (
    NODE_EVENTS_HERE,
    ClaimEmpty,
    FrontEnd,
    LocksReset,
    MaintenanceFailed,
    PoolClaimed,
    PoolNotified,
    RunnerStopped,
    WorkerCrashed,
)
from gw_core.types import RunTask

# -- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.direct("the pooler is an event, and the listening connection another one")
def test_a_life_is_listed_by_time(site: QueueFixture) -> None:
    job_id = site.add(payload={"n": 1})
    with site.running({"work": RunRecord()}, concurrency=1) as running:
        running.recorded.wait_for(JobCompleted)
        running.stop()

    emitted = [name for name in running.recorded.names() if not name.startswith("worker:")]
    assert emitted == [
        "start",
        "pool:create",
        "pool:listen:success",
        "pool:getJobs:complete",
        "job:start",
        "job:success",
        "jobs:settled",
        "job:complete",
        "pool:gracefulShutdown",
        "pool:release",
        "stop",
    ]
    assert {"worker:create", "worker:stop"} <= set(running.recorded.names())
    (started,) = running.recorded.of(JobStarted)
    (succeeded,) = running.recorded.of(JobSucceeded)
    assert (started.job.id, started.thread, succeeded.job) == (job_id, "gw-worker-1", started.job)
    assert succeeded.seconds >= 0
    assert [job.id for job in running.recorded.of(PoolClaimed)[0].jobs] == [job_id]
    assert running.recorded.of(PoolStarted)[0].tasks == ("work",)
    assert running.recorded.of(RunnerStopped)[0].reason == "the test asked"


def test_a_notification_says_how_many_jobs_came(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}) as running:
        running.recorded.wait_for(PoolStarted)
        wait_until(lambda: "pool:listen:success" in running.recorded.names())
        site.fill(7)
        running.recorded.wait_for(PoolNotified, lambda event: event.count == 7)


@pytest.mark.parametrize("payload", ["", "not json", "[]", '{"count": "many"}', '{"r": 0.5}', "{"])
def test_a_notification_that_makes_no_sense_does_no_harm(site: QueueFixture, payload: str) -> None:
    with site.running({"work": RunRecord()}) as running:
        wait_until(lambda: "pool:listen:success" in running.recorded.names())
        site.run("select pg_notify('jobs:insert', %s), pg_notify('worker:migrate', %s)", payload, payload)
        site.fill(1)
        running.recorded.wait_for(JobCompleted)


def test_listeners_that_raise_are_reported_and_do_no_harm(site: QueueFixture) -> None:
    site.fill(3)
    with site.running({"work": RunRecord()}) as running:
        for name in ("job:start", "job:success", "job:complete", "jobs:settled", "pool:getJobs:complete"):
            running.runner.events.on(name, lambda event: 1 / 0)
        site.fill(3)
        running.recorded.wait_for(JobCompleted, count=6)
        running.stop()

    assert site.held() == []
    assert any("ZeroDivisionError" in message for message in running.log.of("error"))


def test_a_subscription_can_be_ended_and_an_unknown_event_is_rejected() -> None:
    events = Events()
    recorded = EventRecorder(events)
    got: list[Any] = []
    forget = events.on(RunnerStopped, got.append)

    @events.on("stop")
    def listen(event: RunnerStopped) -> None:
        got.append("decorated")

    events.emit(RunnerStopped(reason="first"))
    forget()
    events.emit(RunnerStopped(reason="second"))

    assert got == [RunnerStopped(reason="first"), "decorated", "decorated"]
    assert len(recorded.all) == 2
    with pytest.raises(ValueError, match="unknown event 'job:strat'"):
        events.on("job:strat", got.append)


def test_an_event_of_node_that_is_not_emitted_names_the_nearest_one() -> None:
    events = Events()

    for name, nearest in NODE_EVENTS_HERE.items():
        with pytest.raises(ValueError, match=f"does not emit '{name}'; the nearest event is '{nearest}'"):
            events.on(name, print)
        events.on(nearest, print)


def test_an_empty_queue_is_reported_once_until_a_claim_finds_a_job(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}) as running:
        running.recorded.wait_for(ClaimEmpty)
        site.fill(3)
        running.recorded.wait_for(ClaimEmpty, count=2)
        running.runner.stop()

    assert len(running.recorded.of(ClaimEmpty)) == 2


def test_a_crash_of_a_worker_emits_an_event(site: QueueFixture) -> None:
    def crash() -> list[str]:
        raise SystemExit("a bug")

    with site.running({"work": RunRecord()}, forbidden_flags=crash) as running:
        running.recorded.wait_for(WorkerCrashed)
    running.claimer.teardown()  # a process would exit; here the connection would stay open

    (event,) = running.recorded.of(WorkerCrashed)
    assert (event.worker_id, event.thread) == (running.runner.worker_id, "gw-claim")
    assert isinstance(event.error, SystemExit)


def test_a_crash_of_the_lock_renewal_ends_the_worker(site: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: object) -> timedelta:
        raise RuntimeError("a bug")

    monkeypatch.setattr("gw_core.maintenance.lock_renewal.LockRenewal.step", crash)

    with site.running({"work": RunRecord()}) as running:
        running.recorded.wait_for(WorkerCrashed)

    assert [event.thread for event in running.recorded.of(WorkerCrashed)] == ["gw-renew-locks"]
    assert running.result is not None
    assert running.result.exit_code == 1


def test_the_events_of_a_run_name_worker_and_thread(site: QueueFixture) -> None:
    def fails(payload: object) -> None:
        raise ValueError("boom")

    with site.running({"work": RunRecord(), "fails": fails}, concurrency=1) as running:
        site.add(payload={"n": 1})
        site.add(task="fails", max_attempts=1)
        running.recorded.wait_for(JobFailed)
        running.recorded.wait_for(JobSucceeded)

    events = [
        event for kind in (JobStarted, JobSucceeded, JobErrored, JobFailed) for event in running.recorded.of(kind)
    ]
    assert len(events) == 5
    assert {(event.worker_id, event.thread) for event in events} == {(running.runner.worker_id, "gw-worker-1")}


# -- plugins ----------------------------------------------------------------------------------------------------------


class Doorman(Plugin):
    """Answers as set when a job is to be added."""

    def __init__(self, answer: Callable[[JobSpec], Any]) -> None:
        self._answer = answer

    def before_add(self, spec: JobSpec) -> Any:
        return self._answer(spec)


def test_a_plugin_may_change_skip_reject_or_wave_through(site: QueueFixture) -> None:
    def answer(spec: JobSpec) -> Any:
        match spec.task:
            case "changed":
                return replace(spec, payload={"changed": True}, priority=5)
            case "skipped":
                return Skip("not today")
            case "refused":
                return Reject("the queue is closed")
        return None

    with Client(site.url, plugins=[Doorman(answer)]) as client:
        recorded = EventRecorder(client.events)
        changed, plain = client.add("changed"), client.add("plain", {"n": 1})
        assert client.try_add("skipped") == Skip("not today")
        with pytest.raises(JobSkipped, match="not today"):
            client.add("skipped")
        with pytest.raises(JobRejectedError, match="the queue is closed"):
            client.add("refused")
        many = client.add_many([JobSpec(task="skipped"), JobSpec(task="changed")])
        with pytest.raises(JobRejectedError):
            client.add_many([JobSpec(task="plain"), JobSpec(task="refused")])

    assert changed is not None
    assert plain is not None
    assert (changed.payload, changed.priority) == ({"changed": True}, 5)
    assert plain.payload == {"n": 1}
    assert [job["id"] for job in site.jobs()] == [changed.id, plain.id, *many]
    assert [event.job_id for event in recorded.of(JobAdded)] == [changed.id, plain.id, None]


def test_json_text_outlives_a_plugin_that_changes_other_fields(site: QueueFixture) -> None:
    with Client(site.url, plugins=[Doorman(lambda spec: replace(spec, priority=9))]) as client:
        job = FrontEnd(client).add_json(JobSpec(task="work"), '{"as": "written"  }')

    assert job is not None
    assert (job.payload_json, job.priority) == ('{"as": "written"  }', 9)


def test_a_payload_a_plugin_puts_in_place_replaces_the_json_text(site: QueueFixture) -> None:
    with Client(site.url, plugins=[Doorman(lambda spec: replace(spec, payload={"mine": 1}))]) as client:
        job = FrontEnd(client).add_json(JobSpec(task="work"), '{"theirs": 1}')

    assert job is not None
    assert job.payload == {"mine": 1}


class Wrapper(Plugin):
    """Notes when it is entered and left, and does as set in between."""

    def __init__(self, name: str, notes: list[str], act: Callable[[Job, RunTask], object] | None = None) -> None:
        self._name = name
        self._notes = notes
        self._act = act

    def around_run(self, job: Job, context: Any, run: RunTask) -> object:
        self._notes.append(f"{self._name} in")
        try:
            return run() if self._act is None else self._act(job, run)
        finally:
            self._notes.append(f"{self._name} out")


def test_wrappers_are_entered_in_the_order_of_the_plugins(site: QueueFixture) -> None:
    notes: list[str] = []
    site.add(payload={"n": 1})
    result = site.run_once(
        {"work": lambda payload: notes.extend(["task"])}, plugins=[Wrapper("a", notes), Wrapper("b", notes)]
    )

    assert notes == ["a in", "b in", "task", "b out", "a out"]
    assert result.completed == 1


def test_a_wrapper_may_skip_the_run_or_fail_it(site: QueueFixture) -> None:
    done = RunRecord()

    def act(job: Job, run: RunTask) -> object:
        match job.payload["n"]:
            case 1:
                return Skip()
            case 2:
                raise ValueError("the plugin objects")
        return run()

    site.fill(3)
    site.let_retries_wait()
    result = site.run_once({"work": done}, plugins=[Wrapper("w", [], act)])

    assert (result.completed, result.failed, done.entries) == (2, 1, [3])
    assert "the plugin objects" in site.jobs()[0]["last_error"]


# -- forbidden flags, time --------------------------------------------------------------------------------------------


def test_forbidden_flags_may_be_a_function_that_is_asked_again(site: QueueFixture) -> None:
    forbidden = ["a", "b"]
    done = RunRecord()
    site.add(payload={"n": 1}, flags=["a"])
    site.add(payload={"n": 2}, flags=["b"])
    with site.running({"work": done}, forbidden_flags=lambda: list(forbidden), poll_interval=ms(20)) as running:
        site.add(payload={"n": 3}, flags=["c"])
        running.recorded.wait_for(JobCompleted)
        forbidden.remove("b")
        running.recorded.wait_for(JobCompleted, count=2)

    assert done.entries == [3, 2]


def test_a_function_for_flags_that_raises_claims_nothing_and_ends_nothing(site: QueueFixture) -> None:
    answers: list[Any] = [ValueError("no flags today")]

    def flags() -> Any:
        if answers:
            raise answers[0]

    site.fill(1)
    with site.running({"work": RunRecord()}, forbidden_flags=flags, poll_interval=ms(20)) as running:
        running.recorded.wait_for(MaintenanceFailed, lambda event: "no flags today" in str(event.error), count=2)
        assert running.recorded.of(PoolClaimed) == []
        answers.clear()
        running.recorded.wait_for(JobCompleted)


def test_the_clients_clock_decides_when_asked_for(site: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    from gw_core.worker import claim_policy

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=1)

    site.add(payload={"n": 1}, run_at=timedelta(hours=23))
    assert site.run_once({"work": RunRecord()}).completed == 0
    monkeypatch.setattr(claim_policy, "datetime", Tomorrow)
    assert site.run_once({"work": RunRecord()}).completed == 0
    assert site.run_once({"work": RunRecord()}, use_client_time=True).completed == 1
    assert Tomorrow.now(UTC) > datetime.now(UTC)


# -- locks of long jobs -----------------------------------------------------------------------------------------------


def test_the_lock_of_a_long_job_and_of_its_queue_is_renewed(site: QueueFixture) -> None:
    gate = site.gate()
    site.add(queue_name="q")
    with site.running({"work": gate}, lock_renewal_interval=ms(30)):
        gate.wait_for(1)
        site.run("update _private_jobs set locked_at = locked_at - interval '3 hours'")
        site.run("update _private_job_queues set locked_at = locked_at - interval '3 hours'")
        fresh = "select id from {} where locked_at > now() - interval '10 minutes'"
        wait_until(lambda: site.run(fresh.format("_private_jobs")), what="the job's lock to be renewed")
        wait_until(lambda: site.run(fresh.format("_private_job_queues")), what="the queue's lock to be renewed")


def test_expired_locks_are_released_and_reported(site: QueueFixture) -> None:
    site.fill(2, queue="'q' || n")
    site.run("update _private_jobs set locked_at = now() - interval '5 hours', locked_by = 'dead', attempts = 1")
    site.run("update _private_job_queues set locked_at = now() - interval '5 hours', locked_by = 'dead'")
    with site.running({"work": RunRecord()}, expired_lock_interval=(ms(20), ms(30)), poll_interval=ms(20)) as running:
        running.recorded.wait_for(LocksReset, lambda event: (event.jobs, event.queues) == (2, 2))
        completed = running.recorded.wait_for(JobCompleted, count=2)

    assert [event.job.attempts for event in completed] == [2, 2]


def test_an_invalid_job_is_rejected_before_plugins_and_database() -> None:
    with pytest.raises(InvalidJobError):
        JobSpec(task="")


# -- around an add ----------------------------------------------------------------------------------------------------


class AddRecorder(Plugin):
    """Records what passes through `around_add`, and adds a field to each payload."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.ids: list[list[int]] = []
        self.errors: list[str] = []

    @contextmanager
    def around_add(self, addition: Addition) -> Iterator[None]:
        self.batches.append([spec.payload for spec in addition.specs])
        seen = {"seen": len(self.batches)}
        addition.specs = [replace(spec, payload={**spec.payload, **seen}) for spec in addition.specs]
        try:
            yield
        except Exception as error:
            self.errors.append(str(error))
            raise
        self.ids.append(list(addition.ids))


PAYLOADS = [{"seen": 1}, {"n": 1, "seen": 2}, {"n": 2, "seen": 3}, {"n": 3, "seen": 3}]


def test_a_plugin_wraps_an_add_and_gets_its_id(site: QueueFixture) -> None:
    recorder = AddRecorder()
    with Client(site.url, plugins=[recorder]) as client:
        single = client.add("work")
        text = FrontEnd(client).add_json(JobSpec(task="work"), '{"n": 1}')
        many = client.add_many([JobSpec(task="work", payload={"n": n}) for n in (2, 3)])

    assert single is not None
    assert text is not None
    assert recorder.batches == [[{}], [{"n": 1}], [{"n": 2}, {"n": 3}]]
    assert recorder.ids == [[single.id], [text.id], many]
    assert [job["payload"] for job in site.jobs()] == PAYLOADS


def test_a_plugin_wraps_an_add_on_an_event_loop(site: QueueFixture) -> None:
    recorder = AddRecorder()

    async def add() -> list[list[int]]:
        async with AsyncClient(site.url, plugins=[recorder]) as client:
            single = await client.add("work")
            text = await client.add(JobSpec(task="work", payload={"n": 1}))
            many = await client.add_many([JobSpec(task="work", payload={"n": n}) for n in (2, 3)])
        assert single is not None
        assert text is not None
        return [[single.id], [text.id], many]

    assert recorder.ids == asyncio.run(add())
    assert [job["payload"] for job in site.jobs()] == PAYLOADS


def test_a_wrapper_sees_the_error_of_an_add(site: QueueFixture) -> None:
    recorder = AddRecorder()
    with Client(site.url, plugins=[recorder]) as client, pytest.raises(InvalidJobError):
        client.add("work", {"n": float("nan")})

    assert "nan" in recorder.errors[0]


def test_before_add_sees_an_empty_object_if_the_caller_gave_no_payload(site: QueueFixture) -> None:
    seen: list[Any] = []
    with Client(site.url, plugins=[Doorman(lambda spec: seen.append(spec.payload))]) as client:
        client.add("work")
        client.add_many([JobSpec(task="work")])

    assert seen == [{}, {}]


@dataclass
class Crate:
    weight: int


class Parcel(pydantic.BaseModel):
    to: str
    crates: list[Crate] = []


def test_before_add_sees_plain_values_where_the_caller_gave_objects(site: QueueFixture) -> None:
    seen: list[Any] = []
    with Client(site.url, plugins=[Doorman(lambda spec: seen.append(spec.payload))]) as client:
        client.add("work", Crate(weight=1))
        client.add("work", Parcel(to="ann", crates=[Crate(weight=2)]))
        client.add_many([JobSpec(task="work", payload={"parcel": Parcel(to="bob")})])
        client.add_batch("work", [Crate(weight=3)])

    bob = {"parcel": {"to": "bob", "crates": []}}
    assert seen == [{"weight": 1}, {"to": "ann", "crates": [{"weight": 2}]}, bob, [{"weight": 3}]]


# -- without plugins --------------------------------------------------------------------------------------------------


def test_without_plugins_no_code_of_plugins_runs_around_a_task_or_an_add(site: QueueFixture) -> None:
    """A worker without plugins does what it did before there were any, so it is as fast."""
    around: dict[str, set[str]] = {}
    plugins: list[Plugin]

    def work(payload: Any) -> None:
        around[payload["n"]] = {frame.f_code.co_filename for frame, _ in traceback.walk_stack(None)}

    class Passing(Plugin):
        def around_run(self, job: Job, context: Any, run: RunTask) -> object:
            return run()

    for name, plugins in (("without", []), ("with", [Passing()])):
        site.add(payload={"n": name})
        site.run_once({"work": work}, plugins=plugins)

    differing = {Path(each).parts[-3:] for each in around["with"] ^ around["without"]} - {Path(__file__).parts[-3:]}
    assert differing == {("domain", "rules", "plugins.py")}


def test_without_plugins_a_job_costs_few_calls(site: QueueFixture) -> None:
    """Calls cost most of a short job's time: 10 for each, in all threads.

    Calls for each claim are not counted: a busy machine needs more claims for as many jobs.
    """
    jobs, calls = 5_000, Counter[str]()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1

    site.fill(jobs)
    threading.setprofile(count)
    try:
        run_once(site.url, tasks=a_registry({"work": lambda payload: None}), migrate=False, handle_signals=False)
    finally:
        threading.setprofile(None)

    of_jobs = {name: count // jobs for name, count in calls.items() if count >= jobs and count % jobs < jobs / 50}
    assert 5 < sum(of_jobs.values()) < 12, of_jobs


def test_without_listeners_no_event_of_a_run_is_made(site: QueueFixture) -> None:
    runner = Runner(site.url, tasks=a_registry({"work": RunRecord()}), migrate=False, handle_signals=False)

    assert [kind for kind in (JobStarted, JobSucceeded, JobCompleted, JobAdded) if runner.events.wants(kind)] == []


# -- records of logging -----------------------------------------------------------------------------------------------


def test_a_runner_logs_through_logging_with_templates_fields_and_exceptions(
    site: QueueFixture, caplog: pytest.LogCaptureFixture
) -> None:
    def work(payload: Any) -> None:
        if payload["fails"]:
            raise ValueError("boom")

    ids = [site.add(payload={"fails": fails}, max_attempts=1, queue_name="q") for fails in (False, True)]
    with caplog.at_level("INFO", logger="graphile_worker"):
        run_once(site.url, tasks=a_registry({"work": work}), migrate=False, handle_signals=False)

    records = [vars(each) for each in caplog.records if "job_id" in vars(each)]
    fields = [(each["job_id"], each["task"], each["queue_name"], each["attempt"]) for each in records]
    assert fields == [(job_id, "work", "q", 1) for job_id in ids]
    assert all(each["duration_ms"] >= 0 and each["worker_id"] and each["max_attempts"] == 1 for each in records)
    completed, failed = records
    assert completed["exc_info"] is None
    assert failed["exc_info"][0] is ValueError
    assert not {"work", "boom"} & set(failed["msg"].split()), "the template is the same for all jobs"
