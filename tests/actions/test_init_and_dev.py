"""`gw init` and `gw dev`: from an empty folder to a job that ran."""

from __future__ import annotations

import json
import signal
import tomllib
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from support.cli_program import CliProgram
from support.jobs_in_states import Queue
from support.shell import Shell
from support.waiting import wait_until

from gw_core.crontab import parse_crontab


def test_what_a_first_run_needs_is_made(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    ended = gw("init", "--json")

    assert {each["path"]: each["result"] for each in ended.json} == dict.fromkeys(
        ("tasks/hello.py", "crontab", "gw.toml", ".gw/.gitignore"), "created"
    )
    assert tomllib.loads((tmp_path / "gw.toml").read_text()) == {"tui": {}}
    assert parse_crontab((tmp_path / "crontab").read_text()) == ()
    assert [gw("add", "hello").code, gw("run", "--once", "--strict").code, queue.ids()] == [0, 0, []]


def test_where_no_database_is_named_the_embedded_one_is(
    gw: CliProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL")

    assert "The database is embedded:" in gw("init", "here").err
    gw("init", "there", "--no-embedded")

    assert [tomllib.loads((tmp_path / place / "gw.toml").read_text()) for place in ("here", "there")] == [
        {"connection": "embedded:", "tui": {}},
        {"tui": {}},
    ]


def test_the_crontab_s_example_is_one(gw: CliProgram, tmp_path: Path) -> None:
    gw("init")
    (line,) = (each for each in (tmp_path / "crontab").read_text().splitlines() if "hello" in each)

    assert [item.task for item in parse_crontab(line.removeprefix("# "))] == ["hello"]


def test_the_embedded_server_can_be_named(gw: CliProgram, tmp_path: Path) -> None:
    gw("init", "--embedded", "there")

    assert tomllib.loads((tmp_path / "there" / "gw.toml").read_text()) == {"connection": "embedded:", "tui": {}}


def test_nothing_is_overwritten(gw: CliProgram, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "hello.py").write_text("mine")
    (tmp_path / "gw.toml").symlink_to("nowhere.toml")

    ended = gw("init", "--json")

    results = {each["path"]: each["result"] for each in ended.json}
    assert (results["tasks/hello.py"], results["gw.toml"], results["crontab"]) == ("kept", "kept", "created")
    assert (tmp_path / "tasks" / "hello.py").read_text() == "mine"
    assert not (tmp_path / "nowhere.toml").exists()


def test_a_file_where_a_folder_should_be_is_named(gw: CliProgram, tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("")

    ended = gw("init")

    assert (ended.code, "'tasks' exists and is not a folder" in ended.err) == (2, True)


def test_without_tasks_dev_says_how_to_make_some(gw: CliProgram) -> None:
    ended = gw("dev")

    assert (ended.code, "create one with: gw init" in ended.err) == (2, True)


@pytest.mark.acceptance
def test_dev_runs_jobs_and_reads_changed_files_again(tmp_path: Path, database_url: str) -> None:
    shell = Shell(tmp_path, database=database_url)
    shell.gw("init")
    with shell.started("dev") as running:
        shell.gw("add", "hello", "-p", '{"name": "world"}')
        running.says("Hello, world")
        shell.write("tasks/bye.py", "def bye(payload, context):\n    context.logger.info('Good' + 'bye')\n")
        running.says("bye")
        shell.gw("add", "bye")
        running.says("Goodbye")
        shell.write("tasks/bye.py", "x = \n")
        running.says("1 error in task files; tasks in use: bye, hello")
        running.send(signal.SIGINT)
        ended = running.end()

    assert ended.code == -signal.SIGINT
    assert "watchfiles" not in ended.err
    assert ended.err.rindex("Tasks reloaded") < ended.err.index("SyntaxError")


@pytest.mark.acceptance
def test_dev_brings_its_own_database_from_nothing_to_a_failed_job_retried(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    shell.gw("init")
    assert shell.complete("tasks").out == ""
    assert not (tmp_path / ".gw" / "postgres").exists()
    with shell.started("dev") as running:
        running.says("'hello'")
        wait_until(lambda: shell.complete("tasks").out == "hello\n", deadline_seconds=60, every=0.1)
        assert shell.gw("add", "hello", "-p", json.dumps({"name": "you"})).code == 0
        running.says("Hello, you")
        shell.write("tasks/invoice.py", "def invoice(payload):\n    payload['amount']\n")
        running.says("invoice")
        shell.gw("add", "invoice", "--max-attempts", "1")
        running.says("no attempts left")
        shown = shell.gw("show", "2")
        assert "KeyError: 'amount'" in shown.out
        assert "gw retry 2" in shown.err
        shell.write("tasks/invoice.py", "def invoice(payload):\n    payload.get('amount')\n")
        running.says("Tasks reloaded")
        assert shell.gw("retry", "2").code == 0
        running.says("Completed task 2 (invoice")
        running.send(signal.SIGINT)
        running.end()


@pytest.mark.acceptance
def test_dev_names_the_database_that_the_environment_chooses(tmp_path: Path, database_url: str) -> None:
    parts = conninfo_to_dict(database_url)
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    shell = Shell(tmp_path)
    shell.environment |= {names[key]: str(value) for key, value in parts.items() if key in names}
    shell.gw("init", "--embedded")
    with shell.started("dev") as running:
        running.says(f"dbname={parts['dbname']}, schema graphile_worker")
        running.send(signal.SIGINT)
        running.end()


@pytest.mark.acceptance
def test_dev_reports_that_it_runs_its_own_database(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.gw("init", "--no-embedded")
    with shell.started("dev") as running:
        running.says("PostgreSQL runs in .gw/postgres. Other commands: --connection embedded:")
        running.says("'hello'")
        running.send(signal.SIGINT)
        running.end()
