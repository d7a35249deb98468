"""Limits over several processes, at the sizes of the guide. `make nightly` runs this, in about four minutes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from supervised import CHECKOUT
from support.queue_fixture import QueueFixture
from support.waiting import wait_until

from gw_core import JobSpec

pytestmark = [pytest.mark.acceptance, pytest.mark.once, pytest.mark.slow, pytest.mark.timeout(900)]

TASKS = """
import os, time
from gw_core import task

LEDGER = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@task
def work(payload):
    began = time.monotonic()
    time.sleep(payload.get("seconds", 0.001))
    # The clock is the same in all processes of a machine, and a short line is written in one piece.
    os.write(LEDGER, b"%.6f %.6f %.6f\\n" % (began, time.monotonic(), began - payload.get("added", began)))
"""


class Ledger:
    """When jobs began and ended, and how long they had waited."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> list[tuple[float, float, float]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [(float(began), float(ended), float(waited)) for began, ended, waited in map(str.split, lines)]

    def peak(self) -> int:
        """Return the largest number of jobs that ran at the same time."""
        changes = [each for began, ended, _ in self.entries() for each in ((began, 1), (ended, -1))]
        now = peak = 0
        for _, change in sorted(changes):
            now += change
            peak = max(peak, now)
        return peak


@contextmanager
def running(site: QueueFixture, folder: Path, *options: str) -> Iterator[Ledger]:
    """Run `gw run` with a new ledger, and stop it at the end."""
    (folder / "tasks").mkdir(exist_ok=True)
    (folder / "tasks" / "work.py").write_text(TASKS)
    ledger = Ledger(folder / f"ledger-{time.monotonic_ns()}")
    with subprocess.Popen(
        [sys.executable, "-m", "gw_cli", "run", "-c", site.url, "--log-level", "warning", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "LEDGER": str(ledger.path)},
        stdin=subprocess.DEVNULL,
    ) as process:
        try:
            yield ledger
        finally:
            process.terminate()
            process.wait(60)


def until_empty(site: QueueFixture) -> None:
    wait_until(
        lambda: not site.rows("select 1 from _private_jobs limit 1"),
        deadline_seconds=600,
        what="an empty queue",
        every=0.5,
    )


@pytest.fixture
def site(site: QueueFixture) -> Iterator[QueueFixture]:
    yield site
    site.client.limits.remove("work")


@pytest.mark.parametrize("kind", ["gate", "gate by field", "slots"])
def test_a_limit_of_seven_is_never_exceeded_by_eighty_threads_of_four_processes(
    site: QueueFixture, tmp_path: Path, kind: str
) -> None:
    options: dict[str, Any] = {"slots": "api:7"} if kind == "slots" else {}
    if kind != "slots":
        site.client.limits.set("work", running=7, field=None if kind == "gate" else "tenant")
    site.client.add_many([JobSpec(task="work", payload={"tenant": "a"}, **options) for _ in range(20_000)])

    with running(site, tmp_path, "--processes", "4", "--concurrency", "20") as ledger:
        until_empty(site)

    assert (len(ledger.entries()), ledger.peak()) == (20_000, 7)


def test_a_hundred_a_second_are_kept_within_two_percent_for_a_minute(site: QueueFixture, tmp_path: Path) -> None:
    site.client.limits.set("work", per_period=100, period=timedelta(seconds=1))
    site.client.add_many([JobSpec(task="work")] * 7_000)

    with running(site, tmp_path, "--processes", "2") as ledger:
        wait_until(ledger.entries, what="the first job")
        time.sleep(63)

    started = sorted(began for began, _, _ in ledger.entries())
    of_a_minute = [each for each in started if 1 <= each - started[0] < 61]
    site.run("delete from _private_jobs")
    assert 5_880 <= len(of_a_minute) <= 6_120


@pytest.mark.parametrize("kind", ["gate by field", "slots"])
def test_forty_nine_tenants_do_not_wait_behind_the_backlog_of_one(
    site: QueueFixture, tmp_path: Path, kind: str
) -> None:
    options: dict[str, Any] = {"slots": "tenant:{tenant}:2"} if kind == "slots" else {}
    if kind != "slots":
        site.client.limits.set("work", running=2, field="tenant")

    def p95_of_the_others(backlog: int) -> float:
        large = {"tenant": "large", "seconds": 0.01}
        site.client.add_many([JobSpec(task="work", payload=large, **options)] * backlog)
        with running(site, tmp_path, "--processes", "2", "--concurrency", "20") as ledger:
            wait_until(lambda: site.client.workers.list(), what="a worker")
            time.sleep(2)
            for number in range(500):
                payload = {"tenant": f"t{number % 49}", "seconds": 0.01, "added": time.monotonic()}
                site.client.add("work", payload, **options)
                time.sleep(0.01)
            time.sleep(1)
        site.run("delete from _private_jobs")
        waits = sorted(waited for _, _, waited in ledger.entries() if waited)
        assert len(waits) == 500
        return waits[475]

    alone = p95_of_the_others(0)
    assert p95_of_the_others(9_000) < 2 * max(alone, 0.01)
