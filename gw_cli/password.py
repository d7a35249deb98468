"""The password that a command prints, for servers whose passwords change."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from typing import Final

from gw_cli.settings import Configuration, table

SECONDS: Final = 30.0
"""How long the command may take."""


def password_source(configuration: Configuration) -> Callable[[], str] | None:
    """Return what runs the configured command and returns the first line it prints; None without a command."""
    command: str | None = configuration[table.PASSWORD_COMMAND]
    return None if command is None else lambda: _printed(command)


def _printed(command: str) -> str:
    words = shlex.split(command)
    done = subprocess.run(  # noqa: S603 - the command is the user's own setting
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True
    )
    return done.stdout.partition("\n")[0]
