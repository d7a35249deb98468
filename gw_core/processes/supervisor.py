"""Run several worker processes: start them, replace those that die, and stop them gracefully."""

from __future__ import annotations

import logging
import queue
import signal
import threading
import time
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import (
    MaintenanceFailed,
    ProcessEnded,
    ProcessesKilled,
    ProcessReady,
    SupervisorGaveUp,
    SupervisorStarted,
    SupervisorStopped,
)
from gw_core.domain.rules.stop_signals import StopSignals
from gw_core.domain.rules.supervision import (
    MAX_PAUSE,
    SETTLED_AFTER,
    SIGNALLED,
    StopAll,
    decide,
    exit_code_of,
    exit_description,
    exit_words,
)
from gw_core.execution.child_process import PassOn
from gw_core.processes.process import WorkerProcess
from gw_core.runtime.log_messages import SupervisorLog
from gw_core.runtime.signals import Signals

KILL_DELAY: Final = timedelta(seconds=3)
"""How long after the grace period, or after a signal that ends it, a process is killed that has not ended.

A process that records its last outcomes uses up to a second of it, and on a busy machine its exit takes longer.
"""

CHECK_SECONDS: Final = 0.5
"""Seconds between two checks of the clock during a stop."""

STALL_THRESHOLD: Final = 0.2
"""Seconds: a check that comes so much later was delayed with everything else, by the machine."""

STALL_EXTENSION: Final = 1.0
"""Seconds that processes have at least, when all can go on."""

MAX_EXTENSIONS: Final = 10
"""How often a stop is extended; more often, stalls of a throttled container would postpone the kill forever."""

GRACEFUL_EXITS: Final = (0, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP)
"""How a process that was asked to stop ends; a service manager may have asked it as well."""


class _Place(msgspec.Struct, eq=False):
    """The place of one process, whichever process has it now."""

    number: int
    process: WorkerProcess | None = None
    start_at: float | None = None
    quick_ends: int = 0
    was_ready: bool = False


class StopRequest(msgspec.Struct):
    """That all shall end: why, with which code, and when those that have not are killed."""

    reason: str
    exit_code: int
    kill_at: float | None
    extensions: int = 0


class Supervisor:
    """Runs worker processes until a signal, or with `once` until all have finished.

    `command` returns the command line of a process, given its number and `announces`: whether it logs for all.

    The first process is started alone: when it cannot run, none can, and its error is logged once. The others follow
    when it is ready. One that dies is restarted, immediately after a graceful exit, else with a growing delay. An exit
    code among `fatal_codes`, or too many failed starts, end all. `transient_codes` do not, once any process was ready.
    `independent` processes work for different databases: all start together, and one that was ready is always
    restarted.
    `pass_on` gets whole lines of what processes write; it is called from several threads.

    All state belongs to the thread that calls `run`; others put news into its queue.
    """

    def __init__(
        self,
        command: Callable[..., Sequence[str]],
        *,
        processes: int,
        grace_period: Duration,
        once: bool = False,
        independent: bool = False,
        fatal_codes: Collection[int] = (),
        transient_codes: Collection[int] = (),
        pass_on: PassOn,
        events: Events | None = None,
        logger: logging.Logger | None = None,
        handle_signals: bool = True,
    ) -> None:
        self.events = events or Events()
        SupervisorLog(logger).attach(self.events)
        self._command = command
        self._grace = as_duration("grace_period", grace_period).total_seconds()
        self._once = once
        self._fatal_codes = fatal_codes
        self._transient_codes = transient_codes
        self._handle_signals = handle_signals
        self._places = [_Place(number) for number in range(1, processes + 1)]
        self.actions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._writing = threading.Lock()  # held while lines are passed on: one process at a time
        self._pass_on_lines = pass_on
        self._is_independent = independent
        self._is_proven = independent
        self._failed_starts = 0
        self._codes: list[int] = []
        self._stop: StopRequest | None = None
        self._stop_signals = StopSignals()
        self.checked_at = time.monotonic()

    def run(self) -> int:
        """Run until the end and return the exit code: the worst of the processes', or that of the signal."""
        with Signals(lambda name: self.actions.put(lambda: self.on_signal(name)), enabled=self._handle_signals):
            self.events.emit(SupervisorStarted(processes=len(self._places)))
            for place in self._places if self._is_independent else self._places[:1]:
                self._start(place)
            while not self._is_over():
                self.step()
        return self._end()

    def stop(self, reason: str = "asked to stop") -> None:
        """Request a graceful shutdown, from any thread; `run` returns when it is done."""
        self.actions.put(lambda: self._stop_all(reason, 0))

    def force(self) -> None:
        """End the grace period of a stop, from any thread."""
        self.actions.put(self._force_all)

    # -- one iteration -------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Process one event, or do what has become due."""
        self._check_clock(rest=0.0)
        rest = self._until_due()
        try:
            act = self.actions.get(timeout=rest)
        except queue.Empty:
            act = self._do_due
        self._check_clock(rest=rest)
        act()

    def _check_clock(self, *, rest: float | None) -> None:
        """Check the clock. No process is killed for time in which the whole machine was stalled."""
        before, self.checked_at = self.checked_at, time.monotonic()
        stop = self._stop
        if rest is None or stop is None or stop.kill_at is None:
            return
        extended = self.checked_at + STALL_EXTENSION
        was_stalled = self.checked_at - before > rest + STALL_THRESHOLD
        if was_stalled and extended > stop.kill_at and stop.extensions < MAX_EXTENSIONS:
            stop.kill_at = extended
            stop.extensions += 1

    def _until_due(self) -> float | None:
        times = [place.start_at for place in self._places]
        kill_at = None if self._stop is None else self._stop.kill_at
        times.append(kill_at)
        due = min((each for each in times if each is not None), default=None)
        if due is None:
            return None
        rest = max(0.0, due - time.monotonic())
        return rest if kill_at is None else min(rest, CHECK_SECONDS)

    def _do_due(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if place.start_at is not None and place.start_at <= now:
                self._start(place)
        if self._stop is not None and self._stop.kill_at is not None and self._stop.kill_at <= now:
            self._kill(self._stop)

    def _is_over(self) -> bool:
        return all(place.process is None and place.start_at is None for place in self._places)

    def _end(self) -> int:
        stop = self._stop
        worst = max((exit_code_of(code) for code in self._codes), default=0)
        reason = "no job can run now" if stop is None else stop.reason
        code = worst or (0 if stop is None else stop.exit_code)
        self.events.emit(SupervisorStopped(reason=reason, exit_code=code))
        return code

    # -- starting ------------------------------------------------------------------------------------------------------

    def _start(self, place: _Place) -> None:
        place.start_at = None
        try:
            place.process = WorkerProcess(
                place.number,
                self._command(place.number, announces=not self._is_proven),
                pass_on=self._pass_on,
                on_ready=lambda process: self.actions.put(lambda: self._on_ready(place, process)),
                on_end=lambda process: self.actions.put(lambda: self._on_end(place, process)),
            )
        except OSError as error:
            # The system has no room for one more process now; those that run go on.
            if not self._is_proven:
                raise
            place.start_at = time.monotonic() + MAX_PAUSE.total_seconds()
            self.events.emit(MaintenanceFailed(service=f"starting process {place.number}", error=error))

    def _on_ready(self, place: _Place, process: WorkerProcess) -> None:
        if place.process is not process:  # it has ended in the meantime
            return
        process.is_ready = place.was_ready = True
        self._failed_starts = 0
        self.events.emit(ProcessReady(number=place.number, pid=process.pid))
        if not self._is_proven and self._stop is None:
            self._is_proven = True
            for other in self._places[1:]:
                self._start(other)

    def _pass_on(self, channel: str, lines: bytes) -> None:
        with self._writing:
            self._pass_on_lines(channel, lines)

    # -- ending --------------------------------------------------------------------------------------------------------

    def _on_end(self, place: _Place, process: WorkerProcess) -> None:
        code = process.code or 0
        place.process = None
        if self._stop is not None:
            # One that was starting may notice that the database is unavailable before it receives the request.
            graceful = code in GRACEFUL_EXITS or (code in self._transient_codes and not process.is_ready)
            if not graceful:
                self._codes.append(code)
            self._report_end(process, graceful=graceful, restart_in=None)
            return
        self._failed_starts += not process.is_ready
        was_settled = process.lived > SETTLED_AFTER
        place.quick_ends = 0 if was_settled else place.quick_ends
        next_step = self._what_next(place, process)
        if isinstance(next_step, timedelta):
            place.quick_ends += code != 0 and not was_settled
            place.start_at = time.monotonic() + next_step.total_seconds()
            self._report_end(process, graceful=code == 0, restart_in=next_step)
            return
        if self._once or isinstance(next_step, StopAll):
            self._codes.append(code)
        self._report_end(process, graceful=code == 0, restart_in=None, stops_all=isinstance(next_step, StopAll))
        if isinstance(next_step, StopAll):
            # The first process has already logged what keeps it from running.
            if self._is_proven or code not in self._fatal_codes:
                self.events.emit(
                    SupervisorGaveUp(number=place.number, reason=next_step.reason, exit_code=next_step.exit_code)
                )
            self._stop_all(f"process {place.number} cannot run", next_step.exit_code)

    def _what_next(self, place: _Place, process: WorkerProcess) -> timedelta | StopAll | None:
        return decide(
            process.code or 0,
            was_ready=process.is_ready,
            quick_ends=place.quick_ends,
            once=self._once,
            fatal_codes=() if self._is_independent and place.was_ready else self._fatal_codes,
            transient_codes=self._transient_codes,
            is_proven=self._is_proven,
            failed_starts=self._failed_starts,
            others_work=any(place.process is not None and place.process.is_ready for place in self._places),
        )

    def _report_end(
        self, process: WorkerProcess, *, graceful: bool, restart_in: timedelta | None, stops_all: bool = False
    ) -> None:
        self.events.emit(
            ProcessEnded(
                number=process.number,
                pid=process.pid,
                exit_reason=(exit_words if process.was_killed else exit_description)(process.code or 0),
                graceful=graceful,
                restart_in=restart_in,
                stops_all=stops_all,
            )
        )

    def on_signal(self, name: str) -> None:
        received = self._stop_signals.receive(name, time.monotonic())
        self.events.emit(received)
        self._stop_all(f"received {name}", SIGNALLED + signal.Signals[name])
        if received.forced:
            self._force_all()

    def _force_all(self) -> None:
        if self._stop is not None and self._stop.kill_at is not None:
            self._stop.kill_at = min(self._stop.kill_at, time.monotonic() + KILL_DELAY.total_seconds())
        for process in self.running():
            process.force()

    def _stop_all(self, reason: str, exit_code: int) -> None:
        if self._stop is not None:
            return
        kill_at = time.monotonic() + self._grace + KILL_DELAY.total_seconds()
        self._stop = StopRequest(reason, exit_code, kill_at)
        for place in self._places:
            place.start_at = None
        for process in self.running():
            process.stop(reason)

    def _kill(self, stop: StopRequest) -> None:
        stop.kill_at = None
        running = self.running()
        for process in running:
            process.kill()
        if running:
            self.events.emit(ProcessesKilled(numbers=tuple(process.number for process in running)))

    def running(self) -> list[WorkerProcess]:
        return [place.process for place in self._places if place.process is not None]
