"""What will happen, and when: decided from the seed before anything is started."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# What happens in a minute, when nothing else is asked for. The order is that of the report.
WORKER_FAULTS: Final = {
    "kill": 24,
    "freeze": 5,
    "doze": 2,
    "cut": 4,
    "lose": 12,
    "swallow": 3,
    "late": 4,
    "delay": 2,
    "stop": 6,
}
SERVER_FAULTS: Final = {
    "crash": 5,
    "failover": 2,
    "backend": 2,
    "restart": 1,
    "stall": 1,
    "lonely": 1,
    "terminate": 5,
    "lock": 2,
}
OPERATIONS: Final = {"pause": 12, "limit": 3, "foreign": 6}
"""What an operator changes for all workers, or locks in the name of others, which is no excuse for anything."""

FIRST, LAST = 0.05, 0.95
"""The part of the time in which things happen: workers need time to start, and failures need time to show."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that happens this many seconds after the beginning; `seed` decides whatever is left open."""

    at: float
    what: str
    seed: int


def usual_counts(seconds: float, *, with_standby: bool) -> dict[str, int]:
    """Return how often each thing happens in a run of this length."""
    usual = {**WORKER_FAULTS, **SERVER_FAULTS, **OPERATIONS}
    if not with_standby:
        del usual["failover"], usual["lonely"]
    return {what: max(1, round(count * seconds / 60)) for what, count in usual.items()}


def make_plan(seed: int, *, seconds: float, counts: Mapping[str, int]) -> list[Action]:
    """Return the actions in the order of their time: servers, workers and operators have a track each."""
    rng = random.Random(seed)
    kinds = (SERVER_FAULTS, WORKER_FAULTS, OPERATIONS)
    tracks = [[what for what in each for _ in range(counts.get(what, 0))] for each in kinds]
    actions = [action for track in tracks for action in _spread(track, seconds, rng)]
    return sorted(actions, key=lambda action: action.at)


def make_load(seed: int, *, seconds: float) -> list[float]:
    """Return the share of all jobs that is added in each second: calm, busy and sudden by turns."""
    rng = random.Random(f"load {seed}")
    weights = [rng.choice([0.3, 1.0, 1.0, 1.0, 1.5, 3.0]) for _ in range(max(1, round(seconds)))]
    return [weight / sum(weights) for weight in weights]


def _spread(track: list[str], seconds: float, rng: random.Random) -> list[Action]:
    rng.shuffle(track)
    room = (LAST - FIRST) * seconds / max(1, len(track))
    return [
        Action(FIRST * seconds + room * (place + rng.random()), what, rng.getrandbits(32))
        for place, what in enumerate(track)
    ]
