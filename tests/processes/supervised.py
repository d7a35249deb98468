"""A supervisor of processes that have no work, and its events."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from support.log_recorder import LogRecorder
from support.queue_fixture import DEADLINE, EventRecorder
from support.waiting import wait_until

from gw_core.front_ends import Supervisor
from gw_core.processes import supervisor as supervising

A_PROCESS = Path(__file__).with_name("stub_process.py")
CHECKOUT = Path(__file__).resolve().parents[2]

Script = dict[str, Any]


class Supervised:
    """Processes that follow scripts: the first list is for the first start of each, the next for the second, …"""

    def __init__(self, *starts: Script, processes: int = 1, grace: float = 60.0, **options: Any) -> None:
        self._starts = list(starts)
        self.commands: list[tuple[int, bool]] = []
        self.written: list[tuple[str, str]] = []
        self._log = LogRecorder()
        self.supervisor = Supervisor(
            self._command,
            processes=processes,
            grace_period=timedelta(seconds=grace),
            pass_on=lambda channel, lines: self.written.append((channel, lines.decode())),
            logger=self._log.logger,
            handle_signals=False,
            **options,
        )
        self.recorded = EventRecorder(self.supervisor.events)
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def logged(self) -> list[tuple[str, str]]:
        """What the supervisor logged, as (level, message)."""
        return self._log.messages

    def _run(self) -> None:
        self.code = self.supervisor.run()

    def _command(self, number: int, *, announces: bool) -> Sequence[str]:
        script = self._starts[min(len(self.commands), len(self._starts) - 1)]
        self.commands.append((number, announces))
        bootstrap = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); exec(open({str(A_PROCESS)!r}).read())"
        return [sys.executable, "-c", bootstrap, json.dumps(script)]

    def __enter__(self) -> Supervised:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.supervisor.stop("the test is over")
        self.supervisor.force()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive(), "the supervisor did not end"

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        self._thread.join(DEADLINE)
        assert self.code is not None, f"the supervisor did not end; events: {self.recorded.names()}"
        return self.code

    def last_words(self) -> list[dict[str, Any]]:
        """What each process printed at its end."""
        return [json.loads(line) for channel, text in self.written if channel == "stdout" for line in text.splitlines()]

    def deliver(self, news: Callable[[], object]) -> None:
        """Let the supervisor's thread call this, as it calls what signals and processes report."""
        self.supervisor.actions.put(news)

    def pids(self) -> list[int]:
        return [process.pid for process in self.supervisor.running()]


def quick_pauses(monkeypatch: Any) -> None:
    """Let what is started again be started again soon."""
    set_pauses(monkeypatch, first=timedelta(milliseconds=10), most=timedelta(milliseconds=20))


def set_pauses(monkeypatch: Any, *, first: timedelta, most: timedelta) -> None:
    """Set how long an ended process waits before it is started again."""
    from gw_core.domain.rules import supervision

    monkeypatch.setattr(supervision, "FIRST_PAUSE", first)
    monkeypatch.setattr(supervision, "MAX_PAUSE", most)


__all__ = ["DEADLINE", "Supervised", "quick_pauses", "set_pauses", "supervising", "wait_until"]
