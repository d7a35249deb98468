"""A payload as lines: exact, in order, bounded, and harmless."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, strategies as st

from gw_core.front_ends import UNSAFE_TEXT
from gw_tui.text.json_view import MAX_LINES, json_view


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


PEM = "-----BEGIN RSA PRIVATE KEY-----\nhunter2hunter2\nhunter2==\n-----END RSA PRIVATE KEY-----"
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(_JSON)
def test_an_unmasked_payload_reads_back_the_same_and_steers_nothing(value: object) -> None:
    view = json_view(json.dumps(value), unmask=True, whole=True)

    assert json.loads(str(view)) == value
    assert not any(re.search(UNSAFE_TEXT, text) for line in view.lines for text, _ in line)


@given(st.text())
def test_any_text_is_shown_without_steering_the_terminal(text: str) -> None:
    assert not any(re.search(UNSAFE_TEXT, piece) for line in json_view(text).lines for piece, _ in line)


@pytest.mark.parametrize(
    "payload",
    [
        {"name": "password", "value": "hunter2"},
        {"value": "hunter2", "other": 1, "name": "password"},
        {"key": "X-Api-Key", "value": ["hunter2"]},
        {"env": [{"name": "HOME", "value": "/"}, {"name": "DB_PASSWORD", "value": "hunter2"}]},
        {"headers": [["Authorization", "Bearer hunter2"], ["Cookie", "hunter2"]]},
        {"session": {"id": "hunter2"}},
        {"auth": {"user": "x", "is": "hunter2"}},
        {"pem": PEM},
        {"command": "mysql --password hunter2"},
        {"argv": ["mysql", "--password", "hunter2"]},
        {"url": "postgres://me:pa@hunter2@db/app"},
        {"webhookUrl": "https://example.com/hunter2"},
    ],
    ids=str,
)
def test_a_credential_in_a_payload_is_hidden(payload: object) -> None:
    text = json.dumps(payload)

    assert "hunter2" not in str(json_view(text))
    assert "hunter2" not in str(json_view(text, whole=True))
    assert "hunter2" in str(json_view(text, unmask=True))
