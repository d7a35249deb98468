"""Acceptance: `gw run --processes` as an operator meets it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from supervised import CHECKOUT, DEADLINE
from support.database_proxy import DatabaseProxy
from support.process_state import is_alive
from support.queue_fixture import QueueFixture
from support.stall_clock import StallClock
from support.stop_window import ALWAYS, NEVER, gw_with_repeats
from support.waiting import free_port, wait_until
from support.warm_program import run_gw

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

TASKS = """
import ctypes, os, time
from gw_core import task

@task
def ran(payload):
    with open(os.environ["RAN"], "ab", buffering=0) as file:
        file.write(b"%d %d\\n" % (os.getpid(), payload["n"]))
    time.sleep(payload.get("seconds", 0))

@task
def gated(payload):
    ran({"n": 0})
    while not os.path.exists(payload):
        time.sleep(0.01)

@task
def hog(payload):
    ran({"n": 0})
    ctypes.PyDLL(None).sleep(600)  # keeps the interpreter to itself
"""


class Program:
    """`gw run` in a process of its own, and its output."""

    def __init__(self, site: QueueFixture, folder: Path, *options: str, repeats: float = ALWAYS) -> None:
        self._ran = folder / "ran"
        (folder / "tasks").mkdir(exist_ok=True)
        if not (folder / "tasks" / "work.py").exists():
            (folder / "tasks" / "work.py").write_text(TASKS)
        self.process = subprocess.Popen(
            [*gw_with_repeats(repeats), "run", "-c", site.url, *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "RAN": str(self._ran)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def saying(self, what: str, count: int = 1) -> list[str]:
        def said() -> list[str]:
            found = [line for line in list(self.lines) if re.search(what, line)]
            return found if len(found) >= count else []

        try:
            return wait_until(said, deadline_seconds=DEADLINE, what=f"{count} times {what!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it said\n" + "\n".join(self.lines)) from None

    def pids(self, count: int) -> list[int]:
        """The processes that are ready, the last ones of each number."""
        ready = [re.search(r"Process (\d+) is ready \(pid (\d+)\)", line) for line in self.saying("is ready", count)]
        return list({match[1]: int(match[2]) for match in ready if match}.values())

    def ran(self) -> list[tuple[int, int]]:
        """(process, number) of each run."""
        if not self._ran.exists():
            return []
        return [(int(pid), int(number)) for pid, number in map(str.split, self._ran.read_text().splitlines())]

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def end(self, *, deadline: float = DEADLINE) -> int:
        try:
            code = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError("it did not end; it said\n" + "\n".join(self.lines)) from None
        self._reader.join(DEADLINE)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE)
        for pid in re.findall(r"is ready \(pid (\d+)\)", "\n".join(self.lines)):
            with suppress(ProcessLookupError):
                os.killpg(int(pid), signal.SIGKILL)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._reader.join(DEADLINE)
        if self.process.stderr is not None:
            self.process.stderr.close()


Start = Callable[..., Program]


@pytest.fixture
def start(site: QueueFixture, tmp_path: Path) -> Iterator[Start]:
    started: list[Program] = []

    def start(*options: str, **rest: float) -> Program:
        started.append(Program(site, tmp_path, *options, **rest))
        return started[-1]

    yield start
    for program in started:
        program.close()


def workers(site: QueueFixture) -> list[Any]:
    return site.run("select id from _private_gw_workers")


def test_processes_share_the_jobs_and_stop_gracefully(site: QueueFixture, start: Start) -> None:
    site.fill(40, task="ran")
    site.run("update _private_jobs set payload = json_build_object('n', id, 'seconds', 0.05)")
    program = start("--processes", "2", "-j", "2", "--prefetch", "0ms")
    pids = program.pids(2)
    wait_until(lambda: len(program.ran()) == 40, deadline_seconds=DEADLINE)
    assert len(site.connections()) <= 2 * 4 + 1
    program.signal(signal.SIGTERM)

    assert program.end() == -signal.SIGTERM
    assert {pid for pid, _ in program.ran()} <= set(pids)
    assert (site.held(), workers(site), [is_alive(pid) for pid in pids]) == ([], [], [False, False])
    # What they run is logged once, every line names its process, and each was asked to stop once.
    assert len(program.saying(" threads; tasks: ")) == 1
    assert all(re.match(r"\S+Z \[(supervisor|\w+#[12])", line) for line in program.lines), program.lines
    assert len(program.saying("Stopped:")) == 2


def test_a_killed_process_is_replaced_and_the_others_go_on(site: QueueFixture, start: Start) -> None:
    program = start("--processes", "2")
    first, second = program.pids(2)
    os.kill(second, signal.SIGKILL)
    program.saying("Process 2 .* was ended by SIGKILL.*restarting")
    third = program.pids(3)[-1]

    assert is_alive(first)
    assert third not in (first, second)
    # As Ctrl-C does, which reaches the terminal's whole group.
    os.killpg(program.process.pid, signal.SIGINT)
    assert program.end() == -signal.SIGINT
    assert (len(program.saying("Received SIGINT")), len(program.saying("Stopped:"))) == (1, 2)


def test_a_service_manager_that_signals_every_process_forces_nothing(site: QueueFixture, start: Start) -> None:
    """systemd and Kubernetes' init signal all processes, and the supervisor passes its own on: that is still one."""
    site.add("ran", {"n": 1, "seconds": 0.5})
    program = start("--processes", "2", "--log-format", "json")
    wait_until(program.ran, deadline_seconds=DEADLINE)
    for pid in program.pids(2):
        os.kill(pid, signal.SIGTERM)
    program.signal(signal.SIGTERM)

    assert program.end() == -signal.SIGTERM
    logged = [json.loads(line) for line in program.lines]
    assert [entry for entry in logged if "stopping immediately" in entry["message"]] == []
    assert {entry.get("process") for entry in logged} == {None, 1, 2}
    assert site.jobs() == []


@pytest.mark.parametrize("options", [[], ["--processes", "2"]], ids=["one process", "a supervisor"])
def test_a_signal_that_arrives_twice_is_one_graceful_stop(
    site: QueueFixture, start: Start, tmp_path: Path, options: list[str]
) -> None:
    """`timeout` signals its child and then the group of both; shells that forward a signal do the same."""
    gate = tmp_path / "gate"
    site.add("gated", str(gate))
    program = start(*options)
    wait_until(program.ran, deadline_seconds=DEADLINE)
    program.signal(signal.SIGTERM)
    program.saying("Received SIGTERM; stopping when running jobs finish; send it again after .* to stop immediately")
    program.signal(signal.SIGTERM)
    program.saying("Received SIGTERM again; still waiting for running jobs")
    gate.touch()

    assert program.end() == -signal.SIGTERM
    assert (site.jobs(), [line for line in program.lines if "stopping immediately" in line]) == ([], [])


def test_a_later_signal_ends_all_immediately(site: QueueFixture, start: Start) -> None:
    for _ in range(2):
        site.add("ran", {"n": 1, "seconds": 600})
    program = start("--processes", "2", "-j", "1", repeats=NEVER)
    pids = program.pids(2)
    wait_until(lambda: len(program.ran()) == 2, deadline_seconds=DEADLINE)
    program.signal(signal.SIGTERM)
    program.saying("Stopping", 2)
    with StallClock(program.process.pid, *pids) as watch:
        program.signal(signal.SIGTERM)
        assert program.end() == -signal.SIGTERM

    assert watch.seconds < 30
    if not any("could not be recorded before" in line for line in program.lines):  # a busy server answers too late
        assert (site.held(), [job["attempts"] for job in site.jobs()]) == ([], [0, 0])


def test_an_unresponsive_process_is_killed_a_second_after_the_grace_period(site: QueueFixture, start: Start) -> None:
    site.add("hog")
    program = start("--processes", "2", "--grace-period", "500ms")
    pids = program.pids(2)
    wait_until(program.ran, deadline_seconds=DEADLINE)
    asked_at = time.monotonic()
    with StallClock(program.process.pid, *pids) as watch:
        program.signal(signal.SIGTERM)
        assert program.end() == 128 + signal.SIGKILL

    assert time.monotonic() - asked_at > 1.4
    assert watch.seconds < 30
    assert len(program.saying("Killed processes that ran on")) == 1
    assert not any(map(is_alive, pids))


def test_processes_whose_supervisor_is_killed_stop_gracefully(site: QueueFixture, start: Start) -> None:
    program = start("--processes", "2")
    pids = program.pids(2)
    site.add("ran", {"n": 1, "seconds": 0.5})
    wait_until(program.ran, deadline_seconds=DEADLINE)
    program.process.kill()

    wait_until(lambda: not any(map(is_alive, pids)), deadline_seconds=DEADLINE)
    # The job that ran ended: nothing was returned, nothing is left.
    assert (site.jobs(), site.held(), workers(site)) == ([], [], [])


def test_a_single_run_in_several_processes_ends_with_the_worst_code(site: QueueFixture, start: Start) -> None:
    site.fill(50, task="ran")
    site.add("ran", {"m": "no n"})
    program = start("--processes", "2", "--once", "--strict")

    assert program.end() == 1
    assert len(program.ran()) == 50


def test_processes_wait_for_a_database_that_is_away_at_the_start(site: QueueFixture, start: Start) -> None:
    proxy = DatabaseProxy(site.url)
    proxy.cut()
    site.fill(1, task="ran")
    program = start("-c", proxy.url, "--processes", "2")
    program.saying("Cannot start yet: the database cannot be reached")
    proxy.restore()
    program.pids(2)
    wait_until(program.ran, deadline_seconds=DEADLINE)
    program.signal(signal.SIGTERM)

    assert program.end() == -signal.SIGTERM
    assert len(program.saying("Cannot start yet")) == 1
    proxy.close()


def test_a_single_run_in_several_processes_does_not_wait_for_a_database_that_is_away(start: Start) -> None:
    assert start("-c", f"host=127.0.0.1 port={free_port()}", "--processes", "2", "--once").end() == 3


def test_tasks_that_do_not_load_are_reported_once_and_end_all(start: Start) -> None:
    program = start("--processes", "4", "--tasks", "nowhere")

    assert program.end() == 8
    assert len(program.saying("does not exist")) == 1
    assert [line for line in program.lines if "ERROR" in line] == []


def test_a_process_that_has_run_long_enough_is_replaced(site: QueueFixture, start: Start) -> None:
    program = start("--processes", "1", "--max-jobs", "1")
    program.pids(1)
    site.add("ran", {"n": 1})
    program.saying("starting a replacement")
    program.saying("is ready", 2)
    site.add("ran", {"n": 2})
    wait_until(lambda: len(program.ran()) == 2, deadline_seconds=DEADLINE)

    assert len({pid for pid, _ in program.ran()}) == 2
    program.signal(signal.SIGTERM)
    assert program.end() == -signal.SIGTERM


@pytest.mark.parametrize("number", ["0", "many", "1001"])
def test_a_number_of_processes_that_makes_no_sense_is_rejected(tmp_path: Path, number: str) -> None:
    ended = run_gw(["run", "--processes", number], folder=tmp_path, environment=os.environ)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"gw: --processes '{number}': give a whole number from 1 to 1000, or auto\n"
