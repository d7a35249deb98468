"""The tasks: what each does, in the order of any column."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from console_fixture import ClientSource, Console, run, search_of
from support.console_source import QueueSource

from gw_core import JobState


def cell(console: Console, task: str, column: str) -> str:
    found = console.table("#tasks").shown_rows[task].cells[column]
    return getattr(found, "text", found)


def number(text: str) -> float:
    return float(text.replace(",", "") or 0)


def test_every_task_is_counted_by_state() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#tasks").keys)
        states = Counter((each.job.task, str(each.state)) for each in console.source.queue.states())
        for task in console.table("#tasks").keys:
            for state in JobState:
                assert number(cell(console, task, state)) == states[task, state], (task, state)

    run(scenario, screen="tasks", size=(120, 34))


def test_each_key_sorts_by_the_next_column_the_largest_first() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#tasks").keys)
        await console.press("s")
        for column in ("ready", "running", "scheduled", "waiting", "backoff", "failed"):
            await console.press("s")
            values = [number(cell(console, task, column)) for task in console.table("#tasks").keys]
            assert values == sorted(values, reverse=True), column

    run(scenario, screen="tasks", size=(120, 34))


def test_enter_lists_the_jobs_of_a_task() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#tasks").keys)
        task = console.table("#tasks").keys[1]
        await console.press("down", "enter")
        screen = await console.reach("jobs")
        await console.until(lambda: search_of(screen).jobs)
        assert {each.job.task for each in search_of(screen).jobs} == {task}

    run(scenario, screen="tasks")


def test_the_charts_take_the_height_that_the_list_leaves() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#tasks").keys)
        table, charts = console.table("#tasks"), console.app.screen.query_one("#task-runs")
        await console.until(lambda: charts.region.y == table.region.bottom)
        assert table.region.height == len(table.keys) + 1
        assert charts.region.bottom == 23

    run(scenario, screen="tasks")


class SlowSource(QueueSource):
    """A queue whose rates are read when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def answer(self, key: str, query: Callable[[ClientSource], Any]) -> Any:
        if key.startswith("runs"):
            self.may_answer.wait(30)
        return super().answer(key, query)


def test_the_charts_of_a_task_load_until_they_are_read() -> None:
    source = SlowSource()

    async def scenario(console: Console) -> None:
        await console.shows("last hour: ")
        source.may_answer.clear()
        await console.press("down")
        await console.shows("done loading… (1h)")
        assert "done unknown" not in console.text
        source.may_answer.set()
        await console.until(lambda: "loading…" not in console.text)

    run(scenario, source=source, screen="tasks", size=(120, 34))
