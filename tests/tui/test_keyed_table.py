"""A table whose highlighted row changes only on request."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from gw_tui.widgets.keyed_table import SETTLING, KeyedTable
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow
from gw_tui.widgets.themes import FALLBACK

COLUMNS = (TableColumn("id", "id", 5, right=True), TableColumn("text", "text"), TableColumn("more", "more", 10, rank=1))
HOSTILE = "\x1b]52;c;aGk=\x07\u202e[red]x[/red]\x9b31m"
Scenario = Callable[[Pilot[None], KeyedTable], Awaitable[None]]


class Clock:
    """Seconds that the test advances."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Host(App[None]):
    """Shows one table."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self.messages: list[object] = []
        self._clock = clock

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(FALLBACK)

    def compose(self) -> ComposeResult:
        yield KeyedTable(COLUMNS, empty="none", clock=self._clock)

    def on_keyed_table_opened(self, message: KeyedTable.Opened) -> None:
        self.messages.append(("opened", message.table.highlighted))

    def on_keyed_table_waiting(self, message: KeyedTable.Waiting) -> None:
        self.messages.append(("waiting", message.table.waiting))


def play(scenario: Scenario, *, size: tuple[int, int] = (60, 12), clock: Callable[[], float] | None = None) -> None:
    async def inside() -> None:
        app = Host(clock or Clock())
        async with app.run_test(size=size) as pilot:
            await scenario(pilot, app.query_one(KeyedTable))

    asyncio.run(inside())


def rows(keys: list[int] | range | str) -> list[TableRow]:
    return [TableRow(str(key), {"id": str(key), "text": f"row {key}", "more": Cell("m", "quiet")}) for key in keys]


def lines(table: KeyedTable) -> list[str]:
    return [table.render_line(y).text.rstrip() for y in range(table.size.height)]


def place_on_screen(table: KeyedTable) -> int:
    assert table.highlighted is not None
    return table.keys.index(table.highlighted) - table.scroll_offset.y


def test_the_highlighted_row_stays_over_300_random_refreshes() -> None:
    clock = Clock()
    chance = random.Random(5)

    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        pool = list(range(400))
        keys = chance.sample(pool, 150)
        table.apply(rows(keys))
        await pilot.press(*["down"] * 25)
        highlighted = table.highlighted
        for number in range(300):
            keys = [key for key in keys if chance.random() > 0.1]
            keys += chance.sample(sorted(set(pool) - set(keys)), min(20, 190 - len(keys)))
            if number % 3 == 0:
                chance.shuffle(keys)
            clock.now += chance.choice((0.2, 1.0, SETTLING + 1))
            before = place_on_screen(table)
            table.apply(rows(keys))
            assert table.highlighted == highlighted
            at_an_end = table.scroll_offset.y in (0, table.max_scroll_y)
            assert place_on_screen(table) == before or at_an_end
        await pilot.pause()
        assert f"row {highlighted}" in lines(table)[1 + place_on_screen(table)]

    play(scenario, clock=clock)


def test_rows_keep_their_place_for_a_while_after_the_cursor_moved() -> None:
    clock = Clock()

    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(5)))
        await pilot.press("down")
        table.apply(rows([9, 1, 0]))
        await pilot.pause()

        assert table.keys == tuple("01234")
        assert table.is_gone("2")
        assert "gone" in lines(table)[3]
        assert pilot.app.messages[-1][0] == "waiting"

        clock.now += SETTLING + 0.1
        table.apply(rows([9, 1, 0]))
        assert table.keys == tuple("910")
        assert table.waiting == 0

    play(scenario, clock=clock)


def test_marks_hold_rows_until_they_are_released() -> None:
    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(3)))
        table.marks.add("2")
        table.apply(rows([7, 8, 2]))
        assert table.keys == tuple("012")
        assert table.waiting > 0

        table.release()
        assert table.keys == ("0", "7", "8", "2")
        assert table.is_gone("0")
        assert lines(table)[4].startswith("◆")

    play(scenario)


def test_a_row_that_is_gone_goes_once_the_cursor_has_left_it() -> None:
    clock = Clock()

    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(3)))
        table.apply(rows([1, 2]))
        assert table.keys == tuple("012")
        await pilot.press("down")
        clock.now += SETTLING + 1
        table.apply(rows([1, 2]))
        assert table.keys == tuple("12")

    play(scenario, clock=clock)


def test_another_list_begins_at_its_top() -> None:
    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(50)))
        await pilot.press("end")
        table.replace(rows(range(30, 60)))

        assert (table.highlighted, table.scroll_offset.y) == ("30", 0)

    play(scenario)


def test_the_cursor_moves_by_keys_and_is_never_out_of_sight() -> None:
    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(50)))
        for keys, expected in ((["down"] * 30, "30"), (["pageup"], "20"), (["g"], "0"), (["G"], "49"), (["k"], "48")):
            await pilot.press(*keys)
            assert table.highlighted == expected
            assert 0 <= place_on_screen(table) < table.size.height - 1

    play(scenario)


def test_the_mouse_moves_the_cursor_and_opens_with_two_clicks() -> None:
    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(5)))
        await pilot.click(table, offset=(5, 3))
        assert table.highlighted == "2"
        await pilot.click(table, offset=(5, 4), times=2)
        await pilot.pause()
        assert ("opened", "3") in pilot.app.messages

    play(scenario)


def test_a_narrow_table_leaves_out_what_matters_least() -> None:
    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(3)))
        assert "more" in lines(table)[0]
        await pilot.resize_terminal(18, 12)
        await pilot.pause()
        assert "more" not in lines(table)[0]
        assert "text" in lines(table)[0]
        assert all(len(line) <= 20 for line in lines(table))

    play(scenario)


@pytest.mark.parametrize("width", [60, 90, 120, 200, 300])
def test_no_column_is_cut_while_there_is_room(width: int) -> None:
    """The contents are those of history at their longest: ids of workers, and long errors in few of the rows."""
    columns = (
        TableColumn("id", "id", 9, right=True),
        TableColumn("key", "key", 10),
        TableColumn("worker", "worker", least=8),
        TableColumn("error", "error", least=20, share=3),
    )
    whole = {"id": "123456", "key": "welcome:123456", "worker": "gw-app-1-4711-239e39"}
    found = [TableRow(str(number), {**whole, "error": "x" * 100 if number == 2 else ""}) for number in range(3)]

    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        await pilot.resize_terminal(width, 12)
        table.set_columns(columns)
        table.apply(found)
        await pilot.pause()
        used = 2 + sum(size + 1 for size in table.widths.values())
        needed = {**{name: len(text) for name, text in whole.items()}, "error": 100}
        cut = {name for name, size in table.widths.items() if size < needed[name]}
        assert not cut or used >= table.size.width
        assert "worker" not in cut or width < 90

    play(scenario)


def test_what_is_in_the_data_is_shown_and_never_obeyed() -> None:
    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply([TableRow(HOSTILE, {"id": HOSTILE, "text": Cell(HOSTILE, "failed")})])

        assert table.highlighted == HOSTILE
        assert "␛]52;c;aGk=␇\ufffd[red]x[/red]\ufffd31m" in lines(table)[1]

    play(scenario)


def test_an_empty_table_says_so_and_an_unanswered_one_says_nothing() -> None:
    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        assert "none" not in "".join(lines(table))
        table.apply([])
        assert lines(table)[1].strip() == "none"
        assert table.highlighted is None
        table.apply(rows([4]))
        assert table.highlighted == "4"

    play(scenario)


def test_rows_that_arrive_on_top_are_visible_until_the_cursor_is_moved() -> None:
    clock = Clock()

    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(50, 80)))
        await pilot.pause()
        clock.now += SETTLING + 1
        table.apply(rows([1, *range(50, 80)]))
        await pilot.pause()
        assert "row 1" in lines(table)[1]
        assert (table.highlighted, table.shows_highlighted) == ("50", True)

        table.apply(rows(range(1, 80)))
        await pilot.pause()
        assert "row 1" in lines(table)[1]
        assert (table.highlighted, table.shows_highlighted) == ("50", False)

    play(scenario, clock=clock)


def test_the_head_says_how_many_rows_are_above() -> None:
    clock = Clock()

    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(50, 80)))
        await pilot.press("down")
        assert "above" not in lines(table)[0]
        clock.now += SETTLING + 1
        table.apply(rows(range(43, 80)))
        await pilot.pause()
        assert "\u2191 7 above" in lines(table)[0]
        await pilot.press("home")
        assert "above" not in lines(table)[0]

    play(scenario, clock=clock)


def test_what_an_empty_list_says_is_drawn_once() -> None:
    async def scenario(pilot: Pilot[None], table: KeyedTable) -> None:
        table.apply(rows(range(5)))
        await pilot.pause()
        drawn: list[object] = []
        table.refresh = lambda *regions, **_: drawn.append(regions)  # type: ignore[method-assign,assignment,return-value]
        for _ in range(10):
            table.say_when_empty("No jobs")
        assert len(drawn) == 1

    play(scenario)


def test_a_table_thatstarts_first_keeps_the_cursor_on_the_first_row_until_it_is_moved() -> None:
    clock = Clock()

    async def scenario(_: Pilot[None], table: KeyedTable) -> None:
        table.starts_first = True
        table.apply(rows("c"))
        table.apply(rows("abc"))
        assert (table.highlighted, table.keys) == ("a", ("a", "b", "c"))
        table.action_move(1)
        clock.now += SETTLING + 1
        table.apply(rows("xabc"))
        assert table.highlighted == "b"

    play(scenario, clock=clock)
