"""`gw cron list`, `gw cron forget` and `gw run --once --cron` on the installed program."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from support.shell import Shell, rows

from gw_core.crontab import Schedule

CRONTAB = "* * * * * sweep_up ?fill=1h\n0 4 * * * nightly\n"
GW_TOML = """
[[cron]]
schedule = "30 2 * * *"
task = "sweep_up"
id = "nightly"
tz = "America/New_York"
"""
TASK = "def sweep_up(payload):\n    pass\n"


@pytest.fixture
def shell(tmp_path: Path, known: str) -> Shell:
    return Shell(tmp_path, database=known)


@pytest.fixture
def known(database_url: str) -> str:
    """A database that saw both items two hours ago, and ran one of them half an hour ago."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "insert into graphile_worker._private_known_crontabs (identifier, known_since, last_execution) values"
            " ('sweep_up', now() - interval '2 hours', date_trunc('minute', now()) - interval '30 minutes'),"
            " ('gone', now() - interval '2 hours', null)"
        )
    return database_url


def test_known_items_are_listed_with_what_the_crontab_says_of_them(shell: Shell, known: str) -> None:
    shell.write("crontab", CRONTAB)

    last_run = last_run_of_the_sweeper(known)
    before = minutes_since(known, last_run)
    listed = {each["id"]: each for each in json.loads(shell.gw("cron", "list", "--json").out)}

    assert set(listed) == {"sweep_up", "gone"}
    # The run of this very minute may be on its way and does not count.
    assert before - 1 <= listed["sweep_up"]["missed"] <= minutes_since(known, last_run) - 1
    assert listed["sweep_up"]["next_run"] is not None
    assert (listed["gone"]["missed"], listed["gone"]["next_run"]) == (None, None)


def test_no_next_run_is_listed_that_a_pause_skips(shell: Shell) -> None:
    shell.write("crontab", CRONTAB)
    shell.gw("pause", "cron:sweep_up", "--until", "+2h")
    [paused] = [each for each in json.loads(shell.gw("cron", "list", "--json").out) if each["id"] == "sweep_up"]
    [pause] = json.loads(shell.gw("pauses", "--json").out)
    shell.gw("pause", "cron:sweep_up")
    [without_end] = [each for each in json.loads(shell.gw("cron", "list", "--json").out) if each["id"] == "sweep_up"]

    assert datetime.fromisoformat(paused["next_run"]) >= datetime.fromisoformat(pause["until"])
    assert without_end["next_run"] is None


def test_more_missed_runs_than_are_counted_are_marked(shell: Shell, known: str) -> None:
    shell.write("crontab", CRONTAB)
    with psycopg.connect(known) as connection:
        connection.execute(
            "update graphile_worker._private_known_crontabs set last_execution = now() - interval '9 days'"
        )
    listed = {each["id"]: each for each in json.loads(shell.gw("cron", "list", "--json").out)}

    sweeper, gone = listed["sweep_up"], listed["gone"]
    assert (sweeper["missed"], sweeper["missed_quality"]) == (1000, "at_least")
    assert (gone["missed"], gone["missed_quality"]) == (None, None)
    assert "1,000+" in shell.gw("cron", "list", "--table").out


def test_a_forgotten_item_is_not_known_any_more(shell: Shell, known: str) -> None:
    assert shell.gw("cron", "forget", "gone").code == 0

    assert rows(known, "select identifier from graphile_worker._private_known_crontabs") == [("sweep_up",)]


def test_forgetting_what_is_not_known_says_so(shell: Shell, known: str) -> None:
    ended = shell.gw("cron", "forget", "nobody")

    assert ended.code != 0
    assert "'nobody'" in ended.err
    assert len(rows(known, "select from graphile_worker._private_known_crontabs")) == 2


def test_a_single_run_schedules_nothing_unless_asked(shell: Shell, known: str) -> None:
    shell.write("crontab", CRONTAB)
    shell.write("tasks/sweep_up.py", TASK)

    assert "Completed task" not in shell.gw("run", "--once").err
    last_run = last_run_of_the_sweeper(known)
    earliest = minutes_since(known, last_run)
    log = shell.gw("run", "--once", "--cron").err
    made_up_for = log.count("Completed task")
    assert earliest <= made_up_for <= minutes_since(known, last_run)
    assert re.findall(r"Backfilled (\d+) missed runs? of sweep_up, from .* to ", log) == [str(made_up_for)]


def last_run_of_the_sweeper(conninfo: str) -> datetime:
    statement = "select last_execution from graphile_worker._private_known_crontabs where identifier = 'sweep_up'"
    ((timestamp,),) = rows(conninfo, statement)
    assert isinstance(timestamp, datetime)
    return timestamp


def minutes_since(conninfo: str, timestamp: datetime) -> int:
    statement = "select extract(epoch from date_trunc('minute', now()) - %(timestamp)s)::int / 60"
    ((minutes,),) = rows(conninfo, statement, {"timestamp": timestamp})
    return int(minutes)


def test_a_worker_schedules_the_items_of_gw_toml_beside_the_crontab(shell: Shell) -> None:
    shell.write("gw.toml", GW_TOML)
    shell.write("crontab", "0 5 * * * sweep_up\n")
    shell.write("tasks/sweep_up.py", TASK)

    assert shell.gw("run", "--once", "--cron").code == 0
    schedule = Schedule.parse("30 2 * * *", tz="America/New_York")
    earliest = schedule.next_after(datetime.now(UTC))
    listed = {each["id"]: each for each in json.loads(shell.gw("cron", "list", "--json").out)}
    latest = schedule.next_after(datetime.now(UTC))

    zones = {name: each["tz"] for name, each in listed.items()}
    assert zones == {"nightly": "America/New_York", "sweep_up": "UTC", "gone": None}
    assert datetime.fromisoformat(listed["nightly"]["next_run"]) in (earliest, latest)


def test_an_identifier_in_the_crontab_and_in_gw_toml_is_one_sentence(shell: Shell) -> None:
    shell.write("gw.toml", GW_TOML)
    shell.write("crontab", "0 5 * * * sweep_up ?id=nightly\n")

    failed = shell.gw("cron", "list", "--json")

    assert failed.code == 2
    assert failed.err.startswith("gw: crontab identifiers must be unique, but found more than once: 'nightly'")
