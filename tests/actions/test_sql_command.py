"""`gw sql` prints every statement of gw as a script that shows its plan and changes nothing."""

from __future__ import annotations

import psycopg
import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

from gw_core.front_ends import explain_script, list_statements

ELSEWHERE = {"delete_rust_heartbeat", "rust_heartbeat", "doctor_distributed_tables"}
"""Statements on tables of graphile_worker_rs and of Citus."""


def plan_of(queue: Queue, script: str) -> str:
    """Run a script as psql does, and return what EXPLAIN printed."""
    with psycopg.connect(queue.url, autocommit=True) as connection:
        cursor = connection.execute(script.encode())
        lines: list[str] = []
        while True:
            if cursor.description:
                lines += [str(row[0]) for row in cursor.fetchall()]
            if not cursor.nextset():
                return "\n".join(lines)


def test_the_plan_of_a_claim_is_that_of_a_worker_and_nothing_is_claimed(gw: CliProgram, queue: Queue) -> None:
    ids = [queue.client.add("mail").id for _ in range(3)]
    tasks = queue.rows("select array_agg(id)::text from graphile_worker._private_tasks")[0][0]

    ended = gw("sql", "claim_jobs", "--analyze", "--set", "limit=10", "--set", f"task_ids={tasks}",
               "--set", "scan_limit=100", "--set", "per_queue=1", "--set", "scan_from=0", "--set", "max_bytes=1000000",
               "--set", "worker_id=it's me")  # fmt: skip

    assert ended.code == 0, ended.err
    plan = plan_of(queue, ended.out)
    assert "actual" in plan
    assert "Seq Scan on _private_jobs" not in plan
    assert [found.job.id for found in queue.client.jobs.list("state:ready").jobs] == ids
    assert queue.rows("select locked_by, attempts from graphile_worker._private_jobs where locked_by is not null") == []


def test_every_statement_can_be_explained(queue: Queue) -> None:
    for name in (each for each in list_statements() if each not in ELSEWHERE):
        script = explain_script(name, "graphile_worker")

        if script.startswith("begin;"):
            assert plan_of(queue, script), name
        else:
            assert script.rstrip().endswith(";"), name


def test_all_statements_are_listed_with_their_purposes(gw: CliProgram) -> None:
    rows = dict(line.split("\t") for line in gw("sql").out.splitlines())

    assert rows.keys() >= {"claim_jobs", "complete_jobs", "add_job"}
    assert [name for name, purpose in rows.items() if not purpose] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "there is no statement 'nothing'; gw sql lists them"),
        (("cancel_read", "--set", "worker=1"), "statement cancel_read has no value 'worker'; its values are worker_id"),
        (("cancel_read", "--set", "worker_id"), "--set 'worker_id': give NAME=VALUE, for example limit=10"),
    ],
)
def test_wrong_names_are_explained(gw: CliProgram, arguments: tuple[str, ...], message: str) -> None:
    ended = gw("sql", *arguments)

    assert (ended.code, ended.err.strip()) == (2, f"gw: {message}")


def test_a_value_is_data_whatever_it_has_in_it(gw: CliProgram, queue: Queue) -> None:
    ended = gw("sql", "cancel_read", "--set", "worker_id=\\'); drop schema graphile_worker cascade; --")

    assert "Scan" in plan_of(queue, ended.out)
    assert queue.client.jobs.count().jobs == 0


def test_the_script_is_for_the_configured_schema(gw: CliProgram) -> None:
    assert '"other queue"._private_jobs' in gw("sql", "is_any_available", "-s", "other queue").out
