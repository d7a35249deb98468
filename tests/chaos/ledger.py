"""What the tasks recorded: one file for each process, one line for the beginning and one for the end of each run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(slots=True)
class Run:
    """One run of a job, as the task itself saw it. TimeRange are nanoseconds of the machine's one monotonic clock."""

    pid: int
    job_id: int
    attempt: int
    n: int
    """The number the job was given when it was added."""
    began: int
    began_wall: int
    """The same time by the wall clock, in nanoseconds since 1970."""
    ended: int | None = None
    how: str = ""
    """ok, failed, or nothing: it was not let to its end."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One run of a job that recurs."""

    name: str
    minute: datetime
    """The time it was scheduled for."""
    job_id: int


def read_ticks(folder: Path) -> list[Tick]:
    """Return all runs of jobs that recur."""
    lines = (line.split() for file in folder.iterdir() for line in file.read_text().splitlines())
    return [
        Tick(name, datetime.fromisoformat(timestamp), int(job_id))
        for kind, *rest in lines
        if kind == "T"
        for name, timestamp, job_id in [rest]
    ]


def read_ledger(folder: Path) -> list[Run]:
    """Return all runs there were, in the order in which they began."""
    runs = [run for file in folder.iterdir() for run in _runs_of(int(file.name), file)]
    return sorted(runs, key=lambda run: run.began)


def _runs_of(pid: int, file: Path) -> Iterator[Run]:
    runs: dict[str, Run] = {}
    for line in file.read_text().splitlines():
        match line.split():
            case ["B", number, job_id, attempt, n, began, wall]:
                # Each process counts its runs from 1, so a number that comes again is of a later process with this id.
                if number in runs:
                    yield from runs.values()
                    runs.clear()
                runs[number] = Run(pid, int(job_id), int(attempt), int(n), int(began), int(wall))
            case ["E", number, how, ended]:
                runs[number].how, runs[number].ended = how, int(ended)
    yield from runs.values()
