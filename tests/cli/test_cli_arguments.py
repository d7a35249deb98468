"""What commands are given as text is parsed, or rejected with one message."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gw_cli import arguments
from gw_core.errors import InvalidInputError


class Stdin:
    """A stdin that holds these bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 12345678901234567890.10}',
        " [1e400, -0.0] ",
        '"\\ud800"',
        "null",
        '{"a":1,"a":2}',
        "9" * 10_000,
    ],
)
def test_a_payload_that_is_json_passes_through_as_it_is(text: str) -> None:
    assert arguments.payload_text(text, None) == text


def test_a_job_without_a_payload_gets_an_empty_object() -> None:
    assert arguments.payload_text(None, None) == "{}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "is not JSON: expecting property name", id="cut short"),
        pytest.param("{'a': 1}", "line 1, column 2", id="single quotes"),
        pytest.param('{"a": 1} x', "extra data at line 1, column 10", id="something behind"),
        pytest.param('"abc', "unterminated string starting at line 1, column 1", id="an open quote"),
        pytest.param("NaN", "NaN is not valid JSON", id="not a number"),
        pytest.param("[-Infinity]", "-Infinity is not valid JSON", id="infinity"),
        pytest.param('"a\nb"', "invalid control character", id="a raw line break in a string"),
        pytest.param("", "is empty; give JSON such as", id="nothing"),
        pytest.param("  \n", "is empty", id="blanks"),
        pytest.param("[" * 200_000, "is nested too deeply", id="nested without end"),
    ],
)
def test_a_payload_that_is_not_json_is_rejected_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^the payload .*{message}"):
        arguments.payload_text(text, None)


def test_a_payload_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "payload.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": "\xc3\xbc"}\n')

    assert arguments.payload_text(None, str(path)) == '{"a": "ü"}\n'


@pytest.mark.parametrize(("payload", "payload_file"), [("-", None), (None, "-")])
def test_a_payload_comes_from_stdin(
    monkeypatch: pytest.MonkeyPatch, payload: str | None, payload_file: str | None
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(b"[1]"))

    assert arguments.payload_text(payload, payload_file) == "[1]"


def test_bytes_that_are_no_text_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(b'"ab\xff"'))

    with pytest.raises(InvalidInputError, match="the payload from stdin is not UTF-8: byte 4"):
        arguments.payload_text("-", None)


def test_a_payload_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"none\.json' cannot be read: No such file"):
        arguments.payload_text(None, str(tmp_path / "none.json"))


def test_two_payloads_are_one_too_many() -> None:
    with pytest.raises(InvalidInputError, match="both given"):
        arguments.payload_text("1", "file")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param(None, None, id="not said"),
        pytest.param("now", None, id="now is the database's now"),
        pytest.param("+1h30m", timedelta(minutes=90), id="counted by the database's clock"),
        pytest.param("-5m", timedelta(minutes=-5), id="before now"),
        pytest.param("2026-01-31T08:00:00+02:00", datetime(2026, 1, 31, 6, tzinfo=UTC), id="a moment with its zone"),
    ],
)
def test_a_time_is_read(text: str | None, at: object) -> None:
    assert arguments.point_in_time("--run-at", text) == at


@pytest.mark.parametrize("text", ["tomorrow", "2026-01-31T08:00:00", "+5", "2026-13-01T00:00:00Z", ""])
def test_what_is_no_time_is_rejected_with_its_flag(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^--run-at: "):
        arguments.point_in_time("--run-at", text)


@pytest.mark.parametrize("text", ["x", "1.0", "", "1e3", "9" * 30, "٣", "0x10"])
def test_what_is_no_whole_number_is_rejected_with_its_flag(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^--priority .*: give a whole number"):
        arguments.whole_number("--priority", text)


@pytest.mark.parametrize("text", ["0", "-1", "100001"])
def test_a_limit_out_of_range_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInputError, match="a whole number from 1 to 100000"):
        arguments.positive_number("--limit", text, 100_000)


def test_a_choice_that_is_not_offered_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="--state 'gone': give one of ready, failed"):
        arguments.one_of("--state", "gone", ("ready", "failed"))
