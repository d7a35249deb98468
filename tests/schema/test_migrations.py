"""migrate, plan, script and check: to the newest schema from anywhere, for any number of processes, in any schema."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from msgspec import structs
from psycopg import sql
from support.catalog import catalog
from support.log_recorder import LogRecorder
from support.rust_schema import RETIREMENTS
from support.schema_fixture import SchemaFixture, connected
from support.waiting import wait_until
from support.warm_program import CliResult, run_gw

from gw_core import AsyncClient, Client, Runner, TaskRegistry, run_once
from gw_core.errors import InvalidSettingError, MigrationError, PermissionDeniedError, SchemaMissingError
from gw_core.front_ends import (
    Database,
    LockedJobsError,
    LockTimeoutError,
    SchemaState,
    SchemaStatus,
    SchemaTooNewError,
    SchemaTooOldError,
    ServerTooOldError,
)
from gw_core.operations import MigrationPlan, MigrationReport
from gw_core.postgres.schema import migrations, schema_state

OWN_LINE = [
    "gw_0001_ledger",
    "gw_0002_functions",
    "gw_0003_tables",
    "gw_0004_indexes",
    "gw_0005_history_functions",
    "gw_0006_waiting_jobs",
    "gw_0007_unique_jobs",
]
WAITING_FOR_A_TABLE = """
select 1 from pg_locks
 where locktype = 'relation' and not granted
   and database = (select oid from pg_database where datname = current_database())
"""
FRESH = ["install_000020", *OWN_LINE]
IN_SCRIPTS = 3
"""How many of these names psql gets in every run; a migration uses them all."""

ODD_NAMES = [
    "a$gw$b$gw1$",
    'back\\slash\'s "quotes" 100% :S',
    "é" * 31,
    "a%(x)s",
    "UPPER Case",
    "größe 日本",
    "x'; drop table y; --",
    "%s %(a)s",
    "a.b",
    "select",
]


def state_of(url: str, schema: str = "graphile_worker") -> SchemaState:
    with psycopg.connect(url, autocommit=True) as connection:
        return schema_state.check(connection, schema)


def migrate(url: str, schema: str = "graphile_worker") -> MigrationReport:
    with Client(url, schema=schema, max_pool_size=1) as client:
        return client.migrate()


def plan(url: str, schema: str = "graphile_worker") -> MigrationPlan:
    with Client(url, schema=schema, max_pool_size=1) as client:
        return client.migration_plan()


def script(url: str, schema: str = "graphile_worker") -> str:
    with Client(url, schema=schema, max_pool_size=1) as client:
        return client.migration_script()


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


# -- a fresh install


def test_a_fresh_database_gets_the_newest_revision_in_one_step(empty_database_url: str) -> None:
    report = migrate(empty_database_url)

    assert [step.name for step in report.applied] == FRESH
    assert "create table" not in repr(report)
    assert (report.before.status, report.after.status) == (SchemaStatus.MISSING, SchemaStatus.CURRENT)
    assert report.warnings == ()


def test_the_shared_ledger_holds_every_revision_with_its_flag(schema: SchemaFixture) -> None:
    rows = schema.run("select id, breaking from :S.migrations order by id")

    assert [row["id"] for row in rows] == list(range(1, 21))
    assert [row["id"] for row in rows if row["breaking"]] == [1, 3, 11, 13, 14, 16, 19]


EARLY_ADD_JOB = """
create or replace function graphile_worker.add_job(
  identifier text, payload json default null, queue_name text default null, run_at timestamptz default null,
  max_attempts integer default null, job_key text default null, priority integer default null,
  flags text[] default null, job_key_mode text default 'replace'
) returns graphile_worker._private_jobs language plpgsql as $$
declare
  v_job graphile_worker._private_jobs;
begin
  select * into v_job from graphile_worker.add_jobs(array[row(
    identifier, payload, queue_name, run_at, max_attempts::smallint, job_key, priority::smallint, flags
  )::graphile_worker.job_spec], job_key_mode = 'preserve_run_at');
  return v_job;
end;
$$
"""
"""The slower `add_job` that step 2 brought at first."""


def test_a_schema_that_took_the_second_step_early_gets_the_fast_add_job(database_url: str) -> None:
    definition = "select pg_get_functiondef('graphile_worker.add_job'::regproc)"
    with psycopg.connect(database_url, autocommit=True) as connection:
        fast = connection.execute(definition).fetchone()
        connection.execute(EARLY_ADD_JOB)
        connection.execute("delete from graphile_worker._private_gw_migrations where id > 2")
        assert connection.execute(definition).fetchone() != fast

        migrations.migrate(connection)

        assert connection.execute(definition).fetchone() == fast


def test_a_schema_with_an_earlier_add_jobs_gets_the_fast_one(database_url: str) -> None:
    definition = "select pg_get_functiondef('graphile_worker.add_jobs'::regproc)"
    with psycopg.connect(database_url, autocommit=True) as connection:
        fast = connection.execute(definition).fetchone()
        assert fast is not None
        connection.execute(fast[0].replace("gw:add-jobs:1", "gw:bulk-add:2"))
        connection.execute("delete from graphile_worker._private_gw_migrations where id = 2")

        report = migrations.migrate(connection)

        assert [step.name for step in report.applied] == ["gw_0002_functions"]
        assert report.warnings == ()
        assert connection.execute(definition).fetchone() == fast


def test_our_own_line_has_a_ledger_of_its_own(schema: SchemaFixture) -> None:
    rows = schema.run("select id, name from :S._private_gw_migrations order by id")

    assert [tuple(row.values()) for row in rows] == [(int(name.split("_")[1]), name) for name in OWN_LINE]


def test_a_second_run_changes_nothing(database_url: str) -> None:
    before = catalog(database_url)

    report = migrate(database_url)

    assert report.applied == ()
    assert catalog(database_url) == before


def test_every_private_table_has_row_level_security(schema: SchemaFixture) -> None:
    rows = schema.run(
        "select relname, relrowsecurity from pg_class where relkind = 'r' and relnamespace = to_regnamespace(%s) "
        "order by relname",
        schema.name,
    )

    assert [row["relname"] for row in rows if not row["relrowsecurity"]] == ["migrations"]


def test_a_schema_made_beforehand_is_filled_by_a_role_that_may_not_make_schemas(
    role: str, empty_database_url: str
) -> None:
    run(empty_database_url, f'create schema "{role}" authorization "{role}"')

    report = migrate(as_role(empty_database_url, role), schema=role)

    assert report.after.status is SchemaStatus.CURRENT


@pytest.mark.parametrize(
    "columns",
    [
        "id int primary key, ts timestamptz not null default now()",
        "id int primary key, ts timestamptz not null default now(), breaking boolean not null default false",
    ],
    ids=["old", "new"],
)
def test_a_ledger_made_beforehand_is_used(empty_database_url: str, columns: str) -> None:
    run(empty_database_url, f"create schema graphile_worker; create table graphile_worker.migrations ({columns})")

    migrate(empty_database_url)

    with connected(empty_database_url) as schema:
        assert schema.add_job()["id"] == 1


def test_workers_of_other_schemas_are_not_stopped_by_a_fresh_install(database_url: str) -> None:
    with connected(database_url) as schema:
        schema.listen("worker:migrate")

        migrate(database_url, schema="another")

        wait = schema.connection.notifies(timeout=60, stop_after=1)
        assert [json.loads(note.payload) for note in wait] == [{"migrationNumber": 20, "breaking": False}]


# -- names, rights, and the end


def test_a_schema_may_have_any_name(empty_database_url: str) -> None:
    tasks = TaskRegistry()
    tasks.register("mail", lambda payload: None)
    for name in ODD_NAMES:
        assert state_of(empty_database_url, name).status is SchemaStatus.MISSING

        assert migrate(empty_database_url, schema=name).after.status is SchemaStatus.CURRENT, name

        with connected(empty_database_url, name) as schema:
            assert schema.task_of(schema.add_job("mail", job_key="k", queue_name="q")) == "mail"
            assert schema.add_jobs({"job_key": "k"})[0]["revision"] == 1
            assert schema.call("remove_job", job_key="k")[0]["key"] == "k"
            schema.add_job("mail")
        assert run_once(empty_database_url, schema=name, tasks=tasks).completed == 1, name
        assert migrate(empty_database_url, schema=name).applied == (), name


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 64, "é" * 32, "\udc80"], ids=repr)
def test_a_name_that_postgresql_would_cut_or_reject_is_rejected_everywhere_in_one_message(name: str) -> None:
    for refusing in (
        lambda name: Client("dbname=none", schema=name),
        lambda name: AsyncClient("dbname=none", schema=name),
        lambda name: Database("dbname=none", schema=name),
    ):
        with pytest.raises(InvalidSettingError, match="is not a valid schema name; PostgreSQL takes 1 to 63 bytes"):
            refusing(name)


def test_two_schemas_in_one_database_do_not_know_each_other(database_url: str) -> None:
    migrate(database_url, schema="another")

    with connected(database_url, "another") as another, connected(database_url) as schema:
        another.add_job()
        assert schema.jobs() == []


@pytest.mark.parametrize("name", ["graphile_worker", ODD_NAMES[1]])
def test_dropping_the_schema_leaves_nothing(empty_database_url: str, name: str) -> None:
    before = objects_of(empty_database_url)
    migrate(empty_database_url, schema=name)

    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))

    assert objects_of(empty_database_url) == before
    assert migrate(empty_database_url, schema=name).after.status is SchemaStatus.CURRENT


def objects_of(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select 'relation', relname::text from pg_class where oid >= 16384 "
            "union all select 'function', proname::text from pg_proc where oid >= 16384 "
            "union all select 'type', typname::text from pg_type where oid >= 16384 "
            "union all select 'schema', nspname::text from pg_namespace where oid >= 16384 order by 1, 2"
        ).fetchall()


@pytest.fixture
def role(server: str) -> Iterator[str]:
    """A role without any rights. Ask for it before the database, so that it is dropped after what it owns there."""
    name = f"gw_test_{uuid4().hex[:12]}"
    run(server, f'create role "{name}" login')
    try:
        yield name
    finally:
        run(server, f'drop role "{name}"')


def as_role(url: str, role: str) -> str:
    return psycopg.conninfo.make_conninfo(url, options=f"-c role={role}")


def test_a_role_without_rights_is_rejected_in_one_message_and_nothing_is_done(
    role: str, empty_database_url: str
) -> None:
    with pytest.raises(PermissionDeniedError, match=r"lacks a right that migration install_000020 needs .* --sql"):
        migrate(as_role(empty_database_url, role))

    assert not state_of(empty_database_url).schema_exists


def test_a_role_that_may_make_nothing_in_the_schema_leaves_it_empty(role: str, empty_database_url: str) -> None:
    run(empty_database_url, f'create schema graphile_worker; grant usage on schema graphile_worker to "{role}"')

    with pytest.raises(PermissionDeniedError):
        migrate(as_role(empty_database_url, role))

    assert state_of(empty_database_url).revision is None


def test_a_role_that_may_not_use_the_schema_gets_a_message(role: str, database_url: str) -> None:
    with pytest.raises(PermissionDeniedError):
        state_of(as_role(database_url, role))


# -- concurrent migrations


def test_processes_on_an_empty_database_all_succeed(empty_database_url: str, tmp_path: Path) -> None:
    def gw_migrate(_: int) -> CliResult:
        return run_gw(["migrate", "--json", "-c", empty_database_url], folder=tmp_path, environment=dict(os.environ))

    with ThreadPoolExecutor(8) as threads:
        ended = list(threads.map(gw_migrate, range(8)))

    assert [each.code for each in ended] == [0] * 8, ended
    assert sum(len(json.loads(each.out)["applied"]) for each in ended) == len(FRESH)
    assert state_of(empty_database_url).status is SchemaStatus.CURRENT


@pytest.mark.parametrize("prepared", ["", "create schema graphile_worker"], ids=["empty", "schema made beforehand"])
def test_threads_on_connections_of_their_own_all_succeed(empty_database_url: str, prepared: str) -> None:
    if prepared:
        run(empty_database_url, prepared)

    with ThreadPoolExecutor(8) as threads:
        reports = list(threads.map(migrate, [empty_database_url] * 8))

    assert sorted(step.name for report in reports for step in report.applied) == sorted(FRESH)
    assert {report.after.status for report in reports} == {SchemaStatus.CURRENT}


# -- what stands in the way


def test_a_newer_breaking_revision_is_rejected_and_nothing_is_changed(database_url: str) -> None:
    run(database_url, "insert into graphile_worker.migrations (id, breaking) values (21, true), (22, false)")
    run(database_url, "drop table graphile_worker._private_gw_workers")
    before = catalog(database_url)

    for attempt in (migrate, plan, script):
        with pytest.raises(SchemaTooNewError, match="revision 22, which includes breaking migration 21"):
            attempt(database_url)

    assert catalog(database_url) == before
    assert isinstance(state_of(database_url).problem(), SchemaTooNewError)


def test_a_newer_revision_that_breaks_nothing_is_a_warning(database_url: str) -> None:
    run(database_url, "insert into graphile_worker.migrations (id, breaking) values (21, false)")

    report = migrate(database_url)

    assert report.applied == ()
    assert report.after.status is SchemaStatus.NEWER
    assert report.after.problem() is None
    (warning,) = report.warnings
    assert "revision 21" in warning
    assert "up to revision 20" in warning


def test_the_functions_of_a_newer_revision_are_left_as_they_are(database_url: str) -> None:
    run(database_url, "insert into graphile_worker.migrations (id, breaking) values (21, false)")
    replace_add_jobs(database_url)

    report = migrate(database_url)

    assert report.applied == ()
    assert any("are left as they are" in warning for warning in report.warnings)


def test_a_schema_from_before_revision_11_is_rejected_with_what_to_run(empty_database_url: str) -> None:
    run(
        empty_database_url,
        "create schema graphile_worker; create table graphile_worker.migrations (id int primary key, ts timestamptz "
        "not null default now() - interval '1 minute'); "
        "insert into graphile_worker.migrations (id) select generate_series(1, 10)",
    )

    with pytest.raises(SchemaTooOldError, match=r"npx graphile-worker@0\.16\.6 --schema-only --schema graphile_worker"):
        migrate(empty_database_url)

    assert isinstance(state_of(empty_database_url).problem(), SchemaTooOldError)


def test_a_revision_that_another_program_is_installing_is_waited_for(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphile Worker (Node.js) commits revision by revision, and was stopped here at the sixth for a short time."""
    states: list[SchemaState] = []
    check = migrations.check

    def recording(*arguments: Any) -> SchemaState:
        states.append(check(*arguments))
        return states[-1]

    monkeypatch.setattr(migrations, "check", recording)
    monkeypatch.setattr(schema_state, "INSTALLING_SECONDS", 120)
    installing = plan(empty_database_url).steps[0].sql
    run(
        empty_database_url,
        "create schema graphile_worker; create table graphile_worker.migrations (id int primary key, ts timestamptz "
        "not null default now()); insert into graphile_worker.migrations (id) select generate_series(1, 6)",
    )
    with ThreadPoolExecutor(1) as thread:
        migrating = thread.submit(migrate, empty_database_url)
        wait_until(lambda: any(each.revision == 6 for each in states), what="a look at the unfinished schema")
        run(empty_database_url, f"begin; drop schema graphile_worker cascade; {installing} commit")

        assert migrating.result(timeout=60).after.status is SchemaStatus.CURRENT


def test_an_installation_that_stays_unfinished_is_rejected_after_some_seconds(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_state, "INSTALLING_SECONDS", 1)
    run(
        empty_database_url,
        "create schema graphile_worker; create table graphile_worker.migrations (id int primary key, ts timestamptz "
        "not null default now()); insert into graphile_worker.migrations (id) select generate_series(1, 6)",
    )

    with pytest.raises(SchemaTooOldError, match="at revision 6"):
        migrate(empty_database_url)


# -- what an owner or an administrator set


def test_what_an_owner_set_on_functions_outlasts_an_upgrade(database_url: str, role: str) -> None:
    options = "select prosecdef, procost, prorows, proacl::text, proowner, proconfig from pg_proc where proname = %s"
    statements = (
        "delete from graphile_worker.migrations where id > 18",
        "delete from graphile_worker._private_gw_migrations where id = 2",
        "alter function graphile_worker.add_job reset all",
        "alter function graphile_worker.add_job security definer set work_mem = '5MB' cost 7",
        "alter function graphile_worker.add_job set search_path = pg_catalog, graphile_worker, pg_temp",
        "alter function graphile_worker.add_jobs security definer reset all rows 5",
        "alter function graphile_worker.add_jobs set temp_tablespaces = pg_default, pg_default",
        f'grant execute on function graphile_worker.add_job to "{role}"',
    )
    for statement in statements:
        run(database_url, statement)
    with psycopg.connect(database_url) as connection:
        before = {name: connection.execute(options, (name,)).fetchone() or () for name in ("add_job", "add_jobs")}

    migrate(database_url)

    with psycopg.connect(database_url) as connection:
        after = {name: connection.execute(options, (name,)).fetchone() or () for name in ("add_job", "add_jobs")}
        assert connection.execute("show search_path").fetchone() == ('"$user", public',)
    assert {name: found[:-1] for name, found in after.items()} == {name: found[:-1] for name, found in before.items()}
    assert set(after["add_job"][-1]) == {"enable_seqscan=off", *before["add_job"][-1]}
    ours = {"search_path=pg_catalog, pg_temp", "enable_seqscan=on"}
    assert set(after["add_jobs"][-1]) == ours | set(before["add_jobs"][-1])
    run(database_url, f'drop owned by "{role}"')


def owners(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select relowner::regrole::text from pg_class where relnamespace = to_regnamespace('graphile_worker') "
            "and relkind in ('r', 'v', 'S', 'c') "
            "union select proowner::regrole::text from pg_proc where pronamespace = to_regnamespace('graphile_worker')"
        )
        return {name for (name,) in rows}


def test_what_an_administrator_installs_in_another_owners_schema_belongs_to_its_owner(
    role: str, empty_database_url: str
) -> None:
    run(empty_database_url, f'create schema graphile_worker authorization "{role}"')

    migrate(empty_database_url)

    assert owners(empty_database_url) == {role}
    assert migrate(as_role(empty_database_url, role)).applied == ()


def test_what_an_administrator_adds_belongs_to_the_queue_s_owner(role: str, empty_database_url: str) -> None:
    run(empty_database_url, f'create schema graphile_worker authorization "{role}"')
    migrate(as_role(empty_database_url, role))
    run(empty_database_url, "drop table graphile_worker._private_gw_workers, graphile_worker._private_gw_cancellations")

    migrate(empty_database_url)

    assert owners(empty_database_url) == {role}


def test_a_role_that_lacks_rights_on_a_ledger_gets_the_command(role: str, database_url: str) -> None:
    run(database_url, f'grant usage on schema graphile_worker to "{role}"')
    run(database_url, f'grant all on all tables in schema graphile_worker to "{role}"')
    run(database_url, f'revoke all on graphile_worker._private_gw_migrations from "{role}"')

    with pytest.raises(PermissionDeniedError) as rejected:
        state_of(as_role(database_url, role))

    assert str(rejected.value).endswith(f"run as the queue's owner: gw grant KIND {role}")
    with Client(database_url) as client:
        client.grants.grant("viewer", role)
    assert state_of(as_role(database_url, role)).revision == 20
    run(database_url, f'drop owned by "{role}"')


def test_a_server_older_than_12_is_rejected(database_url: str) -> None:
    old = structs.replace(state_of(database_url), server_version=110_022)

    problem = old.problem()

    assert isinstance(problem, ServerTooOldError)
    assert "110022" in str(problem)


def back_to_revision_18(url: str) -> None:
    """Let the ledger end at revision 18; 19 changed nothing but the meaning of a lock, and 20 two functions."""
    run(url, "delete from graphile_worker.migrations where id > 18")


@pytest.mark.parametrize("locked", ["job", "queue"])
def test_a_breaking_step_is_rejected_while_workers_hold_anything(database_url: str, locked: str) -> None:
    back_to_revision_18(database_url)
    with connected(database_url) as schema:
        job = schema.add_job(queue_name="q")
        if locked == "job":
            schema.claim(job, ago="3 hours 59 minutes")
        else:
            schema.run("update :S._private_job_queues set locked_at = now(), locked_by = 'pool-theirs'")

    with pytest.raises(
        LockedJobsError, match=r"locked jobs in schema 'graphile_worker', so migration 000019_locks_by_pool"
    ):
        migrate(database_url)

    assert state_of(database_url).revision == 18


def test_locks_of_workers_that_died_hours_ago_do_not_stop_a_breaking_step(database_url: str) -> None:
    back_to_revision_18(database_url)
    with connected(database_url) as schema:
        schema.claim(schema.add_job(), ago="4 hours 1 minute")
        schema.listen("worker:migrate")

        assert [step.name for step in migrate(database_url).applied] == [
            "000019_locks_by_pool",
            "000020_keep_sequences",
        ]

        notifications = [json.loads(note.payload) for note in schema.connection.notifies(timeout=60, stop_after=2)]
        assert notifications == [{"migrationNumber": 19, "breaking": True}, {"migrationNumber": 20, "breaking": False}]
        assert len(schema.jobs()) == 1


def test_a_step_that_breaks_nothing_runs_beside_running_workers(database_url: str) -> None:
    run(database_url, "delete from graphile_worker.migrations where id > 19")
    with connected(database_url) as schema:
        schema.claim(schema.add_job())

    assert [step.name for step in migrate(database_url).applied] == ["000020_keep_sequences"]


def test_a_claim_in_progress_is_waited_for_and_then_rejected(database_url: str) -> None:
    back_to_revision_18(database_url)
    with connected(database_url) as worker, connected(database_url) as onlooker, ThreadPoolExecutor(1) as thread:
        job = worker.add_job()
        with worker.connection.transaction():
            worker.claim(job)
            migrating = thread.submit(migrate, database_url)
            wait_until(
                lambda: onlooker.run(WAITING_FOR_A_TABLE),
                what="the migration to wait for the claim",
            )
        with pytest.raises(LockedJobsError):
            migrating.result(timeout=60)


def test_a_step_that_wants_the_table_lets_others_pass_and_comes_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "PAUSE_SECONDS", 0.05)
    run(database_url, "drop index graphile_worker.jobs_gw_locked_index, graphile_worker.jobs_gw_failed_index")
    with connected(database_url) as writer, connected(database_url) as other, ThreadPoolExecutor(1) as thread:
        other.add_job()  # so that the task is known, and no session waits for that
        with writer.connection.transaction():
            writer.add_job()
            migrating = thread.submit(migrate, database_url)
            wait_until(
                lambda: other.run(WAITING_FOR_A_TABLE),
                what="the migration to wait for the table",
            )
            other.add_job()  # behind the migration, which gives way
        assert [step.name for step in migrating.result(timeout=60).applied] == ["gw_0004_indexes"]


@pytest.mark.parametrize("revision", [11, 15, 18])
def test_no_step_keeps_others_waiting_for_a_long_transaction(database_url: str, revision: int) -> None:
    run(database_url, f"delete from graphile_worker.migrations where id > {revision}")
    if revision == 11:
        run(database_url, "alter table graphile_worker.migrations drop column breaking")
    with Client(database_url, max_pool_size=1) as client:
        steps = client.migration_plan().steps
    assert len(steps) > 1
    for step in steps:
        gives_way = step.sql.index("set local lock_timeout = '2s'")
        locks = re.compile(r"^(lock table|alter table|create index)", re.MULTILINE)
        assert locks.search(step.sql, 0, gives_way) is None, step.name
        if step.number is not None and step.name != "gw_0001_ledger":
            # The wait for a program that takes the same step comes before, and may be long.
            assert step.sql.index("migrations (id, ") < gives_way, step.name


def test_an_upgrade_gives_up_after_a_long_transaction_and_has_changed_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(migrations, "_MAX_LOCK_RETRIES", 2)
    back_to_revision_18(database_url)
    with connected(database_url) as reader, connected(database_url) as other, ThreadPoolExecutor(1) as thread:
        other.add_job()
        with reader.connection.transaction():
            reader.jobs()  # as a backup of the database does
            migrating = thread.submit(migrate, database_url)
            wait_until(
                lambda: other.run(WAITING_FOR_A_TABLE),
                what="the migration to wait for the table",
            )
            other.add_job()  # behind the migration, which gives way
            with pytest.raises(LockTimeoutError):
                migrating.result(timeout=60)
        assert state_of(database_url).revision == 18
        assert [step.number for step in migrate(database_url).applied] == [19, 20]


def test_tables_that_no_ledger_accounts_for_are_left_alone(empty_database_url: str) -> None:
    run(empty_database_url, "create schema graphile_worker; create table graphile_worker._private_jobs (mine int)")

    with pytest.raises(MigrationError, match="_private_jobs"):
        migrate(empty_database_url)

    assert state_of(empty_database_url).revision is None


def test_a_missing_schema_is_a_problem_that_names_the_remedy(empty_database_url: str) -> None:
    with pytest.raises(SchemaMissingError, match="gw migrate --schema 'odd name'"):
        state_of(empty_database_url, "odd name").raise_unless_usable()


# -- our repairs, after another role undid them


def replace_add_jobs(url: str) -> None:
    """Do to our function what a foreign migration does: same signature, another body."""
    run(
        url,
        "create or replace function graphile_worker.add_jobs(specs graphile_worker.job_spec[], "
        "job_key_preserve_run_at boolean default false) returns setof graphile_worker._private_jobs "
        "language sql as 'select * from graphile_worker._private_jobs where false'",
    )


def test_a_repaired_function_that_was_replaced_is_repaired_again_and_reported(database_url: str) -> None:
    before = catalog(database_url, with_bodies=True)
    replace_add_jobs(database_url)
    assert state_of(database_url).status is SchemaStatus.BEHIND

    report = migrate(database_url)

    assert [(step.name, step.reapplied) for step in report.applied] == [("gw_0002_functions", True)]
    assert report.warnings == (
        "gw_0002_functions ran again: another program, or an earlier version, had left other objects",
    )
    assert catalog(database_url, with_bodies=True) == before


def test_functions_that_graphile_worker_rs_replaced_can_be_worked_with_and_are_replaced_again(
    database_url: str,
) -> None:
    before = catalog(database_url, with_bodies=True)["body"]
    run(database_url, f"set search_path = graphile_worker; {RETIREMENTS}")
    replace_add_jobs(database_url)
    state = state_of(database_url)
    assert (state.problem(), state.has_replaced_functions) == (None, True)
    (warning,) = state.warnings()
    assert "gw migrate --schema graphile_worker" in warning

    report = migrate(database_url)

    assert [step.name for step in report.applied] == ["gw_0002_functions"]
    assert (report.after.status, report.after.warnings()) == (SchemaStatus.CURRENT, ())
    assert catalog(database_url, with_bodies=True)["body"] == before


def test_a_revision_after_those_of_graphile_worker_rs_is_a_warning(database_url: str) -> None:
    run(database_url, f"set search_path = graphile_worker; {RETIREMENTS}")
    run(database_url, "insert into graphile_worker.migrations (id) values (23)")

    state = state_of(database_url)

    assert state.status is SchemaStatus.NEWER
    assert "up to revision 22" in state.warnings()[0]


@pytest.mark.parametrize("name", ["graphile_worker", 'UPPER "Case"', "x'; drop table y; --"])
def test_a_retired_job_is_in_the_table_of_graphile_worker_rs(empty_database_url: str, name: str) -> None:
    migrate(empty_database_url, name)
    with connected(empty_database_url, name) as schema:
        schema.run("create table :S._private_job_retirements (id bigint primary key references :S._private_jobs (id))")
        for job_key in ("one", "many", "removed"):
            schema.claim(schema.add_job(job_key=job_key))

        schema.add_job(job_key="one")
        schema.add_jobs({"job_key": "many"}, {"job_key": "new"})
        schema.call("remove_job", job_key="removed")
        schema.call("remove_job", job_key="unknown")

        retired = [row["id"] for row in schema.run("select id from :S._private_job_retirements order by id")]
        assert retired == [1, 2, 3]


def test_a_worker_installs_functions_that_were_replaced_again_if_it_may(role: str, database_url: str) -> None:
    grants = (
        "grant usage on schema graphile_worker",
        "grant all on all tables in schema graphile_worker",
        "grant all on all sequences in schema graphile_worker",
    )
    for grant in grants:
        run(database_url, f'{grant} to "{role}"')
    run(database_url, f'alter role "{role}" bypassrls')
    replace_add_jobs(database_url)
    log = LogRecorder()
    tasks = TaskRegistry()
    tasks.register("mail", lambda payload: None)

    Runner(as_role(database_url, role), tasks=tasks, logger=log.logger).run_once()
    assert state_of(database_url).has_replaced_functions
    assert ["install gw's functions again" in line for line in log.of("warning")] == [True]

    Runner(database_url, tasks=tasks).run_once()
    assert state_of(database_url).status is SchemaStatus.CURRENT
    run(database_url, f'drop owned by "{role}"')


def test_what_was_dropped_is_made_again(database_url: str) -> None:
    before = catalog(database_url)
    for damage in (
        "drop table graphile_worker._private_gw_workers",
        "drop table graphile_worker._private_gw_pauses",
        "drop table graphile_worker._private_gw_buckets",
        "drop index graphile_worker.jobs_gw_queued_index",
        "drop table graphile_worker._private_gw_migrations",
        "alter table graphile_worker.migrations drop column breaking",
    ):
        run(database_url, damage)
        assert state_of(database_url).status is SchemaStatus.BEHIND, damage

        migrate(database_url)

        assert catalog(database_url) == before, damage
        assert state_of(database_url).status is SchemaStatus.CURRENT
        assert state_of(database_url).breaking_revision == 19


def test_the_table_of_the_rust_port_is_noticed(database_url: str) -> None:
    assert not state_of(database_url).has_rust_workers
    run(database_url, "create table graphile_worker._private_workers (id text primary key)")

    assert state_of(database_url).has_rust_workers


# -- looking ahead


def test_a_plan_changes_nothing_even_where_there_is_no_schema(empty_database_url: str) -> None:
    planned = plan(empty_database_url)

    assert [step.name for step in planned.steps] == FRESH
    assert not state_of(empty_database_url).schema_exists


def test_nothing_to_do_is_an_empty_plan_and_an_empty_script(database_url: str) -> None:
    assert plan(database_url).steps == ()
    assert script(database_url) == ""


def test_the_script_run_by_psql_does_what_migrate_does(empty_database_url: str, database_url: str) -> None:
    if shutil.which("psql") is None and os.environ.get("CI") != "true":
        pytest.skip("psql is not installed")
    psql = ["psql", "-X", "-d", empty_database_url]
    for name in ("graphile_worker", *ODD_NAMES[:IN_SCRIPTS]):
        text = script(empty_database_url, name)
        assert not state_of(empty_database_url, name).schema_exists

        ran = subprocess.run(psql, input=text, text=True, check=True, timeout=120, capture_output=True)

        assert (ran.stdout.splitlines(), ran.stderr) == (["BEGIN", "COMMIT"] * len(FRESH), "")
        assert state_of(empty_database_url, name).status is SchemaStatus.CURRENT, name
        migrate(database_url, name)
        assert catalog(empty_database_url, name, with_bodies=True) == catalog(database_url, name, with_bodies=True)


def test_the_script_of_an_upgrade_rejects_locked_jobs_and_stops_there(database_url: str) -> None:
    if shutil.which("psql") is None and os.environ.get("CI") != "true":
        pytest.skip("psql is not installed")
    back_to_revision_18(database_url)
    text = script(database_url)
    with connected(database_url) as schema:
        schema.claim(schema.add_job())

    psql = ["psql", "-X", "-q", "-d", database_url]
    rejected = subprocess.run(psql, input=text, text=True, timeout=120, capture_output=True)

    assert rejected.returncode != 0
    assert "There are locked jobs present" in rejected.stderr
    assert state_of(database_url).revision == 18

    with connected(database_url) as schema:
        schema.call("force_unlock_workers", worker_ids=["pool-theirs"])
    subprocess.run(psql, input=text, text=True, timeout=120, capture_output=True, check=True)
    assert state_of(database_url).status is SchemaStatus.CURRENT


def test_a_connection_and_a_database_serve_as_well_as_a_string(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        assert len(migrations.plan(connection).steps) == len(FRESH)
        migrations.migrate(connection)
        assert not connection.closed

    assert migrations.migrate(Database(empty_database_url)).applied == ()


def test_in_a_transaction_of_the_caller_all_is_done_or_nothing(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection, connection.transaction(force_rollback=True):
        assert migrations.migrate(connection).after.status is SchemaStatus.CURRENT

    assert not state_of(empty_database_url).schema_exists


def test_checking_takes_one_statement_and_no_transaction(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert schema_state.check(connection).status is SchemaStatus.CURRENT
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
