"""How much every benchmark does, at each scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The numbers of one scale. What a peer is slow at, it is given less of; a rate is a rate."""

    drain: int
    steps: int
    unique: int
    sizes: tuple[int, ...]
    """How many jobs there are of each size of a payload."""
    drain_slow: int
    latency: int
    queued: int
    queued_node: int
    queues: tuple[int, ...]
    stuck: int
    free: int
    bulk: int
    connections: int
    connections_node: int
    memory: int
    starts: int
    read_jobs: int
    refreshes: int
    console_seconds: float
    """How long the console is watched."""
    snapshots: int
    peers: int
    procrastinate: int
    backlog: tuple[int, ...]
    """How many jobs wait, from step to step, while claims are timed."""
    claims: int
    idle_seconds: float
    idle_workers: int
    fleet_rate: int
    fleet_seconds: float
    mixed: int
    waiting: int
    long_ms: int
    soak_seconds: float
    soak_rate: int
    limit_seconds: float
    """After this long a worker that is slow at a benchmark is stopped; what it did until then counts."""


NUMBERS: Final[Mapping[str, tuple[Any, Any, Any]]] = {
    "drain": (200, 50_000, 200_000),
    "steps": (100, 5_000, 20_000),
    "unique": (100, 2_000, 5_000),
    "sizes": ((100, 10, 2), (10_000, 500, 20), (50_000, 2_000, 50)),
    "drain_slow": (50, 5_000, 20_000),
    "latency": (5, 300, 1_000),
    "queued": (100, 20_000, 100_000),
    "queued_node": (3, 2_000, 10_000),
    "queues": ((1, 10), (1, 10, 1_000, 100_000), (1, 10, 1_000, 100_000)),
    "stuck": (50, 100_000, 100_000),
    "free": (50, 20_000, 50_000),
    "bulk": (200, 30_000, 100_000),
    "connections": (100, 20_000, 100_000),
    "connections_node": (50, 5_000, 10_000),
    "memory": (1_000, 100_000, 1_000_000),
    "starts": (1, 3, 3),
    "read_jobs": (2_000, 1_000_000, 10_000_000),
    "refreshes": (0, 10, 20),
    "console_seconds": (3, 120, 600),
    "snapshots": (3, 50, 200),
    "peers": (100, 50_000, 100_000),
    "procrastinate": (20, 1_000, 5_000),
    "backlog": ((1_000, 2_000), (10_000, 1_000_000), (10_000, 1_000_000, 10_000_000)),
    "claims": (10, 500, 600),
    "idle_seconds": (1, 20, 30),
    "idle_workers": (2, 20, 100),
    "fleet_rate": (50, 500, 2_000),
    "fleet_seconds": (1, 5, 10),
    "mixed": (1_000, 60_000, 200_000),
    "waiting": (20, 2_000, 10_000),
    "long_ms": (200, 3_000, 30_000),
    "soak_seconds": (1.5, 240, 600),
    "soak_rate": (100, 1_000, 1_000),
    "limit_seconds": (100, 5, 6),
}
"""The numbers at `tiny`, which is for the test that keeps this program working, `small` and `full`."""

SCALES: Final = {
    name: Scale(**{field: numbers[place] for field, numbers in NUMBERS.items()})
    for place, name in enumerate(("tiny", "small", "full"))
}
