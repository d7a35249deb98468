"""Run the installed program as a process, and read what it left in the database."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psycopg
import pytest

from support.cli_program import run_program
from support.warm_program import (
    DEADLINE_SECONDS as DEADLINE_SECONDS,
    PROGRAM as PROGRAM,
    CliResult as CliResult,
    run_gw,
)

WHERE_NAMES_FIT = {
    "tasks": ("list", "--task"),
    "queues": ("list", "--queue"),
    "keys": ("remove",),
    "workers": ("unlock",),
}
"""Words after which each kind of name is completed."""


class Shell:
    """A folder, an environment without anything of ours, and the program."""

    def __init__(self, folder: Path, *, database: str | None = None) -> None:
        self.folder = folder
        foreign = {key: value for key, value in os.environ.items() if not key.startswith(("GW_", "PG", "GRAPHILE_"))}
        foreign.pop("DATABASE_URL", None)
        foreign.pop("NO_COLOR", None)
        foreign["XDG_STATE_HOME"] = str(folder / ".state")
        self.environment = foreign if database is None else {**foreign, "DATABASE_URL": database}

    def gw(self, *arguments: str, stdin: bytes = b"", **environment: str) -> CliResult:
        """Run the program to its end."""
        return run_gw(arguments, folder=self.folder, environment={**self.environment, **environment}, stdin=stdin)

    def complete(self, kind: str, start: str = "", **environment: str) -> CliResult:
        """Complete the start of a name, as a shell requests it after Tab."""
        return self.gw("--complete", "gw", *WHERE_NAMES_FIT[kind], start, **environment)

    def write(self, name: str, text: str, *, mode: int = 0o644) -> Path:
        """Write a file below the folder; a program that watches it never reads a part of the text."""
        path, new = self.folder / name, self.folder / ".new"
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text)
        new.chmod(mode)
        new.replace(path)
        return path

    @contextmanager
    def started(self, *arguments: str, **environment: str) -> Iterator[Running]:
        """Run the program beside the test; it does not outlive the block."""
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            yield Running(process)
        finally:
            process.kill()
            process.communicate()


class InProcessShell(Shell):
    """The same, but the program runs in the process of the test, which takes a tenth of the time.

    For what ends before a task is loaded, and for what is not about processes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        database: str | None = None,
    ) -> None:
        super().__init__(folder, database=database)
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def gw(self, *arguments: str, stdin: bytes = b"", **environment: str) -> CliResult:
        """Run the program to its end."""
        with self._monkeypatch.context() as patch:
            for name in os.environ.keys() - self.environment.keys():
                patch.delenv(name)
            for name, value in {**self.environment, **environment}.items():
                patch.setenv(name, value)
            patch.chdir(self.folder)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            code = run_program(arguments)
        said = self._capsys.readouterr()
        return CliResult(code, said.out, said.err)


class Running:
    """A program under way."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self._said: list[bytes] = []

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    @property
    def last_line(self) -> str:
        """The last line that was read."""
        return self._said[-1].decode()

    def says(self, words: str) -> None:
        """Read its log until a line has these words."""
        self._said += self._read(self._process.stderr, words)

    def prints(self, words: str) -> None:
        """Read its standard output until a line has these words."""
        self._read(self._process.stdout, words)

    def _read(self, stream: IO[bytes] | None, words: str) -> list[bytes]:
        assert stream is not None
        said: list[bytes] = []
        timeout = threading.Timer(2 * DEADLINE_SECONDS, self._process.kill)
        timeout.start()
        try:
            for line in stream:
                said.append(line)
                if words.encode() in line:
                    return said
        finally:
            timeout.cancel()
        raise AssertionError(f"it ended without saying {words!r}, but: {b''.join(said).decode()}")

    def end(self) -> CliResult:
        """Wait for the end."""
        out, err = self._process.communicate(timeout=DEADLINE_SECONDS)
        return CliResult(self._process.returncode, out.decode(), (b"".join(self._said) + err).decode())


def rows(conninfo: str, statement: str, values: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
    """Run a statement of the test's own and return what it answers."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursor = connection.execute(statement, values)  # type: ignore[call-overload]
        return [] if cursor.description is None else list(cursor.fetchall())


def jobs(conninfo: str) -> list[tuple[Any, ...]]:
    """Every job, whole."""
    return rows(conninfo, "select * from graphile_worker._private_jobs order by id")
