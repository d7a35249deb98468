"""Columns and orders that the operator chooses: by keys, by the mouse, in the chooser; they survive a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from console_fixture import Console, of_all, run
from support.console_source import QueueSource

from gw_tui.rules.preferences import Preferences, TableChoice, TableSort

WIDE = (120, 34)
LISTS = of_all("jobs", "tasks", "locks", others=("queues", "workers", "cron", "events", "errors", "history"))


def front(console: Console) -> Any:
    return console.app.screen


def rows(console: Console, column: str) -> list[str]:
    """Return the texts of a column, from the top."""
    table = front(console).table
    return [getattr(cell, "text", cell) for key in table.keys for cell in [table.shown_rows[key].cells[column]]]


def titles(console: Console) -> list[str]:
    return list(front(console).table.widths)


async def filled(console: Console) -> Any:
    screen = front(console)
    await console.until(lambda: screen.table.keys)
    await console.pilot.pause()
    return screen


async def chooser(console: Console) -> Any:
    await console.press("o")
    return await console.reach("ChooseColumns")


def test_columns_of_every_list_are_chosen_and_kept_for_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "gw" / "console.json"

    async def visit(console: Console, screen: str) -> Any:
        console.app.visit(screen)
        await console.reach(screen)
        return await filled(console)

    async def choose(console: Console) -> None:
        for screen in LISTS:
            await visit(console, screen)
            before = titles(console)
            await chooser(console)
            await console.press("space", "down", "s", "enter")
            await console.reach(screen)
            await console.until(lambda before=before: before[0] not in titles(console))
            await console.until(lambda screen=screen: path.exists() and screen in path.read_text())

    async def again(console: Console) -> None:
        stored = json.loads(path.read_text())["screens"]
        for screen in LISTS:
            found = await visit(console, screen)
            assert titles(console)[0] == found.choice.columns[0] == stored[screen]["columns"][0]
            assert found.table.sort is not None
            assert str(found.table.sort) == stored[screen]["sort"]

    run(choose, screen=LISTS[0], size=WIDE, preferences=Preferences(path=path))
    run(again, screen=LISTS[0], size=WIDE, preferences=Preferences(path=path))


def test_a_click_on_a_title_sorts_then_reverses_then_restores() -> None:
    async def scenario(console: Console) -> None:
        screen = await filled(console)
        before = rows(console, "task")
        x = 2 + sum(screen.table.widths[each] + 1 for each in titles(console)[:1]) + 1
        seen = []
        for _ in range(3):
            await console.pilot.click("#tasks", offset=(x, 0))
            await console.pilot.pause()
            seen.append([int(each.replace(",", "")) for each in rows(console, "ready")])
        assert seen[0] == sorted(seen[0], reverse=True)
        assert seen[1] == sorted(seen[1])
        assert rows(console, "task") == before

    run(scenario, screen="tasks", size=WIDE)


def test_keys_sort_by_each_column_and_reverse() -> None:
    async def scenario(console: Console) -> None:
        await filled(console)
        await console.press("s")
        down = rows(console, "task")
        await console.press("i")
        assert rows(console, "task") == down[::-1]
        assert "by task ↓" in console.text
        for _ in titles(console):
            await console.press("s")
        await console.press("i")
        await console.notified("Sort by a column first")

    run(scenario, screen="tasks", size=WIDE)


def test_durations_sort_by_their_length() -> None:
    async def scenario(console: Console) -> None:
        screen = await filled(console)
        screen.use_choice(TableChoice(sort=TableSort("heartbeat", is_descending=True)))
        shown = [row.cells["heartbeat"] for key in screen.table.keys for row in [screen.table.shown_rows[key]]]
        ages = [each.value for each in shown if not isinstance(each, str) and each.value is not None]
        assert len(ages) > 1
        assert ages == sorted(ages, reverse=True)

    run(scenario, screen="workers", size=WIDE)


def test_newest_first_is_remembered_and_other_orders_sort_the_page(tmp_path: Path) -> None:
    path = tmp_path / "console.json"
    path.write_text('{"screens": {"jobs": {"sort": "id desc"}}}')

    async def scenario(console: Console) -> None:
        screen = console.screen("jobs")
        newest = sorted(console.source.queue.by_id, reverse=True)
        await console.until(lambda: screen.table.keys == tuple(map(str, newest[:100])))
        assert "newest first" in console.text
        screen.take_filter("state:failed")
        await console.searched("state:failed")
        assert "page by id ↓" in console.text
        await console.press("i")
        assert "page by id ↑" in console.text
        assert screen.table.keys == tuple(sorted(screen.table.keys, key=int))

    run(scenario, preferences=Preferences(path=path))


def test_the_chooser_of_jobs_says_what_an_index_sorts() -> None:
    async def scenario(console: Console) -> None:
        await filled(console)
        await chooser(console)
        assert "over all pages" in console.text
        await console.press("escape")
        await console.reach("jobs")

    run(scenario)


def test_columns_are_moved_and_restored() -> None:
    async def scenario(console: Console) -> None:
        await filled(console)
        before = titles(console)
        await chooser(console)
        await console.press("J", "enter")
        await console.until(lambda: titles(console)[:2] == before[1::-1])
        await chooser(console)
        await console.press("d")
        await console.until(lambda: titles(console) == before)

    run(scenario, screen="tasks", size=WIDE)


def test_a_sort_alone_leaves_the_columns_to_the_width() -> None:
    async def scenario(console: Console) -> None:
        screen = await filled(console)
        await chooser(console)
        await console.press("s", "enter")
        await console.until(lambda: screen.choice.sort is not None)
        assert screen.choice.columns == ()

    run(scenario)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"screens": 3}', '{"screens": {"tasks": [1]}}', "[" * 5_000),
        '{"screens": {"tasks": {"columns": "task", "sort": "moon down"}}}',
    ],
)
def test_a_damaged_file_holds_no_choice_and_is_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "console.json"
    path.write_text(text)
    choices = Preferences(path=path)
    assert choices.choice("tasks") == TableChoice()
    choices.choose("tasks", TableChoice(("task",)))
    choices.write("tasks")
    assert Preferences(path=path).choice("tasks").columns == ("task",)


def test_columns_that_no_list_has_are_ignored_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "console.json"
    path.write_text('{"screens": {"tasks": {"columns": [1, "moon"], "sort": "moon desc"}}}')

    async def scenario(console: Console) -> None:
        screen = await filled(console)
        assert (screen.choice, len(titles(console))) == (TableChoice(), 11)
        await console.press("s")
        await console.until(lambda: "task asc" in path.read_text())

    run(scenario, source=QueueSource(), screen="tasks", size=WIDE, preferences=Preferences(path=path))


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "gw").write_text("")

    async def scenario(console: Console) -> None:
        await filled(console)
        await console.press("s")
        await console.until(lambda: any("remembered" in each.words for each in console.state.journal))

    run(scenario, screen="tasks", preferences=Preferences(path=tmp_path / "gw" / "console.json"))


def test_two_consoles_keep_each_others_choices(tmp_path: Path) -> None:
    path = tmp_path / "console.json"
    one, other = Preferences(path=path), Preferences(path=path)
    one.choose("jobs", TableChoice(("id",)))
    one.write("jobs")
    other.choose("tasks", TableChoice(("task",)))
    other.write("tasks")
    assert [Preferences(path=path).choice(each).columns for each in ("jobs", "tasks")] == [("id",), ("task",)]
