"""Wrong input gets one clear message and an exit code, and leaves nothing changed."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.cli_program import every_command
from support.shell import CliResult, InProcessShell, Shell, jobs, rows

from gw_cli.command import CONDITIONS, OPTIONS

HELLO = "def hello(payload):\n    pass\n"


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    return Shell(tmp_path, database=database_url)


@pytest.fixture
def within(
    tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> InProcessShell:
    return InProcessShell(tmp_path, database=database_url, capsys=capsys, monkeypatch=monkeypatch)


@pytest.fixture
def nowhere(tmp_path: Path) -> Shell:
    """A shell that knows no database."""
    return Shell(tmp_path)


@pytest.fixture
def nowhere_within(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> InProcessShell:
    """A shell that knows no database."""
    return InProcessShell(tmp_path, capsys=capsys, monkeypatch=monkeypatch)


def assert_rejected(ended: CliResult, code: int, *words: str) -> None:
    """One message that begins with our name and has these words, on stderr and nowhere else."""
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("gw: ")
    assert ended.err.count("\n") == 1, ended.err
    assert "Traceback" not in ended.err
    for each in words:
        assert each in ended.err


# -- the command line itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("lst",), ("unknown command 'lst'", "did you mean gw list?"), id="a command misspelt"),
        pytest.param(("\x1b[2J",), (r"unknown command '\x1b[2J'",), id="a command that would steer the terminal"),
        pytest.param(("add", "hello", "--bogus"), ("no such option: --bogus", "gw add --help"), id="an unknown option"),
        pytest.param(("--bogus",), ("no such option: --bogus", "gw --help"), id="an unknown option of the program"),
        pytest.param(("add",), ("missing argument 'TASK'", "gw add --help"), id="no task"),
        pytest.param(("add", "hello", "--queue"), ("--queue", "requires an argument"), id="an option without value"),
        pytest.param(("add", "a", "b"), ("unexpected extra argument",), id="one argument too many"),
        pytest.param(("-c", "x", "list"), ("-c follows the command, as in: gw list -c",), id="an option too early"),
        pytest.param(("completion", "tcsh"), ("SHELL 'tcsh'", "bash, zsh, fish"), id="an unknown shell"),
        pytest.param(("list", "--json", "--wide"), ("--json", "--wide contradict each other"), id="two layouts"),
        pytest.param(("stats", "--interval", "0"), ("--interval: '0' is not a duration",), id="no unit"),
        pytest.param(("list", "--timeout", "5"), ("--timeout: '5' is not a duration",), id="no unit of a timeout"),
        pytest.param(("list", "--columns", " "), ("--columns is empty",), id="no columns"),
        pytest.param(("run", "--jobs", "0"), ("--concurrency '0'", "from 1 to 10000"), id="no jobs at once"),
        pytest.param(("run", "--poll-interval", "soon"), ("--poll-interval 'soon'", "like 90s"), id="no span"),
        pytest.param(("run", "--log-level", "loud"), ("--log-level 'loud'", "debug, info"), id="no level"),
        pytest.param(("run", "-v", "--quiet"), ("contradict each other",), id="loud and quiet"),
        pytest.param(("run", "--once", "--schema-only"), ("--once and --schema-only",), id="two ways to end"),
        pytest.param(("run", "--once", "--watch"), ("--watch", "leave one of them out"), id="watching an end"),
        pytest.param(("run", "--tasks", "a", "--app", "b:c"), ("app and tasks",), id="two sources of tasks"),
        pytest.param(("migrate", "--sql", "--plan"), ("--sql prints a script",), id="a script and a plan"),
        pytest.param(("list", "--state", "gone"), ("--state 'gone'", "ready, scheduled"), id="no state"),
        pytest.param(("list", "--limit", "0"), ("--limit '0'", "from 1 to"), id="no limit"),
        pytest.param(("list", "--config", "no.toml"), ("no.toml' does not exist",), id="no configuration file"),
    ],
)
def test_wrong_words_are_rejected(within: InProcessShell, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_rejected(within.gw(*arguments), 2, *words)


def test_an_option_given_twice_is_rejected_by_every_command_that_has_it(within: InProcessShell) -> None:
    tried = {OPTIONS: 0, CONDITIONS: 0}
    for name, command in every_command().items():
        for option in filter(_has_one_value, command.params):
            section = getattr(option, "rich_help_panel", None) or OPTIONS
            flag = option.opts[0]
            ended = within.gw(*name.split()[1:], flag, "ready", f"{option.opts[-1]}=failed")
            hint = "; for one of several values write" if section == CONDITIONS else ""
            assert_rejected(ended, 2, f"{flag} was given more than once{hint}")
            tried[section] += 1

    assert min(tried.values()) > 40


def _has_one_value(parameter: Any) -> bool:
    """Return whether the help shows one value of an option, which is no setting."""
    section = getattr(parameter, "rich_help_panel", None)
    repeats = "repeatable" in (getattr(parameter, "help", None) or "")
    return section in (None, CONDITIONS) and parameter.nargs == 1 and not repeats and _takes_value(parameter)


def _takes_value(parameter: Any) -> bool:
    return parameter.param_type_name == "option" and not parameter.is_flag and parameter.name != "config"


def test_an_empty_condition_is_named_as_its_option_by_every_command_that_has_it(within: InProcessShell) -> None:
    tried = 0
    for name, command in every_command().items():
        for option in filter(_is_condition, command.params):
            assert_rejected(within.gw(*name.split()[1:], option.opts[0], ""), 2, f"gw: {option.opts[0]}")
            tried += 1

    assert tried > 40


def _is_condition(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == CONDITIONS and _takes_value(parameter)


def test_settings_and_repeatable_options_may_be_given_twice(within: InProcessShell) -> None:
    ended = within.gw("add", "mail", "--flag", "a", "--flag", "b", "-s", "first", "-s", "graphile_worker", "--json")

    assert (ended.code, json.loads(ended.out)["flags"]) == (0, ["a", "b"])


def test_a_wrong_variable_is_named(within: InProcessShell) -> None:
    assert_rejected(within.gw("run", GW_CONCURRENCY="many"), 2, "GW_CONCURRENCY 'many': give a whole number")


def test_an_unknown_key_in_the_file_is_named_with_its_nearest(within: InProcessShell) -> None:
    path = within.write("gw.toml", "poll_intervall = '1s'\n")

    assert_rejected(within.gw("list"), 2, str(path), "'poll_intervall'", "did you mean poll-interval?")


# -- reaching the database --------------------------------------------------------------------------------------------


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "arguments",
    [("add", "hello"), ("list",), ("remove", "k"), ("migrate",), ("run",), ("run", "--once"), ("migrate", "--plan")],
    ids=" ".join,
)
def test_without_a_connection_the_ways_to_give_one_are_named(nowhere: Shell, arguments: tuple[str, ...]) -> None:
    nowhere.write("tasks/hello.py", HELLO)

    assert_rejected(nowhere.gw(*arguments), 2, "--connection", "DATABASE_URL", "embedded:")


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a listener, kept by being bound."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.acceptance
@pytest.mark.parametrize("arguments", [("add", "hello"), ("list",), ("migrate",), ("run", "--once")], ids=" ".join)
def test_a_server_that_is_not_there_is_said_to_be(nowhere: Shell, closed_port: int, arguments: tuple[str, ...]) -> None:
    nowhere.write("tasks/hello.py", HELLO)

    ended = nowhere.gw(*arguments, "-c", f"postgres://me:hidden@127.0.0.1:{closed_port}/x")

    assert_rejected(ended, 3, "cannot be reached", str(closed_port))
    assert "hidden" not in ended.err


@contextmanager
def _server_that_rejects_passwords() -> Iterator[tuple[int, list[bytes]]]:
    """A server that asks for a password and then rejects it, as PostgreSQL does; yields port and passwords."""
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        # The client may hang up at any time.
        with connection, suppress(OSError, struct.error):
            while True:
                (length,) = struct.unpack("!I", connection.recv(4))
                if struct.unpack("!I", connection.recv(4))[0] not in (80877103, 80877104):
                    break
                connection.sendall(b"N")  # neither TLS nor GSSAPI
            connection.recv(length)
            connection.sendall(b"R" + struct.pack("!II", 8, 3))
            seen.append(connection.recv(1024))
            fields = b'SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user "me"\0\0'
            connection.sendall(b"E" + struct.pack("!I", len(fields) + 4) + fields)

    def accept() -> None:
        with suppress(OSError):
            while True:
                serve(listener.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1], seen
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(60)


@pytest.mark.acceptance
@pytest.mark.parametrize("arguments", [("add", "hello"), ("run",), ("migrate", "--debug")], ids=" ".join)
def test_a_wrong_password_is_said_and_never_shown(nowhere: Shell, arguments: tuple[str, ...]) -> None:
    nowhere.write("tasks/hello.py", HELLO)

    with _server_that_rejects_passwords() as (port, seen):
        ended = nowhere.gw(*arguments, "-c", f"postgres://me:hidden@127.0.0.1:{port}/x")

    assert any(b"hidden" in each for each in seen)
    assert (ended.code, ended.out) == (4, "")
    assert "the server rejected the connection" in ended.err
    assert "hidden" not in ended.err


def test_a_role_that_does_not_exist_is_said(nowhere_within: InProcessShell, database_url: str) -> None:
    conninfo = psycopg.conninfo.make_conninfo(database_url, user="gw_test_nobody")

    assert_rejected(nowhere_within.gw("list", "-c", conninfo), 4, "gw_test_nobody")


@pytest.mark.parametrize(
    "conninfo",
    [
        pytest.param("postgres:/me:hidden@db/x", id="a slash is missing"),
        pytest.param("postgres://me:hid%zzhidden@db/x", id="a percent sign that is not encoded"),
        pytest.param("postgres://me:hidden@[::1/x", id="a bracket is open"),
        pytest.param("host=db password='hidden", id="a quote is open"),
    ],
)
def test_a_connection_string_that_cannot_be_read_is_not_shown(nowhere_within: InProcessShell, conninfo: str) -> None:
    ended = nowhere_within.gw("list", "-c", conninfo)

    assert_rejected(ended, 2, "connection string")
    assert "hidden" not in ended.err


# -- the schema -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("add", "hello"), ("list",), ("remove", "k")], ids=" ".join)
def test_a_schema_that_is_missing_names_the_command_that_installs_it(
    nowhere_within: InProcessShell, empty_database_url: str, arguments: tuple[str, ...]
) -> None:
    ended = nowhere_within.gw(*arguments, DATABASE_URL=empty_database_url)

    assert_rejected(ended, 5, "gw migrate --schema=graphile_worker")
    assert rows(empty_database_url, "select nspname from pg_namespace where nspname = 'graphile_worker'") == []


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "arguments",
    [
        ("migrate",),
        ("migrate", "--plan"),
        ("run",),
        ("run", "--once"),
        ("add", "hello"),
        ("remove", "k"),
        ("complete", "1"),
        ("cron", "forget", "hello"),
    ],
    ids=" ".join,
)
def test_a_schema_that_is_too_new_ends_with_57(shell: Shell, database_url: str, arguments: tuple[str, ...]) -> None:
    shell.write("tasks/hello.py", HELLO)
    rows(database_url, "insert into graphile_worker.migrations (id, breaking) values (999, true)")
    ledger = rows(database_url, "select * from graphile_worker.migrations order by id")

    assert_rejected(shell.gw(*arguments), 57, "999", "graphile_worker")
    assert rows(database_url, "select * from graphile_worker.migrations order by id") == ledger


# -- jobs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("hello", "-p", "{"), ("payload is not JSON", "line 1, column 2"), id="a payload cut short"),
        pytest.param(("hello", "-p", "{'a': 1}"), ("payload is not JSON",), id="a payload in single quotes"),
        pytest.param(("hello", "-p", ""), ("payload is empty",), id="an empty payload"),
        pytest.param(("hello", "-p", "-"), ("payload from stdin is empty",), id="nothing on stdin"),
        pytest.param(("hello", "-p", "NaN"), ("NaN",), id="a payload JSON does not know"),
        pytest.param(("hello", "-p", r'{"a": "\u0000"}'), (r"\u0000",), id="a NUL in the payload"),
        pytest.param(("hello", "--payload-file", "no.json"), ("no.json' cannot be read",), id="no payload file"),
        pytest.param(("hello", "-p", "1", "--payload-file", "x"), ("both given",), id="two payloads"),
        pytest.param(("hello", "--job-key-mode", "replace"), ("without a key",), id="a key mode without a key"),
        pytest.param(
            ("hello", "-k", "x", "--job-key-mode", "keep"), ("--job-key-mode 'keep'", "give one of"), id="no key mode"
        ),
        pytest.param(("hello", "--job-key-mode", "keep"), ("'keep'", "give one of"), id="neither a key nor a mode"),
        pytest.param(("--from", "x", "--job-key-mode", "replace"), ("payloads and keys",), id="a key mode for a file"),
        pytest.param(("h" * 129,), ("identifier", "129", "128"), id="an identifier too long"),
        pytest.param(("",), ("identifier is empty",), id="an empty identifier"),
        pytest.param(("hello", "-q", "q" * 129), ("queue name", "129", "128"), id="a queue too long"),
        pytest.param(("hello", "-k", "k" * 513), ("job key", "513", "512"), id="a key too long"),
        pytest.param(("hello", "--max-attempts", "0"), ("max attempts is 0",), id="no attempts"),
        pytest.param(("hello", "--max-attempts", "32768"), ("max attempts is 32768",), id="too many attempts"),
        pytest.param(("hello", "--max-attempts", "x"), ("--max-attempts 'x'", "whole number"), id="no number"),
        pytest.param(("hello", "--priority", "32768"), ("priority is 32768", "32767"), id="a priority beyond smallint"),
        pytest.param(("hello", "--priority", "-32769"), ("priority is -32769",), id="a priority below smallint"),
        pytest.param(("hello", "--priority", "9" * 30), ("--priority",), id="a priority beyond everything"),
        pytest.param(("hello", "--run-at", "tomorrow"), ("--run-at", "'tomorrow' is not a valid time"), id="no moment"),
        pytest.param(("hello", "--run-at", "2026-01-31T08:00:00"), ("time zone",), id="a moment without its zone"),
        pytest.param(("hello", "--flag", ""), ("flag is empty",), id="an empty flag"),
        pytest.param(("hello", "--run-at", "+9999999w"), ("--run-at",), id="a moment beyond the calendar"),
    ],
)
def test_a_job_that_cannot_be_is_not_added(
    within: InProcessShell, database_url: str, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    rows(database_url, "select graphile_worker.add_job('before', '[1]', job_key => 'x')")
    before = jobs(database_url)

    ended = within.gw("add", *arguments)

    assert_rejected(ended, 2, *words)
    assert jobs(database_url) == before
    assert len(before) == 1


def test_removing_a_job_that_is_not_there_says_so(within: InProcessShell) -> None:
    assert_rejected(within.gw("remove", "no\x1bkey"), 6, r"no job has the key 'no\x1bkey'")


# -- tasks ------------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({}, ("tasks",), id="no folder"),
        pytest.param({"tasks/_helper.py": ""}, ("no task",), id="an empty folder"),
    ],
)
def test_a_run_without_tasks_is_rejected(shell: Shell, files: dict[str, str], words: tuple[str, ...]) -> None:
    for name, text in files.items():
        shell.write(name, text)

    assert_rejected(shell.gw("run", "--once"), 8, *words)


@pytest.mark.acceptance
@pytest.mark.parametrize("app", ["nowhere:app", "hello", "json:nothing", ":", "json:dumps"])
def test_an_app_that_cannot_be_loaded_is_named(shell: Shell, app: str) -> None:
    ended = shell.gw("run", "--once", "--app", app)

    assert (ended.code, ended.out) == (8, "")
    assert app.partition(":")[0] in ended.err
    assert "Traceback" not in ended.err


CIRCLE = """
first, second = ValueError("first"), ValueError("second")
first.__cause__, second.__cause__ = second, first
raise first
"""


@pytest.mark.acceptance
def test_an_error_in_a_circle_of_causes_ends_the_command(shell: Shell) -> None:
    shell.write("circle.py", CIRCLE)

    ended = shell.gw("run", "--once", "--app", "circle:app")

    assert (ended.code, ended.out) == (8, "")
    assert "ValueError: first" in ended.err


BROKEN = "import hello\n\n\ndef broken(payload):\n    pass\n\n\nraise KeyError('no\\x1bsuch')\n"


@pytest.mark.acceptance
def test_a_task_file_that_does_not_import_is_shown_and_the_others_run(shell: Shell, database_url: str) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.write("tasks/broken.py", BROKEN)
    shell.gw("add", "hello")
    shell.gw("add", "broken")

    ended = shell.gw("run", "--once")

    assert (ended.code, ended.out) == (0, "")
    assert "broken.py:8" in ended.err
    assert "KeyError" in ended.err
    assert "\x1b" not in ended.err
    assert "(hello," in ended.err
    assert [state for (state,) in rows(database_url, "select attempts from graphile_worker._private_jobs")] == [0]


@pytest.mark.acceptance
def test_a_task_file_that_does_not_import_is_rejected_when_strict(shell: Shell, database_url: str) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.write("tasks/broken.py", BROKEN)
    shell.gw("add", "hello")
    before = jobs(database_url)

    ended = shell.gw("run", "--once", "--strict")

    assert (ended.code, ended.out) == (8, "")
    first, *others = ended.err.splitlines()
    assert first == "gw: not every task could be loaded:"
    assert [line for line in others if not line.startswith("    ")] == []
    assert "broken.py:8" in ended.err
    assert "\x1b" not in ended.err
    assert jobs(database_url) == before


@pytest.mark.acceptance
def test_an_executable_that_is_not_executable_is_named(shell: Shell) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.write("tasks/shell.sh", "#!/bin/sh\ntrue\n", mode=0o644)

    ended = shell.gw("run", "--once")

    assert (ended.code, ended.out) == (0, "")
    assert "shell.sh" in ended.err
    assert "execut" in ended.err


@pytest.mark.acceptance
def test_a_task_whose_body_would_never_run_is_named(shell: Shell) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.write("tasks/yields.py", "def yields(payload):\n    yield 1\n")

    ended = shell.gw("run", "--once")

    assert (ended.code, ended.out) == (0, "")
    assert "yields.py:1: this cannot be the task 'yields'" in ended.err


ENDINGS = {
    "raises": ("raise ValueError('no\\x1bgood')", "ValueError: no\x1bgood"),
    "exits": ("import sys\n    sys.exit(3)", "the task called sys.exit(3)"),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "lazy": ("return (each for each in ())", "generator"),
}


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ENDINGS)
def test_a_task_that_ends_badly_fails_its_job_and_nothing_else(shell: Shell, database_url: str, name: str) -> None:
    body, error = ENDINGS[name]
    shell.write(f"tasks/{name}.py", f"def {name}(payload):\n    {body}\n")
    shell.write("tasks/hello.py", HELLO)
    shell.gw("add", name)
    shell.gw("add", "hello")

    ended = shell.gw("run", "--once", "--jobs", "1")

    assert (ended.code, ended.out) == (0, "")
    assert "\x1b" not in ended.err
    assert "(hello," in ended.err
    ((last_error, attempts, locked_at),) = rows(
        database_url, "select last_error, attempts, locked_at from graphile_worker._private_jobs"
    )
    assert error in last_error
    assert (attempts, locked_at) == (1, None)


@pytest.mark.acceptance
def test_a_failed_job_is_a_failure_when_strict(shell: Shell) -> None:
    shell.write("tasks/raises.py", "def raises(payload):\n    raise ValueError\n")
    shell.gw("add", "raises")

    assert shell.gw("run", "--once", "--strict").code == 1


@pytest.mark.acceptance
def test_a_task_that_returns_nonsense_has_done_its_job(shell: Shell, database_url: str) -> None:
    shell.write("tasks/odd.py", "def odd(payload):\n    return object()\n")
    shell.gw("add", "odd")

    ended = shell.gw("run", "--once")

    assert (ended.code, ended.out, jobs(database_url)) == (0, "", [])


@pytest.mark.acceptance
def test_a_job_unknown_here_stays_untouched(shell: Shell, database_url: str) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.gw("add", "stranger")
    before = jobs(database_url)

    ended = shell.gw("run", "--once")

    assert (ended.code, ended.out) == (0, "")
    assert jobs(database_url) == before
