"""How long jobs waited while a process had nothing to run, computed from each job's start and end."""

from __future__ import annotations

import pytest

from bench.benchmarks.mixed import HOARDED, Run, figures

MS = 1_000_000


def runs(*durations: tuple[float, float]) -> list[Run]:
    """Runs of one process from this many milliseconds to this many."""
    return [(number, round(began * MS), round(ended * MS)) for number, (began, ended) in enumerate(durations)]


@pytest.mark.parametrize(
    ("first", "second", "hoarded"),
    [
        pytest.param(runs((0, 10), (10, 20)), runs((0, 10), (10, 20)), 0, id="both are busy to the end"),
        pytest.param(runs((0, 10), (40, 50)), runs((0, 50), (50, 60)), 30, id="one waited for the next"),
        pytest.param(runs((0, 10)), runs((0, 10), (10, 20), (20, 60), (60, 61)), 50, id="one kept all that was left"),
        pytest.param(runs((0, 10), (10, 500)), runs(*((n, n + 10) for n in range(0, 100, 10))), 0, id="one is stuck"),
        pytest.param(runs((0, 500), (1, 2), (2, 3)), runs((0, 4)), 0, id="another thread of it is stuck"),
        pytest.param(runs((0, 10), (10, 500)), runs((0, 10), (60, 70)), 50, id="what was given back came late"),
    ],
)
def test_hoarded_is_the_longest_time_one_had_nothing_to_run(
    first: list[Run], second: list[Run], hoarded: float
) -> None:
    assert figures([first, second], {}, 0.0)[HOARDED] == pytest.approx(hoarded)


def test_the_time_of_a_claim_is_taken_off() -> None:
    assert figures([runs((0, 10), (40, 50)), runs((0, 60))], {}, 12.0)[HOARDED] == pytest.approx(18)
