"""Numbers, durations and times, short enough for a screen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from gw_core.front_ends import Count, Quality, format_duration
from gw_tui.text import formatting

NOW = datetime(2026, 3, 14, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (2_000, "2,000"), (9_999, "9,999"), (10_000, "10.0k"), (12_345, "12.3k"), (999_960, "1000k"),
     (4_001_234, "4.00M"), (123_456_789, "123M"), (5_000_000_000, "5.00G"), (-12_345, "-12.3k")],
)  # fmt: skip
def test_a_number_is_short(value: int, shown: str) -> None:
    assert formatting.number(value) == shown


@given(value=st.integers(-(10**12), 10**12))
def test_no_number_is_wide(value: int) -> None:
    assert len(formatting.number(abs(value))) <= 6


@pytest.mark.parametrize(
    ("quality", "shown"),
    [
        pytest.param(Quality.EXACT, "40", id="exact"),
        pytest.param(Quality.ESTIMATE, "~40", id="estimate"),
        pytest.param(Quality.ROUGH, "~40?", id="rough"),
        pytest.param(Quality.AT_LEAST, "40+", id="at_least"),
    ],
)
def test_a_count_says_how_good_it_is(quality: Quality, shown: str) -> None:
    assert formatting.count(Count(40, quality)) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0s"), (4.24, "4.2s"), (9.96, "10s"), (38, "38s"), (59.6, "1m00s"), (542, "9m02s"), (21_960, "6h06m"),
     (273_600, "3d04h"), (40 * 86_400, "40d"), (-127, "-2m07s")],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(seconds: float, shown: str) -> None:
    assert formatting.duration(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize("value", [timedelta(days=19, hours=23), timedelta(hours=51), timedelta(minutes=6, seconds=9)])
def test_a_duration_has_the_same_form_in_a_list_and_in_a_sentence(value: timedelta) -> None:
    assert formatting.rounded(value) == formatting.duration(value)
    assert formatting.padded(f"due in {format_duration(value)}: later") == f"due in {formatting.duration(value)}: later"


def test_times_say_where_they_lie() -> None:
    assert formatting.until(NOW + timedelta(seconds=54), NOW) == "in 54s"
    assert formatting.until(NOW - timedelta(seconds=127), NOW) == "2m07s ago"
    assert formatting.day(NOW - timedelta(hours=1), NOW) == "11:00:00"
    assert formatting.day(NOW - timedelta(days=2), NOW) == "12 Mar 12:00"
    assert formatting.day(NOW - timedelta(days=400), NOW) == "2025-02-07"
    assert formatting.clock(NOW) == "12:00:00Z"


def test_what_is_not_known_is_a_dash() -> None:
    assert {formatting.duration(None), formatting.until(None, NOW), formatting.rate(None), formatting.clock(None)} == {
        formatting.NOTHING
    }


@pytest.mark.parametrize(("value", "shown"), [(0, "0/s"), (0.24, "0.2/s"), (45.2, "45/s"), (1_200, "1,200/s")])
def test_rates_keep_a_digit_where_it_counts(value: float, shown: str) -> None:
    assert formatting.rate(value) == shown
