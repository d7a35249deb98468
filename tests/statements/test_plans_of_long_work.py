"""Statements for steps find their rows by ids, however many jobs wait, with and without statistics."""

from __future__ import annotations

from typing import Any

import pytest
from support.plans import kept_plan, plan_for

from statements.statement_fixture import OURS, Queue

WAITING_JOBS = """
with added as (
  select jobs.id, row_number() over (order by jobs.id) as n from _private_jobs as jobs where jobs.run_at = 'infinity'
)
insert into _private_gw_waiting (job_id, after, on_failure)
select id, array[n + (select min(id) from _private_jobs) - 1], 'cancel' from added
"""
EPOCH = "2026-01-01 00:00:00+00"
STATEMENTS: dict[str, dict[str, Any]] = {
    "step_begin": {"job_id": 5, "created_at": EPOCH, "schema": "graphile_worker"},
    "step_save": {
        "job_id": 5,
        "worker_id": OURS,
        "claimed_at": EPOCH,
        "name": "a",
        "value": "1",
        "finished": True,
        "attempt": 1,
    },
    "step_list": {"job_id": 5, "with_value": True},
    "end_steps": {"ids": None},
    "list_waiting": {"job_id": None, "job_key": None, "limit": 1000},
    "count_waiting": {},
    "expire_unique": {},
    "next_expiry": {},
    "forget_expiries": {},
    "expire_jobs": {"tasks": [], "keep_seconds": [], "error_type": "error"},
    "list_actions": {"job_id": 5, "after": None, "limit": 50},
    "has_table": {"schema": "graphile_worker", "table": "_private_gw_actions"},
    "expire_actions": {},
    "doctor_waiting": {},
    "end_members_of_others": {"tasks": [], "keep_seconds": []},
    "results_of_dependencies": {"job_id": 5},
    "action_reschedule_waiting": {
        "ids": [5],
        "run_at": None,
        "delay_seconds": 5.0,
        "priority": None,
        "attempts": None,
        "max_attempts": None,
    },
}


def wait(queue: Queue) -> None:
    """Let 2,000 jobs wait for 2,000 others, and make many of the rows dead that say so."""
    queue.run("select count(add_job('mail', run_at => 'infinity')) from generate_series(1, 2000)")
    queue.run(WAITING_JOBS)
    queue.run("insert into _private_gw_edges (job_id, waiting_id) select after[1], job_id from _private_gw_waiting")


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_no_statement_for_long_work_reads_the_table_of_jobs(queue: Queue, statistics: str) -> None:
    queue.run("select count(add_job('mail')) from generate_series(1, 3000)")
    queue.run(
        "insert into _private_gw_steps (job_id, name, value, finished, attempt, job_created_at)"
        " select id, 'a', '1', true, 1, created_at from _private_jobs"
    )
    wait(queue)
    if statistics == "fresh":
        queue.run("analyze _private_jobs, _private_gw_steps, _private_gw_waiting, _private_gw_edges")
    for name, values in STATEMENTS.items():
        plans = plan_for(queue.hands, name, values), kept_plan(queue.hands, name)
        assert [plan for plan in plans if "Seq Scan on _private_jobs" in plan] == [], name


def scans(queue: Queue, table: str = "_private_jobs") -> int:
    """Return how often this session read the whole table, as far as it has not reported it to others."""
    return int(queue.value("select seq_scan from pg_stat_xact_user_tables where relname = %s", table))


CALLS = (
    ("select _private_gw_end_members(null)", "select '{}'::bigint[]"),
    ("select _private_gw_end_members(%s)", "select array(select id from _private_jobs order by id limit 500)"),
    (
        "select _private_gw_end_members('{}', %s)",
        "select array(select job_id from _private_gw_waiting order by 1 limit 500)",
    ),
    (
        """select _private_gw_add_waiting('{"task": "mail"}', %s, 'hold')""",
        "select array(select id from _private_jobs order by id limit 500)",
    ),
)


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_no_function_for_waiting_jobs_reads_their_table(queue: Queue, statistics: str) -> None:
    queue.run("select count(add_job('mail')) from generate_series(1, 20000)")
    wait(queue)
    queue.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    if statistics == "fresh":
        queue.run("analyze _private_jobs, _private_gw_waiting, _private_gw_edges")
    queue.run("set enable_seqscan = on")
    for call, wanted in CALLS:
        ids = queue.value(wanted)
        queue.run("discard plans")
        with queue.hands.transaction(force_rollback=True):
            before = scans(queue)
            queue.run(call, *([ids] if "%s" in call else []))
            assert scans(queue) == before, call


def test_adding_unique_jobs_finds_earlier_ones_by_their_key_though_the_table_was_empty(queue: Queue) -> None:
    queue.run("vacuum _private_gw_unique, _private_jobs")
    queue.run("set enable_seqscan = on")
    add = """
        select _private_gw_add_unique(
                 json_agg(
                   json_build_object('job', '{"task": "mail"}'::json, 'unique_key', %s || n, 'period_seconds', 3600)
                 )
               )
          from generate_series(1, 100) as n
    """
    for key in ("new", "new", "other"):
        with queue.hands.transaction():
            before = scans(queue, "_private_gw_unique"), scans(queue)
            queue.run(add, key)
            assert (scans(queue, "_private_gw_unique"), scans(queue)) == before


@pytest.mark.parametrize(
    "call",
    [
        "add_job('mail', job_key => 'k' || n)",
        "add_job('mail', job_key => 'k' || n, job_key_mode => 'preserve_run_at')",
        "add_job('mail', job_key => 'k' || n, job_key_mode => 'unsafe_dedupe')",
        "add_job('mail', job_key => 'k' || n, queue_name => 'q' || n)",
        "add_jobs(array[row('mail', null, null, null, null, 'k' || n, null, null)::job_spec])",
        "remove_job('k' || n)",
    ],
)
def test_jobs_with_keys_are_found_by_them_though_the_table_was_empty(queue: Queue, call: str) -> None:
    queue.run("vacuum _private_jobs, _private_job_queues")
    queue.run("set enable_seqscan = on")
    with queue.hands.transaction():
        before = scans(queue)
        queue.run(f"select count(*) from generate_series(1, 100) as n cross join lateral {call} as job")
        assert scans(queue) == before
    assert queue.value("show enable_seqscan") == "on"


def test_each_function_with_a_kept_plan_of_a_table_that_grows_says_how_it_scans(queue: Queue) -> None:
    """A session keeps the plans of a plpgsql function; one made while a table was empty would read it whole."""
    found = queue.value(
        r"""
        select array_agg(functions.proname order by functions.proname)
          from pg_proc as functions
          join pg_language as languages on languages.oid = functions.prolang
         where languages.lanname = 'plpgsql'
           and functions.pronamespace = 'graphile_worker'::regnamespace
           and functions.prosrc ~ '(from|join|update|into)\s+"?graphile_worker"?\._private_'
           and not exists (select from unnest(functions.proconfig) as setting where setting ~ '^enable_seqscan=')
        """
    )
    # Once a day, of a partition that is empty but for rows that no other one takes.
    assert found == ["_private_gw_expire_history", "_private_gw_make_history_partition"]
