"""Run an executable file of any language as a task: the job on its stdin, its output in the log."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.outcome import Snooze
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.domain.rules.supervision import exit_words
from gw_core.execution.child_process import LeaderProcess, WholeLines
from gw_core.execution.process_groups import GROUPS
from gw_core.execution.signature import Invoke

if TYPE_CHECKING:
    from gw_core.domain.job.job import Job
    from gw_core.execution.context import JobContext, StopSignal

TERMINATION_TIMEOUT: Final = timedelta(seconds=10)
"""How long a program may take to end after SIGTERM before it and its group are killed."""

DRAIN_TIMEOUT: Final = timedelta(seconds=1)
"""How long output is read after the program ended, when something it started still holds its pipes."""

MAX_LINE_LENGTH: Final = 16_384
"""Longer lines of output are logged in pieces of at most this many bytes, so that no output grows our memory."""

ALWAYS_HANDED_ON: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""The variables a program gets in any case: without them few programs find what they need, and none is a secret."""

_TICK: Final = 0.2
_CHUNK: Final = 65_536
_TAIL_LINES: Final = 20
_TAIL_CHARACTERS: Final = 4_000


class ExecutableError(GraphileWorkerError):
    """The program could not be started, or ended with anything but exit code 0."""


def compose_executable(path: Path, handed_on: Sequence[str] | None = ()) -> Invoke:
    """Return the call that runs the program for a job, with the named variables of our environment; None is all."""
    return lambda job, context: run_executable(path, job, context, handed_on=handed_on)


def run_executable(
    path: Path,
    job: Job,
    context: JobContext,
    *,
    handed_on: Sequence[str] | None = (),
    timeout: timedelta = TERMINATION_TIMEOUT,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run the program to its end, in the environment that `environment_of` returns.

    It gets `{"payload": …}` on stdin and the job in GRAPHILE_WORKER_* variables; its lines of output are logged. When
    the job is asked to stop, the program's process group is sent SIGTERM; after `timeout`, or when the job is given
    back, SIGKILL. Such a run ends with `Snooze`. Raises `ExecutableError` for any other end but exit code 0.
    """
    program = Program(_started(path, job, handed_on))
    with program.tracked(context.should_stop):
        session = _ProgramSession(program, job, context, timeout=timeout, clock=clock)
        exit_code = session.until_the_end()
    if exit_code == 0:
        return
    if session.was_asked_to_stop or program.was_killed:
        raise Snooze(WorkerSettings().interrupted_delay, f"{path.name} was ended because the worker is stopping")
    raise ExecutableError(f"{path.name} {exit_words(exit_code)}{session.last_words()}")


# -- starting ------------------------------------------------------------------------------------------------------


def environment_of(job: Job, handed_on: Sequence[str] | None = ()) -> dict[str, str]:
    """Return the variables the program sees: those of the job, and ours.

    Only `ALWAYS_HANDED_ON` and the variables that `handed_on` names are taken from our environment; None takes all, as
    Graphile Worker does.
    """
    run_at = job.run_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    variables = {
        "GRAPHILE_WORKER_PAYLOAD_FORMAT": "json",
        "GRAPHILE_WORKER_TASK_IDENTIFIER": job.task,
        "GRAPHILE_WORKER_JOB_ID": str(job.id),
        "GRAPHILE_WORKER_JOB_KEY": job.job_key,
        "GRAPHILE_WORKER_JOB_ATTEMPTS": str(job.attempts),
        "GRAPHILE_WORKER_JOB_MAX_ATTEMPTS": str(job.max_attempts),
        "GRAPHILE_WORKER_JOB_PRIORITY": str(job.priority),
        "GRAPHILE_WORKER_JOB_RUN_AT": run_at,
    }
    # A worker may itself run inside an executable task; the key of that job is not this one's.
    kept = os.environ.keys() if handed_on is None else {*ALWAYS_HANDED_ON, *handed_on}
    everything = {**{name: value for name, value in os.environ.items() if name in kept}, **variables}
    return {name: value for name, value in everything.items() if value is not None}


def _started(path: Path, job: Job, handed_on: Sequence[str] | None) -> subprocess.Popen[bytes]:
    GROUPS.start()
    try:
        return subprocess.Popen(  # noqa: S603 - running what stands in the task folder is the purpose; no shell
            [path.absolute()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment_of(job, handed_on),
            # A session, and so a process group, of its own: a Ctrl-C at the terminal is ours to answer, not the
            # program's, and nothing it starts can ask that terminal for a password.
            start_new_session=True,
        )
    except OSError as error:
        raise ExecutableError(_why_not_started(path, error)) from error


def _why_not_started(path: Path, error: OSError) -> str:
    match error:
        case PermissionError():
            return f"{path} is not executable for this user; run: chmod +x {path.name}"
        case FileNotFoundError() if path.exists():
            return f"{path} cannot be started: its #! line names an interpreter that does not exist"
        case FileNotFoundError():
            return f"{path} no longer exists; restore it, or restart the worker without it"
    return f"{path} cannot be started: {error.strerror or error}; a script needs a #! line that names its interpreter"


class Program(LeaderProcess):
    """A running program."""

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """stdin, stdout and stderr, from our side."""
        process = self._process
        assert process.stdin is not None  # noqa: S101 - all three are pipes, see _started
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        return process.stdin, process.stdout, process.stderr

    @contextlib.contextmanager
    def tracked(self, stop: StopSignal) -> Iterator[None]:
        """End with this process and with a forced stop, and leave neither process nor pipe behind."""
        GROUPS.add(self)
        stop.on_force = self.kill
        try:
            yield
        finally:
            stop.on_force = None
            if self.exit_code() is None:
                self.signal_group(signal.SIGKILL)
                self._process.wait()
            GROUPS.remove(self)
            for pipe in self.pipes:
                with contextlib.suppress(OSError):
                    pipe.close()


# -- talking -------------------------------------------------------------------------------------------------------


class _ProgramSession:
    """Writes the payload, logs what comes, and looks after the request to stop; all in the worker's thread."""

    def __init__(
        self, program: Program, job: Job, context: JobContext, *, timeout: timedelta, clock: Callable[[], float]
    ) -> None:
        self._program = program
        self._context = context
        self._timeout = timeout.total_seconds()
        self._clock = clock
        self._unsent = memoryview(b'{"payload":' + job.payload_json.encode("utf-8", "surrogatepass") + b"}")
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._lines = {name: WholeLines(name, self._log, limit=MAX_LINE_LENGTH) for name in ("stdout", "stderr")}
        self._stop_sent_at: float | None = None
        self._ended_at: float | None = None

    @property
    def was_asked_to_stop(self) -> bool:
        """True when the program was sent SIGTERM."""
        return self._stop_sent_at is not None

    def until_the_end(self) -> int:
        """Return the exit code, when the program has ended and its output is read."""
        with selectors.DefaultSelector() as pipes:
            self._register(pipes)
            exit_code = self._listen(pipes)
        for lines in self._lines.values():
            lines.end()
        if self.was_asked_to_stop or self._program.was_killed:
            self._program.kill_leftovers()
        return exit_code

    def last_words(self) -> str:
        """Return the last lines of stderr, for the error."""
        end = "\n".join(self._tail)[-_TAIL_CHARACTERS:].strip()
        return f": {end}" if end else " with nothing on stderr"

    def _register(self, pipes: selectors.BaseSelector) -> None:
        stdin, stdout, stderr = self._program.pipes
        for pipe in (stdin, stdout, stderr):
            os.set_blocking(pipe.fileno(), False)
        pipes.register(stdin, selectors.EVENT_WRITE, "stdin")
        pipes.register(stdout, selectors.EVENT_READ, "stdout")
        pipes.register(stderr, selectors.EVENT_READ, "stderr")

    def _listen(self, pipes: selectors.BaseSelector) -> int:
        rest = 0.001
        while True:
            # Read the exit code before the pipes; in the other order, output written in between would be lost.
            exit_code = self._program.exit_code()
            open_pipes = bool(pipes.get_map())
            if exit_code is not None and not open_pipes:
                return exit_code
            ready = pipes.select(_TICK if open_pipes else rest)
            for key, _ in ready:
                self._serve(pipes, key)
            if exit_code is not None and self._is_drained(something_came=bool(ready)):
                return exit_code
            self._check_stop()
            # With all pipes closed only the exit is left, usually immediate: poll quickly, then less often.
            rest = 0.001 if open_pipes else min(_TICK, rest * 2)

    def _is_drained(self, *, something_came: bool) -> bool:
        """True when an ended program and its children write no more output, or have continued for too long."""
        now = self._clock()
        if self._ended_at is None:
            self._ended_at = now
        return not something_came or now - self._ended_at > DRAIN_TIMEOUT.total_seconds()

    def _serve(self, pipes: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]  # what _register put in
        goes_on = self._write(key.fd) if key.data == "stdin" else self._read(key.fd, self._lines[key.data])
        if not goes_on:
            pipes.unregister(pipe)
            with contextlib.suppress(OSError):
                pipe.close()

    def _write(self, descriptor: int) -> bool:
        try:
            written = os.write(descriptor, self._unsent[:_CHUNK])
        except BlockingIOError:
            return True
        except OSError:  # the program does not read its stdin, which is its right
            return False
        self._unsent = self._unsent[written:]
        return len(self._unsent) > 0

    def _read(self, descriptor: int, lines: WholeLines) -> bool:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        lines.feed(chunk)
        return bool(chunk)

    def _check_stop(self) -> None:
        stop = self._context.should_stop
        if stop.forced:
            self._program.kill()
        elif self._stop_sent_at is None:
            if stop.is_set():
                self._stop_sent_at = self._clock()
                self._program.signal_group(signal.SIGTERM)
        elif self._clock() - self._stop_sent_at > self._timeout:
            self._program.signal_group(signal.SIGKILL)

    def _log(self, channel: str, lines: bytes) -> None:
        level = logging.INFO if channel == "stdout" else logging.ERROR
        for line in lines.split(b"\n"):
            for start in range(0, len(line), MAX_LINE_LENGTH):
                if text := line[start : start + MAX_LINE_LENGTH].decode("utf-8", "replace").rstrip():
                    self._tail.extend([text] if channel == "stderr" else [])
                    self._context.logger.log(level, "%s", text)
