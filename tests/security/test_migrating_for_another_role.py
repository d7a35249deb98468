"""A superuser migrates the schema of another role, whose code then has no more rights than that role."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.rows import scalar_row
from support.scripts import without_psql_commands

from gw_core import Client
from gw_core.errors import GraphileWorkerError, PermissionDeniedError
from gw_core.postgres.schema import migrations

CODE = """
create function attack() returns void language plpgsql set search_path from current as $$
begin
  perform set_config('role', 'none', true);
  if (select rolsuper from pg_roles where rolname = current_user) then
    execute format('alter role %s superuser', (select nspowner::regrole from pg_namespace where nspname = current_schema));
  end if;
end $$;
create function as_trigger() returns trigger language plpgsql set search_path from current as
  $$ begin perform attack(); return new; end $$;
create function as_value(x anyelement) returns anyelement language plpgsql immutable set search_path from current as
  $$ begin perform attack(); return x; end $$;
create function is_checked() returns boolean language plpgsql set search_path from current as
  $$ begin perform attack(); return true; end $$;
"""  # noqa: E501 - one statement
"""What the owner of the schema wants a superuser to run. It takes the role of the session back first."""

LEDGER = "create table migrations ({});"
COLUMNS = "id int primary key, ts timestamptz not null default now(), breaking boolean not null default false"
OWN_LEDGER = "create table _private_gw_migrations (id int primary key, name text, applied_at timestamptz default now())"

PREPARED = {
    "a trigger": LEDGER.format(COLUMNS)
    + "create trigger t before insert on migrations for each row execute function as_trigger()",
    "a trigger at the end of the transaction": LEDGER.format(COLUMNS)
    + "create constraint trigger t after insert on migrations deferrable initially deferred "
    "for each row execute function as_trigger()",
    "a trigger on gw's ledger": OWN_LEDGER
    + "; create trigger t after insert on _private_gw_migrations execute function as_trigger()",
    "a trigger on a table that inherits": LEDGER.format("id int, ts timestamptz default now()")
    + "create table child () inherits (migrations); insert into child values (19), (20); "
    "create trigger t before update on child for each row execute function as_trigger()",
    "a rule": LEDGER.format(COLUMNS) + "create rule r as on insert to migrations do also select attack()",
    "a default": LEDGER.format(COLUMNS.replace("now()", "as_value(now())")),
    "a check": LEDGER.format(COLUMNS + ", check (is_checked())"),
    "a domain": "create domain number as int check (is_checked()); "
    + LEDGER.format(COLUMNS.replace("id int", "id number")),
    "an index": LEDGER.format(COLUMNS) + "create index on migrations (as_value(id))",
    "a view": "create view migrations as select as_value(19) as id, now() as ts, true as breaking",
    "a type with a cast": "create type evil as (x text); create function as_text(evil) returns text language plpgsql "
    "set search_path from current as $$ begin perform attack(); return '1'; end $$; "
    "create cast (evil as text) with function as_text(evil) as implicit; "
    + LEDGER.format("id evil, ts timestamptz default now(), breaking boolean default false")
    + "insert into migrations values (row('a')::evil)",
}
"""What the owner may have made before gw is installed: its code runs when a ledger is read or written."""


@pytest.fixture
def tenant(server_url: str) -> Iterator[str]:
    """A role that owns schemas and nothing else; ask for it before the database, so that it is dropped after it."""
    name = f"schema_tenant_{uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"create role {name} login")
    yield name
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"drop role {name}")


class Site:
    """A database in which the tenant prepares schemas, and a superuser migrates them."""

    def __init__(self, url: str, tenant: str) -> None:
        self.url, self.tenant = url, tenant
        (self.superuser,) = self.run("select current_user::text")

    def run(self, statements: str) -> list[object]:
        with psycopg.connect(self.url, autocommit=True, row_factory=scalar_row) as connection:
            cursor = connection.execute(statements.encode())
            return cursor.fetchall() if cursor.description else []

    def prepare(self, schema: str, statements: str = "") -> None:
        """Give the tenant a schema, and make there what the tenant wants."""
        self.run(f"create schema {schema} authorization {self.tenant}")
        self.as_tenant(schema, statements)

    def as_tenant(self, schema: str, statements: str) -> None:
        options = f"-c search_path={schema}"
        with psycopg.connect(self.url, user=self.tenant, options=options, autocommit=True) as connection:
            connection.execute(statements.encode())

    def migrate(self, schema: str) -> None:
        with Client(self.url, schema=schema, max_pool_size=1) as client:
            client.migrate()

    def run_script(self, schema: str) -> None:
        with Client(self.url, schema=schema, max_pool_size=1) as client:
            script = client.migration_script()
        self.run(without_psql_commands(script))

    def has_succeeded(self) -> bool:
        """Return whether the tenant has become a superuser."""
        return self.run(f"select rolsuper from pg_roles where rolname = '{self.tenant}'") == [True]


@pytest.fixture
def site(tenant: str, fresh_url: str) -> Site:
    return Site(fresh_url, tenant)


OWNERS = """
select relowner::regrole::text from pg_class where relnamespace = 'clean'::regnamespace
union
select proowner::regrole::text from pg_proc where pronamespace = 'clean'::regnamespace
"""
DOORS = pytest.mark.parametrize("migrate", [Site.migrate, Site.run_script], ids=["migrate", "script"])


@DOORS
def test_code_of_the_owner_does_not_make_it_a_superuser(site: Site, migrate: Callable[[Site, str], None]) -> None:
    succeeded = []
    for number, (what, statements) in enumerate(PREPARED.items()):
        site.prepare(f"prepared_{number}", CODE + statements)
        with suppress(GraphileWorkerError, psycopg.Error):
            migrate(site, f"prepared_{number}")
        if site.has_succeeded():
            succeeded.append(what)
            site.run(f"alter role {site.tenant} nosuperuser")

    assert not succeeded, succeeded


def test_code_on_the_tables_of_an_older_revision_is_not_run(site: Site) -> None:
    site.prepare("older")
    site.migrate("older")
    site.as_tenant("older", "delete from migrations where id > 18")
    site.as_tenant("older", CODE + "create trigger t before insert on _private_jobs execute function as_trigger()")

    with pytest.raises(PermissionDeniedError, match=r"changing schema 'older' could run function older.as_trigger\(\)"):
        site.migrate("older")

    assert not site.has_succeeded()


@DOORS
def test_the_owner_s_own_code_runs_when_the_owner_migrates(site: Site, migrate: Callable[[Site, str], None]) -> None:
    site.prepare("own", CODE + PREPARED["a trigger"])
    site.url = make_conninfo(site.url, user=site.tenant)

    migrate(site, "own")

    assert site.run("select count(*) from own.migrations") == [20]


def test_the_error_names_the_code_that_would_run_and_the_role_that_can_migrate(site: Site) -> None:
    site.prepare("prepared", CODE + PREPARED["a trigger"])

    with pytest.raises(PermissionDeniedError) as rejected:
        site.migrate("prepared")

    assert str(rejected.value) == (
        f"changing schema 'prepared' could run function prepared.as_trigger() of role {site.tenant} "
        f"with the rights of role {site.superuser}; run gw migrate as {site.tenant}"
    )


@DOORS
def test_what_a_superuser_installs_belongs_to_the_owner(site: Site, migrate: Callable[[Site, str], None]) -> None:
    site.prepare("clean")

    migrate(site, "clean")

    assert set(site.run(OWNERS)) == {site.tenant}


def test_a_role_that_cannot_act_as_the_owner_gets_an_error_that_names_it(intruder: str, site: Site) -> None:
    site.prepare("other")
    site.migrate("other")
    site.run("delete from other._private_gw_migrations where id = 3")
    site.run(f"grant all on schema other to {intruder}; grant all on all tables in schema other to {intruder}")
    site.url = make_conninfo(site.url, user=intruder)

    with pytest.raises(PermissionDeniedError) as rejected:
        site.migrate("other")

    assert str(rejected.value) == (
        f"schema 'other' belongs to role {site.tenant}, and role {intruder} cannot act as it; "
        f"run gw migrate as {site.tenant}"
    )


def test_the_role_of_the_session_is_what_it_was_after_a_step(site: Site) -> None:
    site.prepare("clean")
    with psycopg.connect(site.url, row_factory=scalar_row) as connection:
        migrations.migrate(connection, "clean")

        assert connection.execute("select current_user").fetchone() == site.superuser
