"""The program `gw`, run in the process of the test."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from gw_cli import (
    arguments as arguments,
    commands as commands,
    cpus as cpus,
    import_jobs as import_jobs,
    job_files as job_files,
    log_output as log_output,
    name_completion as name_completion,
    output as output,
    settings as settings,
    stderr as stderr,
)
from gw_cli.command import CommandInfo as CommandInfo
from gw_cli.commands import ENTRIES as ENTRIES, queues as queues, show as show, stats as stats, tasks as tasks
from gw_cli.exit_codes import ExitCode as ExitCode, NothingMatchedError as NothingMatchedError, verdict as verdict
from gw_cli.main import program as program
from gw_cli.output import Column as Column, JsonText as JsonText, json_text as json_text, to_json as to_json
from gw_cli.root import leaf_commands, root_command
from gw_cli.sanitize import indented as indented, quoted as quoted, visible as visible
from gw_cli.settings import config_file as config_file, resolve as resolve, table as table
from gw_cli.settings.config_file import ConfigFile as ConfigFile, find_config_file as find_config_file
from gw_cli.settings.table import (
    SETTINGS as SETTINGS,
    TUI_KEYS as TUI_KEYS,
    WORKER_FIELDS_WITHOUT_SETTING as WORKER_FIELDS_WITHOUT_SETTING,
    Setting as Setting,
)


def every_command() -> dict[str, Any]:
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
            code = program([str(each) for each in arguments])
        printed = self._capsys.readouterr()
        return CliResult(int(code), shown.getvalue() or printed.out, printed.err)
