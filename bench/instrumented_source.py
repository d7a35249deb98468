"""The console's own source of facts, with a note of what each tick cost, here and in the server."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, TypeVar

from bench.resources import cpu_seconds
from bench.server_time import ServerTiming
from gw_core import Client
from gw_core.front_ends import described
from gw_tui.data.source import ClientSource
from gw_tui.rules.options import QueueInfo

T = TypeVar("T")

HOT: Final = "tick"
LANES: Final = {
    **dict.fromkeys(("snapshot", "page", "job"), HOT),
    **dict.fromkeys(("findings", "blockages"), "doctor"),
    "queues": "queues",
    "statistics": "sample",
    "crontabs": "crontabs",
    "names": "names",
}
"""Where the cost of each query is noted, by its first word; what has no lane counts in the next one."""


@dataclass(slots=True)
class Tick:
    """A snapshot and the queries of the visible screen until the next one: milliseconds by lane, and by statement.

    `server` is by the clock: while other processes have the processor, it goes on. `processor` is what the server's
    process used.
    """

    screen: str
    opens: bool = False
    """Whether a screen opened in it: what it shows was asked for the first time, beside what every refresh asks."""
    wall: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    server: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    processor: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    statements: dict[str, float] = field(default_factory=lambda: defaultdict(float))


class InstrumentedSource(ClientSource):
    """A queue in a database, watched: `ticks` has what was seen, `screen` and `opens` are for others to set.

    What is asked at each tick is the lane `HOT`; what is asked every few seconds has a lane of its own.
    """

    def __init__(self, conninfo: str) -> None:
        super().__init__(partial(Client, conninfo), QueueInfo(where=described(conninfo), schema="graphile_worker"))
        self.screen = ""
        self.opens = False
        self._tick: Tick | None = None
        # An hour has 18,000 ticks, and the benchmark watches the memory of this process: a file keeps them.
        self._file = NamedTemporaryFile("w", prefix="gw-bench-ticks-", buffering=1)  # noqa: SIM115 - deleted with it
        self.pid = 0
        self._times = ServerTiming()

    @property
    def ticks(self) -> Sequence[Tick]:
        """Every tick that has ended."""
        return [Tick(*json.loads(line)) for line in Path(self._file.name).read_text().splitlines()]

    @property
    def processor_time(self) -> float:
        """The CPU milliseconds of the server's process for this session; 0 where the system does not report them."""
        return 1000 * cpu_seconds([self.pid])

    def answer(self, key: str, query: Callable[[ClientSource], T]) -> T:
        """Return the answer to a query, and note what it cost."""
        name = key.partition(" ")[0]
        if name == "snapshot":
            self._begin_tick()
        # One worker's jobs are listed every few seconds; no screen of the tour asks for them at each tick.
        lane = "held" if key.startswith("page state:running ") else LANES.get(name)
        with nullcontext() if lane is None else self._noted(lane):
            return super().answer(key, query)

    def _begin_tick(self) -> None:
        self.pid = self._times.receive(self.read_client)
        self._times.take()
        if self._tick is not None:
            tick = self._tick
            costs = (tick.wall, tick.server, tick.processor, tick.statements)
            self._file.write(json.dumps((tick.screen, tick.opens, *costs)) + "\n")
        self._tick = Tick(self.screen)

    def read_background(self) -> timedelta | None:
        with self._noted("background"):
            return super().read_background()

    @contextmanager
    def _noted(self, lane: str) -> Iterator[None]:
        began, processor_time = time.perf_counter(), self.processor_time
        try:
            yield
        finally:
            wall = 1000 * (time.perf_counter() - began)
            self._note(lane, wall, self.processor_time - processor_time, self._times.take())

    def _note(self, lane: str, wall: float, processor_time: float, durations: Mapping[str, float]) -> None:
        tick = self._tick
        if tick is None:
            return
        tick.screen = self.screen  # a screen that opens asks before the next snapshot
        if self.opens:
            tick.opens, self.opens = True, False
        tick.wall[lane] += wall
        tick.processor[lane] += processor_time
        tick.server[lane] += sum(durations.values())
        for name, duration in durations.items():
            tick.statements[name] += duration
