"""What the console copies is pasted into real shells and psql: it runs what it shows, once, and only after Enter."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from support.task_builders import a_job

from gw_core import JobSpec
from gw_core.front_ends import UNSAFE_TEXT
from gw_tui.actions import Action, Add, Fail, Forget, RemoveByKey, Retry, Unlock, gw_command
from gw_tui.clipboard import command_line, on_one_line

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

DEADLINE = 90.0
PROMPT = "ready"

TYPEABLE = {
    "a quote": "'; touch pwned; '",
    "a double quote": '"; touch pwned; "',
    "quotes behind backslashes": "\\'; touch pwned; \\'",
    "a substitution": "$(touch pwned)",
    "backticks": "`touch pwned`",
    "an event of the history": "!touch; !! 'it!s' \"!!\"",
    "a backslash at the end": "a\\",
    "a command of psql": "\\! touch pwned",
    "a command of psql behind a quote": "'\\! touch pwned",
    "a statement": "'); delete from graphile_worker._private_jobs; --",
    "an option": "--help",
    "another option": "-x",
    "a home": "~",
    "a comment": "#a",
    "a variable of psql": ":'HOME' :\"HOME\" $1",
    "an equals sign": "=ls",
    "a brace and a glob": "{a,b}* ?[x]",
    "spaces around": "  a  ",
    "a word beyond ASCII": "日本 é ﷺ",
    "a joined sign": "👩\u200d🔬",
}
UNTYPEABLE = {
    "a newline": "k\ntouch pwned\n:",
    "a carriage return": "k\rtouch pwned\r",
    "kill line": "k\x15touch pwned\n",
    "an interrupt": "k\x03touch pwned\n",
    "end of file": "k\x04\x04",
    "a quoted newline": "k\x16\n\x16\x03touch pwned\r",
    "the end of a bracketed paste": "k\x1b[201~\rtouch pwned\r",
    "the end of one in eight bits": "k\x9b201~\rtouch pwned\r",
    "an escape sequence": "\x1b]52;c;aGk=\x07",
    "completion": "\t\ty\n",
    "rubout": "\x7f\x7f\x7f\x7f\x08\x08\x17touch pwned\n",
    "next line": "k\x85touch pwned\x85",
    "line separator": "k\u2028touch pwned\u2029",
    "writing turned around": "a\u202etxt.exe",
    "a filler": "a\u3164b\u200bc",
    "a backslash and a newline": "a\\\n'; touch pwned\n",
}
HOSTILE = {**TYPEABLE, **UNTYPEABLE}


class Pasted:
    """A program on a terminal that is pasted into."""

    def __init__(self, command: Sequence[str], folder: Path, *, brackets: bool, **more: str) -> None:
        inputrc = folder / "inputrc"
        inputrc.write_text(f"set enable-bracketed-paste {'on' if brackets else 'off'}\n")
        self._brackets = brackets
        self._entered = 0
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.output = b""
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=folder,
            env={
                "HOME": str(folder),
                "TERM": "xterm",
                "LC_ALL": "C.UTF-8",
                "INPUTRC": str(inputrc),
                "PS1": PROMPT,
                "PS2": PROMPT,
                **more,
            },
        )
        os.close(slave)

    def paste(self, text: str) -> None:
        """Paste at a prompt, as an operator does: between two prompts the terminal itself acts on the keys."""
        self.until(lambda: PROMPT.encode() in self.output[self._entered :])
        self._write(f"\x1b[200~{text}\x1b[201~" if self._brackets else text)

    def enter(self) -> None:
        self._read(0)
        self._entered = len(self.output)
        self._write("\r")

    def kill_line(self) -> None:
        self._write("\x15")

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, f"it did not happen: {self.output[-2000:]!r}"
            self._read(0.05)

    def shows(self, words: str) -> None:
        """Wait until the words have been written."""
        self.until(lambda: words.encode() in self.output)

    def close(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self, seconds: float) -> None:
        while select.select([self._master], [], [], seconds)[0]:
            self.output += os.read(self._master, 65_536)
            seconds = 0

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            # A reader that does not read its own keys gets no more.
            self._read(0)
            data = data[os.write(self._master, data[:512]) :]


Start = Callable[..., Pasted]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Pasted] = []

    def starting(command: Sequence[str], *, brackets: bool, **more: str) -> Pasted:
        started.append(Pasted(command, tmp_path, brackets=brackets, **more))
        return started[-1]

    yield starting
    for each in started:
        each.close()


@pytest.fixture
def ran(tmp_path: Path) -> Callable[[], list[list[str]]]:
    """Put a `gw` on the path that notes what it was called with."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gw").write_text(f"#!/bin/sh\nprintf '%s\\0' \"$#\" \"$@\" >> '{tmp_path}/ran'\n")
    (programs / "gw").chmod(0o755)

    def calls() -> list[list[str]]:
        path = tmp_path / "ran"
        words = iter(path.read_text("utf-8").split("\0")[:-1] if path.exists() else ())
        return [[next(words) for _ in range(int(count))] for count in words]

    return calls


def removal(value: str) -> Action:
    return RemoveByKey(key=value, job=a_job())


TWO = Retry(jobs=[a_job(id=1), a_job(id=2)])


def copied(action: Action, **schema: str) -> str:
    """Return what the console would copy."""
    words = action.preview()
    assert words is not None
    text = on_one_line(command_line(gw_command(words, **schema)))
    assert re.search(UNSAFE_TEXT, text) is None
    return text


@pytest.mark.parametrize("name", UNTYPEABLE)
def test_what_no_shell_can_be_given_is_not_copied(name: str) -> None:
    for typed in (
        removal(UNTYPEABLE[name]),
        Unlock(workers=[UNTYPEABLE[name]]),
        Forget(identifier=UNTYPEABLE[name]),
        Fail(jobs=[a_job()], reason=UNTYPEABLE[name]),
    ):
        with pytest.raises(ValueError, match="control or invisible"):
            copied(typed)


PSQL = ["psql", "-X", "-v", f"PROMPT1={PROMPT}", "-v", f"PROMPT2={PROMPT}"]
SHELLS = [
    pytest.param(["bash", "--norc", "--noprofile", "-i"], True, id="bash, bracketed"),
    pytest.param(["bash", "--norc", "--noprofile", "-i"], False, id="bash"),
    pytest.param(["dash", "-i"], False, id="dash"),
]


@pytest.mark.parametrize(("shell", "brackets"), SHELLS)
def test_a_command_pasted_into_a_shell_runs_as_it_stands_and_nothing_else(
    start: Start, ran: Callable[[], list[list[str]]], tmp_path: Path, shell: list[str], brackets: bool
) -> None:
    terminal = start(shell, brackets=brackets, PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    expected = []
    for value in TYPEABLE.values():
        dashes = ["--"] if value.startswith("-") else []
        for typed, words in (
            (copied(removal(value)), ["remove", *dashes, value]),
            (copied(TWO, schema=value), ["retry", f"--schema={value}", "1", "2"]),
            (copied(Unlock(workers=[value, "w"])), ["unlock", *dashes, value, "w"]),
            (copied(Forget(identifier=value)), ["cron", "forget", *dashes, value]),
            (copied(Fail(jobs=[a_job(id=7)], reason=value)), ["fail", "7", f"--reason={value}"]),
        ):
            terminal.paste(typed)
            terminal.enter()
            expected.append(words)
            terminal.until(lambda: len(ran()) >= len(expected))

            assert ran() == expected
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(("shell", "brackets"), SHELLS)
def test_names_pasted_into_a_shell_by_mistake_run_nothing_of_their_own(
    start: Start, ran: Callable[[], list[list[str]]], tmp_path: Path, shell: list[str], brackets: bool
) -> None:
    terminal = start(shell, brackets=brackets, PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    for number, value in enumerate(HOSTILE.values(), 1):
        # A name is no command: without Enter it does nothing, and the operator sees what it is.
        terminal.paste(on_one_line(value))
        terminal.kill_line()
        terminal.paste("gw done")
        terminal.enter()
        terminal.until(lambda number=number: len(ran()) >= number)

    assert ran() == [["done"]] * len(HOSTILE)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("brackets", [True, False], ids=["bracketed", "plain"])
def test_a_command_pasted_into_psql_by_mistake_runs_nothing(
    start: Start, database_url: str, tmp_path: Path, brackets: bool
) -> None:
    with psycopg.connect(database_url, autocommit=True) as hands:
        hands.execute("select graphile_worker.add_job('t', job_key => 'bystander')")
        terminal = start([*PSQL, database_url], brackets=brackets, PATH=os.environ["PATH"], PAGER="cat")
        for number, value in enumerate(TYPEABLE.values()):
            terminal.paste(copied(removal(value)))
            terminal.enter()
            terminal.paste("\\r")  # forgets what it was given; inside an open quote it would not
            terminal.enter()
            terminal.paste(f"select 'done' || ' {number}';")
            terminal.enter()
            terminal.shows(f"done {number}")

        assert hands.execute("select key from graphile_worker._private_jobs").fetchall() == [("bystander",)]
    assert not (tmp_path / "pwned").exists()


def test_a_payload_is_one_line_that_means_the_same() -> None:
    spec, payload = JobSpec(task="mail"), '{\n\t"a": "x\x7f\u202e\U000e0041",\r\n "n": 90071992547409931}'

    line = copied(Add(spec=spec, payload=payload))

    assert shlex.split(line)[-1] == '--payload={  "a": "x\\u007f\\u202e\\udb40\\udc41",   "n": 90071992547409931}'
