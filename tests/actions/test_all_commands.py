"""Every command, for a role that only reads, on the schema of Graphile Worker, and with its output closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from psycopg.conninfo import make_conninfo
from support.cli_program import CliProgram, every_command
from support.jobs_in_states import Queue
from support.shell import Shell
from support.warm_program import run_gw
from test_json_keys import fill

from gw_core.front_ends import operator_name

# One file of many small tests, none of which a version of Python would change.
pytestmark = pytest.mark.once

READING = (
    "list",
    "list --state failed",
    "list --payload --error text",
    "count state:failed",
    "show 1",
    "history task:mail",
    "history --count",
    "record-others",
    "actions 1",
    "stats",
    "stats --exact --tasks",
    "queues",
    "pauses",
    "limits",
    "groups list",
    "grants",
    "tasks",
    "workers",
    "sweep --dry-run",
    "doctor",
    "health",
    "migrate --plan",
    "migrate --sql",
    "cron list --crontab crontab",
    "complete --all --dry-run",
    "fail --all --dry-run",
    "reschedule --all --run-at now --dry-run",
    "retry --all --dry-run",
    "unlock pool-1 --dry-run",
    "cleanup failed-jobs unused-tasks unused-queues --dry-run",
    "tui --once",
)
CHANGING = (
    "add mail",
    "add --from jobs.jsonl",
    "cancel 1 --timeout 0s",
    "retry 2",
    "reschedule 2 --run-at now",
    "fail 2",
    "complete 2",
    "remove key",
    "record-others 7d",
    "unlock pool-1 --yes",
    "sweep",
    "cleanup failed-jobs unused-tasks unused-queues --yes",
    "cron run nightly --crontab crontab",
    "cron forget nightly",
    "pause queue:q",
    "resume flag:f",
    "limit mail --running 4",
    "limit mail --off",
    "groups cancel 1",
    "grant worker pg_monitor",
    "revoke pg_monitor",
    "run --once",
)
"""In an order in which each finds something to change."""

NEEDING_OUR_LINE = (
    "sweep",
    "sweep --dry-run",
    "cancel 1 --timeout 0s",
    "pause queue:q",
    "resume flag:f",
    "limit mail --running 4",
    "limit mail --off",
    "history task:mail",
    "history --count",
    "record-others",
    "record-others 7d",
    "actions 1",
    "grant worker pg_monitor",
    "revoke pg_monitor",
)
"""Those that go by heartbeats, speak to our workers, read or write history, or record grants in gw's ledger."""

FINDING_NOTHING = ("groups cancel 1",)
"""Those that act on what only our tables have."""

ELSEWHERE = (
    "gw bench",
    "gw sql",
    "gw dev",
    "gw init",
    "gw completion",
    "gw config show",
    "gw config schema",
    "gw cron parse",
    "gw cron validate",
    "gw cron next",
)
"""Those that need no queue, or go on for ever."""


def path_of(line: str) -> str:
    """Return the words of a line that call the command."""
    words = line.split()
    return " ".join(("gw", *words[: 2 if words[0] in ("cron", "config", "groups") else 1]))


def test_every_command_is_tried_here() -> None:
    tried = {path_of(line) for line in (*READING, *CHANGING)} | set(ELSEWHERE)

    assert set(every_command()) - tried == set(), "add it to READING or CHANGING"


def filled(queue: Queue, folder: Path) -> None:
    fill(queue, folder)
    (folder / "tasks").mkdir()
    (folder / "tasks" / "nothing.py").write_text("def nothing(payload):\n    pass\n")


@pytest.fixture
def reader(queue: Queue) -> Iterator[str]:
    """The connection of a role that reads everything and may change nothing."""
    name = f"gw_reader_{uuid4().hex}"
    queue.rows(f"create role {name}")
    queue.client.grants.grant("viewer", name)
    yield make_conninfo(queue.url, options=f"-crole={name}")
    queue.rows(f"drop owned by {name}")
    queue.rows(f"drop role {name}")


def everything(queue: Queue) -> list[tuple[Any, ...]]:
    """Every row there is, with its table."""
    statement = queue.value(
        "select string_agg(format('select %L, to_jsonb(each)::text from %s as each', relname, oid::regclass),"
        " ' union all ') || ' order by 1, 2' from pg_class where relkind in ('r', 'p') and not relispartition"
        " and relnamespace = 'graphile_worker'::regnamespace"
    )
    return queue.rows(statement)


def test_a_role_that_may_only_read_reads_and_gets_the_reason_why_it_may_not_change(
    gw: CliProgram, queue: Queue, reader: str, tmp_path: Path
) -> None:
    filled(queue, tmp_path)
    before = everything(queue)

    for line in READING:
        ended = gw(*line.split(), "-c", reader)

        # The doctor finds a worker that is dead.
        assert (ended.code, everything(queue)) == (7 if line == "doctor" else 0, before), (line, ended.err)
    for line in CHANGING:
        ended = gw(*line.split(), "-c", reader)

        assert (ended.code, everything(queue)) == (4, before), (line, ended.err)
        assert "lacks a right" in ended.err, line


STYLES = (
    "-cdatestyle=German -cstandard_conforming_strings=off -cextra_float_digits=-15 -cintervalstyle=iso_8601 "
    "-ctimezone=Asia/Kolkata -cquote_all_identifiers=on"
)
"""Settings of a session, a role or a database that change how values are written."""


def test_no_command_depends_on_how_its_session_writes_values(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    filled(queue, tmp_path)
    styled = make_conninfo(queue.url, options=STYLES)
    queue.client.limits.set("nothing", running=2)
    queue.client.limits.set("mail", field="to", running=1)
    for task in ("nothing", "mail"):
        queue.client.add(task, {"to": "\x1f"})
    verdicts = [(each["check"], each["status"]) for each in gw("doctor", "--json").json]

    for line in READING:
        ended = gw(*line.split(), "-c", styled)

        assert ended.code == (7 if line == "doctor" else 0), (line, ended.err)
    assert [(each["check"], each["status"]) for each in gw("doctor", "--json", "-c", styled).json] == verdicts
    assert gw("run", "--once", "-c", styled, "--tasks", tmp_path / "tasks").code == 0
    assert queue.client.jobs.list("task:nothing").jobs == ()
    assert gw("migrate", "--schema", "styled", "-c", styled).code == 0
    queue.rows("drop schema styled cascade")


def test_on_the_schema_of_graphile_worker_reading_works(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    filled(queue, tmp_path)
    queue.without_our_line()

    for line in READING:
        if line not in NEEDING_OUR_LINE:
            ended = gw(*line.split())

            assert ended.code == 0, (line, ended.err)


def test_on_the_schema_of_graphile_worker_what_needs_our_line_says_so(
    gw: CliProgram, queue: Queue, tmp_path: Path
) -> None:
    filled(queue, tmp_path)
    queue.without_our_line()

    for line in (each for each in CHANGING if each in NEEDING_OUR_LINE):
        ended = gw(*line.split())

        assert (ended.code, "gw migrate" in ended.err) == (5, True), (line, ended.err)


@pytest.mark.parametrize("line", [each for each in CHANGING if each not in NEEDING_OUR_LINE])
def test_on_the_schema_of_graphile_worker_acting_works(gw: CliProgram, queue: Queue, tmp_path: Path, line: str) -> None:
    filled(queue, tmp_path)
    queue.without_our_line()

    ended = gw(*line.split())

    assert ended.code == (6 if line in FINDING_NOTHING else 0), ended.err


UNRECORDED = {
    "gw add": "adds jobs",
    "gw cron run": "adds a job",
    "gw run": "is a worker",
    "gw record-others": "only the owner of the schema can; gw record-others shows it",
    "gw grant": "only the owner of the schema can; gw grants lists it",
    "gw revoke": "only the owner of the schema can",
}


def test_an_action_of_a_command_is_recorded(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    filled(queue, tmp_path)
    queue.running(by="pool-2")
    other = queue.client.add("last", after=[queue.scheduled()]).id
    found = {
        "cancel 1 --timeout 0s": f"cancel {other}",  # one that waits, as no worker answers
        "groups cancel 1": "groups cancel 5",
        "unlock pool-1 --yes": "unlock pool-2 --yes",  # as a sweep recovers the other
    }

    for line in (each for each in CHANGING if path_of(each) not in UNRECORDED):
        before = {each.id for each in queue.client.history.actions()}

        ended = gw(*found.get(line, line).split())

        assert ended.code == 0, (line, ended.err)
        new = [each for each in queue.client.history.actions() if each.id not in before]
        assert {each.by for each in new} == {operator_name()}, line


@pytest.mark.parametrize("layout", ["--json", "--table", ""], ids=["JSON", "tables", "lines"])
def test_no_command_shows_a_time_for_a_job_that_waits_for_others(
    gw: CliProgram, queue: Queue, tmp_path: Path, layout: str
) -> None:
    filled(queue, tmp_path)
    first = queue.scheduled()
    waiting = queue.client.add("last", after=[first], queue_name="waits", job_key="waits")
    failed = queue.client.add("last", after=[first], queue_name="failed")
    queue.client.jobs.fail([failed.id])
    added = f"add last --after {first} --queue more"
    shown = [f"show {job}" for job in (waiting.id, failed.id)]

    for line in (added, *shown, *READING):
        takes_layout = layout in {option for each in every_command()[path_of(line)].params for option in each.opts}
        ended = gw(*line.split(), *([layout] if layout and takes_layout else ()))

        assert "9999-" not in ended.out, line  # the year: microseconds may have these digits too
        assert "infinity" not in ended.out.replace("its time is infinity", ""), line


WRITING = ("list", "show 1", "history --count", "doctor", "migrate --sql", "tui --once", "cron next crontab", "--help")
"""Each way of writing: tables, texts, a report, a script, a picture, lines and help."""


@pytest.mark.acceptance
def test_a_command_does_not_mind_a_reader_that_goes_away(queue: Queue, tmp_path: Path) -> None:
    filled(queue, tmp_path)
    shell = Shell(tmp_path, database=queue.url)
    reading, writing = os.pipe()
    os.close(reading)
    for line in WRITING:
        ended = run_gw(line.split(), folder=tmp_path, environment=shell.environment, stdout=writing)
        assert (ended.code, "Traceback" in ended.err) == (-signal.SIGPIPE, False), (line, ended.err)
    os.close(writing)
