"""Worker processes as an operator runs them: started, killed, frozen, stopped gracefully, and restarted."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .cleanup_guard import Guard
from .servers import environment
from .stall_detector import wait_for

CHECKOUT: Final = Path(__file__).resolve().parents[2]
TASKS: Final = Path(__file__).with_name("tasks")
TASKS_OF_ONE: Final = Path(__file__).with_name("tasks_of_one")
"""The same, and one task that no other worker has."""
CRONTAB: Final = Path(__file__).with_name("crontab")
GW: Final = Path(sys.executable).with_name("gw")
CHILD: Final = re.compile(r"Process \d+ is ready \(pid (\d+)\)")
LOST: Final = re.compile(r"Lost job (\d+) ")
BEGUN: Final = " threads; tasks: "
NO_DATABASE: Final = 3
"""How `gw` ends when the database cannot be reached at the start."""

NUMBERS: Final = itertools.count(1)


@dataclass(eq=False)
class Worker:
    """One process, from its start to its end."""

    slot: Slot
    process: subprocess.Popen[bytes]
    log: Path
    started: int
    ended: int | None = None
    asked_to_stop: int | None = None
    killed: bool = False
    is_ours: bool = True
    family: bool = False
    """Whether it is a supervisor, whose children do the work."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        return self.process.poll()

    def words(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def has_begun(self) -> bool:
        """Whether it got as far as claiming jobs."""
        return BEGUN in self.words()

    def pids(self) -> set[int]:
        """The processes that work or worked in its name."""
        return {int(each) for each in CHILD.findall(self.words())} if self.family else {self.pid}

    def workers(self) -> set[int]:
        """Those of them that live."""
        if self.exit_code is not None:
            return set()
        return {pid for pid in self.pids() if _is_child(pid, self.pid)} if self.family else {self.pid}

    def lost(self) -> set[int]:
        """The jobs it reported as lost."""
        return {int(each) for each in LOST.findall(self.words())}


@dataclass(eq=False)
class Slot:
    """A place for one worker after the other."""

    name: str
    conninfo: str
    options: Sequence[str]
    prefix: Sequence[str] = ()
    """What comes before the command, such as what enters a network namespace."""
    road: str = ""
    """How it reaches the servers, when that way can be cut."""
    threads: int = 5
    """How many jobs it runs at a time."""
    tasks: Path = TASKS
    family: bool = False
    """Whether a supervisor with several processes stands here."""
    foreign: Sequence[str] = ()
    """The command of a worker that is not ours, and `folder` is where it runs."""
    folder: Path | None = None
    after_kill: Callable[[], None] = lambda: None
    """What an operator does before a killed worker is replaced."""
    lock: threading.Lock = field(default_factory=threading.Lock)  # held while something is done to the worker
    worker: Worker | None = None


class ProcessStates:
    """All workers of a run, the living and the dead."""

    def __init__(self, folder: Path, guard: Guard, *, grace_seconds: float) -> None:
        self.ledger = folder / "ledger"
        self.ledger.mkdir()
        self.slots: list[Slot] = []
        self.workers: list[Worker] = []
        self.grace_seconds = grace_seconds
        self._logs = folder / "logs"
        self._logs.mkdir()
        self._folder = folder
        self._guard = guard

    @property
    def living(self) -> list[Worker]:
        return [slot.worker for slot in self.slots if slot.worker is not None and slot.worker.exit_code is None]

    def start(self, slot: Slot) -> Worker:
        if slot.foreign:
            return self._launch(slot, slot.foreign)
        gw = [str(GW)] if GW.exists() else [sys.executable, "-m", "gw_cli"]
        command = [
            *(*slot.prefix, *gw, "run", "--connection", slot.conninfo, "--tasks", str(slot.tasks)),
            *("--crontab", str(CRONTAB), "--history", "1d"),
            *("--grace-period", f"{self.grace_seconds}s", *slot.options),
        ]
        return self._launch(slot, command)

    def _launch(self, slot: Slot, command: Sequence[str]) -> Worker:
        log = self._logs / f"{next(NUMBERS):03}-{slot.name}"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                cwd=slot.folder or self._folder,
                env={**environment(), "PYTHONPATH": str(CHECKOUT), "GW_CHAOS_LEDGER": str(self.ledger)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._guard.started(process.pid)
        slot.worker = Worker(slot, process, log, time.monotonic_ns(), is_ours=not slot.foreign, family=slot.family)
        self.workers.append(slot.worker)
        return slot.worker

    def has_run_something(self, worker: Worker) -> bool:
        return all((self.ledger / str(pid)).exists() for pid in worker.workers() or {0})

    def kill(self, worker: Worker) -> None:
        worker.killed = True
        worker.process.kill()
        self.wait_for_end(worker, 10)

    def request_stop(self, worker: Worker) -> None:
        worker.asked_to_stop = time.monotonic_ns()
        worker.process.send_signal(signal.SIGTERM)

    def wait_for_end(self, worker: Worker, seconds: float) -> bool:
        """Wait until the process is gone; True when it went within that time."""
        if not wait_for(lambda: worker.process.poll() is not None, seconds):
            return False
        worker.ended = time.monotonic_ns()
        self._guard.ended(worker.pid)
        return True

    def close(self) -> None:
        """End whatever is left."""
        for worker in self.workers:
            children = worker.workers() - {worker.pid}
            if worker.process.poll() is None:
                self.kill(worker)
            for pid in children:
                send(pid, signal.SIGKILL)


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _is_child(pid: int, parent: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(parent)
    except OSError:
        return False
