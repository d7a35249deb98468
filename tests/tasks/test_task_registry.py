"""Registering tasks, finding them, and what the decorators leave behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from support.task_builders import a_job, attempt

from gw_core import TaskRegistry, cron, task
from gw_core.front_ends import Completed, TaskLoadError


def test_a_decorated_function_is_found_by_its_identifier_and_stays_callable() -> None:
    registry = TaskRegistry()

    @registry.task("mail/send")
    def send(payload: int) -> int:
        return payload + 1

    assert send(1) == 2
    found = registry.get("mail/send")
    assert found is not None
    assert (found.identifier, found.function) == ("mail/send", send)


@pytest.mark.parametrize("decorate", [lambda r: r.task, lambda r: r.task()], ids=["bare", "called"])
def test_without_an_identifier_the_name_of_the_function_counts(
    decorate: Callable[[TaskRegistry], Callable[..., Any]],
) -> None:
    registry = TaskRegistry()

    def send(payload: Any) -> None: ...

    assert decorate(registry)(send).function is send
    assert registry.identifiers == ("send",)


def test_the_source_of_a_task_is_its_file_and_line() -> None:
    registry = TaskRegistry()

    @registry.task
    def send(payload: Any) -> None: ...

    found = registry.get("send")
    assert found is not None
    assert found.source == f"{__file__}:{send.function.__code__.co_firstlineno}"


def test_an_unknown_identifier_finds_nothing() -> None:
    assert TaskRegistry().get("mail") is None


def test_identifiers_are_sorted() -> None:
    registry = TaskRegistry()
    for name in ("b", "c", "a"):
        registry.register(name, len)

    assert registry.identifiers == ("a", "b", "c")
    assert [each.identifier for each in registry] == ["a", "b", "c"]
    assert len(registry) == 3
    assert "a" in registry
    assert "d" not in registry


def test_an_identifier_used_twice_is_rejected_with_both_places() -> None:
    registry = TaskRegistry()

    def first(payload: Any) -> None: ...
    def second(payload: Any) -> None: ...

    registry.register("mail", first)
    with pytest.raises(TaskLoadError) as caught:
        registry.register("mail", second)

    for function in (first, second):
        assert f"{__file__}:{function.__code__.co_firstlineno}" in str(caught.value)
    found = registry.get("mail")
    assert found is not None
    assert found.function is first


@pytest.mark.parametrize("identifier", ["", "x" * 129, "a\0b", 7])
def test_an_identifier_that_breaks_the_rules_is_rejected(identifier: Any) -> None:
    with pytest.raises(TaskLoadError, match="identifier"):
        TaskRegistry().register(identifier, len)


def test_the_longest_identifier_is_accepted() -> None:
    registry = TaskRegistry()
    registry.register("x" * 128, len)

    assert "x" * 128 in registry


def test_a_lambda_needs_an_identifier() -> None:
    with pytest.raises(TaskLoadError, match="has no name"):
        TaskRegistry().task(lambda payload: None)


def test_a_function_that_cannot_be_a_task_is_rejected_with_its_place() -> None:
    def send(payload: Any, context: Any, account: str) -> None: ...

    with pytest.raises(
        TaskLoadError, match=rf"test_task_registry\.py:{send.__code__.co_firstlineno} .*'mail'.*account"
    ):
        TaskRegistry().register("mail", send)


def test_an_unknown_option_of_the_decorator_is_an_error_in_python() -> None:
    with pytest.raises(TypeError):
        TaskRegistry().task("mail", retries=3)  # type: ignore[call-overload]


# -- annotations that are defined later ----------------------------------------------------------------------------

early = TaskRegistry()


@early.task
def early_task(payload: DefinedLater) -> None:
    assert payload == DefinedLater("home")


@early.task
def lost_task(payload: DefinedNowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


WAITING = dict(early.waiting)
"""As it is before anything takes a task out."""


@dataclass
class DefinedLater:
    to: str


def waiting() -> TaskRegistry:
    """A registry whose tasks wait for their annotations, for one test alone."""
    registry = TaskRegistry()
    registry.waiting = dict(WAITING)
    return registry


def test_an_annotation_may_name_a_class_that_is_defined_further_down() -> None:
    registry = waiting()
    del registry.waiting["lost_task"]
    found = registry.get("early_task")
    job = a_job({"to": "home"})

    assert found is not None
    assert isinstance(attempt(found, job), Completed)


def test_tasks_that_wait_for_their_annotation_are_listed_and_taken() -> None:
    registry = waiting()
    assert registry.identifiers == ("early_task", "lost_task")
    with pytest.raises(TaskLoadError, match="defined twice"):
        registry.register("lost_task", len)


def test_an_annotation_that_nothing_defines_is_an_error_when_loading_ends() -> None:
    with pytest.raises(TaskLoadError, match=r"DefinedNowhere.*TYPE_CHECKING"):
        waiting().complete()


# -- marks ---------------------------------------------------------------------------------------------------------


def test_task_marks_a_function_and_leaves_it_as_it_was() -> None:
    @task("mail/send")
    def send(payload: int) -> int:
        return payload + 1

    assert send(1) == 2


def test_task_works_bare() -> None:
    @task
    def send(payload: int) -> int:
        return payload + 1

    assert send(1) == 2


def test_a_mark_with_a_bad_identifier_is_rejected_where_it_stands() -> None:
    with pytest.raises(TaskLoadError, match="129 characters"):
        task("x" * 129)


def test_a_function_that_takes_no_attributes_is_decorated_too() -> None:
    length = task("length", timeout=5)(len)
    registry = TaskRegistry()
    registry.register("length", length)
    found = registry.get("length")

    assert length([1, 2]) == 2
    assert found is not None
    assert found.timeout == timedelta(seconds=5)


def test_what_takes_no_attributes_cannot_be_scheduled() -> None:
    with pytest.raises(TaskLoadError, match="put @cron above its @task"):
        cron("0 8 * * *")(len)


def test_schedules_are_recorded_in_the_order_they_are_written() -> None:
    registry = TaskRegistry()

    @cron("0 8 * * *", fill="1d")
    @registry.task("report")
    @cron("0 20 * * 5")
    def report(payload: Any) -> None: ...

    assert registry.crontab_sources == (("report", "0 8 * * *", {"fill": "1d"}), ("report", "0 20 * * 5", {}))


def test_a_partial_can_be_registered() -> None:
    registry = TaskRegistry()
    seen: list[Any] = []
    registry.register("mail", partial(lambda where, payload: seen.append((where, payload)), "home"))
    found = registry.get("mail")
    job = a_job([1])

    assert found is not None
    assert isinstance(attempt(found, job), Completed)
    assert seen == [("home", [1])]
