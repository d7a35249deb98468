"""Functions that run with their owner's rights: who can execute them, and what they reject."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attacks
import psycopg
import pytest
from psycopg.rows import namedtuple_row
from support.databases import install_schema

from gw_core import Client
from gw_core.front_ends import SchemaStatus

SCHEMA = "graphile_worker"
SEARCH_PATH = "search_path=pg_catalog, pg_temp"

DEFINERS = """
select oid::regprocedure::text as name,
       prorettype = 'trigger'::regtype as is_trigger,
       coalesce(proconfig, '{}') as settings,
       exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0) as is_public
  from pg_proc
 where prosecdef and pronamespace = to_regnamespace(%s)
"""
PARTITION_FUNCTIONS = ("_private_gw_expire_history()", "_private_gw_make_history_partition(current_date + 5)")


def connected(url: str, **options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, **options)


# -- rules for every function with its owner's rights, found in the catalog ------------------------------------------


def definers(connection: psycopg.Connection[Any]) -> list[Any]:
    found = connection.cursor(row_factory=namedtuple_row).execute(DEFINERS, (SCHEMA,)).fetchall()
    assert len(found) >= 3
    return found


def test_public_can_execute_none_of_them(installed: str) -> None:
    with connected(installed) as connection:
        assert [each.name for each in definers(connection) if each.is_public] == []


def test_each_has_a_search_path_of_its_own(installed: str) -> None:
    with connected(installed) as connection:
        assert [each.name for each in definers(connection) if SEARCH_PATH not in each.settings] == []


def test_each_trigger_function_rejects_other_tables(installed: str) -> None:
    with connected(installed) as connection:
        connection.execute("create table other (like graphile_worker._private_jobs)")
        triggers = [each.name for each in definers(connection) if each.is_trigger]
        assert triggers
        for name in triggers:
            connection.execute(f"create trigger t after delete on other execute function {name}".encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only a trigger on"):
                connection.execute("delete from other")
            connection.execute("drop trigger t on other")


# -- attacks -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def attacker(intruder: str, installed: str) -> Iterator[psycopg.Connection[Any]]:
    """The session of a role that has USAGE on the schema alone."""
    with connected(installed) as connection:
        connection.execute(f"grant usage on schema graphile_worker to {intruder}".encode())
    with connected(installed, user=intruder) as session:
        yield session


def test_a_stranger_runs_no_code_as_the_owner(attacker: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function"):
        attacks.run_code_as_the_owner(attacker)


def test_a_stranger_writes_no_history(attacker: psycopg.Connection[Any], installed: str) -> None:
    with Client(installed) as client:
        job = client.add("mail", {})
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function"):
            attacks.forge_history(attacker, job.id, 1)
        assert client.history.list().attempts == ()


def test_a_stranger_neither_makes_nor_drops_partitions(attacker: psycopg.Connection[Any]) -> None:
    for call in PARTITION_FUNCTIONS:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function"):
            attacker.execute(f"select graphile_worker.{call}".encode())


def test_a_role_that_may_execute_the_trigger_s_function_cannot_give_it_rows(
    attacker: psycopg.Connection[Any], intruder: str, installed: str
) -> None:
    with connected(installed) as connection:
        connection.execute(f"grant execute on all functions in schema graphile_worker to {intruder}".encode())

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only a trigger on"):
        attacks.run_code_as_the_owner(attacker)


# -- schemas that are out there already


def weaken(connection: psycopg.Connection[Any]) -> None:
    """Make the functions what they were in early versions: open to PUBLIC, for every table, with errors that show."""
    for each in definers(connection):
        row = connection.execute("select pg_get_functiondef(%s::regprocedure)", (each.name,)).fetchone()
        assert row is not None
        without_check = re.sub(r"  if tg_relid .*?end if;\n", "", row[0], flags=re.DOTALL)
        connection.execute(re.sub(r"  exception when others then\n.*\n", "", without_check).encode())
        connection.execute(f"grant execute on function {each.name} to public".encode())
    connection.execute("delete from graphile_worker._private_gw_migrations where id = 5")


def test_an_installed_schema_is_repaired(attacker: psycopg.Connection[Any], intruder: str, installed: str) -> None:
    with connected(installed) as connection:
        weaken(connection)
    with attacker.transaction(force_rollback=True), pytest.raises(psycopg.DatabaseError, match="code runs as"):
        attacks.run_code_as_the_owner(attacker)

    assert [step.name for step in install_schema(installed).applied] == ["gw_0005_history_functions"]

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        attacks.run_code_as_the_owner(attacker)


def test_roles_that_write_history_may_make_partitions_after_the_upgrade(intruder: str, installed: str) -> None:
    with connected(installed) as connection:
        weaken(connection)
        connection.execute(f"grant usage on schema graphile_worker to {intruder}".encode())
        connection.execute(f"grant insert on graphile_worker._private_gw_history to {intruder}".encode())

    install_schema(installed)

    with connected(installed, user=intruder) as worker:
        for call in PARTITION_FUNCTIONS:
            worker.execute(f"select graphile_worker.{call}".encode())


def test_a_schema_restored_without_its_rights_must_be_migrated_first(installed: str) -> None:
    with connected(installed) as connection:
        connection.execute("grant execute on all functions in schema graphile_worker to public")

    with Client(installed) as client:
        assert client.migration_plan().state.status is SchemaStatus.BEHIND
    report = install_schema(installed)
    assert [step.name for step in report.applied] == ["gw_0005_history_functions"]
    assert "gw_0005_history_functions ran again" in report.warnings[0]
