"""The operator's own editor for a payload, in a real terminal."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from terminal import Terminal, console

from gw_tui.dialogs.add import edited

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

ON, OFF = b"\x1b[?1049h", b"\x1b[?1049l"

Editor = Callable[[str], str]


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    """Make an editor of a few lines of shell; the file to edit is its first argument."""

    def made(lines: str) -> str:
        path = tmp_path / "editor"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return made


@pytest.fixture
def start(database_url: str) -> Iterator[Callable[[str], Terminal]]:
    """Start the console with this editor, and open the form for a job."""
    started: list[Terminal] = []

    def starting(command: str) -> Terminal:
        terminal = Terminal(
            console("--connection", database_url, "--screen", "jobs", "--no-mouse"), EDITOR=command, VISUAL=""
        )
        started.append(terminal)
        terminal.until("LIVE")
        terminal.type("a")
        terminal.until("Add a job")
        return terminal

    yield starting
    for each in started:
        each.close()


def is_on_screen(terminal: Terminal) -> bool:
    """Return whether the console has the screen."""
    return terminal.output.rindex(ON) > terminal.output.rindex(OFF)


def test_the_editor_has_the_terminal_and_what_it_wrote_stands_in_the_form(
    start: Callable[[str], Terminal], editor: Editor
) -> None:
    terminal = start(editor('echo "EDITING $(cat $1)"; printf \'{"from": "the editor"}\\n\' > "$1"'))
    terminal.output = b""
    terminal.type("\x05")
    terminal.until("EDITING {}")
    terminal.until(ON.decode())

    # The screen is released before the editor writes; afterwards everything is redrawn, also what is behind.
    assert terminal.output.index(OFF) < terminal.output.index(b"EDITING") < terminal.output.index(ON)
    terminal.output = terminal.output.partition(ON)[2]
    for words in ("Add a job", "Max attempts", "the editor", "Cancel", "Overview"):
        terminal.until(words)


def test_an_editor_that_was_set_to_keep_nothing_changes_nothing(
    start: Callable[[str], Terminal], editor: Editor
) -> None:
    terminal = start(editor('printf gone > "$1"; exit 1'))
    terminal.type("\x05")
    terminal.until("Payload unchanged: editor ended with 1")

    assert b"gone" not in terminal.output
    assert is_on_screen(terminal)


def test_an_editor_that_is_not_there_is_said_to_be_missing(start: Callable[[str], Terminal]) -> None:
    terminal = start("/nowhere/editor --wait")
    terminal.type("\x05")
    terminal.until("Payload unchanged: ")

    assert is_on_screen(terminal)


def test_an_editor_may_have_options_and_leave_any_text(monkeypatch: pytest.MonkeyPatch, editor: Editor) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{editor('printf %s/%s $1 $(cat $2) > $2')} --wait")

    assert edited("text") == "--wait/text"


@pytest.mark.parametrize(
    ("lines", "words"),
    [("printf '\\377' > $1", "codec can't decode"), ("exit 3", "ended with 3")],
    ids=["bytes", "code"],
)
def test_what_an_editor_leaves_that_is_no_text_is_rejected(
    monkeypatch: pytest.MonkeyPatch, editor: Editor, lines: str, words: str
) -> None:
    monkeypatch.setenv("VISUAL", editor(lines))

    with pytest.raises(ValueError, match=words):
        edited("text")
