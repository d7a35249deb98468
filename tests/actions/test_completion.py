"""Completion: the scripts are the program's, values come quickly or not at all, and nothing in them is run."""

from __future__ import annotations

import socket
import subprocess
from functools import partial
from pathlib import Path

import pytest
from support.cli_program import CliProgram, every_command
from support.jobs_in_states import Queue
from support.shell import PROGRAM, WHERE_NAMES_FIT, Shell
from support.waiting import wait_until


def test_every_command_is_offered(gw: CliProgram) -> None:
    def offered(words: list[str]) -> list[str]:
        return [line.split("\t")[0] for line in gw("--complete", *words).out.splitlines()]

    paths = [command.split() for command in every_command()]
    assert [path for path in paths if path[-1] not in offered([*path[:-1], ""])] == []
    assert [path for path in paths if "--help" not in offered([*path, "--h"])] == []


@pytest.fixture
def shell(tmp_path: Path, database_url: str, gw: CliProgram) -> Shell:
    shell = Shell(tmp_path, database=database_url)
    (tmp_path / "gw.bash").write_text(gw("completion", "bash").out)
    shell.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    return shell


def completed(shell: Shell, *words: str, program: str = f"'{PROGRAM}' \"$@\"") -> list[str]:
    """What bash offers for the last of the words."""
    line = " ".join(("gw", *words))
    script = f"""
        source gw.bash
        gw() {{ {program}; }}
        COMP_LINE='{line}'; COMP_POINT={len(line)}
        _gw
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    # With a locale that the machine lacks, bash would warn.
    environment = {**shell.environment, "LC_ALL": "C"}
    command = ["bash", "--norc", "-c", script]
    done = subprocess.run(command, cwd=shell.folder, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param(("cron", "par"), ["parse"], id="a command below"),
        pytest.param(("list", "--state=ba"), ["backoff"], id="a word behind an equals sign"),
        pytest.param(("reschedule", "--priority", ""), [], id="a value nobody knows"),
        pytest.param(("retry", "state:failed,ba"), ["failed,backoff"], id="another value of a condition"),
        pytest.param(("pause", ""), ["task:", "queue:", "flag:", "cron:", "all"], id="what can be paused"),
    ],
)
def test_bash_offers(shell: Shell, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(shell, *words) == offered


OFFERED = {
    ("mig",): "migrate",
    ("complete", "--dry"): "--dry-run",
    ("list", "--state", "ba"): "backoff",
    ("completion", "f"): "fish",
    ("complete", "--yes", "--state", "ba"): "backoff",
    ("list", "state:ba"): "state:backoff",
    ("count", "--yes", "att"): "attempts:",
    ("cancel", "pay"): "payload.",
    ("resume", "task:a", "q"): "queue:",
    ("run", "--only", ""): "task: queue:",
    ("run", "--only=q"): "--only=queue:",
}


def test_every_place_offers_its_words(gw: CliProgram) -> None:
    for words, offered in OFFERED.items():
        lines = gw("--complete", "gw", *words).out.splitlines()
        assert [line.partition("\t")[0] for line in lines] == offered.split(), words


def test_what_a_name_says_is_not_run(shell: Shell) -> None:
    assert "$(touch harm)" in completed(shell, "complete", "--queue", "", program="echo '$(touch harm)'")
    assert not (shell.folder / "harm").exists()


@pytest.mark.acceptance
def test_values_come_from_the_database(shell: Shell, queue: Queue) -> None:
    queue.running("mail", by="gw-7", queue_name="q-1", job_key="k:1")

    def offers(start: str, name: str, *words: str) -> bool:
        return shell.gw("--complete", "gw", *words, start).out == f"{name}\n"

    # A slow answer is there for the next Tab.
    for kind, name in (("tasks", "mail"), ("queues", "q-1"), ("keys", "k:1"), ("workers", "gw-7")):
        wait_until(partial(offers, name[:1], name, *WHERE_NAMES_FIT[kind]), what=name, every=0.1)
    for words in ("list", "pause", "run --only", "retry --yes", "resume all"):
        for start, name in (("task:m", "task:mail"), ("queue:q", "queue:q-1")):
            wait_until(partial(offers, start, name, *words.split()), what=f"{words} {name}", every=0.1)


@pytest.mark.acceptance
def test_a_name_a_shell_would_not_take_as_it_is_is_not_offered(shell: Shell, queue: Queue) -> None:
    harmful = ("$(harm)", "two words", "tab\there", "esc\x1b[2J", "a;b", "`a`", "$a", "a'b")
    for name in (*harmful, "a/b-c.d:1", "plain"):
        queue.ready("t", queue_name=name)

    wait_until(lambda: shell.complete("queues").out == "a/b-c.d:1\nplain\n", deadline_seconds=60, every=0.1)


@pytest.mark.acceptance
def test_among_very_many_names_those_that_begin_so_are_found(shell: Shell, queue: Queue) -> None:
    queue.rows(
        "insert into graphile_worker._private_job_queues (queue_name)"
        " select 'q-' || n from generate_series(100, 400) as n"
    )
    wait_until(lambda: shell.complete("queues").out, deadline_seconds=60, every=0.1)

    wait_until(lambda: shell.complete("queues", "q-39").out.count("\n") == 10, deadline_seconds=60, every=0.1)


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "words",
    [("gw", "list", "--task", ""), ("gw", "list", "--task", "x"), ("gw", "nothing", "x"), ()],
    ids=["values", "a prefix", "no command", "nothing"],
)
def test_a_database_that_never_answers_is_not_waited_for(shell: Shell, words: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unresponsive:
        url = f"postgres://me@127.0.0.1:{unresponsive.getsockname()[1]}/x?connect_timeout=60"
        ended = shell.gw("--complete", *words, DATABASE_URL=url)

    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.acceptance
@pytest.mark.parametrize("broken", [{"DATABASE_URL": ""}, {"DATABASE_URL": "no=such"}, {"XDG_CACHE_HOME": "/dev/null"}])
def test_whatever_is_wrong_is_not_said(shell: Shell, broken: dict[str, str]) -> None:
    ended = shell.complete("tasks", **broken)

    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.acceptance
def test_what_is_kept_is_for_its_owner_alone(shell: Shell, queue: Queue) -> None:
    queue.ready()
    folder = Path(shell.environment["XDG_CACHE_HOME"]) / "gw"
    wait_until(lambda: shell.complete("tasks").out, deadline_seconds=60, every=0.1)

    assert {oct(each.stat().st_mode & 0o777) for each in (folder, *folder.iterdir())} == {"0o700", "0o600"}
