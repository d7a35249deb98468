"""Time as it would have passed on a machine that never stalls.

A build server stands still for seconds now and then, and its processors are shared.
What must end within a bound is measured with these watches: they leave out stalls of the machine.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

TICK = 0.02
"""How often a watch looks, in seconds."""
STALL_THRESHOLD = 0.2
"""A check that comes later than this was delayed by the machine, not by what is measured."""


class StallClock:
    """Counts the seconds from `with` on, but not those in which the machine stood still or a process had no processor.

    with StallClock(process.pid) as watch:
        process.wait(DEADLINE)
    assert watch.seconds < 5

    Without a process it looks after the one it is in.  After the block `seconds` stays what it was at its end.
    """

    def __init__(self, *pids: int) -> None:
        self._processes = [Path(f"/proc/{pid}/task") for pid in pids or (os.getpid(),)]
        self._ended = threading.Event()
        self._lock = threading.Lock()  # guards the two sums and the time of the last check
        self._counted = self._stolen = self._checked_at = 0.0
        self._waits: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name="stopwatch", daemon=True)

    def __enter__(self) -> StallClock:
        self._waits = self._waits_for_a_processor()
        self._checked_at = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._check()
        self._ended.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """What counts of the time until now, or until the block ended."""
        if not self._ended.is_set():
            self._check()
        with self._lock:
            return self._counted

    @property
    def stolen(self) -> float:
        """The seconds that were left out."""
        with self._lock:
            return self._stolen

    def _run(self) -> None:
        while not self._ended.wait(TICK):
            self._check()

    def _check(self) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            now, waits = time.monotonic(), self._waits_for_a_processor()
            passed = now - self._checked_at
            late = passed - TICK if passed > STALL_THRESHOLD else 0.0
            starved = sum(waits[thread] - self._waits.get(thread, 0) for thread in waits) / 1e9
            stolen = min(passed, max(late, starved))
            self._counted += passed - stolen
            self._stolen += stolen
            self._waits.update(waits)
            self._checked_at = now

    def _waits_for_a_processor(self) -> dict[str, int]:
        """For each thread the nanoseconds it was ready and did not run; nothing where the system does not report it."""
        found = {}
        for process in self._processes:
            with suppress(OSError):  # it ended
                for thread in process.iterdir():
                    with suppress(OSError, IndexError):
                        found[thread.name] = int((thread / "schedstat").read_text().split()[1])
        return found
