"""Saved views of `gw.toml`: opened by a key, by a line and by a link; wrong ones are rejected at the start."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from console_fixture import Console, run, search_of
from support.cli_program import CliProgram
from test_command_line import entered

from gw_tui.rules.preferences import Preferences, SavedView, TableChoice, TableSort

TRIED = SavedView(
    screen="jobs",
    selection="state:failed,backoff",
    choice=TableChoice(("id", "task", "attempts"), TableSort("attempts", is_descending=True)),
)
BUSY = SavedView(screen="tasks", choice=TableChoice(sort=TableSort("ready", is_descending=True)))
VIEWS = {"often tried": TRIED, "busy": BUSY}


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CliProgram:
    return CliProgram(capsys, monkeypatch)


async def shows_tried(console: Console) -> None:
    await console.reach("jobs")
    screen = await console.searched("state:failed,backoff")
    assert list(screen.table.widths) == ["id", "task", "attempts"]
    tried = [search_of(screen).jobs]
    attempts = {str(each.job.id): each.job.attempts for jobs in tried for each in jobs}
    shown = [attempts[key] for key in screen.table.keys]
    assert shown == sorted(shown, reverse=True)
    assert len(set(shown)) > 1


def test_a_line_opens_a_view_and_its_name_is_completed(tmp_path: Path) -> None:
    async def scenario(console: Console) -> None:
        entry = await entered(console)
        await console.type("view moon")
        await console.press("enter")
        await console.shows("unknown view 'moon'; views are often tried, busy")
        entry.value = ""
        await console.type("view of")
        await console.press("tab")
        assert entry.value == "view often tried"
        await console.press("enter")
        await shows_tried(console)
        assert not (tmp_path / "console.json").exists()  # a view does not change what is remembered

    run(scenario, screen="overview", preferences=Preferences(views=VIEWS, path=tmp_path / "console.json"))


def test_a_key_lists_the_views() -> None:
    async def scenario(console: Console) -> None:
        await console.press("V")
        await console.shows("often tried  jobs state:failed,backoff by attempts desc")
        await console.press("down", "enter")
        screen = await console.reach("tasks")
        await console.until(lambda: screen.table.sort == BUSY.choice.sort)

    run(scenario, screen="overview", preferences=Preferences(views=VIEWS))


def test_without_views_the_key_says_where_they_are_written() -> None:
    async def scenario(console: Console) -> None:
        await console.press("V")
        await console.notified("[[tui.views]]")

    run(scenario, screen="overview")


def test_a_link_to_a_view_that_is_not_there_is_rejected(program: CliProgram) -> None:
    ended = program("tui", "--demo", "--once", "--open", "view/moon")

    assert ended.code == 2
    assert "unknown view 'moon'; gw.toml has none" in ended.err


@pytest.mark.parametrize(
    ("column", "words"),
    [
        pytest.param("moon", "view 'busy': unknown column 'moon'; columns are task, ready", id="a screen lacks it"),
        pytest.param("ready", "port", id="a column of the screen"),
    ],
)
def test_a_column_that_a_screen_lacks_is_rejected_at_the_start(
    program: CliProgram, tmp_path: Path, column: str, words: str
) -> None:
    file = tmp_path / "gw.toml"
    file.write_text(f'[[tui.views]]\nname = "busy"\nscreen = "tasks"\nsort = "{column} desc"\n')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = program("tui", "--config", file, "--demo", "--serve", "--port", taken.getsockname()[1])

    assert ended.code == 2
    assert words in ended.err
