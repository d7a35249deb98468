"""Where rows stand after a refresh."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gw_tui.rules.stable_order import arranged, held, sort_value

KEYS = st.lists(st.sampled_from("abcdefghijklmnop"), unique=True, max_size=12)


@given(shown=KEYS, wanted=KEYS, number=st.integers(0, 11))
def test_the_highlighted_row_is_always_there_after_a_refresh(shown: list[str], wanted: list[str], number: int) -> None:
    highlighted = shown[number % len(shown)] if shown else None

    new = arranged(shown, wanted, highlighted=highlighted)

    assert highlighted is None or highlighted in new.order
    assert [key for key in new.order if key not in new.gone] == wanted
    assert new.gone <= {highlighted}
    assert (highlighted in new.gone) == (highlighted is not None and highlighted not in wanted)


@given(shown=KEYS, wanted=KEYS)
def test_held_rows_keep_their_places_and_changes_are_counted(shown: list[str], wanted: list[str]) -> None:
    new = held(shown, wanted)

    assert list(new.order) == shown
    assert new.gone == set(shown) - set(wanted)
    assert (new.waiting == 0) == (shown == wanted)
    assert new.waiting >= len(set(shown) ^ set(wanted))


def test_a_row_that_is_gone_stays_at_its_place() -> None:
    assert arranged(list("abcd"), list("xad"), highlighted="b").order == tuple("xbad")


def test_a_list_that_shrank_keeps_the_gone_row_at_its_end() -> None:
    assert arranged(list("abcd"), ["a"], highlighted="d").order == ("a", "d")


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("1,234", None, (0, 1234.0, "")),
        ("2m07s", 127.0, (0, 127.0, "")),
        ("Mail", None, (1, 0.0, "mail")),
        ("", None, None),
    ],
)
def test_what_a_cell_sorts_by(text: str, value: float | None, expected: object) -> None:
    assert sort_value(text, value) == expected
