"""The program on a terminal of its own, as bytes: what only a real terminal shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence

COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")
CODES = re.compile(rb"(?:^|;)(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;|$)")


# Only a controlling terminal signals its end.
CONTROLLED = (
    sys.executable,
    "-c",
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
)


class Terminal:
    """A process on a pseudo-terminal; `output` is all it ever wrote."""

    def __init__(
        self, command: Sequence[str], *, size: tuple[int, int] = (80, 24), controls: bool = True, **environment: str
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "DATABASE_URL", "TERM")}
        self.output = b""
        self.process = subprocess.Popen(
            [*CONTROLLED, *command] if controls else command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **environment},
        )
        os.close(slave)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read(self, seconds: float = 0.05) -> None:
        """Take what has been written."""
        while select.select([self._master], [], [], seconds)[0]:
            try:
                data = os.read(self._master, 65_536)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            self.output += data
            seconds = 0

    def until(self, words: str, *, deadline: float = 90.0) -> None:
        """Wait until the program has written these words without a break."""
        end = time.monotonic() + deadline
        while words.encode() not in self.output:
            assert time.monotonic() < end, f"it never wrote {words!r}: {self.output[-3000:]!r}"
            self.read()

    def ended(self, *, deadline: float = 90.0) -> int:
        """Wait for the end and return the exit code; negative is a signal's number."""
        end = time.monotonic() + deadline
        while (code := self.process.poll()) is None:
            assert time.monotonic() < end, f"it does not end: {self.output[-2000:]!r}"
            self.read()
        self.read(0.2)
        return code

    def hang_up(self) -> None:
        """Close the terminal, as a window that is closed."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)

    @property
    def modes(self) -> int:
        """What the terminal does with keys: echo them, collect them into lines."""
        return int(termios.tcgetattr(self._master)[3])

    @property
    def colours(self) -> list[bytes]:
        """Every sequence that sets a colour."""
        return [found for found in COLOUR.findall(self.output) if CODES.search(found[2:-1])]


def console(*arguments: str, **more: str) -> list[str]:
    """Return the command that starts the console."""
    return [sys.executable, "-m", "gw_cli", "tui", *arguments]
