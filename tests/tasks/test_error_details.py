"""What `last_error` has of an error beside its message: its cause, or its members, and the place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.task_builders import run

from gw_core import GiveUp, RetryAfter
from gw_core.front_ends import Failed


def last_error(function: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run in the folder of the tests, and leave out the numbers of lines."""
    monkeypatch.chdir(Path(__file__).parents[1])
    outcome = run(function, max_attempts=1)
    assert isinstance(outcome, Failed)
    return re.sub(r":\d+ in ", ":N in ", outcome.message)


def raises(payload: Any) -> None:
    raise ValueError("no such address")


def has_a_cause(payload: Any) -> None:
    try:
        json.loads("{")
    except ValueError as error:
        raise RuntimeError("cannot import invoice") from error


def has_two_causes(payload: Any) -> None:
    try:
        has_a_cause(payload)
    except RuntimeError as error:
        raise RuntimeError("cannot bill") from error


def raises_while_handling(payload: Any) -> None:
    try:
        payload["amount"]
    except KeyError:
        raise RuntimeError("cannot bill")  # noqa: B904 - on purpose


def raises_from_none(payload: Any) -> None:
    try:
        payload["amount"]
    except KeyError:
        raise RuntimeError("cannot bill") from None


def raises_a_group(payload: Any) -> None:
    raise ExceptionGroup("many", [ValueError("a"), KeyError("b"), ValueError("c"), ValueError("d")])


def raises_in_a_library(payload: Any) -> None:
    json.loads("{")


def gives_up(payload: Any) -> None:
    raise GiveUp("card refused")


def retries_after_an_error(payload: Any) -> None:
    try:
        raise TimeoutError("bank")
    except TimeoutError as error:
        raise RetryAfter(60, "bank is away") from error


def is_its_own_cause(payload: Any) -> None:
    error = ValueError("circle")
    error.__cause__ = error
    raise error


HERE = "tasks/test_error_details.py:N in"
NO_JSON = "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (raises, f"ValueError: no such address ({HERE} raises)"),
        (has_a_cause, f"RuntimeError: cannot import invoice; caused by {NO_JSON} ({HERE} has_a_cause)"),
        (has_two_causes, f"RuntimeError: cannot bill; caused by {NO_JSON} ({HERE} has_a_cause)"),
        (
            raises_while_handling,
            f"RuntimeError: cannot bill; while handling KeyError: 'amount' ({HERE} raises_while_handling)",
        ),
        (raises_from_none, f"RuntimeError: cannot bill ({HERE} raises_from_none)"),
        (
            raises_a_group,
            "ExceptionGroup: many (4 sub-exceptions): ValueError: a; KeyError: 'b'; ValueError: c; and 1 more"
            f" ({HERE} raises_a_group)",
        ),
        (raises_in_a_library, f"{NO_JSON} ({HERE} raises_in_a_library)"),
        (gives_up, "card refused"),
        (retries_after_an_error, f"bank is away; caused by TimeoutError: bank ({HERE} retries_after_an_error)"),
        (is_its_own_cause, f"ValueError: circle ({HERE} is_its_own_cause)"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_cause_and_the_place_stand_behind_the_message(
    function: Callable[..., object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert last_error(function, monkeypatch) == said


def test_a_long_cause_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def task(payload: Any) -> None:
        try:
            raise ValueError("x" * 10_000 + "\nsecond line")
        except ValueError as error:
            raise RuntimeError("short") from error

    said = last_error(task, monkeypatch)

    assert "x" * 200 in said
    assert "second line" not in said
    assert len(said) < 500


def test_an_error_of_ours_names_no_place_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def task(payload: int) -> None:
        raise AssertionError

    assert last_error(task, monkeypatch).endswith("Expected `int`, got `object`")


@pytest.mark.usefixtures("deleted_folder")
def test_an_error_is_described_after_the_current_folder_was_deleted() -> None:
    outcome = run(raises, max_attempts=1)
    assert isinstance(outcome, Failed)
    assert outcome.message.startswith("ValueError: no such address (")
