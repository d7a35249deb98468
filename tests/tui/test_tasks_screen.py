"""The tasks: what each does, in the order of any column."""

from __future__ import annotations

from collections import Counter

from console_fixture import Console, run, search_of


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
            for state in ("ready", "running", "backoff", "failed"):
                assert number(cell(console, task, state)) == states[task, state], (task, state)

    run(scenario, screen="tasks", size=(120, 34))


def test_each_key_sorts_by_the_next_column_the_largest_first() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#tasks").keys)
        await console.press("s")
        for column in ("ready", "running", "scheduled", "backoff", "failed"):
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
