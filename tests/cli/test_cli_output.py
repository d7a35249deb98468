"""What goes to stdout: tables, lines and JSON, none of which may steer a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from io import StringIO
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from gw_cli import output
from gw_core.errors import InvalidInputError
from gw_core.front_ends import UNSAFE_TEXT

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)
COLUMNS = (
    output.Column("id", "ID", right=True),
    output.Column("task", "TASK", shrinks=True),
    output.Column("queue", "QUEUE", shrinks=True, rank=2),
    output.Column("error", "ERROR", shrinks=True, rank=8),
)


class Terminal(StringIO):
    """A stdout that a person reads."""

    def isatty(self) -> bool:
        return True


def written(monkeypatch: pytest.MonkeyPatch, stream: StringIO, rows: list[dict[str, object]], **how: Any) -> str:
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("COLUMNS", "80")
    output.records(rows, output.Shape(COLUMNS[:2]), as_json=how.get("as_json", False))
    return stream.getvalue()


# -- JSON --------------------------------------------------------------------------------------------------------------


@given(JSON_VALUES)
def test_json_reads_back_as_what_was_written_and_steers_nothing(value: Any) -> None:
    text = output.to_json(value)

    assert json.loads(text) == value
    assert not re.search(UNSAFE_TEXT, text)


@given(JSON_VALUES)
def test_json_from_the_database_keeps_its_meaning(value: Any) -> None:
    stored = json.dumps(value, indent=1, ensure_ascii=False)

    shown = output.to_json(output.JsonText(stored))

    assert json.loads(shown) == value
    assert not re.search(UNSAFE_TEXT, shown)


@pytest.mark.parametrize("number", ["12345678901234567890123", "0.1000000000000000055511", "1e400", "-0.0", "1.50"])
def test_numbers_from_the_database_keep_every_digit(number: str) -> None:
    assert output.to_json({"payload": output.JsonText(f'{{"n":{number}}}')}) == f'{{"payload": {{"n":{number}}}}}'


def test_half_a_character_from_python_becomes_an_escape() -> None:
    assert output.to_json("\ud800") == r'"\ud800"'


def test_times_are_written_in_utc_with_their_fractions() -> None:
    at = datetime(2026, 1, 31, 10, 0, 0, 250, tzinfo=timezone(timedelta(hours=2)))

    assert output.to_json(at) == '"2026-01-31T08:00:00.000250Z"'


def test_a_list_is_one_array_with_one_record_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, object]] = [{"id": 1, "task": "a", "more": "x"}, {"id": 2, "task": None}]

    text = written(monkeypatch, Terminal(), rows, as_json=True)

    assert json.loads(text) == [{"id": 1, "task": "a"}, {"id": 2, "task": None}]
    assert len(text.splitlines()) == 2


def test_an_empty_list_is_an_empty_array(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(monkeypatch, StringIO(), [], as_json=True) == "[]\n"


# -- lines for a pipe --------------------------------------------------------------------------------------------------


def unescaped(field: str) -> str:
    """Read a field as a script would."""
    marks = {r"\n": "\n", r"\t": "\t", r"\r": "\r", "\\\\": "\\"}
    pattern = r"\\\\|\\[ntr]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}"
    return re.sub(pattern, lambda found: marks.get(found[0]) or chr(int(found[0][2:], 16)), field)


@given(TEXT)
def test_a_field_in_a_pipe_can_be_read_back(text: str) -> None:
    _, line = output.tab_separated([{"id": 1, "task": text}], ("id", "task"))

    assert not re.search(UNSAFE_TEXT, line.replace("\t", "").rstrip("\n"))
    assert unescaped(line.removesuffix("\n").split("\t")[1]) == text


def test_a_pipe_gets_a_line_of_names_and_a_line_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    text = written(monkeypatch, StringIO(), [{"id": 1, "task": None}, {"id": 2, "task": "b"}])

    assert text == "id\ttask\n1\t\n2\tb\n"


# -- tables ------------------------------------------------------------------------------------------------------------

ROWS = st.lists(
    st.fixed_dictionaries({"id": st.integers(1, 10**6), "task": TEXT, "queue": st.none() | TEXT, "error": TEXT}),
    min_size=1,
    max_size=5,
)


@given(ROWS, st.integers(20, 120))
def test_a_table_fits_the_terminal_and_steers_nothing(rows: list[dict[str, object]], width: int) -> None:
    for line in output.table(rows, COLUMNS, width=width):
        assert line.endswith("\n")
        assert not re.search(UNSAFE_TEXT, line[:-1])
        assert cell_len(line[:-1]) <= width


def test_a_narrow_terminal_cuts_long_texts_first_and_then_leaves_columns_out() -> None:
    rows = [{"id": 1, "task": "t" * 30, "queue": "q" * 30, "error": "e" * 30}]

    wide = list(output.table(rows, COLUMNS, width=120))
    narrow = list(output.table(rows, COLUMNS, width=44))
    narrowest = list(output.table(rows, COLUMNS, width=30))

    assert wide[1].split() == ["1", "t" * 30, "q" * 30, "e" * 30]
    assert narrow[0].split() == ["ID", "TASK", "QUEUE", "ERROR"]
    assert narrow[1].count("…") == 3
    assert narrowest[0].split() == ["ID", "TASK", "ERROR"]


def test_a_column_that_is_empty_everywhere_is_left_out() -> None:
    head, _ = output.table([{"id": 1, "task": "a", "queue": None, "error": ""}], COLUMNS, width=80)

    assert head.split() == ["ID", "TASK"]


def test_wide_characters_keep_the_columns_straight() -> None:
    rows = [{"id": 1, "task": "日本語", "queue": "q"}, {"id": 2, "task": "abc", "queue": "q"}]

    lines = list(output.table(rows, COLUMNS, width=80))

    assert len({cell_len(line) for line in lines[1:]}) == 1


def test_no_rows_make_no_table() -> None:
    assert list(output.table([], COLUMNS, width=80)) == []


@pytest.mark.parametrize(
    ("environment", "bold"),
    [
        pytest.param({}, True, id="by default"),
        pytest.param({"NO_COLOR": "1"}, False, id="not where NO_COLOR is set"),
        pytest.param({"TERM": "dumb"}, False, id="not on a dumb terminal"),
    ],
)
def test_a_terminal_gets_a_bold_head(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], bold: bool) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert ("\x1b[1m" in written(monkeypatch, Terminal(), [{"id": 1, "task": "a"}])) is bold


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Print one record into a pipe, in a terminal of 30 columns."""
    row: dict[str, object] = {"id": 1, "task": "t" * 40, "queue": None, "error": "boom"}

    def print_it(width: str = "30", **how: Any) -> str:
        monkeypatch.setenv("COLUMNS", width)
        output.Layout(**how).show([row], output.Shape(COLUMNS))
        return capsys.readouterr().out

    return print_it


def test_a_pipe_gets_a_table_when_asked_to(printed: Callable[..., str]) -> None:
    assert printed().startswith("id\ttask\tqueue\terror\n")
    assert printed(form="table").splitlines()[0].split() == ["ID", "TASK", "ERROR"]
    assert "t" * 40 not in printed(form="table")
    assert "t" * 40 in printed(form="table", is_wide=True)


def test_without_a_terminal_nothing_is_cut(printed: Callable[..., str]) -> None:
    assert "t" * 40 in printed(width="", form="table")


def test_columns_are_chosen_in_every_form(printed: Callable[..., str]) -> None:
    assert printed(columns=("queue", "id")) == "queue\tid\n\t1\n"
    assert json.loads(printed(columns=("queue", "id"), form="json")) == [{"queue": None, "id": 1}]
    # A chosen column stays, also when it is empty.
    assert printed(columns=("queue", "id"), form="table") == "QUEUE  ID\n        1\n"


def test_an_unknown_column_is_rejected_with_those_there_are(printed: Callable[..., str]) -> None:
    with pytest.raises(InvalidInputError, match="unknown column 'tusk'; columns are id, task, queue, error"):
        printed(columns=("tusk",))


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "as_json", "text"),
    [
        pytest.param(Terminal(), False, "Added job 7 (a\\x1b)\n", id="a sentence on a terminal"),
        pytest.param(StringIO(), False, "7\n", id="the bare value in a pipe"),
        pytest.param(Terminal(), True, '{"id": 7}\n', id="an object when asked for"),
    ],
)
def test_an_answer_fits_its_reader(monkeypatch: pytest.MonkeyPatch, stream: StringIO, as_json: bool, text: str) -> None:
    monkeypatch.setattr("sys.stdout", stream)

    output.answer("Added job 7 (a\x1b)", plain="7", record={"id": 7}, as_json=as_json)

    assert stream.getvalue() == text


def test_a_reader_that_went_away_is_distinguished_from_other_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())

    with pytest.raises(output.BrokenOutput):
        output.flush()
