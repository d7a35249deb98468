"""How much every benchmark does, at each scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


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


TINY: Final = Scale(
    drain=200,
    steps=100,
    unique=100,
    sizes=(100, 10, 2),
    drain_slow=50,
    latency=5,
    queued=100,
    queued_node=3,
    queues=(1, 10),
    stuck=50,
    free=50,
    bulk=200,
    connections=100,
    connections_node=50,
    memory=1_000,
    starts=1,
    read_jobs=2_000,
    refreshes=0,
    console_seconds=3,
    snapshots=3,
    peers=100,
    procrastinate=20,
    backlog=(1_000, 2_000),
    claims=10,
    idle_seconds=1,
    idle_workers=2,
    fleet_rate=50,
    fleet_seconds=1,
    mixed=1_000,
    waiting=20,
    long_ms=200,
    soak_seconds=1.5,
    soak_rate=100,
    limit_seconds=100,
)
"""For the test that keeps this program working; its figures mean nothing."""

SMALL: Final = Scale(
    drain=50_000,
    steps=5_000,
    unique=2_000,
    sizes=(10_000, 500, 20),
    drain_slow=5_000,
    latency=300,
    queued=20_000,
    queued_node=2_000,
    queues=(1, 10, 1_000, 100_000),
    stuck=100_000,
    free=20_000,
    bulk=30_000,
    connections=20_000,
    connections_node=5_000,
    memory=100_000,
    starts=3,
    read_jobs=1_000_000,
    refreshes=10,
    console_seconds=120,
    snapshots=50,
    peers=50_000,
    procrastinate=1_000,
    backlog=(10_000, 1_000_000),
    claims=500,
    idle_seconds=20,
    idle_workers=20,
    fleet_rate=500,
    fleet_seconds=5,
    mixed=60_000,
    waiting=2_000,
    long_ms=3_000,
    soak_seconds=240,
    soak_rate=1_000,
    limit_seconds=5,
)

FULL: Final = Scale(
    drain=200_000,
    steps=20_000,
    unique=5_000,
    sizes=(50_000, 2_000, 50),
    drain_slow=20_000,
    latency=1_000,
    queued=100_000,
    queued_node=10_000,
    queues=(1, 10, 1_000, 100_000),
    stuck=100_000,
    free=50_000,
    bulk=100_000,
    connections=100_000,
    connections_node=10_000,
    memory=1_000_000,
    starts=3,
    read_jobs=10_000_000,
    refreshes=20,
    console_seconds=600,
    snapshots=200,
    peers=100_000,
    procrastinate=5_000,
    backlog=(10_000, 1_000_000, 10_000_000),
    claims=600,
    idle_seconds=30,
    idle_workers=100,
    fleet_rate=2_000,
    fleet_seconds=10,
    mixed=200_000,
    waiting=10_000,
    long_ms=30_000,
    soak_seconds=600,
    soak_rate=1_000,
    limit_seconds=6,
)

SCALES: Final = {"tiny": TINY, "small": SMALL, "full": FULL}
