"""A role gains no rights by creating objects in a schema on the search_path of another role."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
import traps
from parse_trees import recorded
from psycopg import sql
from support.every_statement import HISTORY, NEIGHBOURS, STATEMENTS, prepare
from support.node_worker import NEWEST, node_worker

from gw_core import Client
from gw_core.front_ends import Database
from gw_core.operations import MigrationReport

SCHEMA = "graphile_worker"
SEARCH_PATH = "pg_catalog, pg_temp"
"""Temporary objects come last: otherwise a role that creates one shadows every name."""
TASK_ROLE = "task"
"""The role of connections that tasks borrow: names resolve by the search_path of the user."""
PINNED = (
    *(
        "snapshot_",
        "job_page_",
        "stats_",
        "queue_",
        "task_list",
        "renewed_lock_list",
        "schema_objects",
        "selection_names",
    ),
    *("count_selected_jobs", "session_limits", "return_jobs", *HISTORY),
)
"""Statements that never run without our search_path: their transaction sets it where their session cannot."""
CALLS = (
    "select graphile_worker.add_job('mail', '{}', 'q', '2030-01-01', 3, 'k', 2, '{a,b}', 'replace')",
    "select graphile_worker.add_job('mail', job_key => 'k', job_key_mode => 'preserve_run_at')",
    "select graphile_worker.add_job('mail', job_key => 'k', job_key_mode => 'unsafe_dedupe')",
    "select graphile_worker.add_job('mail', '{}', 'q', flags => '{a}')",
    "select graphile_worker.add_jobs(array[row('mail', '[1]', 'q', '2030-01-01', 3, 'b', 2, '{a}')::"
    "graphile_worker.job_spec])",
    "select graphile_worker.add_jobs(array[row('mail', '[2]', 'q', '2030-01-01', 3, 'b', 2, '{a}')::"
    "graphile_worker.job_spec])",
    "select graphile_worker.reschedule_jobs(array[1, 2], '2030-01-01', 1, 1, 2)",
    "select graphile_worker.permanently_fail_jobs(array[1, 2], 'no')",
    "select graphile_worker.complete_jobs(array[1])",
    "select graphile_worker.remove_job('b')",
    "select graphile_worker.remove_job('missing')",
    "select graphile_worker.force_unlock_workers('{a}')",
    "select graphile_worker._private_gw_make_history_partition('2040-01-01')",
    "select graphile_worker._private_gw_expire_history()",
)


def migrate(url: str) -> MigrationReport:
    with Client(url, max_pool_size=1) as client:
        return client.migrate()


def call_everything(connection: psycopg.Connection[Any]) -> None:
    for statement in CALLS:
        connection.execute(statement)


@pytest.fixture
def mixed(intruder: str, installed: str) -> str:
    """A queue beside workers of graphile_worker_rs, which some statements speak to."""
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute(NEIGHBOURS)
    return installed


def connected(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True)


def test_our_functions_spring_no_trap_whatever_search_path_their_caller_has(intruder: str, mixed: str) -> None:
    with connected(mixed) as connection:
        with recorded(connection) as calls:
            call_everything(connection)
        assert traps.plant(connection, calls, intruder) > 20

    # The caller's own statement names no function but ours, so that whatever is sprung is sprung inside them.
    with connected(mixed) as connection, recorded(connection) as calls:
        connection.execute("set search_path = public, pg_catalog")
        call_everything(connection)
        connection.execute("reset search_path")
        assert len(set(calls)) > 20
        assert traps.sprung(connection, calls) == []


def test_without_a_search_path_of_their_own_the_same_functions_spring_traps(intruder: str, mixed: str) -> None:
    with connected(mixed) as connection:
        with recorded(connection) as calls:
            call_everything(connection)
        traps.plant(connection, calls, intruder)
        connection.execute("alter function graphile_worker.remove_job reset all")

        with pytest.raises(psycopg.Error, match="sprung"):
            connection.execute("set search_path = public, pg_catalog; select graphile_worker.remove_job('b')")


@pytest.mark.parametrize("session", ["ours", "borrowed"])
def test_no_statement_springs_a_trap(intruder: str, mixed: str, session: str) -> None:
    names = [name for name in STATEMENTS if session == "ours" or not name.startswith(PINNED)]
    with connected(mixed) as connection:
        with recorded(connection) as calls:
            prepare(connection, STATEMENTS)
        assert traps.plant(connection, calls, intruder) > 100

    role = "" if session == "ours" else TASK_ROLE
    with Database(mixed).connect(role) as connection, recorded(connection) as calls:
        prepare(connection, names)
        assert len(set(calls)) > 50
        assert ", ".join(traps.sprung(connection, calls)) == ""


def test_our_sessions_resolve_names_in_pg_catalog_and_borrowed_ones_where_the_user_says(fresh_url: str) -> None:
    def search_path(role: str) -> Any:
        with Database(fresh_url).connect(role) as connection:
            return connection.execute("show search_path").fetchone()

    assert search_path("claim") == (SEARCH_PATH,)
    assert search_path(TASK_ROLE) == ('"$user", public',)


# -- schemas that are out there already


def weaken(connection: psycopg.Connection[Any]) -> None:
    """Make the functions what Node.js made them: without a search_path, and with operators left to it."""
    for (text,) in connection.execute(
        "select pg_get_functiondef(oid) from pg_proc where pronamespace = to_regnamespace(%s)", (SCHEMA,)
    ).fetchall():
        older = re.sub(r"\n SET search_path TO .*", "", text).replace("random()::text ||", "random() ||")
        connection.execute(older.replace("array_length(specs, 1)::text ||", "array_length(specs, 1) ||"))
    connection.execute("delete from graphile_worker._private_gw_migrations where id = 2")


def test_the_operator_that_add_job_of_0_1_0_resolved_in_public_is_not_called(intruder: str, installed: str) -> None:
    with connected(installed) as connection:
        weaken(connection)
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(intruder)))
        connection.execute(
            "create function public.trap(text, double precision) returns text language plpgsql as "
            "$$ begin raise exception 'sprung as %', current_user; end $$; "
            "create operator public.|| (leftarg = text, rightarg = double precision, function = public.trap)"
        )
        connection.execute("reset role")
        with pytest.raises(psycopg.errors.RaiseException, match="sprung as"):
            connection.execute("select graphile_worker.add_job('mail')")

        assert [step.name for step in migrate(installed).applied] == ["gw_0002_functions"]

        connection.execute("select graphile_worker.add_job('mail')")


@pytest.mark.interop
def test_functions_that_node_installed_get_a_search_path(fresh_url: str) -> None:
    node_worker(NEWEST).install_schema(fresh_url)

    migrate(fresh_url)

    with connected(fresh_url) as connection:
        rows = connection.execute(
            "select proname::text, proconfig from pg_proc where pronamespace = to_regnamespace(%s)", (SCHEMA,)
        ).fetchall()
    assert len([name for name, _ in rows if not name.startswith("_private_gw_")]) == 7
    assert [name for name, settings in rows if f"search_path={SEARCH_PATH}" not in settings] == []


def test_the_functions_of_a_newer_revision_are_left_as_they_are_and_a_warning_says_so(installed: str) -> None:
    with connected(installed) as connection:
        connection.execute("alter function graphile_worker.remove_job reset all")
        connection.execute("insert into graphile_worker.migrations (id, breaking) values (21, false)")

    report = migrate(installed)

    assert report.applied == ()
    assert any("may be able to act as that caller" in warning for warning in report.warnings)


def test_what_is_planted_in_public_is_not_run_during_a_migration(intruder: str, fresh_url: str) -> None:
    with Client(fresh_url, max_pool_size=1) as client:
        script = "".join(step.sql for step in client.migration_plan().steps).encode()
    with connected(fresh_url) as connection, recorded(connection) as calls:
        connection.execute(script)
    with connected(fresh_url) as connection:
        assert traps.plant(connection, calls, intruder) > 10
        connection.execute("drop schema graphile_worker cascade")
        with recorded(connection) as calls:
            connection.execute("set search_path = public, pg_catalog")
            connection.execute(script)
            connection.execute("reset search_path")
            assert traps.sprung(connection, calls) == []
