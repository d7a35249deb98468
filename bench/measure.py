"""What several rows need: draining a queue with a check behind it, and the context all measurements share."""

from __future__ import annotations

import shutil
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.harness import Measured, NotMeasuredError, WrongResultError
from bench.peers import Jobs, Peer
from bench.processes import LIMIT_SECONDS, Command, Finished, new_folders, run_together, run_until
from bench.scales import Scale
from bench.server import Server

RATE: Final = "jobs/s"
DOUBTFUL: Final = 0.5
"""A larger share of a run than this is not taken off it as start-up: what remained would be chance."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how much is measured."""

    server: Server
    scale: Scale

    @contextmanager
    def place(self) -> Iterator[tuple[str, Path]]:
        """Make a database and a folder for one measurement; both are gone after the block."""
        with self.server.database() as url, new_folder() as folder:
            yield url, folder


@contextmanager
def new_folder() -> Iterator[Path]:
    """Make a temporary folder and remove it after the block."""
    folder = Path(tempfile.mkdtemp(prefix="gw-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a queue is drained, where that is not the usual way."""

    processes: int = 1
    analyze: bool = True
    """Statistics are fresh when the workers start."""
    limit_seconds: float = LIMIT_SECONDS
    """When to stop a worker that is slow; what it did until then counts."""
    watched: bool = False
    """Run workers that go on, and watch the queue: for those that end before it is empty."""
    prepare: Callable[[str], int] = lambda url: 0
    """Prepares the empty queue; returns how many jobs it added that no worker can run."""


DEFAULTS: Final = RunOptions()


def drain(bench: Bench, peer: Peer, jobs: Jobs, options: RunOptions = DEFAULTS) -> Measured:
    """Time workers that empty a queue, less the time they need on an empty one.

    Afterwards every job must have run exactly once: the numbers that the tasks remembered are compared with the jobs.
    """
    with bench.place() as (url, folder):
        peer.install(url)
        folders = new_folders(folder, options.processes)
        start_up = _start_up(bench, [peer.worker(url, each) for each in folders])
        out_of_reach = options.prepare(url)
        peer.fill(url, jobs)
        bench.server.settle_down(url, analyze=options.analyze)
        commands = [peer.worker(url, each, once=not options.watched) for each in folders]
        run, left = _run(peer, url, commands, options, out_of_reach)
        done = jobs.count + out_of_reach - peer.jobs_left(url)
        unsettled = check_numbers(
            folder, done=done, of=jobs.count, some_unsettled=options.watched and not peer.finishes
        )
        last_words = commands[0].last_words()
    if left and peer.finishes and not run.stopped:
        raise WrongResultError(f"it ended with {left:,} of {jobs.count:,} runnable jobs left")
    if left == jobs.count:
        raise NotMeasuredError(f"it ran no job in {run.seconds:.1f} s: {last_words}")
    notes = _notes(jobs.count, left, run, start_up, unsettled=unsettled)
    return Measured({RATE: _rate(jobs.count - left, run, start_up)}, notes)


def _start_up(bench: Bench, commands: Sequence[Command]) -> float:
    return median(run_together(commands).seconds for _ in range(bench.scale.starts))


def _run(
    peer: Peer, url: str, commands: Sequence[Command], options: RunOptions, out_of_reach: int
) -> tuple[Finished, int]:
    """Let the workers work; answer how long that took and how many jobs were left then."""
    left = -1

    def is_over() -> bool:
        nonlocal left
        left = peer.jobs_left(url) - out_of_reach
        return left == 0

    if options.watched:
        finished = run_until(commands, is_over, limit_seconds=options.limit_seconds)
    else:
        finished = run_together(commands, limit_seconds=options.limit_seconds)
        is_over()
    return finished, left


def _rate(done: int, run: Finished, start_up: float) -> float:
    return done / (run.seconds - min(start_up, run.seconds * DOUBTFUL))


def _notes(count: int, left: int, run: Finished, start_up: float, *, unsettled: int) -> dict[str, str]:
    texts = {
        "stopped": f"stopped when its time was up, with {count - left:,} of {count:,} jobs done",
        "ended": f"exited with {left:,} of {count:,} runnable jobs left",
        "unsettled": f"when it was stopped, {unsettled:,} jobs it had run were still in the queue",
        "doubtful": f"doubtful: of {run.seconds:.2f} s, {start_up:.2f} s were start-up; use more jobs",
    }
    true = {
        "stopped": run.stopped,
        "ended": left and not run.stopped,
        "unsettled": unsettled,
        "doubtful": start_up > run.seconds * DOUBTFUL,
    }
    return {kind: text for kind, text in texts.items() if true[kind]}


def check_numbers(folder: Path, *, done: int, of: int, some_unsettled: bool = False) -> int:
    """Raise `WrongResultError` unless `done` different jobs ran, each once, out of those numbered from 0.

    With `some_unsettled` more may have run than left the queue; the answer is how many.
    """
    numbers = array("I")
    for file in folder.rglob("ran-*"):
        numbers.frombytes(file.read_bytes())
    different = set(numbers)
    if len(different) != len(numbers):
        raise WrongResultError(f"{len(numbers) - len(different):,} jobs ran twice")
    unsettled = len(different) - done
    if unsettled < 0 or (unsettled and not some_unsettled) or max(different, default=0) >= of:
        raise WrongResultError(f"{done:,} jobs left the queue, {len(different):,} different ones of them were run")
    return unsettled
