"""`gw bench` measures in a schema of its own, which is gone afterwards however it ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from uuid import uuid4

import pytest
from psycopg.conninfo import make_conninfo
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

SCHEMAS = "select nspname from pg_namespace where nspname like 'gw_bench%'"


def test_it_prints_figures_and_leaves_nothing_behind(gw: CliProgram, queue: Queue) -> None:
    waiting = queue.ready()

    ended = gw("bench", "--count", "300", "--json", "-j", "3")

    figures = ended.json
    assert (ended.code, figures["jobs"], figures["concurrency"]) == (0, 300, 3)
    rates = [figures[name] for name in figures if name.endswith("_per_second")]
    durations = [figures[name] for name in ("round_trip_ms", "commit_ms", "latency_p50_ms", "latency_p99_ms")]
    assert len(rates) == 4
    assert all(each > 0 for each in (*rates, *durations))
    assert figures["latency_p50_ms"] <= figures["latency_p99_ms"]
    assert "the server is under load" in ended.err
    assert queue.rows(SCHEMAS) == []
    assert queue.ids() == [waiting]


def test_people_get_words_and_units(gw: CliProgram, queue: Queue) -> None:
    ended = gw("bench", "-n", "100")

    assert [line.split()[0] for line in ended.out.splitlines()] == ["Server", "Round", "Commit", "Add", "Run", "Start"]
    assert ended.out.count("in 1,000 named queues") == 2


@pytest.mark.parametrize("count", ["5", "0", "-1", "many", "10000001"])
def test_a_meaningless_number_of_jobs_is_rejected(gw: CliProgram, queue: Queue, count: str) -> None:
    ended = gw("bench", f"--count={count}")

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)


def test_a_role_that_may_not_make_a_schema_gets_a_message(gw: CliProgram, queue: Queue) -> None:
    role = f"gw_test_{uuid4().hex}"
    queue.rows(f"create role {role} login")
    try:
        ended = gw("bench", "-c", make_conninfo(queue.url, user=role))
    finally:
        queue.rows(f"drop role {role}")

    assert (ended.code, ended.out, ended.err.count("\n")) == (4, "", 1)


@pytest.mark.acceptance
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_ended_in_the_middle_it_leaves_nothing_behind(queue: Queue, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "gw_cli", "bench", "-n", "200000", "-c", queue.url]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        assert "Working in schema" in program.stderr.readline()
        assert len(queue.rows(SCHEMAS)) == 1

        program.send_signal(number)

        assert program.wait(60) == -number
    assert queue.rows(SCHEMAS) == []
