"""Run programs: together, for a time, watched; a failure is reported with the end of their output."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Final

from bench.harness import NotMeasuredError

LAST_WORDS: Final = 400
TO_STOP_SECONDS: Final = 20.0
"""How long a worker may take to stop before it is killed."""
LIMIT_SECONDS: Final = 300.0
"""What is not done by then will not be done."""
FOREIGN: Final = ("PG", "GW_", "GRAPHILE_", "NODE_", "PYTHON", "DATABASE_URL", "PROCRASTINATE_", "NO_LOG_")
"""What would lead a worker to other databases, other settings or other code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program, ready to start in its own folder; its output goes to a file there."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the program."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        with self.output.open("ab") as output:
            return subprocess.Popen(
                self.argv,
                cwd=self.folder,
                env={**inherited, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> Path:
        """The file with the program's output."""
        return self.folder / "output.log"

    def last_words(self) -> str:
        """Return the end of the program's output, in one line."""
        return " ".join(self.output.read_text(errors="replace")[-LAST_WORDS:].split())


def new_folders(parent: Path, count: int) -> list[Path]:
    """Make a folder for each of this many processes."""
    folders = [parent / f"process-{number}" for number in range(count)]
    for folder in folders:
        folder.mkdir()
    return folders


def run_briefly(
    argv: Sequence[str], what: str, *, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> None:
    """Run a program to its end; raise `NotMeasuredError` with the end of its errors when it fails."""
    done = subprocess.run(argv, cwd=folder, env=environment, text=True, capture_output=True)
    if done.returncode != 0:
        raise NotMeasuredError(f"{what} failed: {' '.join(done.stderr[-LAST_WORDS:].split())}")


@dataclass(frozen=True, slots=True)
class Finished:
    """How long it took from the first start to the last end, and whether the time allowed ran out."""

    seconds: float
    stopped: bool


def run_together(commands: Sequence[Command], *, limit_seconds: float = LIMIT_SECONDS) -> Finished:
    """Run programs at the same time until all have ended; after the limit they are stopped."""
    began = time.perf_counter()
    processes = [command.start() for command in commands]
    with stopping_after(limit_seconds, processes) as stopped:
        # Waiting without a timeout: with one, the standard library refreshes only every 50 ms.
        codes = [process.wait() for process in processes]
        seconds = time.perf_counter() - began
    if not stopped.is_set():
        for command, code in zip(commands, codes, strict=True):
            if code != 0:
                raise NotMeasuredError(f"{Path(command.argv[0]).name} ended with {code}: {command.last_words()}")
    return Finished(seconds, stopped.is_set())


def run_until(
    commands: Sequence[Command], is_over: Callable[[], bool], *, limit_seconds: float, every_seconds: float = 0.02
) -> Finished:
    """Run programs that would go on for ever, until it is over or the limit is reached."""
    began = time.perf_counter()
    with ExitStack() as stack:
        processes = [stack.enter_context(running(command)) for command in commands]
        while not (over := is_over()) and time.perf_counter() - began < limit_seconds:
            for command, process in zip(commands, processes, strict=True):
                if process.poll() is not None:
                    raise NotMeasuredError(f"{Path(command.argv[0]).name} ended too early: {command.last_words()}")
            time.sleep(every_seconds)
        seconds = time.perf_counter() - began
    return Finished(seconds, not over)


@contextmanager
def running(command: Command) -> Iterator[subprocess.Popen[bytes]]:
    """Keep a program running while the block runs."""
    process = command.start()
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        with _killing_after(TO_STOP_SECONDS, [process]):
            process.wait()


@contextmanager
def repeating(act: Callable[[], None], *, every_seconds: float) -> Iterator[None]:
    """Do something again and again on another thread while the block runs."""
    over = Event()

    def turn() -> None:
        while not over.wait(every_seconds):
            act()

    thread = Thread(target=turn, name="bench-sampler")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def stopping_after(seconds: float, processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[Event]:
    """Stop programs when the block takes longer, and kill them later; the event is set if that happened."""
    stopped = Event()

    def stop() -> None:
        stopped.set()
        for process in processes:
            process.terminate()

    timer = Timer(seconds, stop)
    timer.start()
    try:
        with _killing_after(seconds + TO_STOP_SECONDS, processes):
            yield stopped
    except BaseException:
        for process in processes:
            process.kill()
        raise
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def _killing_after(seconds: float, processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    def kill() -> None:
        for process in processes:
            process.kill()

    timer = Timer(seconds, kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
