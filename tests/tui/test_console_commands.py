"""The table of commands: complete, without clashes, and what everything else is made of."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gw_tui.app import ConsoleApp, screen_of
from gw_tui.rules.commands import (
    BY_ID,
    COMMANDS,
    JOB,
    SCREEN_BY_ID,
    SCREENS,
    CommandContext,
    Requirement,
    Risk,
    known_on,
    with_keys,
)
from gw_tui.screens.job import JobScreen

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "console.md"
IDLE = CommandContext(is_live=True)


def test_every_command_explains_itself() -> None:
    assert len(BY_ID) == len(COMMANDS)
    for command in COMMANDS:
        assert command.keys or command.is_everywhere, command.id  # what has no key is found by `:`
        assert command.label[0].isupper(), command.id
        assert command.help[0].isupper(), command.id
        assert command.help.endswith("."), command.id
        assert command.on <= {*SCREEN_BY_ID, JOB}, command.id


@pytest.mark.parametrize("screen", [*SCREEN_BY_ID, JOB])
def test_no_key_means_two_things_on_a_screen(screen: str) -> None:
    keys = [key for command in known_on(screen) for key in command.keys if command.id != "reconnect"]

    assert len(keys) == len(set(keys))


def test_every_place_is_reached_by_its_number() -> None:
    assert [place.key for place in SCREENS] == [str(number % 10) for number in range(1, len(SCREENS) + 1)]
    assert all(BY_ID[f"go_{place.id}"].keys == [place.key] for place in SCREENS)


def test_the_manual_names_every_screen_with_its_key_and_words() -> None:
    page = PAGE.read_text("utf-8")

    assert re.findall(r"^\| `(\d)` \| (\w+) \| (.+) \|$", page, re.MULTILINE) == [
        (place.key, place.title, place.help) for place in SCREENS
    ]


def every_screen() -> Mapping[str, type]:
    return {JOB: JobScreen, **{place.id: type(screen_of(place)) for place in SCREENS}}


def test_every_command_of_every_screen_has_its_action() -> None:
    screens = every_screen()
    missing = [
        (command.id, screen)
        for command in COMMANDS
        for screen in command.on
        if not callable(getattr(screens[screen], f"action_{command.id}", None))
    ]
    everywhere = [each.id for each in COMMANDS if each.is_everywhere and not each.id.startswith("go_")]

    assert missing == []
    assert [each for each in everywhere if not callable(getattr(ConsoleApp, f"action_{each}", None))] == []


def test_a_screen_that_cannot_be_imported_raises_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    (cron,) = (place for place in SCREENS if place.id == "cron")
    monkeypatch.setitem(sys.modules, f"gw_tui.screens.{cron.id}", None)

    with pytest.raises(ImportError, match=cron.id):
        screen_of(cron)


# -- when a command is possible ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [each.id for each in COMMANDS if each.risk is not Risk.NONE])
def test_acts_wait_while_the_database_is_away_and_are_not_offered_read_only(name: str) -> None:
    command = BY_ID[name]

    assert command.possible(CommandContext(is_live=True, has_row=True)) is True
    assert command.possible(CommandContext(is_live=False, has_row=True)) is None
    assert command.possible(CommandContext(is_live=True, is_read_only=True, has_row=True)) is False


@pytest.mark.parametrize("name", [each.id for each in COMMANDS if each.needs is Requirement.ROW])
def test_what_needs_a_row_waits_for_one(name: str) -> None:
    assert BY_ID[name].possible(IDLE) is None


def test_trying_again_is_offered_only_after_a_failure() -> None:
    assert BY_ID["reconnect"].possible(IDLE) is False
    assert BY_ID["reconnect"].possible(CommandContext(is_live=False, is_down=True)) is True


def test_waiting_changes_are_offered_when_there_are_any() -> None:
    assert BY_ID["show_changes"].possible(IDLE) is False
    assert BY_ID["show_changes"].possible(CommandContext(has_changes=True)) is True


@pytest.mark.parametrize("name", ["export", "write", "screenshot", "suspend"])
def test_a_browser_can_neither_write_files_nor_reach_the_shell(name: str) -> None:
    assert BY_ID[name].possible(CommandContext(has_row=True)) is True
    assert BY_ID[name].possible(CommandContext(has_row=True, is_served=True)) is False


# -- keys of one's own -------------------------------------------------------------------------------------------------


def test_a_command_can_have_other_keys() -> None:
    keys = with_keys({"quit": ("Q", "ctrl+c")})

    assert keys["quit"] == ("Q", "ctrl+c")
    assert keys["help"] == BY_ID["help"].keys


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        pytest.param({"explode": ["e"]}, "unknown command 'explode'; commands are go_overview", id="no such command"),
        pytest.param({"fail": ["r"]}, "'r' is assigned to both retry and fail on screen jobs", id="taken on a screen"),
        pytest.param({"quit": ["?"]}, "'?' is assigned to both help and quit", id="taken everywhere"),
    ],
)
def test_keys_that_cannot_be_are_rejected(chosen: dict[str, list[str]], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        with_keys(chosen)
