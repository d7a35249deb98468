"""The program `gw`, run in the process of the test."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from gw_cli.command import leaf_commands
from gw_cli.commands import root_command
from gw_cli.main import program


@cache
def every_command() -> Mapping[str, Any]:
    """Return the commands without subcommands, by the words that call them."""
    return dict(leaf_commands(root_command()))


@dataclass(frozen=True, slots=True)
class CliResult:
    """How the program ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it wrote, read as JSON."""
        return json.loads(self.out)


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def run_program(arguments: Sequence[object]) -> int:
    """Run `gw` with these arguments in this process, and return its exit code."""
    return int(program([str(each) for each in arguments]))


class CliProgram:
    """`gw`, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(
        self, *arguments: object, typed: str | None = None, stdin: bytes | None = None, terminal: bool = False
    ) -> CliResult:
        """Run it to its end; `typed` is what a person at a terminal answers, with `terminal`, stdout is one."""
        shown = Terminal()
        with self._monkeypatch.context() as patch:
            if terminal:
                patch.setattr(sys, "stdout", shown)
            if typed is not None:
                patch.setattr(sys, "stdin", Terminal(typed))
                patch.setattr(sys.stderr, "isatty", lambda: True)
            if stdin is not None:
                patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            code = run_program(arguments)
        printed = self._capsys.readouterr()
        return CliResult(code, shown.getvalue() or printed.out, printed.err)
