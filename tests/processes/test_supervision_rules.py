"""What becomes of a process that ended, as a rule of what is known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gw_core.domain.rules.supervision import (
    MAX_FAILED_STARTS,
    MAX_PAUSE,
    MAX_TRANSIENT_PAUSE,
    StopAll,
    decide,
    exit_code_of,
    exit_description,
    pause_after,
)

IMMEDIATELY = timedelta(0)
SOON = pause_after(0)

Options = dict[str, Any]


def an_end(code: int = 1, **options: Any) -> Options:
    return {"code": code, "was_ready": True, "quick_ends": 0, **options}


def a_fleet(**options: Any) -> Options:
    known = {"once": False, "fatal_codes": (2, 8), "transient_codes": (3,), "is_proven": True, "failed_starts": 0}
    return {**known, "others_work": True, **options}


FAILED_START = {"was_ready": False}
ALONE = {"others_work": False}


@pytest.mark.parametrize(
    ("end", "fleet", "expected"),
    [
        pytest.param(an_end(0), a_fleet(), IMMEDIATELY, id="after as many jobs as it was to run"),
        pytest.param(an_end(-9), a_fleet(**ALONE), SOON, id="killed"),
        pytest.param(an_end(-9, quick_ends=2), a_fleet(), pause_after(2), id="killed again and again"),
        pytest.param(an_end(-9, **FAILED_START), a_fleet(failed_starts=99), SOON, id="failing while others work"),
        pytest.param(an_end(0, **FAILED_START), a_fleet(), SOON, id="ended before it began"),
        pytest.param(
            an_end(1, **FAILED_START), a_fleet(failed_starts=4, **ALONE), SOON, id="failed starts, but not too many"
        ),
        pytest.param(
            an_end(3, quick_ends=99, **FAILED_START),
            a_fleet(failed_starts=99, **ALONE),
            MAX_TRANSIENT_PAUSE,
            id="the database went away",
        ),
        pytest.param(an_end(), a_fleet(once=True), None, id="dead in a single run"),
        pytest.param(an_end(0), a_fleet(once=True), None, id="done in a single run"),
    ],
)
def test_what_ended_is_started_again_or_left_out(end: Options, fleet: Options, expected: object) -> None:
    assert decide(**end, **fleet) == expected


@pytest.mark.parametrize(
    ("end", "fleet", "code"),
    [
        pytest.param(an_end(8), a_fleet(), 8, id="its tasks do not load"),
        pytest.param(an_end(2), a_fleet(once=True), 2, id="wrong settings in a single run"),
        pytest.param(
            an_end(-11, **FAILED_START), a_fleet(failed_starts=5, **ALONE), 139, id="it dies whenever it starts"
        ),
        pytest.param(an_end(0, **FAILED_START), a_fleet(failed_starts=5, **ALONE), 1, id="it ends whenever it starts"),
        pytest.param(
            an_end(3, **FAILED_START),
            a_fleet(failed_starts=5, is_proven=False, **ALONE),
            3,
            id="the database was never there",
        ),
    ],
)
def test_a_failure_that_a_restart_cannot_fix_ends_all(end: Options, fleet: Options, code: int) -> None:
    decision = decide(**end, **fleet)

    assert isinstance(decision, StopAll)
    assert decision.exit_code == code


def test_failed_starts_are_few_enough_to_be_reported_within_seconds() -> None:
    assert sum((pause_after(number) for number in range(MAX_FAILED_STARTS - 1)), timedelta()) < timedelta(seconds=5)


@given(st.integers(0, 10_000))
def test_pauses_grow_and_stay_within_a_bound(ends: int) -> None:
    assert pause_after(ends) <= pause_after(ends + 1) <= MAX_PAUSE


@pytest.mark.parametrize(
    ("code", "words", "shell"),
    [
        (7, "ended with exit code 7", 7),
        (-11, "was ended by SIGSEGV", 139),
        (-9, "was ended by SIGKILL, possibly out of memory", 137),
        (-99, "was ended by signal 99", 227),
    ],
)
def test_an_end_is_reported_as_text_and_as_a_shell_shows_it(code: int, words: str, shell: int) -> None:
    assert (exit_description(code), exit_code_of(code)) == (words, shell)
