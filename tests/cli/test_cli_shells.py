"""Completion in real shells: what a person at a Tab key gets in bash, zsh and fish."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shell import PROGRAM, Shell, rows
from support.waiting import wait_until

COMPLETIONS = Path(__file__).parents[2] / "completions"
DEADLINE_SECONDS = 60.0

# What a person would get, as `<word>` for each word, instead of gw itself; a Tab asks the real program.
POSIX = 'gw() { if [ "$1" = --complete ]; then command gw "$@"; else printf "<%s>" "$@" end; fi; }'

pytestmark = [pytest.mark.acceptance, pytest.mark.once]


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A shell on a terminal of its own, typed into as by a person."""

    def __init__(self, command: list[str], shell: Shell, *setup: str) -> None:
        self._terminal, theirs = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=shell.folder,
            env={**shell.environment, "TERM": "dumb", "PS1": "$ ", "HISTFILE": "", "INPUTRC": "/dev/null"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)
        self._said = ""
        for line in (*setup, "echo rea''dy"):
            self.type(f"{line}\n")
        self.says("ready")

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def says(self, words: str) -> str:
        """Read until it has printed this, and return all it printed."""
        ends_at = time.monotonic() + DEADLINE_SECONDS
        while words not in self._said.replace("\r", ""):
            readable, _, _ = select.select([self._terminal], [], [], max(0.0, ends_at - time.monotonic()))
            assert readable, f"it never said {words!r}, but {self._said[-2000:]!r}"
            self._said += os.read(self._terminal, 65536).decode(errors="replace")
        said, self._said = self._said, ""
        return said

    def completes(self, line: str) -> str:
        """Type a line and Tab, then Enter, and return the words the command was called with."""
        self.type(f"{line}\t")
        # The shell reads it when it has completed the word.
        self.type("\n")
        found = re.findall(r"<(.*?)>", self.says("<end>"))
        return " ".join(found[:-1])

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    """A queue with a name of each kind, asked for once, so that a slow machine has them in its cache."""
    rows(database_url, "select graphile_worker.add_job('mail/send', queue_name => 'imports', job_key => 'user:7')")
    rows(database_url, "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'gw-host-1'")
    shell = Shell(tmp_path, database=database_url)
    shell.write("jobs-of-today.csv", "task\n")
    shell.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    shell.environment["PATH"] = f"{PROGRAM.parent}:{os.environ['PATH']}"
    for kind in ("tasks", "queues", "keys", "workers"):
        wait_until(lambda kind=kind: shell.complete(kind).out, deadline_seconds=60, every=0.1)  # type: ignore[misc]
    return shell


def needed(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed; install it with: apt-get install {name}")
    return path


CASES = [
    pytest.param("gw mig", "migrate", id="a command"),
    pytest.param("gw cron pars", "cron parse", id="a command below"),
    pytest.param("gw complete --dry", "complete --dry-run", id="an option"),
    pytest.param("gw list --state ba", "list --state backoff", id="a state"),
    pytest.param("gw list --task ma", "list --task mail/send", id="a task"),
    pytest.param("gw list --queue im", "list --queue imports", id="a queue"),
    pytest.param("gw list --queue=im", "list --queue=imports", id="behind an equals sign"),
    pytest.param("gw remove us", "remove user:7", id="a key"),
    pytest.param("gw remove user:", "remove user:7", id="a key behind its colon"),
    pytest.param("gw unlock gw", "unlock gw-host-1", id="a worker"),
    pytest.param("gw add --from jobs-o", "add --from jobs-of-today.csv", id="a file"),
    pytest.param("gw add --from=jobs-o", "add --from=jobs-of-today.csv", id="a file behind an equals sign"),
]


@pytest.fixture
def bash(shell: Shell) -> Iterator[Terminal]:
    command = [needed("bash"), "--norc", "--noprofile", "-i"]
    terminal = Terminal(command, shell, POSIX, f"source '{COMPLETIONS / 'gw.bash'}'")
    yield terminal
    terminal.close()


@pytest.fixture
def zsh(shell: Shell) -> Iterator[Terminal]:
    command = [needed("zsh"), "-f", "-i"]
    setup = [POSIX, f"fpath=('{COMPLETIONS}' $fpath)", "autoload -U compinit && compinit -D -u"]
    terminal = Terminal(command, shell, *setup)
    yield terminal
    terminal.close()


def test_bash_completes(bash: Terminal) -> None:
    assert {param.id: bash.completes(str(param.values[0])) for param in CASES} == {
        param.id: param.values[1] for param in CASES
    }


def test_zsh_completes(zsh: Terminal) -> None:
    assert {param.id: zsh.completes(str(param.values[0])) for param in CASES} == {
        param.id: param.values[1] for param in CASES
    }


def test_fish_completes(shell: Shell) -> None:
    script = [f"source '{COMPLETIONS / 'gw.fish'}'", *(f"complete -C '{each.values[0]}'; echo ---" for each in CASES)]
    done = subprocess.run(
        [needed("fish"), "--no-config", "-c", "\n".join(script)],
        cwd=shell.folder,
        env={**shell.environment, "HOME": str(shell.folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_SECONDS,
    )
    answers = [[line.split("\t")[0] for line in part.split("\n") if line] for part in done.stdout.split("---\n")]

    assert done.stderr == ""
    assert {each.id: answer for each, answer in zip(CASES, answers, strict=False)} == {
        each.id: [str(each.values[1]).split(" ")[-1]] for each in CASES
    }
