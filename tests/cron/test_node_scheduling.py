"""Two schedulers of Graphile Worker and two of ours share a crontab and a schema; the clock runs sixty times faster."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from node_crontab import NodeCrontab
from support.cron_fixture import START, CronFixture
from support.waiting import wait_until

pytestmark = pytest.mark.interop

NODE_SCRIPT = Path(__file__).with_name("node_scheduler.mjs")
OUR_SCRIPT = Path(__file__).with_name("python_scheduler.py")
CRONTAB = "* * * * * tick\n*/2 * * * * tock ?id=second-minute&fill=1h\n* * * * * keyed ?jobKey=k {a: 1}"
SPEED = 60


class FastClock:
    """A clock that runs `SPEED` times faster, the same in every process that knows its origin."""

    def __init__(self) -> None:
        self.real = time.time()

    def __call__(self) -> datetime:
        return START + timedelta(seconds=(time.time() - self.real) * SPEED)

    @property
    def origin(self) -> str:
        return f"{int(START.timestamp() * 1000)}@{int(self.real * 1000)}"


class Ours:
    """One of our schedulers in a thread, resting by the fast clock."""

    def __init__(self, step: Callable[[], timedelta]) -> None:
        self._step = step
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.is_set():
            rest = self._step()
            self._end.wait(rest.total_seconds() / SPEED)

    def stop(self) -> None:
        self._end.set()
        self._thread.join(timeout=200)


@contextmanager
def theirs(node: NodeCrontab, url: str, clock: FastClock) -> Iterator[subprocess.Popen[str]]:
    with _started([node.node, str(NODE_SCRIPT), node.entry], url, clock) as process:
        yield process


@contextmanager
def ours_apart(url: str, clock: FastClock) -> Iterator[subprocess.Popen[str]]:
    """One of our schedulers as a process of its own, which can be killed."""
    with _started([sys.executable, str(OUR_SCRIPT)], url, clock) as process:
        yield process


@contextmanager
def _started(program: list[str], url: str, clock: FastClock) -> Iterator[subprocess.Popen[str]]:
    command = [*program, url, CRONTAB, clock.origin, str(SPEED)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "started\n"
            yield process
        finally:
            process.kill()


def test_four_schedulers_of_two_languages_add_each_job_once_and_no_death_leaves_a_gap(
    node: NodeCrontab, database_url: str
) -> None:
    clock = FastClock()
    world = CronFixture(database_url, clock)  # type: ignore[arg-type]
    with (
        theirs(node, database_url, clock) as first,
        theirs(node, database_url, clock) as second,
        ours_apart(database_url, clock) as third,
    ):
        survivor = Ours(world.scheduler(CRONTAB).step)
        try:
            for victim in (first, third, second):
                _minutes_pass(world, 1)
                victim.kill()
            _minutes_pass(world, 2)
        finally:
            survivor.stop()

    due = world.due()
    ticks = [minute for task, minute in due if task == "tick"]
    assert len(due) == len(set(due))
    assert len(ticks) >= 5
    assert ticks == _every_minute(ticks[0], len(ticks))
    assert [minute for task, minute in due if task == "tock"] == [t for t in ticks if int(t[-2:]) % 2 == 0]
    assert [minute for task, minute in due if task == "keyed"] == ticks[-1:]
    world.close()


def test_ours_takes_over_what_graphile_worker_registered_and_the_other_way_round(
    node: NodeCrontab, database_url: str
) -> None:
    clock = FastClock()
    world = CronFixture(database_url, clock)  # type: ignore[arg-type]
    with theirs(node, database_url, clock):
        wait_until(world.jobs, what="a job from Node.js")
    ours = Ours(world.scheduler(CRONTAB).step)
    _minutes_pass(world, 1)
    ours.stop()
    seen = len(world.jobs())
    with theirs(node, database_url, clock):
        wait_until(lambda: len(world.jobs()) > seen, what="another job from Node.js")

    assert len(world.due()) == len(set(world.due()))
    assert {job.payload["_cron"].keys() == {"ts", "backfilled"} for job in world.jobs()} == {True}
    world.close()


def _minutes_pass(world: CronFixture, count: int) -> None:
    before = _last(world)
    wait_until(lambda: _last(world) >= before + timedelta(minutes=count), deadline_seconds=60, what="minutes to pass")


def _last(world: CronFixture) -> datetime:
    last = world.known().get("tick", (START, None))[1]
    return last or START.astimezone(UTC)


def _every_minute(first: str, count: int) -> list[str]:
    start = datetime.strptime(first, "%H:%M").replace(tzinfo=UTC)
    return [(start + timedelta(minutes=number)).strftime("%H:%M") for number in range(count)]
