"""One message at a time, charts that separate nothing from unknown, and signs that mean one thing."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest
from console_fixture import Console, run
from support.console_queue import START
from textual import events
from textual.app import App, ComposeResult

from gw_tui.screens.overview import next_due
from gw_tui.widgets.bars import Bars
from gw_tui.widgets.themes import FALLBACK

PERIOD = re.compile(r"[ (](\d+h|\d+m(\d\ds)?|[\d.]+s|1 h|1 min)\)? *$")
"""How long a chart looks back, at the end of its title."""


@pytest.mark.once
@pytest.mark.parametrize("place", ["overview", "tasks"])
def test_every_chart_names_its_period_at_every_width(place: str) -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.app.answer is not None)
        for width in (60, 80, 100, 120, 140, 160, 200):
            await console.pilot.resize_terminal(width, 34)
            await console.until(lambda: all(PERIOD.search(title) for title in titles(console)))
            assert titles(console)

    def titles(console: Console) -> list[str]:
        charts = [each for each in console.app.screen.query(Bars) if each.size.width]
        return [each.render_line(0).text for each in charts]

    run(scenario, screen=place)


def test_one_message_is_shown_and_covers_no_row() -> None:
    async def scenario(console: Console) -> None:
        for number in range(3):
            console.app.notify(f"message {number}", timeout=600)
        await console.shows("message 2")
        await console.until(lambda: len(console.app.screen.query("Toast")) == 1)
        assert "message 2" in console.text.splitlines()[-1]
        assert "message 1" not in console.text

    run(scenario)


class Chart(App[None]):
    """Shows one chart."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(FALLBACK)

    def compose(self) -> ComposeResult:
        yield Bars("done", str)


def lines_of(values: list[float | None], *, height: int, step: int = 1) -> list[str]:
    async def inside() -> list[str]:
        app = Chart()
        async with app.run_test(size=(40, height)) as pilot:
            chart = app.query_one(Bars)
            chart.draw(values, "1 min", step)
            await pilot.pause()
            return [chart.render_line(y).text for y in range(height)]

    return asyncio.run(inside())


def test_a_chart_separates_zero_from_unknown_and_has_times() -> None:
    shown = lines_of([None] * 10 + [0.0] * 10 + [5.0] * 20, height=8, step=10)

    assert shown[-2] == "  0 " + "·" * 6 + "⣀" * 10 + "⡇" + " " * 19
    assert shown[1] == "5.0 " + " " * 16 + "⡏" + "⠉" * 19
    assert shown[-1].split() == ["-6m", "-3m", "now"]


def test_a_low_chart_has_no_line_for_times() -> None:
    assert lines_of([0.0] * 40, height=3)[-1] == "⣀" * 40


def test_without_blur_the_pace_stays() -> None:
    async def scenario(console: Console) -> None:
        console.app.post_message(events.AppBlur())
        await console.pilot.pause(0.6)
        assert "unfocused" not in console.text

    run(scenario, size=(120, 34), pause_unfocused=False)


@pytest.mark.parametrize(
    ("options", "badge", "is_red"),
    [
        pytest.param({"context": "prod-eu"}, "PROD-EU", True, id="a database"),
        pytest.param({"environment": "production", "context": "eu"}, "PRODUCTION", True, id="an environment"),
        pytest.param({"environment": "staging", "context": "eu"}, "STAGING", False, id="not production"),
    ],
)
def test_the_badge_of_production_is_red(options: dict[str, Any], badge: str, is_red: bool) -> None:
    async def scenario(console: Console) -> None:
        await console.shows(badge)
        styles = [str(part.style) for strip in console.strips for part in strip if badge in part.text]
        error = console.app.get_css_variables()["error"].lower()
        assert any(error in style.lower() for style in styles) is is_red

    run(scenario, size=(120, 34), **options)


def test_a_job_that_is_due_this_second_is_due_now() -> None:
    assert next_due(START + timedelta(milliseconds=40), START) == "next due now"
    assert next_due(START + timedelta(seconds=13), START) == "next due in 13s"
    assert next_due(None, START) == "none scheduled"


def test_a_click_on_a_tile_lists_its_jobs_and_one_on_the_filter_edits_it() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.app.screen.query("Tile"))
        await console.pilot.click("#failed")
        screen = await console.reach("jobs")
        await console.shows("state:failed")
        await console.pilot.click("FilterBar")
        await console.until(lambda: screen.query_one("FilterBar").is_editing)

    run(scenario, screen="overview", size=(120, 34))


def test_the_command_line_shows_the_keys_of_commands() -> None:
    async def scenario(console: Console) -> None:
        await console.press("ctrl+p")
        await console.reach("CommandLine")
        await console.press(*"retry")
        await console.shows("r       Retry: Retry the job now")

    run(scenario, size=(120, 34), filter="state:failed")


def test_columns_are_as_wide_as_their_contents_and_the_error_gets_the_rest() -> None:
    async def scenario(console: Console) -> None:
        table = console.table("#jobs")
        await console.until(lambda: table.keys)
        assert table.widths["state"] == len("✖ failed")
        assert table.widths["attempts"] <= len("25/25")
        assert table.widths["error"] > 50

    run(scenario, size=(120, 34), filter="state:failed")


@pytest.mark.parametrize("environment", ["production", "staging"])
def test_the_environment_stands_out_without_colours(environment: str) -> None:
    async def scenario(console: Console) -> None:
        segments = [segment for strip in console.strips for segment in strip]
        badge = next(each for each in segments if environment.upper() in each.text)
        assert badge.style is not None
        assert badge.style.reverse

    run(scenario, environment=environment, colour=False)
