"""How far queues are counted: as far as a page of them affords."""

from __future__ import annotations

import pytest

from gw_core.front_ends import Count, Quality
from gw_tui.rules.count_limit import COUNT_LIMITS, IN_ALL, next_limit

MANY = Count(20, Quality.AT_LEAST)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([], 1_000, id="nothing to count"),
        pytest.param([Count(3)] * 100, 1_000, id="a hundred short queues"),
        pytest.param([MANY, *[Count(3)] * 99], 300, id="one long queue among short ones"),
        pytest.param([MANY] * 6, 100, id="a few long queues"),
        pytest.param([MANY] * 20, 50, id="twenty long queues"),
        pytest.param([MANY] * 100, 10, id="a page of long queues"),
        pytest.param([Count(900)] * 100, 10, id="a page of queues that were counted to their ends"),
        pytest.param([MANY] * 1_000, 10, id="more queues than fit"),
    ],
)
def test_queues_are_counted_as_far_as_a_page_affords(found: list[Count], expected: int) -> None:
    assert next_limit(found) == expected


def test_the_depth_settles() -> None:
    held = [5, 40, 250, 800, 5_000, *[60] * 20]
    depth, seen = COUNT_LIMITS[-1], []
    for _ in range(5):
        counts = [Count(depth, Quality.AT_LEAST) if each >= depth else Count(each) for each in held]
        seen.append(sum(each.value for each in counts))
        depth = next_limit(counts)

    assert len(set(seen[-3:])) == 1
    assert seen[-1] <= IN_ALL
