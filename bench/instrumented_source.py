"""The console's own source of facts, with a note of what each tick cost, here and in the server."""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from bench.server_time import ServerTiming, processor_time
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
    """A snapshot and the queries of the visible screen until the next one: milliseconds by lane, and by statement."""

    screen: str
    wall: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    server: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    statements: dict[str, float] = field(default_factory=lambda: defaultdict(float))


class InstrumentedSource(ClientSource):
    """A queue in a database, watched: `ticks` has what was seen, `screen` is for others to set.

    What is asked at each tick is the lane `HOT`; what is asked every few seconds has a lane of its own.
    """

    def __init__(self, conninfo: str) -> None:
        super().__init__(partial(Client, conninfo), QueueInfo(where=described(conninfo), schema="graphile_worker"))
        self.screen = ""
        self._tick: Tick | None = None
        self._packed: list[bytes] = []
        self._names: dict[str, int] = {}
        self.pid = 0
        self._times = ServerTiming()

    @property
    def ticks(self) -> Sequence[Tick]:
        """Every tick that has ended."""
        return [self._unpacked(packed) for packed in list(self._packed)]

    @property
    def processor_time(self) -> float:
        """The CPU milliseconds of the server's process for this session; 0 where the system does not report them."""
        return processor_time(self.pid) or 0.0

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
            self._packed.append(self._pack(self._tick))
        self._tick = Tick(self.screen)

    def count_locks(self) -> timedelta | None:
        with self._noted("locks"):
            return super().count_locks()

    @contextmanager
    def _noted(self, lane: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self._note(lane, 1000 * (time.perf_counter() - began), self._times.take())

    def _note(self, lane: str, wall: float, durations: Mapping[str, float]) -> None:
        tick = self._tick
        if tick is None:
            return
        tick.wall[lane] += wall
        tick.server[lane] += sum(durations.values())
        for name, duration in durations.items():
            tick.statements[name] += duration

    # An hour has 18,000 ticks, and whether the console's memory grows is what it is watched for: a tick kept as it is
    # takes 1.3 KiB, and packed a ninth of that.

    def _pack(self, tick: Tick) -> bytes:
        numbers = array("f", (self._number(tick.screen),))
        for column in (tick.wall, tick.server, tick.statements):
            numbers.append(len(column))
            for name, value in column.items():
                numbers.extend((self._number(name), value))
        return numbers.tobytes()

    def _unpacked(self, packed: bytes) -> Tick:
        names = list(self._names)
        numbers = iter(array("f", packed))
        tick = Tick(names[int(next(numbers))])
        for column in (tick.wall, tick.server, tick.statements):
            for _ in range(int(next(numbers))):
                name = names[int(next(numbers))]
                column[name] = next(numbers)
        return tick

    def _number(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))
