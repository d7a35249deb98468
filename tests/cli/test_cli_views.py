"""Saved views in `gw.toml`: what the command line checks of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_program import CliProgram


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CliProgram:
    return CliProgram(capsys, monkeypatch)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("", "view 1: the key name is missing"),
        ('name = "a"\nscreen = "moon"', "view 1: the screen 'moon' is unknown"),
        ('name = "a"\nselection = "state:moon"', "view 1: selection: "),
        ('name = "a"\nscreen = "history"\nselection = "priority:3"', "view 1: selection: "),
        ('name = "a"\nfilter = "x"', "the key 'filter' is unknown; valid keys are name, screen"),
        ('name = "a"\ncolumns = "id"', "columns must be a list of texts"),
        ('name = "a"\n[[tui.views]]\nname = "a"', "view 2: the name 'a' appears twice"),
    ],
)
def test_a_wrong_view_is_rejected_with_its_place(program: CliProgram, tmp_path: Path, view: str, words: str) -> None:
    (tmp_path / "gw.toml").write_text(f"[[tui.views]]\n{view}\n")
    result = program("config", "show", "--config", str(tmp_path / "gw.toml"))
    assert result.code == 2
    assert words in result.err


def test_config_show_names_the_views(program: CliProgram, tmp_path: Path) -> None:
    (tmp_path / "gw.toml").write_text('[[tui.views]]\nname = "stuck mail"\nselection = "task:mail state:failed"\n')
    assert "tui.views\tstuck mail\tfile" in program("config", "show", "--config", str(tmp_path / "gw.toml")).out
