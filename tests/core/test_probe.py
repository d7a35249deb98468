"""Probes and scrapes: the answers for a supervisor and Prometheus, also while the database is away."""

from __future__ import annotations

import re
import socket
import sys
import threading
from contextlib import ExitStack
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import DEADLINE, EventRecorder, LogRecorder, QueueFixture, RunningWorker
from support.waiting import wait_until

from gw_core import ProbeSettings, Runner, Snooze
from gw_core.domain.reports.health import PoolHealth, why_not_ready
from gw_core.errors import InvalidSettingError
from gw_core.events import JobStarted, PoolConnectionLost, PoolConnectionRestored
from gw_core.front_ends import JobsSettled
from gw_core.maintenance import probe, probe_server

ANY_PORT = ProbeSettings(port=0)
WITH_METRICS = ProbeSettings(port=0, metrics=True, sample_interval=timedelta(hours=1))


@pytest.fixture(autouse=True)
def _without_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut no client off, and answer without no sample, because the machine stood still."""
    monkeypatch.setattr(probe_server, "RESPONSE_TIMEOUT", DEADLINE)
    monkeypatch.setattr(probe, "WAIT_FOR_SAMPLE", DEADLINE)


def ask(running: RunningWorker, path: str, method: str = "GET") -> tuple[int, str]:
    """Return status and text of a page."""
    assert running.runner.probe_address is not None
    connection = HTTPConnection(*running.runner.probe_address, timeout=DEADLINE)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def connect(running: RunningWorker) -> socket.socket:
    assert running.runner.probe_address is not None
    return socket.create_connection(running.runner.probe_address, timeout=DEADLINE)


PAGE = Path(__file__).parents[2] / "docs" / "operations" / "metrics.md"
AS_IN_THE_MANUAL = PAGE.read_text("utf-8").partition("$ curl http://127.0.0.1:9455/ready\n")[2].partition("```")[0]


def is_ready(running: RunningWorker) -> bool:
    return ask(running, "/ready") == (200, AS_IN_THE_MANUAL)


def numbers(running: RunningWorker) -> dict[str, float]:
    """Return the values of all metrics by their names with labels."""
    status, text = ask(running, "/metrics")
    assert status == 200
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


# -- the rules --------------------------------------------------------------------------------------------------------


def vitals(**changes: Any) -> PoolHealth:
    usual = {"threads": 2, "running": 0, "prefetched": 0, "unsettled": 0, "since_poll": timedelta(seconds=1)}
    return PoolHealth(**{**usual, **changes})


@pytest.mark.parametrize(
    ("now", "problems", "stopping", "reason"),
    [
        pytest.param(vitals(), (), False, None, id="it looks for jobs"),
        pytest.param(None, (), False, "starting", id="there is no pool yet"),
        pytest.param(vitals(since_poll=None), (), False, "connecting to the database", id="it has never looked"),
        pytest.param(vitals(), ("cannot look: x",), False, "cannot look: x", id="something cannot be done"),
        pytest.param(vitals(), ("cannot look: x",), True, "stopping", id="stopping outweighs trouble"),
        pytest.param(
            vitals(since_poll=timedelta(seconds=20)),
            (),
            False,
            "has not polled for jobs for 20 s",
            id="it stands still",
        ),
        pytest.param(vitals(since_poll=timedelta(seconds=20), running=2), (), False, None, id="all threads are busy"),
    ],
)
def test_a_worker_is_ready_when_it_claims(
    now: PoolHealth | None, problems: tuple[str, ...], stopping: bool, reason: str | None
) -> None:
    assert why_not_ready(now, problems=problems, stopping=stopping, poll=timedelta(seconds=2)) == reason


def test_a_long_poll_interval_is_not_stale() -> None:
    rare = timedelta(minutes=5)

    assert why_not_ready(vitals(since_poll=rare), problems=(), stopping=False, poll=rare) is None


@pytest.mark.parametrize("wrong", [{"port": -1}, {"port": 65536}, {"port": True}, {"port": 1, "host": ""}])
def test_an_address_that_cannot_be_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        ProbeSettings(**wrong)


# -- probes -----------------------------------------------------------------------------------------------------------


def test_a_worker_that_claims_is_ready_and_one_that_stops_is_not(site: QueueFixture) -> None:
    gate = site.gate()
    with site.running({"work": gate}, probe=ANY_PORT) as running:
        site.fill(1)
        gate.wait_for(1)
        wait_until(lambda: is_ready(running))
        running.request_stop()
        wait_until(lambda: ask(running, "/ready") == (503, "stopping\n"))
        assert ask(running, "/live") == (200, "alive\n")
        gate.open()
        running.end()


def test_a_ready_worker_reports_task_files_that_were_not_loaded(site: QueueFixture, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def work(payload): ...\n")
    (tmp_path / "broken.py").write_text("import nosuch\n")
    runner = Runner(site.url, tasks=tmp_path, probe=ANY_PORT, handle_signals=False)
    runner.start()
    try:
        running = RunningWorker(runner, EventRecorder(runner.events), LogRecorder())
        wait_until(lambda: ask(running, "/ready") == (200, "ready; task files not loaded: 1\n"))
    finally:
        runner.stop()
        runner.wait()

    with pytest.raises(ConnectionRefusedError):
        connect(running)


def test_the_database_being_away_is_reported_in_one_line_that_names_nothing(
    site: QueueFixture, proxy: DatabaseProxy
) -> None:
    with site.running({"work": print}, url=proxy.url, probe=ANY_PORT) as running:
        wait_until(lambda: is_ready(running))
        proxy.cut()
        running.recorded.wait_for(PoolConnectionLost)
        wait_until(lambda: ask(running, "/ready") == (503, "cannot claim jobs: the database is away\n"))
        assert ask(running, "/live") == (200, "alive\n")

        proxy.restore()
        running.recorded.wait_for(PoolConnectionRestored)
        wait_until(lambda: is_ready(running))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("HEAD", "/live", 200), ("GET", "/live?now", 200), ("POST", "/live", 405), ("GET", "/", 404)],
)
def test_other_questions_get_the_usual_answers(site: QueueFixture, method: str, path: str, status: int) -> None:
    with site.running({"work": print}, probe=ANY_PORT) as running:
        assert ask(running, path, method)[0] == status


def test_metrics_are_answered_only_when_asked_for(site: QueueFixture) -> None:
    with site.running({"work": print}, probe=ANY_PORT) as running:
        assert ask(running, "/metrics")[0] == 404


@pytest.mark.direct("it counts sessions of the server, which the pooler keeps")
def test_a_taken_port_is_one_sentence_and_leaves_nothing_open(site: QueueFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        runner, *_ = site.runner({"work": print}, probe=ProbeSettings(port=taken.getsockname()[1]))
        with pytest.raises(InvalidSettingError, match=r"cannot listen for probes on 127.0.0.1:\d+: Address already"):
            runner.run_once()

    wait_until(lambda: site.connections() == [], what="the server to see the connections close")


# -- bad clients ------------------------------------------------------------------------------------------------------


def test_clients_without_a_message_delay_no_other_client(site: QueueFixture) -> None:
    with site.running({"work": print}, probe=ANY_PORT) as running, ExitStack() as open_ends:
        before = threading.active_count()
        for _ in range(3 * probe_server.MAX_CLIENTS):
            open_ends.enter_context(connect(running))

        assert ask(running, "/live") == (200, "alive\n")
        assert threading.active_count() < before + probe_server.MAX_CLIENTS


@pytest.mark.parametrize(
    "request_",
    # The last one is rejected when all of it was read: what is left unread resets the connection, and loses the answer.
    [b"\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET /".ljust(probe_server.MAX_REQUEST_HEAD + 4, b"x")],
    ids=["empty", "tls", "long"],
)
def test_what_is_no_request_is_answered_and_forgotten(site: QueueFixture, request_: bytes) -> None:
    with site.running({"work": print}, probe=ANY_PORT) as running:
        with connect(running) as client:
            client.sendall(request_)
            assert client.recv(1000).startswith(b"HTTP/1.1 400 ")
        assert ask(running, "/live") == (200, "alive\n")


# -- metrics ----------------------------------------------------------------------------------------------------------


def test_what_became_of_jobs_is_counted_by_task(site: QueueFixture) -> None:
    def fails(payload: object) -> None:
        raise ValueError("a secret")

    def snoozes(payload: object) -> None:
        raise Snooze(3600)

    site.fill(3, task="works")
    site.add("fails", max_attempts=1)
    site.add("fails", {"password": "hidden"})
    site.add("snoozes")
    site.let_retries_wait()
    with site.running(
        {"works": lambda payload: None, "fails": fails, "snoozes": snoozes}, probe=WITH_METRICS
    ) as running:
        wait_until(lambda: sum(len(event.outcomes) for event in running.recorded.of(JobsSettled)) == 6)
        found = numbers(running)
        text = ask(running, "/metrics")[1]

    assert found['gw_jobs_completed_total{task="works"}'] == 3
    assert found['gw_jobs_failed_total{task="fails"}'] == 2
    assert found['gw_jobs_permanently_failed_total{task="fails"}'] == 1
    assert found['gw_jobs_returned_total{task="snoozes"}'] == 1
    assert found['gw_job_duration_seconds_count{task="works"}'] == 3
    assert found['gw_job_start_delay_seconds_bucket{le="+Inf",task="fails"}'] == 2
    assert found["gw_threads"] == 10
    assert found["gw_connected"] == found["gw_ready"] == 1
    assert found['gw_queue_jobs{state="failed"}'] == 1
    assert found['gw_queue_jobs{state="scheduled"}'] + found['gw_queue_jobs{state="backoff"}'] == 2
    assert not {"secret", "hidden", "password"} & set(text.replace('"', " ").split())


def test_what_runs_now_is_shown(site: QueueFixture) -> None:
    gate = site.gate()
    with site.running({"work": gate}, probe=WITH_METRICS, concurrency=2) as running:
        site.fill(2)
        gate.wait_for(2)

        assert numbers(running)["gw_jobs_running"] == 2


def test_the_queue_is_read_once_for_many_scrapes(site: QueueFixture) -> None:
    with site.running({"work": print}, probe=WITH_METRICS) as running:
        wait_until(lambda: is_ready(running))
        first = numbers(running)
        site.add("unknown")
        second = numbers(running)

    assert first['gw_queue_jobs{state="ready"}'] == second['gw_queue_jobs{state="ready"}'] == 0
    assert second["gw_queue_sample_age_seconds"] > 0


def test_metrics_are_scraped_while_the_database_is_away(site: QueueFixture, proxy: DatabaseProxy) -> None:
    with site.running({"work": print}, url=proxy.url, probe=WITH_METRICS) as running:
        wait_until(lambda: is_ready(running))
        proxy.cut()
        running.recorded.wait_for(PoolConnectionLost)
        wait_until(lambda: numbers(running)["gw_connected"] == 0)
        found = numbers(running)
        proxy.restore()

    assert found["gw_connected"] == found["gw_ready"] == 0
    assert found["gw_connection_losses_total"] >= 1


def test_very_many_tasks_share_a_label(site: QueueFixture) -> None:
    names = [f"task-{n}" for n in range(120)]
    with site.running({name: lambda payload: None for name in names}, probe=WITH_METRICS) as running:
        for name in names:
            site.add(name)
        running.recorded.wait_for(JobStarted, count=len(names))
        wait_until(lambda: sum(len(event.outcomes) for event in running.recorded.of(JobsSettled)) == len(names))
        counts = {name: value for name, value in numbers(running).items() if name.startswith("gw_jobs_completed")}

    assert len(counts) == 101
    assert counts['gw_jobs_completed_total{task="(others)"}'] == 20


def test_without_its_package_asking_for_metrics_is_one_sentence(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(InvalidSettingError, match=r"install it with: pip install 'graphile-worker\[metrics\]'"):
        site.runner({"work": print}, probe=WITH_METRICS)


def test_every_metric_is_in_the_guide_and_no_other(site: QueueFixture) -> None:
    site.fill(1)
    site.run_once({"work": lambda payload: None})  # without statistics there is no age of them
    with site.running({"work": lambda payload: None}, probe=WITH_METRICS) as running:
        wait_until(lambda: is_ready(running))
        types = re.findall(r"^# TYPE (gw_\w+) ", ask(running, "/metrics")[1], re.MULTILINE)
    guide = Path(__file__).resolve().parents[2] / "docs" / "operations" / "metrics.md"

    assert set(re.findall(r"`(gw_\w+)`", guide.read_text("utf-8"))) == set(types)
