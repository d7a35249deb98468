"""A worker that is asked to stop ends within its grace period and a second, whatever its database does."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.database_proxy import DatabaseProxy
from support.packet_drop_proxy import PacketDropProxy
from support.queue_fixture import DEADLINE, QueueFixture
from support.stall_clock import StallClock
from support.stop_window import NEVER, gw_with_repeats
from support.waiting import wait_until

GRACE = 0.5
TASKS = {
    "nap.py": "import time\ndef nap(payload):\n    time.sleep(0.3)\n",
    "stubborn.py": "import time\ndef stubborn(payload):\n    time.sleep(600)\n",
    "native.py": "import ctypes\ndef native(payload):\n    ctypes.CDLL(None).sleep(600)\n",
    "hogging.py": "import asyncio, time\nasync def hogging(payload):\n    time.sleep(600)\n",
    "deaf": "#!/bin/sh\ntrap '' TERM\nsleep 600 & sleep 600 & wait; wait\n",
}


STARTED: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def _leave_nothing_behind() -> Iterator[None]:
    yield
    for process in STARTED:
        process.kill()
        process.wait()
    STARTED.clear()


class Process:
    """The installed program, and how long it takes to end."""

    def __init__(self, url: str, folder: Path, *options: str) -> None:
        (folder / "tasks").mkdir()
        for name, text in TASKS.items():
            (folder / "tasks" / name).write_text(text)
        os.chmod(folder / "tasks" / "deaf", stat.S_IRWXU)
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*gw_with_repeats(NEVER), "run", "-c", url, "--grace-period", f"{GRACE:g}s", "-v", *options],
                cwd=folder,
                stderr=log,
            )
        STARTED.append(self.process)

    def wait_until_it_listens(self) -> Process:
        self.wait_for("listens for new jobs")
        return self

    def wait_for(self, words: str) -> None:
        wait_until(lambda: self.has_said(words), what=words)

    def has_said(self, words: str) -> bool:
        return words in self._log.read_text()

    def seconds_to_end(self, *, insist: bool = False) -> float:
        with StallClock(self.process.pid) as watch:
            self.process.send_signal(signal.SIGTERM)
            if insist:
                self.wait_for("Received SIGTERM")
                self.process.send_signal(signal.SIGTERM)
            self.process.wait(DEADLINE)
        return watch.seconds


@pytest.fixture
def hole(site: QueueFixture) -> Iterator[PacketDropProxy]:
    hole = PacketDropProxy(site.url)
    yield hole
    hole.close()


pytestmark = pytest.mark.once
SLACK = 2.5
"""For the interpreter to end, and for a server that is busy with other tests; no timeout of a session is as short."""


@pytest.mark.parametrize("task", ["stubborn", "native", "hogging", "deaf"])
def test_whatever_runs(site: QueueFixture, tmp_path: Path, task: str) -> None:
    worker = Process(site.url, tmp_path).wait_until_it_listens()
    site.fill(1, task=task)
    site.fill(1, task=task, queue="'q'")
    wait_until(lambda: len(site.held()) == 3)

    assert worker.seconds_to_end() < GRACE + 1 + SLACK
    if not worker.has_said("could not be recorded before the worker stopped"):  # a busy server answers too late
        assert site.held() == []
        assert {row["attempts"] for row in site.jobs()} == {0}


@pytest.mark.parametrize(
    ("task", "insist"),
    [
        pytest.param(None, False, id="idle"),
        pytest.param("nap", False, id="with a result"),
        pytest.param("stubborn", False, id="busy"),
        pytest.param("stubborn", True, id="busy, asked twice"),
        pytest.param(None, True, id="idle, asked twice", marks=pytest.mark.slow),
        pytest.param("nap", True, id="with a result, asked twice", marks=pytest.mark.slow),
    ],
)
def test_in_a_network_that_swallows_everything(
    site: QueueFixture, hole: PacketDropProxy, tmp_path: Path, task: str | None, insist: bool
) -> None:
    (tmp_path / "crontab").write_text("* * * * * nap ?fill=1h\n")
    worker = Process(hole.url, tmp_path, "--sweep-threshold", "400ms", "--poll-interval", "100ms")
    worker.wait_until_it_listens()
    if task is not None:
        site.fill(1, task=task)
        wait_until(lambda: site.run("select 1 from _private_jobs where locked_by is not null"))
    hole.swallow()

    assert worker.seconds_to_end(insist=insist) < (0 if insist else GRACE) + 1 + SLACK


def test_while_the_server_is_away(site: QueueFixture, tmp_path: Path) -> None:
    proxy = DatabaseProxy(site.url)
    worker = Process(proxy.url, tmp_path).wait_until_it_listens()
    site.fill(1, task="stubborn")
    wait_until(lambda: site.held())
    proxy.cut()
    worker.wait_for("Cannot claim jobs")

    assert worker.seconds_to_end() < GRACE + 1 + SLACK
    proxy.close()


def test_while_a_backfill_and_a_claim_wait_for_somebodys_lock(site: QueueFixture, tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text("* * * * * nap ?fill=1h\n")
    with site.hands.transaction():
        # The scheduler sees that it has been away for an hour, and cannot catch up.
        site.run(
            "insert into _private_known_crontabs (identifier, known_since, last_execution)"
            " values ('nap', now() - interval '2 hours', now() - interval '1 hour')"
        )
        site.run("lock table _private_known_crontabs, _private_jobs in access exclusive mode")
        worker = Process(site.url, tmp_path)
        wait_until(lambda: _is_session_waiting(site), what="the worker to wait for the lock")

        assert worker.seconds_to_end() < GRACE + 1 + SLACK


def _is_session_waiting(site: QueueFixture) -> bool:
    with psycopg.connect(site.url, autocommit=True) as other:
        found = other.execute(
            "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            " and application_name like 'gw:%'"
        )
        return found.fetchone() is not None
