"""A payload as lines: exact, in order, bounded, and harmless."""

from __future__ import annotations

import json
from time import thread_time

import pytest
from hypothesis import given, strategies as st

from gw_tui.text.json_view import MAX_LINES, json_view
from gw_tui.text.redact import MASK, is_secret, masked
from gw_tui.text.sanitize import UNSAFE


@pytest.mark.parametrize(
    "number",
    ["12345678901234567890123", "1.10", "1e400", "-0", "0.1000000000000000055511151231257827", "1E+2"],
)
def test_a_number_is_shown_as_it_was_written(number: str) -> None:
    assert str(json_view(f'{{"n": {number}}}')) == f'{{\n  "n": {number}\n}}'


def test_members_keep_their_order_even_when_a_name_occurs_twice() -> None:
    assert str(json_view('{"b": 1, "a": 2, "b": 3}')) == '{\n  "b": 1,\n  "a": 2,\n  "b": 3\n}'


@pytest.mark.parametrize("text", ["{}", "[]", "null", "true", '"text"', "7"])
def test_small_values_stand_on_one_line(text: str) -> None:
    assert str(json_view(text)) == text


def test_a_list_is_a_batch_whose_items_are_counted() -> None:
    assert json_view('[{"a": 1}, {"a": 2}]').items == 2
    assert json_view('{"list": [1, 2]}').items is None


def test_a_long_payload_is_cut_and_says_how_much_is_hidden() -> None:
    text = json.dumps(list(range(500)))

    view = json_view(text)

    assert len(view.lines) == MAX_LINES
    assert view.hidden == 502 - MAX_LINES
    assert json_view(text, whole=True).hidden == 0


def test_a_secret_is_masked_until_asked_for() -> None:
    text = '{"token": "abc", "user": {"apiKey": {"k": 1}, "name": "x"}, "url": "postgres://me:pw@host/db"}'

    view = json_view(text)

    assert view.masked == 3
    assert "abc" not in str(view)
    assert '"k"' not in str(view)
    assert "pw@" not in str(view)
    assert '"name": "x"' in str(view)
    shown = json_view(text, unmask=True)
    assert shown.masked == 0
    assert json.loads(str(shown)) == json.loads(text)


@pytest.mark.parametrize("value", ["null", "true", '""', "[]"])
def test_what_is_no_secret_whatever_its_name_stays(value: str) -> None:
    assert json_view(f'{{"secret": {value}}}').masked == 0


def test_text_that_is_no_json_is_shown_as_it_stands() -> None:
    view = json_view("{'a': \x1b[31m}")

    assert not view.is_json
    assert str(view) == "{'a': \\u001b[31m}"


def test_json_nested_beyond_reason_is_shown_all_the_same() -> None:
    assert json_view("[" * 200_000).lines
    assert "…" in str(json_view("[" * 300 + "]" * 300))


def test_a_huge_payload_is_cut_before_it_is_read() -> None:
    view = json_view('"' + "x" * 70_000 + '"')

    assert not view.is_json
    assert "more characters" in str(view)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(_JSON)
def test_an_unmasked_payload_reads_back_the_same_and_steers_nothing(value: object) -> None:
    view = json_view(json.dumps(value), unmask=True, whole=True)

    assert json.loads(str(view)) == value
    assert not any(UNSAFE.search(text) for line in view.lines for text, _ in line)


@given(st.text())
def test_any_text_is_shown_without_steering_the_terminal(text: str) -> None:
    assert not any(UNSAFE.search(piece) for line in json_view(text).lines for piece, _ in line)


# -- masking -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["password", "userPass", "client_secret", "accessToken", "Authorization", "api-key", "apikey", "cardNo", "IBAN"],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["user", "email", "id", "amount"])
def test_other_names_are_left_alone(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter2 host=db", f"password={MASK} host=db"),
        ('{"token": "abc def", "a": 1}', f'{{"token": {MASK}, "a": 1}}'),
        ("Authorization: Bearer abc.def", f"Authorization: {MASK}"),
        ("cannot reach postgres://me:secret@db/app", f"cannot reach postgres://me:{MASK}@db/app"),
        ("api_key => 'x y'", f"api_key => {MASK}"),
        ("nothing to hide at 10:30", "nothing to hide at 10:30"),
    ],
)
def test_secrets_in_free_text_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize("text", ["a" * 200_000, "a-" * 100_000, "pass" * 50_000, "://" * 60_000, "://a:" * 40_000])
def test_masking_a_long_text_takes_no_long_time(text: str) -> None:
    began = thread_time()

    masked(text)

    assert thread_time() - began < 5
