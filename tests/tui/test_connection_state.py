"""The state of the console's connection, from the last answer and the time."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gw_tui.rules.connection_state import (
    MAX_WAIT,
    MIN_WAIT,
    ConnectionPhase,
    ConnectionState,
    FailureKind,
    wait_before,
)

NEW = ConnectionState()
ANSWERED = NEW.answered(100.0)
LOST = ANSWERED.lost(101.0, FailureKind.LOST, "the server went away", retry_in=4.0)


@pytest.mark.parametrize(
    ("state", "now", "phase"),
    [
        pytest.param(NEW, 5.0, ConnectionPhase.CONNECTING, id="nothing heard yet"),
        pytest.param(ANSWERED, 100.5, ConnectionPhase.LIVE, id="just heard"),
        pytest.param(ANSWERED, 106.0, ConnectionPhase.LIVE, id="three periods ago"),
        pytest.param(ANSWERED, 106.1, ConnectionPhase.STALE, id="more than three periods ago"),
        pytest.param(ANSWERED.answered(107.0), 107.0, ConnectionPhase.LIVE, id="heard after it was stale"),
        pytest.param(LOST, 102.0, ConnectionPhase.DOWN, id="lost"),
        pytest.param(LOST.trying(), 105.0, ConnectionPhase.RETRYING, id="a try under way"),
        pytest.param(
            LOST.trying().lost(106.0, FailureKind.LOST, "again", retry_in=1.0),
            106.0,
            ConnectionPhase.DOWN,
            id="a failed try",
        ),
        pytest.param(LOST.trying().answered(107.0), 107.0, ConnectionPhase.LIVE, id="back"),
        pytest.param(
            NEW.lost(1.0, FailureKind.LOST, "refused", retry_in=1.0),
            1.0,
            ConnectionPhase.DOWN,
            id="never there to begin with",
        ),
        pytest.param(
            NEW.lost(1.0, FailureKind.DENIED, "password", retry_in=None),
            900.0,
            ConnectionPhase.DENIED,
            id="not let in",
        ),
        pytest.param(
            NEW.lost(1.0, FailureKind.FORBIDDEN, "no right", retry_in=2.0),
            1.0,
            ConnectionPhase.DENIED,
            id="without a right",
        ),
        pytest.param(
            ANSWERED.lost(101.0, FailureKind.NO_SCHEMA, "none", retry_in=2.0).trying(),
            103.0,
            ConnectionPhase.NO_SCHEMA,
            id="no schema",
        ),
        pytest.param(
            ANSWERED.lost(101.0, FailureKind.ERROR, "?", retry_in=2.0),
            101.0,
            ConnectionPhase.DOWN,
            id="an error in gw",
        ),
    ],
)
def test_the_status_follows_the_received_notifications(
    state: ConnectionState, now: float, phase: ConnectionPhase
) -> None:
    assert state.phase(now, period=2.0) is phase


@pytest.mark.parametrize(("now", "phase"), [(105.0, ConnectionPhase.LIVE), (105.1, ConnectionPhase.STALE)])
def test_a_busy_database_may_take_five_seconds_however_short_the_period(now: float, phase: ConnectionPhase) -> None:
    assert ANSWERED.phase(now, period=0.2) is phase


def test_a_longer_period_makes_stale_later() -> None:
    assert ANSWERED.phase(120.0, period=10.0) is ConnectionPhase.LIVE


def test_the_next_try_is_counted_down_and_tries_are_counted() -> None:
    twice = LOST.trying().lost(105.0, FailureKind.LOST, "still", retry_in=8.0)

    assert LOST.next_try_in(103.0) == 2.0
    assert LOST.next_try_in(999.0) == 0.0
    assert LOST.trying().next_try_in(103.0) is None
    assert (LOST.attempt, twice.attempt) == (1, 2)
    assert twice.answered(110.0).attempt == 0


def test_staleness_is_counted_from_the_last_answer() -> None:
    assert NEW.unanswered_for(50.0) is None
    assert LOST.unanswered_for(109.0) == 9.0


@given(attempt=st.integers(0, 10_000), chance=st.floats(0, 1))
def test_waits_grow_to_a_bound_and_are_spread(attempt: int, chance: float) -> None:
    wait = wait_before(attempt, chance)

    assert MIN_WAIT <= wait <= MAX_WAIT
    assert wait <= wait_before(attempt + 1, chance) or wait_before(attempt + 1, chance) == MAX_WAIT * chance


@pytest.mark.parametrize("failure", list(FailureKind))
def test_only_what_ends_everything_breaks_off(failure: FailureKind) -> None:
    assert failure.is_fatal == (failure in (FailureKind.LOST, FailureKind.DENIED, FailureKind.NO_SCHEMA))
    assert not (failure.is_fatal and failure.is_transient)
