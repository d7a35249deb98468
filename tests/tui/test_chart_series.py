"""What the charts and the journal keep: in a fixed space, with gaps where nothing was measured."""

from __future__ import annotations

import json
import pickle

import pytest
from support.console_queue import START

from gw_tui.rules.chart_series import LENGTH, TIME_RANGES, Series, seconds_between
from gw_tui.rules.journal import EntryKind, Journal

SECOND, TEN, MINUTE, _ = TIME_RANGES


def test_a_ring_shows_the_last_minute_second_by_second_with_gaps() -> None:
    series = Series()
    for second in (1_000, 1_001, 1_003):
        series.add(second, float(second))

    assert series.values(SECOND, 1_004.5)[-6:] == [None, 1_000.0, 1_001.0, None, 1_003.0, None]


def test_longer_reaches_show_means() -> None:
    series = Series()
    for second in range(60):
        series.add(6_000 + second, float(second))

    assert series.values(MINUTE, 6_059)[-1] == 29.5
    assert series.values(TEN, 6_059)[-6:] == [4.5, 14.5, 24.5, 34.5, 44.5, 54.5]


def test_a_ring_never_grows() -> None:
    series = Series()
    for second in range(1_000_000, 1_060_000):
        series.add(second, 1.0)
    size = len(pickle.dumps(series))
    for second in range(1_060_000, 1_090_000):
        series.add(second, 1.0)

    assert len(pickle.dumps(series)) == pytest.approx(size, rel=0.1)
    assert all(len(series.values(reach, 1_090_000)) == LENGTH for reach in TIME_RANGES)


def test_a_journal_keeps_the_newest() -> None:
    journal = Journal(most=3)
    for number in range(5):
        journal.note(START, EntryKind.ACTION, f"action {number}")

    assert [entry.words for entry in reversed(journal)] == ["action 4", "action 3", "action 2"]
    assert len(journal) == 3


def test_an_entry_is_one_line_of_json_that_harms_no_terminal() -> None:
    entry = Journal().note(START, EntryKind.ERROR, "odd \x1b]52;c;x\x07 \u202e\nline", is_bad=True)

    line = entry.as_json()

    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {
        "at": "2026-03-14T14:52:07Z",
        "kind": "error",
        "words": "odd \x1b]52;c;x\x07 \u202e\nline",
        "is_bad": True,
    }


def test_seldom_answers_leave_no_gaps_in_a_rate() -> None:
    series = Series()
    for before, now in ((None, 100.0), (100.0, 110.2), (110.2, 120.1)):
        for second in seconds_between(before, now):
            series.add(second, 7.0)

    assert list(series.values(SECOND, 120.1))[-21:] == [7.0] * 21
    assert seconds_between(100.0, 400.0) == (400.0,)
