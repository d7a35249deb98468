"""Text from outside is made harmless before it is shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from gw_cli.sanitize import indented, quoted, visible

ANY_TEXT = st.text(st.characters())


def steers(text: str) -> list[str]:
    """The characters that could steer a terminal or reverse the direction of writing."""
    return [
        each
        for each in text
        if unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp")
        or "\u202a" <= each <= "\u202e"  # U+202F beside them is a space
        or "\u2060" <= each <= "\u2069"
    ]


@given(ANY_TEXT)
def test_nothing_visible_steers_a_terminal(text: str) -> None:
    assert steers(visible(text)) == []


@given(ANY_TEXT)
def test_an_indented_text_breaks_lines_and_nothing_else(text: str) -> None:
    shown = indented(text)

    assert set(steers(shown)) <= {"\n"}
    assert all(line.startswith("    ") for line in shown.split("\n")[1:])


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_ordinary_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\nb\tc\r", r"a\nb\tc\r", id="line breaks and tabs"),
        pytest.param("\x1b[2J\x07", r"\x1b[2J\x07", id="a terminal's commands"),
        pytest.param("\x9b31m", r"\x9b31m", id="the same in one byte"),
        pytest.param("\u202eabc", r"\u202eabc", id="writing reversed"),
        pytest.param("\ud800", r"\ud800", id="half a character"),
        pytest.param("\U000e0041", r"\U000e0041", id="an invisible tag"),
        pytest.param("👩\u200d🚀", r"👩\u200d🚀", id="a joiner in a name"),
    ],
)
def test_an_unsafe_character_becomes_its_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_long_text_is_cut_for_a_sentence() -> None:
    assert quoted("x" * 500) == "'" + "x" * 59 + "…'"
