"""The program in a real terminal: a tmux server of its own, without a configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

DEADLINE = 90.0
SETTINGS = ("NO_COLOR", "TMUX", "DATABASE_URL", "PGDATABASE", "PGSERVICE")
"""Variables of the environment that would change what the console shows."""


class Pane:
    """A console in a tmux pane; it counts the keys that are pressed."""

    def __init__(self, arguments: Sequence[str], *, size: tuple[int, int], state: Path) -> None:
        if (tmux := shutil.which("tmux")) is None:
            pytest.skip("tmux is not installed")
        self._tmux = [tmux, "-L", f"gw-{uuid.uuid4().hex[:12]}", "-f", "/dev/null"]
        self.keys = 0
        width, height = map(str, size)
        program = [sys.executable, "-m", "gw_cli", "tui", *arguments]
        size_of = ("-x", width, "-y", height)
        # A server that starts on a busy machine may give a session its usual size.
        started = ("new-session", "-d", *size_of, *program, ";", "resize-window", *size_of)
        self._run(*started, environment={"XDG_STATE_HOME": str(state)})

    def _run(self, *arguments: str, environment: dict[str, str] | None = None) -> str:
        kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        settings = {**kept, "LANG": "C.UTF-8", "TERM": "xterm-256color", **(environment or {})}
        ran = subprocess.run([*self._tmux, *arguments], env=settings, capture_output=True, text=True, check=True)
        return ran.stdout

    @property
    def text(self) -> str:
        """What the terminal shows."""
        return self._run("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Press keys, named as tmux names them."""
        self.keys += len(keys)
        self._run("send-keys", *keys)

    def shows(self, *words: str) -> str:
        """Wait until the terminal shows all of these words."""
        end = time.monotonic() + DEADLINE
        while any(each not in (text := self.text) for each in words):
            assert time.monotonic() < end, f"it never showed {words}:\n{text}"
            time.sleep(0.1)
        return text

    def close(self) -> None:
        """End the program and its server."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)
