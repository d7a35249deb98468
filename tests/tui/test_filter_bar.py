"""Typing a filter: errors are shown at their position, and keys complete terms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Button, Input, Static

from gw_core import Selection
from gw_core.selection import parse
from gw_tui.widgets.filter_bar import FilterBar

NAMES = {"tasks": ["send_email", "send_sms"], "queues": [], "workers": ["w\x1b[31m"]}


class Bar(App[None]):
    """A filter bar, and something else to focus."""

    def __init__(self, wanted: Selection) -> None:
        super().__init__()
        self.bar = FilterBar(wanted)
        self.messages: list[object] = []

    def compose(self) -> ComposeResult:
        yield self.bar
        yield Button("elsewhere")

    def on_filter_bar_submitted(self, event: FilterBar.Submitted) -> None:
        self.messages.append(event.wanted)

    def on_filter_bar_left(self, event: FilterBar.Left) -> None:
        self.messages.append("left")

    @property
    def hint(self) -> str:
        return str(self.bar.query_one("#hint", Static).content)

    @property
    def typed(self) -> str:
        return self.bar.query_one(Input).value


def run(scenario: Callable[[Bar, Pilot[None]], Awaitable[None]], text: str = "") -> None:
    async def inside() -> None:
        app = Bar(parse(text))
        async with app.run_test(size=(80, 24)) as pilot:
            app.bar.edit()
            app.bar.know(NAMES)
            await pilot.pause()
            await scenario(app, pilot)

    asyncio.run(inside())


def test_a_term_is_completed_by_tab_and_submitted_by_enter() -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        await pilot.press(*"ta", "tab", *"send", "down", "tab", "enter")
        assert app.messages == [parse("task:send_sms")]
        assert not app.bar.is_editing

    run(scenario)


def test_what_is_wrong_is_said_and_the_cursor_goes_there() -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        await pilot.press(*"task:a prio:x", "enter")
        assert app.messages == []
        assert app.bar.is_editing
        assert "'x' is not a whole number" in app.hint
        assert app.bar.query_one(Input).cursor_position == len("task:a prio:")

    run(scenario)


def test_a_reason_goes_below_its_mark_when_the_terminal_becomes_narrow() -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        await pilot.press(*"state:failed attempts:many")
        assert "^ 'many'" in app.hint
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert "^\n'many' is not a whole number" in app.hint

    run(scenario)


def test_the_cost_of_what_was_typed_is_said() -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        await pilot.press(*"error:refused")
        assert "reads long texts of many jobs" in app.hint

    run(scenario)


def test_a_term_is_added_to_the_filter_in_force() -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        await pilot.press(*"prio:0", "enter")
        assert app.messages == [parse("state:failed prio:0")]

    run(scenario, "state:failed")


def test_escape_leaves_the_filter_as_it_was() -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        await pilot.press(*"task:x", "escape")
        assert app.messages == ["left"]
        assert app.bar.wanted == parse("state:failed")
        assert not app.bar.is_editing

    run(scenario, "state:failed")


def test_typing_ends_when_something_else_is_focused() -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        await pilot.click(Button)
        await pilot.pause()
        assert app.messages == ["left"]
        assert not app.bar.is_editing

    run(scenario)


def test_names_from_the_database_steer_nothing() -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        await pilot.press(*"worker:")
        assert "worker:" in app.hint
        assert "\x1b" not in app.hint

    run(scenario)


@pytest.mark.parametrize("pasted", ["task:a\x1b[31m", "task:\x9bx"])
def test_pasted_controls_become_spaces(pasted: str) -> None:
    async def scenario(app: Bar, pilot: Pilot[None]) -> None:
        app.bar.query_one(Input).value = pasted
        await pilot.pause()
        assert app.typed.isprintable()

    run(scenario)
