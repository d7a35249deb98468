"""Reading crontabs: every error with its place, nothing dropped, nothing raised but our own error."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st
from mutations import read_mutated_lines
from support.profiles import examples, scaled
from test_schedule import schedules

from gw_core import CronItem, JobKeyMode, cron_item
from gw_core.crontab import Schedule, daily_at, parse_crontab, read_crontab
from gw_core.errors import CrontabError, InvalidInputError
from gw_core.front_ends import CrontabLineError, format_duration, reject_duplicates

MUTATED_LINES = scaled(20_000)


def errors_of(text: str) -> tuple[CrontabLineError, ...]:
    return read_crontab(text)[1]


# -- reading -------------------------------------------------------------------------------------------------------


def test_an_item_has_everything_its_line_says() -> None:
    line = (
        "30 4 * * 1 mail/weekly ?id=w&fill=1d12h&max=3&queue=q&jobKey=a+b&jobKeyMode=preserve_run_at&priority=-4 {a:1}"
    )

    assert parse_crontab(line) == (
        CronItem(
            task="mail/weekly",
            schedule=Schedule.parse("30 4 * * 1"),
            identifier="w",
            fill=timedelta(hours=36),
            max_attempts=3,
            queue_name="q",
            job_key="a b",
            job_key_mode=JobKeyMode.PRESERVE_RUN_AT,
            priority=-4,
            payload={"a": 1},
        ),
    )


def test_a_line_without_options_has_the_defaults() -> None:
    (item,) = parse_crontab("* * * * * task")

    assert (item.identifier, item.fill, item.max_attempts, item.priority) == ("task", timedelta(), None, None)
    assert (item.queue_name, item.job_key, item.job_key_mode, item.payload) == (None, None, JobKeyMode.REPLACE, None)


def test_comments_blank_lines_windows_line_ends_and_a_byte_order_mark_are_understood() -> None:
    text = "\ufeff# first\r\n\r\n  \t\r\n* * * * * a\r\n   # indented\r\n0 0 * * 7\tb   \r\n"

    assert [item.task for item in parse_crontab(text)] == ["a", "b"]


def test_an_empty_crontab_has_no_items() -> None:
    assert parse_crontab("") == ()


@pytest.mark.parametrize("option", ["jobKey=k&jobKeyMode=preserve_run_at", "job_key=k&job_key_mode=preserve_run_at"])
def test_options_may_be_written_as_in_javascript_or_with_underscores(option: str) -> None:
    (item,) = parse_crontab(f"* * * * * task ?{option}")

    assert (item.job_key, item.job_key_mode) == ("k", JobKeyMode.PRESERVE_RUN_AT)


def test_both_spellings_of_one_option_are_a_repetition() -> None:
    (error,) = errors_of("* * * * * task ?jobKey=a&job_key=b")

    assert "given twice" in error.message


def test_a_json5_payload_may_be_as_long_as_the_line() -> None:
    payload = ", ".join(f"k{number}: 'v{number}'" for number in range(650))

    (item,) = parse_crontab(f"* * * * * t {{{payload}}}")

    assert item.payload == {f"k{number}": f"v{number}" for number in range(650)}


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        pytest.param("60 * * * * t", 1, "'60' is too large for the minute", id="too large"),
        pytest.param("* * 0 * * t", 5, "'0' is too small for the day", id="too small"),
        pytest.param("* 1,2,24 * * * t", 7, "'24' is too large for the hour", id="in a list"),
        pytest.param("5-5 * * * * t", 1, "the range '5-5' in the minute field does not ascend", id="flat range"),
        pytest.param("* * * */0 * t", 7, "the step of '*/0' in the month field must be", id="no step"),
        pytest.param("* * * * 1, t", 11, "a value is missing in the weekday field", id="nothing after a comma"),
        pytest.param("1-10/2 * * * * t", 1, "'1-10/2' is not a number, range or wildcard", id="stepped range"),
        pytest.param("* * * * mon t", 9, "'mon' is a name", id="a name of a day"),
        pytest.param("* * * JAN * t", 7, "'JAN' is a name", id="a name of a month"),
        pytest.param("* * * L * t", 7, "there are only 3 time fields", id="a letter"),
        pytest.param("* * * ? * t", 7, "'?' cannot stand in the month field", id="a question mark"),
        pytest.param("@daily t", 1, "'@daily' is a nickname", id="a nickname"),
        pytest.param("* * * * task", 9, "there are only 4 time fields", id="four fields"),
        pytest.param("* *", 4, "there are only 2 time fields", id="two fields and no more"),
        pytest.param("* * * * *", 10, "the task is missing", id="no task"),
        pytest.param("  * * * * * 9t", 13, "'9t' is not the name of a task", id="a task that starts with a digit"),
        pytest.param("* * * * * t ?", 13, "there are no options after the ?", id="no options"),
        pytest.param("* * * * * t ?id=a&nope=1", 19, "unknown option 'nope'", id="unknown option"),
        pytest.param("* * * * * t ?id=1", 14, "'1' does not fit this option", id="wrong id"),
        pytest.param("* * * * * t ?max=0", 14, "max attempts is 0", id="no attempt"),
        pytest.param("* * * * * t ?max=32768", 14, "max attempts is 32768", id="more attempts than a smallint holds"),
        pytest.param("* * * * * t ?priority=40000", 14, "priority is 40000", id="priority beyond smallint"),
        pytest.param("* * * * * t ?jobKey=", 14, "the job key is empty", id="empty key"),
        pytest.param(
            "* * * * * t ?jobKeyMode=preserve_run_at", 13, "jobKeyMode is given without", id="mode without key"
        ),
        pytest.param("* * * * * t ?fill=9999w", 14, "'9999w' is more than ten years", id="fill beyond ten years"),
        pytest.param(f"* * * * * {'t' * 129}", 11, "the task identifier is 129 characters", id="long task"),
        pytest.param(f"* * * * * t ?queue={'q' * 129}", 14, "the queue name is 129 characters", id="long queue"),
        pytest.param("* * * * * t # why", 13, "'# why' is out of place", id="a trailing comment"),
        pytest.param("* * * * * t {a:}", 16, 'unexpected "}" in the payload', id="broken payload"),
        pytest.param("* * * * * t {a:1", 17, "unexpected end of input in the payload", id="open payload"),
        pytest.param("* * * * * t {a:NaN}", 13, "the payload contains nan", id="not a number"),
        pytest.param(r"* * * * * t {a:'\0'}", 13, r"the payload contains \u0000", id="NUL"),
        pytest.param(r"* * * * * t {a:'\ud800'}", 13, "the payload cannot be written as JSON", id="lone surrogate"),
        pytest.param(f"* * * * * t {{a:{'[' * 99}", 13, "the payload is nested too deeply", id="deep payload"),
        pytest.param(f"* * * * * t {{a:'{'x' * 10_000}'}}", 10_001, "the line is 10018 characters", id="long line"),
    ],
)
def test_an_error_has_its_column_and_says_what_is_wrong(line: str, column: int, message: str) -> None:
    (error,) = errors_of(f"# a comment\n{line}")

    assert (error.line, error.column, error.text) == (2, column, line)
    assert error.message.startswith(message)
    assert error.expected


def test_all_errors_of_a_file_are_reported_together_and_sorted() -> None:
    text = "61 25 * * 8 task ?max=0&nope=1 {a:}\n* * * * * fine\n* * * task\n"

    assert [(error.line, error.column) for error in errors_of(text)] == [
        (1, 1),
        (1, 4),
        (1, 11),
        (1, 19),
        (1, 25),
        (1, 35),
        (3, 7),
    ]


def test_the_message_shows_each_error_under_its_line_and_lists_them() -> None:
    with pytest.raises(CrontabError) as caught:
        parse_crontab("* * * * * a\n\t* 24 * * * b", source="my/crontab")

    assert str(caught.value) == (
        "my/crontab:2:4: '24' is too large for the hour; "
        "expected numbers from 0 to 23, ranges like 1-5, * or */n, separated by commas\n"
        "    \\t* 24 * * * b\n"
        "        ^"
    )
    assert [type(error) for error in caught.value.errors] == [CrontabLineError]


def test_the_manual_shows_the_message_of_its_line() -> None:
    page = (Path(__file__).parents[2] / "docs/guide/recurring-tasks.md").read_text("utf-8")
    message = page.partition("```text\ncrontab:")[2].partition("```")[0].removesuffix("\n")
    with pytest.raises(CrontabError) as caught:
        parse_crontab(f"\n{message.splitlines()[1].strip()}", source="crontab")

    assert str(caught.value) == f"crontab:{message}"


def test_identifiers_used_twice_are_rejected_with_both_lines() -> None:
    (error,) = errors_of("* * * * * a\n* * * * * b\n0 0 * * * b ?id=a")

    assert (error.line, error.message) == (3, "the identifier 'a' is already used in line 1")


def test_a_task_that_does_not_exist_is_an_error_where_the_tasks_are_known() -> None:
    items, errors = read_crontab("* * * * * here\n  * * * * * gone ?id=x", tasks={"here", "there"})

    assert [item.task for item in items] == ["here"]
    assert [(error.line, error.column, error.message) for error in errors] == [(2, 13, "unknown task 'gone'")]


def test_nothing_from_the_file_can_command_a_terminal() -> None:
    with pytest.raises(CrontabError) as caught:
        parse_crontab("* * * * * \x1b]0;owned\x07 ?\u202egpj=\x9b1m {\x1b[2J}")

    assert all(character.isprintable() or character == "\n" for character in str(caught.value))


def test_of_a_thousand_errors_the_message_shows_some_and_counts_the_rest() -> None:
    with pytest.raises(CrontabError, match="and 980 more") as caught:
        parse_crontab("nonsense\n" * 1_000)

    assert len(caught.value.errors) == 1_000


def test_the_mark_stands_under_the_place_in_a_long_line() -> None:
    (error,) = errors_of(f"* * * * * task ?jobKey={'k' * 300}&nope=1&id={'i' * 200}")
    shown, mark = error.excerpt().splitlines()

    assert shown[mark.index("^") :].startswith("nope=1")
    assert len(shown) < 110


# -- writing -------------------------------------------------------------------------------------------------------

names = st.from_regex(r"[_a-zA-Z][_a-zA-Z0-9:/_-]{0,20}", fullmatch=True)
keys = st.text(st.characters(codec="utf-8", exclude_characters="\x00\n\r\u2028\u2029"), min_size=1, max_size=30)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def items(draw: st.DrawFn) -> CronItem:
    job_key = draw(st.none() | keys)
    task = draw(names)
    return CronItem(
        task=task,
        schedule=draw(schedules),
        identifier=draw(st.just(task) | st.from_regex("[_a-zA-Z][-_a-zA-Z0-9]{0,20}", fullmatch=True)),
        fill=timedelta(seconds=draw(st.integers(0, 3650 * 86_400))),
        max_attempts=draw(st.none() | st.integers(1, 32_767)),
        queue_name=draw(st.none() | st.from_regex("[-a-zA-Z0-9_:]{1,20}", fullmatch=True)),
        job_key=job_key,
        job_key_mode=draw(st.sampled_from([JobKeyMode.REPLACE, JobKeyMode.PRESERVE_RUN_AT]))
        if job_key
        else JobKeyMode.REPLACE,
        priority=draw(st.none() | st.integers(-32_768, 32_767)),
        payload=draw(st.none() | st.dictionaries(keys, json_values, max_size=4)),
    )


def line_of(item: CronItem) -> str:
    """Return the line of a crontab that means an item."""
    options = {
        "id": item.identifier if item.identifier != item.task else None,
        "fill": format_duration(item.fill) if item.fill else None,
        "max": item.max_attempts,
        "queue": item.queue_name,
        "jobKey": item.job_key,
        "jobKeyMode": item.job_key_mode if item.job_key_mode is not JobKeyMode.REPLACE else None,
        "priority": item.priority,
    }
    given = "&".join(f"{name}={quote(str(value))}" for name, value in options.items() if value is not None)
    payload = None if item.payload is None else json.dumps(item.payload)
    return " ".join([str(item.schedule), item.task, *([f"?{given}"] if given else []), *([payload] if payload else [])])


@examples(400)
@given(item=items())
def test_the_line_of_an_item_reads_as_the_same_item(item: CronItem) -> None:
    assert parse_crontab(line_of(item)) == (item,)


# -- items from Python ---------------------------------------------------------------------------------------------


def test_an_item_is_made_from_a_pattern_or_a_schedule() -> None:
    assert cron_item("0 8 * * *", "report") == cron_item(daily_at(8), "report")


@pytest.mark.parametrize(
    "options",
    [
        {"id": ""},
        {"id": "x" * 513},
        {"fill": timedelta(seconds=-1)},
        {"fill": timedelta(milliseconds=1)},
        {"fill": timedelta(days=3651)},
        {"fill": "2d"},
        {"max_attempts": 0},
        {"priority": 40_000},
        {"queue_name": ""},
        {"job_key": ""},
        {"job_key_mode": "preserve_run_at"},
        {"job_key": "k", "job_key_mode": "sometimes"},
        {"payload": [1]},
        {"payload": {"a": float("nan")}},
        {"payload": {"a": "\x00"}},
        {"payload": {"a": "\ud800"}},
        pytest.param({"payload": {"a": object()}}, id="object"),
    ],
    ids=str,
)
def test_an_item_the_database_would_reject_is_rejected_immediately(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        cron_item("* * * * *", "task", **options)


def test_an_items_payload_is_its_own_copy() -> None:
    payload = {"a": [1]}
    item = cron_item("* * * * *", "task", payload=payload)
    payload["a"].append(2)

    assert item.payload == {"a": [1]}


def test_a_job_says_when_it_was_due_and_whether_it_came_late() -> None:
    item = cron_item("* * * * *", "task", payload={"a": 1, "_cron": "mine"})

    assert item.job_spec(datetime(2021, 1, 1, 4, tzinfo=UTC), backfilled=False).payload == {
        "a": 1,
        "_cron": {"ts": "2021-01-01T04:00:00.000Z", "backfilled": False},
    }


def test_items_with_one_identifier_are_rejected_together() -> None:
    with pytest.raises(CrontabError, match="found more than once: 'a', 'b'"):
        reject_duplicates([cron_item("* * * * *", task) for task in ("a", "b", "c", "a", "b", "a")])


# -- whatever comes ------------------------------------------------------------------------------------------------


@pytest.mark.once
def test_mutated_lines_are_read_or_rejected_and_nothing_is_dropped() -> None:
    # As many as there is time for at every change; `python tests/cron/mutations.py --lines 1000000` reads more.
    # Milliseconds by far, but a busy machine may halt us for long in between.
    assert read_mutated_lines(MUTATED_LINES, seed=20_261_121) < 1.0


@examples(500)
@given(text=st.text())
def test_any_text_is_read_or_rejected(text: str) -> None:
    found, errors = read_crontab(text)

    assert all(error.column >= 1 and error.line >= 1 for error in errors)
    assert all(parse_crontab(line_of(item)) == (item,) for item in found)


def test_the_costliest_lines_take_milliseconds() -> None:
    payloads = [
        "{a:[" + "1," * 99 + "]}",
        "{" + "/**/" * 249 + "}",
        "{a:'" + "x" * 990 + "'}",
        "{a:" * 20 + "1" + "}" * 20,
    ]
    fields = ["1," * 4_000, "*/1," * 2_000, "0-59," * 1_500, "9" * 9_000, "-" * 9_000]
    lines = [f"* * * * * t {payload}" for payload in payloads] + [f"{field} * * * * t" for field in fields]
    began = time.process_time()
    for line in lines:
        read_crontab(line)

    assert (time.process_time() - began) / len(lines) < 0.5


def test_the_examples_of_the_manual_parse() -> None:
    page = (Path(__file__).parents[2] / "docs/guide/recurring-tasks.md").read_text("utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```crontab\n")[1:]]

    assert len(blocks) >= 3
    assert all(parse_crontab(block) for block in blocks)


def test_a_comment_after_a_payload_is_an_error_as_in_node() -> None:
    with pytest.raises(CrontabError, match="a comment follows the payload"):
        parse_crontab('0 6 * * * hello {"n": 1} /* daily */')
