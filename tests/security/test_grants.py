"""What `gw grant` gives is complete, survives upgrades, and is taken back as a whole."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from support.databases import install_schema
from support.rust_schema import RETIREMENTS, WORKERS
from support.scripts import without_psql_commands
from support.shell import CliResult, InProcessShell
from support.waiting import wait_until

from gw_core import Client
from gw_core.domain.rules.roles import FUNCTIONS_OF_RUST, OF_RUST, RIGHTS, TABLES
from gw_core.errors import InvalidInputError, PermissionDeniedError
from gw_core.front_ends import RoleKind
from gw_core.postgres.schema import grants

SCHEMA = "graphile_worker"
HOSTILE = "ro\"le'; drop table x; -- \x1b[31m \\ %s"
GW = Callable[..., CliResult]
Create = Callable[..., str]


def execute(url: str, statement: str, *names: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        text = sql.SQL(statement).format(*map(sql.Identifier, names)) if names else statement.encode()  # type: ignore[arg-type]
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def role(server_url: str) -> Iterator[Create]:
    """Return what creates a role; asked for before the database, so that the roles are dropped after it."""
    made: list[str] = []

    def create(name: str = "role", options: str = "login") -> str:
        made.append(f"{name} {uuid4().hex[:10]}")
        execute(server_url, f"create role {{}} {options}", made[-1])
        return made[-1]

    yield create
    for each in made:
        execute(server_url, "drop role if exists {}", each)


@pytest.fixture
def url(role: Create, installed: str) -> str:
    return installed


@pytest.fixture
def gw(url: str, tmp_path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> GW:  # type: ignore[no-untyped-def]
    return InProcessShell(tmp_path, database=url, capsys=capsys, monkeypatch=monkeypatch).gw


def granted(url: str, schema: str = SCHEMA) -> dict[tuple[str, str], int]:
    """Return how many statements each role lacks."""
    with Client(url, schema=schema) as client:
        return {(each.role, str(each.kind)): len(each.missing) for each in client.grants.list()}


def as_role(url: str, role: str) -> str:
    return make_conninfo(url, options="-c role=" + re.sub(r"([\\ ])", r"\\\1", role))


def test_the_rights_name_every_table_and_function_of_the_schema(url: str) -> None:
    """A new table is missing here until someone decides who may do what with it."""
    tables = execute(
        url,
        f"select relname::text from pg_class where relnamespace = '{SCHEMA}'::regnamespace "
        "and relkind in ('r', 'p') and relname !~ '_[0-9]{8}$'",
    )
    assert {name for (name,) in tables} == set(TABLES) - {OF_RUST}

    functions = {
        name for rights in RIGHTS.values() for name, privileges in rights.items() if privileges == ("execute",)
    } - set(FUNCTIONS_OF_RUST)
    known = execute(url, f"select distinct proname::text from pg_proc where pronamespace = '{SCHEMA}'::regnamespace")
    assert functions == {name for (name,) in known} - {"_private_gw_record_others"}


def test_what_was_granted_to_several_roles_is_taken_back_from_one_and_leaves_nothing_behind(
    gw: GW, url: str, role: Create
) -> None:
    first, second = role(), role()
    for kind, each in (("worker", first), ("worker", second), ("viewer", second)):
        assert gw("grant", kind, each).code == 0
    assert gw("grant", "worker", first).out == f"{first}\n"
    assert granted(url) == {(first, "worker"): 0, (second, "viewer"): 0, (second, "worker"): 0}

    assert gw("revoke", second).code == 0

    execute(url, "drop role {}", second)  # which fails while any right or policy of the role is left
    assert granted(url) == {(first, "worker"): 0}
    assert gw("revoke", first).code == 0
    assert gw("revoke", first).code == 6
    assert execute(url, "select polname from pg_policy") == []


def test_the_printed_statements_do_the_same_whatever_the_names_are(role: Create, fresh_url: str) -> None:
    schema, name = 'odd "sch\'ema" 100%', role(HOSTILE)
    install_schema(fresh_url, schema)
    with Client(fresh_url, schema=schema) as client:
        for kind in RoleKind:
            script = "".join(f"{each};\n" for each in client.grants.statements(kind, name))
            assert "\x1b" not in script
            execute(fresh_url, script)
        assert granted(fresh_url, schema) == {(name, str(kind)): 0 for kind in RoleKind}
        execute(fresh_url, "".join(f"{each};\n" for each in client.grants.revoke_statements(name)))
    execute(fresh_url, "drop role {}", name)


@pytest.mark.parametrize("kind", [RoleKind.WORKER, RoleKind.ADDER, RoleKind.OPERATOR])
def test_a_migration_gives_the_roles_what_they_need_on_the_tables_of_graphile_worker_rs(
    gw: GW, url: str, role: Create, kind: RoleKind
) -> None:
    name = role()
    assert gw("grant", kind, name).code == 0
    execute(url, f"set search_path = {SCHEMA}; {WORKERS} {RETIREMENTS}")
    execute(url, f"select {SCHEMA}.add_job('mail', job_key => 'k')")
    execute(url, f"update {SCHEMA}._private_jobs set locked_at = now(), locked_by = 'graphile_worker_x'")
    replace = f"select {SCHEMA}.add_job('mail', job_key => 'k')"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute(as_role(url, name), replace)

    assert gw("migrate").code == 0

    assert granted(url) == {(name, str(kind)): 0}
    execute(as_role(url, name), replace)
    assert execute(url, f"select id from {SCHEMA}._private_job_retirements") == [(1,)]
    execute(url, "drop owned by {}", name)


@pytest.mark.parametrize("way", ["migrate", "script"])
def test_a_migration_gives_the_roles_what_they_need_on_new_tables(gw: GW, url: str, role: Create, way: str) -> None:
    roles = {kind: role() for kind in RoleKind}
    roles |= {f"second {kind}": role() for kind in RoleKind}  # type: ignore[dict-item]
    for kind, name in roles.items():
        assert gw("grant", kind.rpartition(" ")[2], name).code == 0
    execute(
        url,
        f"set search_path = {SCHEMA}; drop table _private_gw_waiting, _private_gw_edges, _private_gw_pauses; "
        "drop function _private_gw_end_members; "
        "delete from _private_gw_migrations where id > 2",
    )

    if way == "migrate":
        report = gw("migrate", "--json")
        assert report.code == 0
    else:
        script = gw("migrate", "--sql").out
        execute(url, without_psql_commands(script))

    with Client(url) as client:
        assert [each for grant in client.grants.list() for each in grant.missing] == []
    assert gw("pause", "all").code == 0
    seen = gw("pauses", "-c", as_role(url, roles[RoleKind.VIEWER]))
    assert (seen.code, "all" in seen.out) == (0, True)


def test_a_right_that_was_revoked_is_listed_and_granted_again(gw: GW, url: str, role: Create) -> None:
    name = role()
    gw("grant", "viewer", name)
    execute(url, f"revoke select on {SCHEMA}._private_gw_limits from {{}}", name)
    execute(url, f"drop policy gw_viewer on {SCHEMA}._private_gw_pauses")

    assert granted(url) == {(name, "viewer"): 2}
    assert "in 2 statements" in gw("migrate", "--plan").err
    assert "in 2 statements" in gw("migrate").err
    assert "Nothing to do" in gw("migrate", "--plan").err
    assert granted(url) == {(name, "viewer"): 0}


def test_what_only_the_owner_may_is_not_advised_to_be_granted(gw: GW, url: str, role: Create) -> None:
    name = role()
    gw("grant", "operator", name)

    denied = gw("limit", "mail", "--running", "1", "--field", "tenant", "-c", as_role(url, name))

    assert denied.code == 4
    assert "must be owner of table _private_jobs; run this as the queue's owner" in denied.err
    assert "gw grant" not in denied.err


def test_a_role_that_may_not_connect_gets_the_statement_that_lets_it(gw: GW, url: str, role: Create) -> None:
    name, database = role(), str(conninfo_to_dict(url)["dbname"])
    execute(url, "revoke connect on database {} from public", database)

    denied = gw("list", "-c", make_conninfo(url, user=name))

    assert denied.code == 4
    assert f'grant connect on database "{database}" to that role' in denied.err


def test_only_the_owner_grants_and_only_to_others(gw: GW, url: str, role: Create) -> None:
    owner, name, other = role("owner", "superuser"), role(), role()
    gw("grant", "operator", name)
    execute(url, "alter role {} nosuperuser", owner)

    for line in (("grant", "worker", other), ("revoke", name)):
        denied = gw(*line, "-c", as_role(url, name))
        assert (denied.code, "lacks a right" in denied.err) == (4, True), denied
    assert (gw("grant", "worker", "no such role").code, gw("grant", "postman", name).code) == (2, 2)
    execute(url, f"alter table {SCHEMA}._private_gw_migrations owner to {{}}", owner)
    with Client(url) as client, pytest.raises(InvalidInputError, match="owns the queue"):
        client.grants.grant("viewer", owner)
    with Client(as_role(url, other)) as client, pytest.raises(PermissionDeniedError):
        client.grants.grant("viewer", name)
    execute(url, f"alter table {SCHEMA}._private_gw_migrations owner to current_user")
    execute(url, "drop owned by {}", owner)


def test_a_table_in_use_is_waited_for(gw: GW, url: str, role: Create, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "PAUSE_SECONDS", 0.05)
    name = role()
    waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with psycopg.connect(url) as user, Client(url) as client:
        user.execute(f"select from {SCHEMA}._private_jobs")
        granting = threading.Thread(target=client.grants.grant, args=("worker", name))
        granting.start()
        wait_until(lambda: execute(url, waits) == [(1,)], what="the policy to wait for the table")
        user.rollback()
        granting.join(60)

    assert granted(url) == {(name, "worker"): 0}
