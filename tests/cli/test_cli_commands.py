"""The commands at work, as processes: what they print, what they do, how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.scripts import without_psql_commands
from support.shell import PROGRAM, Shell, jobs, rows
from support.waiting import wait_until

import gw_core

pytestmark = pytest.mark.acceptance

HELLO = "def hello(payload, context):\n    context.logger.info(f\"Hello, {payload['name']}\")\n"
APP = """
from gw_core import TaskRegistry

tasks = TaskRegistry()

@tasks.task("pay")
def pay(payload):
    pass
"""
WITH_HOOK = """
import atexit, pathlib, threading
import gw_cli.main

{hook}
pathlib.Path("began").touch()

def last(payload):
    pass
"""
SENDING = """
gw_cli.main.EXIT_HOOKS_TIMEOUT = 60
atexit.register(pathlib.Path("farewell").write_text, "all sent")
"""
HANGING = "atexit.register(threading.Event().wait)"
INTERRUPTED = """
import os, signal
atexit.register(os.kill, os.getpid(), signal.SIGINT)
"""

WAITING = """
import pathlib
import threading

def waiting(payload):
    pathlib.Path("began").touch()
    threading.Event().wait(60)
"""
POLITE = """
import pathlib

def polite(payload):
    pathlib.Path("began").touch()
    pathlib.Path("gate").read_text()
"""


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    return Shell(tmp_path, database=database_url)


# -- the program -------------------------------------------------------------------------------------------------------


def test_the_program_says_its_version(shell: Shell) -> None:
    for arguments in (("--version",), ("-V",), ("--debug", "--version")):
        assert shell.gw(*arguments).out == f"gw {gw_core.__version__}\n"


def test_the_program_runs_as_a_module_too(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "gw_cli", "--version"], capture_output=True, text=True, check=True)

    assert done.stdout == f"gw {gw_core.__version__}\n"


def test_the_program_without_words_shows_its_commands(shell: Shell) -> None:
    ended = shell.gw()

    assert (ended.code, ended.err) == (0, "")
    assert all(name in ended.out for name in ("run", "add", "list", "remove", "migrate", "config"))


def test_an_error_shows_where_it_came_from_only_when_asked(shell: Shell) -> None:
    quiet = shell.gw("add", "x", "-p", "{")
    asked = (shell.gw("add", "x", "-p", "{", "--debug"), shell.gw("add", "x", "-p", "{", GW_DEBUG="1"))

    assert "Traceback" not in quiet.err
    assert all(each.err.startswith(quiet.err) and "Traceback" in each.err for each in asked)


def test_a_reader_that_goes_away_ends_the_program_silently(shell: Shell, database_url: str) -> None:
    rows(
        database_url,
        "select graphile_worker.add_job('t', queue_name => repeat('q', 100)) from generate_series(1, 3000)",
    )
    with subprocess.Popen(
        [PROGRAM, "list", "--limit", "3000"],
        env=shell.environment,
        cwd=shell.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()

    assert (process.returncode, err) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize(
    ("ending", "code", "words"),
    [
        pytest.param(">&-", 1, "gw: stdout is closed, so the output was lost\n", id="no stdout"),
        pytest.param("2>&-", 0, "", id="no stderr"),
        pytest.param(
            ">/dev/full",
            1,
            "gw: the operating system reported an error: [Errno 28] No space left on device\n",
            id="a full disk",
        ),
    ],
)
def test_streams_that_take_nothing_cause_no_defect(shell: Shell, ending: str, code: int, words: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" config show --json {ending}', PROGRAM],
        env=shell.environment,
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (code, words)


# -- add ---------------------------------------------------------------------------------------------------------------


def test_a_job_is_added_with_everything_it_may_have(shell: Shell, database_url: str) -> None:
    options = ("-q", "mails", "-k", "key", "--priority", "-5", "--max-attempts", "3", "--flag", "a", "--flag", "b")

    ended = shell.gw("add", "hello", "-p", '{"n": 1.50}', "--run-at", "2030-01-31T08:00:00+02:00", *options)

    assert (ended.code, ended.err) == (0, "")
    assert rows(
        database_url,
        """
        select id::text || e'\n', task_identifier, queue_name, run_at, max_attempts, key, priority, flags
        from graphile_worker.jobs
        """,
    ) == [(ended.out, "hello", "mails", datetime(2030, 1, 31, 6, tzinfo=UTC), 3, "key", -5, {"a": True, "b": True})]


def test_a_time_counted_from_now_is_counted_by_the_database(shell: Shell, database_url: str) -> None:
    shell.gw("add", "hello", "--run-at", "+1h")

    ((ahead,),) = rows(database_url, "select run_at - created_at from graphile_worker.jobs")
    assert ahead == timedelta(hours=1)


@pytest.mark.parametrize("way", ["argument", "stdin", "file"])
def test_a_payload_is_stored_digit_for_digit(shell: Shell, database_url: str, way: str) -> None:
    text = '{"big": 12345678901234567890.10, "name": "ü\\n"}'
    shell.write("payload.json", text)
    arguments = {"argument": ("-p", text), "stdin": ("-p", "-"), "file": ("--payload-file", "payload.json")}

    ended = shell.gw("add", "hello", *arguments[way], stdin=text.encode())

    assert ended.code == 0
    assert rows(database_url, "select payload::text from graphile_worker._private_jobs") == [(text,)]


def test_an_added_job_as_json(shell: Shell) -> None:
    first = json.loads(shell.gw("add", "hello", "-k", "x", "--json").out)
    again = json.loads(shell.gw("add", "hello", "-k", "x", "--job-key-mode", "preserve_run_at", "--json").out)

    assert (first["task"], first["job_key"], first["revision"], first["flags"]) == ("hello", "x", 0, [])
    assert (again["id"], again["revision"], again["run_at"]) == (first["id"], 1, first["run_at"])


# -- list --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def listed(shell: Shell, database_url: str) -> Shell:
    rows(
        database_url,
        """
        with made as (
          select graphile_worker.add_job(name, payload => '{"secret": 1.0}', queue_name => queue)
          from (values ('ready', 'q'), ('scheduled', null), ('running', null), ('backoff', null), ('failed', null))
            as wanted (name, queue)
        )
        select count(*) from made
        """,
    )
    for task, change in {
        "scheduled": "run_at = now() + interval '1 hour'",
        "running": "locked_at = now(), locked_by = 'them', attempts = 1",
        "backoff": "run_at = now() + interval '1 hour', attempts = 1, last_error = e'bad \\x1b[31m\\nthing'",
        "failed": "attempts = max_attempts, last_error = 'gone'",
    }.items():
        rows(
            database_url,
            f"update graphile_worker._private_jobs set {change} "
            f"where task_id = (select id from graphile_worker._private_tasks where identifier = '{task}')",
        )
    return shell


@pytest.mark.parametrize("state", ["ready", "scheduled", "running", "backoff", "failed"])
def test_jobs_are_listed_by_their_state(listed: Shell, state: str) -> None:
    found = json.loads(listed.gw("list", "--state", state, "--json").out)

    assert [(job["task"], job["state"]) for job in found] == [(state, state)]


@pytest.mark.parametrize(
    ("arguments", "tasks"),
    [
        pytest.param(("--task", "failed"), ["failed"], id="by task"),
        pytest.param(("--queue", "q"), ["ready"], id="by queue"),
        pytest.param(("--limit", "2"), ["ready", "scheduled"], id="a few"),
        pytest.param(("--task", "none"), [], id="none"),
    ],
)
def test_jobs_are_listed_by_what_is_asked(listed: Shell, arguments: tuple[str, ...], tasks: list[str]) -> None:
    assert [job["task"] for job in json.loads(listed.gw("list", *arguments, "--json").out)] == tasks


def test_payloads_are_shown_only_when_asked_for(listed: Shell) -> None:
    for form in ((), ("--json",)):
        assert "secret" not in listed.gw("list", *form).out
        assert '{"secret": 1.0}' in listed.gw("list", "--payload", *form).out


def test_a_list_in_a_pipe_is_lines_that_steer_nothing(listed: Shell) -> None:
    lines = listed.gw("list").out.splitlines()

    assert lines[0].split("\t")[:3] == ["id", "state", "task"]
    assert len(lines) == 6
    assert {line.count("\t") for line in lines} == {lines[0].count("\t")}
    assert r"bad \x1b[31m\nthing" in lines[4]


# -- remove ------------------------------------------------------------------------------------------------------------


def test_removing_says_which_of_two_things_happened(shell: Shell, database_url: str) -> None:
    waiting = shell.gw("add", "hello", "-k", "waiting").out.strip()
    running = shell.gw("add", "hello", "-k", "running").out.strip()
    rows(
        database_url,
        "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'them' where key = 'running'",
    )

    removed, retired = shell.gw("remove", "waiting"), shell.gw("remove", "running", "--json")

    assert (removed.code, removed.out) == (0, f"removed {waiting}\n")
    assert json.loads(retired.out) == {"id": int(running), "task": "hello", "result": "running"}
    assert rows(database_url, "select id, key, attempts = max_attempts from graphile_worker._private_jobs") == [
        (int(running), None, True)
    ]


# -- migrate -----------------------------------------------------------------------------------------------------------


def test_a_plan_changes_nothing_and_a_migration_does_what_it_said(tmp_path: Path, empty_database_url: str) -> None:
    shell = Shell(tmp_path, database=empty_database_url)

    planned = json.loads(shell.gw("migrate", "--plan", "--json").out)
    assert rows(empty_database_url, "select from pg_namespace where nspname = 'graphile_worker'") == []
    done = json.loads(shell.gw("migrate", "--json").out)

    assert planned["revision"] is None
    assert planned["steps"] == done["applied"] != []
    assert (done["revision"], done["warnings"]) == (20, [])
    assert shell.gw("migrate").out == "20\n"
    assert shell.gw("migrate", "--plan").err == "Nothing to do: the schema is up to date.\n"


def test_the_script_of_a_migration_can_be_run_manually(tmp_path: Path, empty_database_url: str) -> None:
    shell = Shell(tmp_path, database=empty_database_url)
    script = shell.gw("migrate", "--sql", "--schema", 'odd "schema"').out

    rows(empty_database_url, without_psql_commands(script))

    assert shell.gw("migrate", "--plan", "--json", "--schema", 'odd "schema"').out.startswith(
        '{"revision": 20, "steps": []'
    )


def test_the_migrate_option_of_graphile_worker_works(tmp_path: Path, empty_database_url: str) -> None:
    ended = Shell(tmp_path, database=empty_database_url).gw("run", "--schema-only")

    assert (ended.code, ended.out) == (0, "Schema updated\n")
    assert jobs(empty_database_url) == []


# -- cron --------------------------------------------------------------------------------------------------------------


def test_a_crontab_with_an_error_is_found_unhealthy(shell: Shell) -> None:
    shell.write("crontab", "* * * * * hello\n61 * * * * hello\n")

    ended = shell.gw("cron", "validate", "crontab", "--json")

    assert (ended.code, [error["line"] for error in json.loads(ended.out)]) == (7, [2])


# -- config ------------------------------------------------------------------------------------------------------------


def test_the_configuration_is_shown_with_its_places_and_without_its_password(shell: Shell) -> None:
    path = shell.write("gw.toml", "concurrency = 3\n")

    ended = shell.gw("config", "show", "--json", DATABASE_URL="postgres://me:hidden@db/x", GW_STRICT="yes")

    shown = {each.pop("name"): each for each in json.loads(ended.out)}
    assert shown["connection"] == {
        "value": "user=me host=db dbname=x",
        "origin": "environment",
        "location": "DATABASE_URL",
    }
    assert shown["concurrency"] == {"value": "3", "origin": "file", "location": str(path)}
    assert shown["strict"] == {"value": "true", "origin": "environment", "location": "GW_STRICT"}
    assert shown["schema"] == {"value": "graphile_worker", "origin": "default", "location": None}
    assert shown["shards"]["value"] is None
    assert "hidden" not in ended.out + ended.err


def test_the_configuration_shows_each_of_several_databases_without_its_password(shell: Shell) -> None:
    shell.write("gw.toml", 'shards = ["eu=postgres://me:hidden@eu/app", "us=postgres://me:hidden@us/app"]\n')

    ended = shell.gw("config", "show", "--json")

    shown = {each["name"]: each["value"] for each in json.loads(ended.out)}
    assert shown["shards"] == "eu: user=me host=eu dbname=app, us: user=me host=us dbname=app"
    assert "hidden" not in ended.out + ended.err


def test_a_misspelt_variable_is_pointed_out(shell: Shell) -> None:
    assert shell.gw("config", "show", GW_JOB="3").err == "note: GW_JOB is set but is not a setting of gw\n"


# -- run ---------------------------------------------------------------------------------------------------------------


def test_a_job_added_with_sql_is_run(shell: Shell, database_url: str) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.gw("add", "hello", "--payload", '{"name":"Bobby Tables"}', "--job-key", "x")

    ended = shell.gw("run", "--once")

    assert (ended.code, ended.out) == (0, "")
    assert "INFO: Hello, Bobby Tables\n" in ended.err
    assert "Completed task" in ended.err
    assert jobs(database_url) == []


def test_a_run_installs_the_schema_first(tmp_path: Path, empty_database_url: str) -> None:
    shell = Shell(tmp_path, database=empty_database_url)
    shell.write("tasks/hello.py", HELLO)

    assert shell.gw("run", "--once", "--quiet").code == 0
    assert jobs(empty_database_url) == []


def test_tasks_come_from_an_app(shell: Shell, database_url: str) -> None:
    shell.write("shop.py", APP)
    shell.write("gw.toml", "app = 'shop:tasks'\n")
    shell.gw("add", "pay")

    assert shell.gw("run", "--once").code == 0
    assert jobs(database_url) == []


def test_jobs_with_a_forbidden_flag_are_left_to_others(shell: Shell, database_url: str) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.gw("add", "hello", "-p", '{"name": "a"}', "--flag", "slow")
    shell.gw("add", "hello", "-p", '{"name": "b"}')

    ended = shell.gw("run", "--once", "--forbidden-flag", "slow", "--forbidden-flag", "gpu")

    assert "Hello, b" in ended.err
    assert len(jobs(database_url)) == 1


def test_a_json_log_is_json_from_its_first_line_to_its_error(shell: Shell) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.gw("add", "hello", "-p", '{"name": "a\\u001b"}')

    good = shell.gw("run", "--once", "--log-format", "json")
    bad = shell.gw("run", "--once", "--log-format", "json", "--tasks", "100%s")

    lines = [json.loads(line) for line in good.err.splitlines()]
    assert {"level": "info", "message": "Hello, a\x1b", "label": "job", "task": "hello"}.items() <= next(
        line for line in lines if line["label"] == "job"
    ).items()
    assert bad.code == 8
    (error,) = map(json.loads, bad.err.splitlines())
    assert (error["level"], "100%s" in error["message"]) == ("error", True)


def test_a_quiet_run_says_nothing(shell: Shell) -> None:
    shell.write("tasks/hello.py", HELLO)
    shell.gw("add", "hello", "-p", '{"name": "a"}')

    assert shell.gw("run", "--once", "--quiet").err == ""


@pytest.fixture
def gate(shell: Shell) -> Path:
    """A pipe that a job of the task `polite` waits for after it has begun."""
    shell.write("tasks/polite.py", POLITE)
    shell.gw("add", "polite")
    os.mkfifo(shell.folder / "gate")
    return shell.folder / "gate"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_a_run_gracefully_and_by_that_signal(
    shell: Shell, database_url: str, gate: Path, number: signal.Signals
) -> None:
    with shell.started("run", "--grace-period", "50s") as running:
        wait_until((shell.folder / "began").exists, what="the job to begin", deadline_seconds=60)
        running.send(number)
        running.says(f"Received {number.name}")
        gate.write_text("go")
        ended = running.end()

    assert (ended.code, ended.out) == (-number, "")
    assert "Completed task" in ended.err
    assert jobs(database_url) == []


@pytest.mark.parametrize(
    ("hook", "code", "farewell"),
    [
        pytest.param(SENDING, -signal.SIGTERM, ["all sent"], id="is called"),
        pytest.param(HANGING, 128 + signal.SIGTERM, [], id="cannot hold it up"),
        pytest.param(INTERRUPTED, -signal.SIGTERM, [], id="is not interrupted"),
    ],
)
def test_what_a_task_registered_for_the_end_of_the_process(
    shell: Shell, hook: str, code: int, farewell: list[str]
) -> None:
    shell.write("tasks/last.py", WITH_HOOK.format(hook=hook))
    with shell.started("run") as running:
        wait_until((shell.folder / "began").exists, what="the tasks to be loaded", deadline_seconds=60)
        running.says(" threads; tasks: ")
        running.send(signal.SIGTERM)
        ended = running.end()

    assert [path.read_text() for path in shell.folder.glob("farewell")] == farewell
    assert (ended.code, "Traceback" in ended.err) == (code, False)


def test_a_task_that_never_ends_is_returned_when_the_grace_period_ends(shell: Shell, database_url: str) -> None:
    shell.write("tasks/waiting.py", WAITING)
    shell.gw("add", "waiting", "-q", "serial")

    with shell.started("run", "--grace-period", "10ms") as running:
        wait_until((shell.folder / "began").exists, what="the job to begin", deadline_seconds=60)
        ((before,),) = rows(database_url, "select clock_timestamp()")
        running.send(signal.SIGTERM)
        ended = running.end()

    assert ended.code == -signal.SIGTERM
    ((attempts, locked, run_at),) = rows(database_url, "select attempts, locked_at, run_at from graphile_worker.jobs")
    assert (attempts, locked) == (0, None)
    assert run_at > before + timedelta(seconds=29)
    assert rows(database_url, "select locked_at from graphile_worker._private_job_queues") == [(None,)]


def test_a_signal_that_is_sent_again_after_five_seconds_ends_a_run_immediately(shell: Shell, database_url: str) -> None:
    shell.write("tasks/waiting.py", WAITING)
    shell.gw("add", "waiting")

    with shell.started("run", "--grace-period", "1h") as running:
        wait_until((shell.folder / "began").exists, what="the job to begin", deadline_seconds=60)
        running.send(signal.SIGINT)
        running.says("send it again after 5 s to stop immediately")
        while running.is_running:
            running.send(signal.SIGTERM)
            time.sleep(0.1)
        ended = running.end()

    assert ended.code < 0
    assert rows(database_url, "select attempts, locked_at from graphile_worker.jobs") == [(0, None)]


def test_a_run_stops_with_57_when_a_breaking_migration_is_announced(
    shell: Shell, database_url: str, gate: Path
) -> None:
    announce = (
        "with installed as (insert into graphile_worker.migrations (id, breaking) values (999, true) returning id) "
        "select pg_notify('worker:migrate', '{\"migrationNumber\": 999, \"breaking\": true}') from installed"
    )

    with shell.started("run", "--grace-period", "50s", "--verbose") as running:
        running.says("listens for new jobs")
        wait_until((shell.folder / "began").exists, what="the job to begin", deadline_seconds=60)
        rows(database_url, announce)
        running.says("999")
        gate.write_text("go")
        ended = running.end()

    assert ended.code == 57
    assert jobs(database_url) == []


# -- probes ------------------------------------------------------------------------------------------------------------


def test_a_run_answers_probes_and_ends_when_their_port_is_taken(shell: Shell) -> None:
    shell.write("tasks/hello.py", "def hello(payload):\n    pass\n")
    with shell.started("run", "--probe-port", "0", "--metrics") as running:
        running.says("Probe server listens on http://127.0.0.1:")
        port = running.last_line.split(":")[-2]
        second = shell.gw("run", "--once", "--probe-port", port)
        running.send(signal.SIGTERM)
        ended = running.end()

    assert (second.code, f"cannot listen for probes on 127.0.0.1:{port}: Address already in use" in second.err) == (
        2,
        True,
    )
    assert ended.code == -signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("--metrics",), "--metrics goes with a port", id="metrics without a port"),
        pytest.param(("--probe-host", "::1"), "--probe-host goes with a port", id="a host without a port"),
        pytest.param(("--probe-port", "65536"), "give a whole number from 0 to 65535", id="no port"),
        pytest.param(("--probe-port", "x"), "give a whole number from 0 to 65535", id="no number"),
        pytest.param(("--probe-port", "1", "--probe-host", "192.0.2.1"), "cannot listen for probes", id="not ours"),
        pytest.param(("--probe-port", "1", "--probe-host", "a..b"), "cannot listen for probes", id="no name"),
    ],
)
def test_a_probe_that_cannot_be_is_rejected(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    shell.write("tasks/hello.py", "def hello(payload):\n    pass\n")

    ended = shell.gw("run", "--once", *arguments)

    assert (ended.code, words in ended.err) == (2, True)


def test_a_worker_serves_only_the_queue_that_its_option_or_its_file_names(shell: Shell, database_url: str) -> None:
    shell.write("tasks/hello.py", HELLO)
    for queue in ("billing", "invoices", "other"):
        shell.gw("add", "hello", "-p", '{"name": "you"}', "--queue", queue)

    assert shell.gw("run", "--once", "--only", "task:mail,queue:billing").code == 8
    assert shell.gw("run", "--once", "--only", "queue:billing").code == 0
    shell.write("gw.toml", 'only = ["queue:invoices"]\n')
    assert shell.gw("run", "--once").code == 0

    left = "select queue_name from graphile_worker.jobs"
    assert rows(database_url, left) == [("other",)]
