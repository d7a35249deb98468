"""Programs with which a role of few rights tried to act as the owner of the queue; the server must reject each."""

from __future__ import annotations

from typing import Any

import psycopg

ENDED = """
create temp table mine (
  id bigint, attempts int, max_attempts int, task_id int, job_queue_id int, key text, last_error text,
  locked_by {locked_by}, created_at timestamptz, locked_at timestamptz
)
"""
TRIGGER = """
create trigger t after delete on mine referencing old table as ended
for each statement execute function graphile_worker._private_gw_record_others(604800)
"""


def run_code_as_the_owner(connection: psycopg.Connection[Any]) -> None:
    """Give the function of `gw record-others` rows whose type has a cast of our own, which then runs as the owner."""
    for statement in (
        "create type pg_temp.evil as (x text)",
        "create function pg_temp.boom(pg_temp.evil) returns text language plpgsql as "
        "$$ begin raise exception 'code runs as %', current_user using errcode = 'EVILS'; end $$",
        "create cast (pg_temp.evil as text) with function pg_temp.boom(pg_temp.evil) as implicit",
        ENDED.format(locked_by="pg_temp.evil"),
        TRIGGER,
        "insert into mine values (1, 1, 1, 1, null, 'k', 'e', row('a')::pg_temp.evil, now(), now())",
        "delete from mine",
    ):
        connection.execute(statement)


def forge_history(connection: psycopg.Connection[Any], job_id: int, task_id: int) -> None:
    """Let the function of `gw record-others` write that a worker completed a job."""
    connection.execute(ENDED.format(locked_by="text"))
    connection.execute(TRIGGER)
    connection.execute(
        "insert into mine values (%s, 1, 1, %s, null, null, null, 'theirs', now(), now())", (job_id, task_id)
    )
    connection.execute("delete from mine")


def plant_better_functions(connection: psycopg.Connection[Any], role: str) -> None:
    """Create functions in `public` that fit the values of some drivers better than PostgreSQL's own do."""
    become_superuser = (
        f"if (select rolsuper from pg_roles where rolname = current_user) then alter role {role} superuser; end if"
    )
    for kind in ("numeric", "integer", "text"):
        connection.execute(
            f"create function public.make_interval(secs {kind}) returns interval language plpgsql as "
            f"$$ begin {become_superuser}; return pg_catalog.make_interval(secs => secs::float8); end $$".encode()
        )
    connection.execute(
        "create function public.unnest(bigint[]) returns setof bigint language plpgsql as "
        f"$$ begin {become_superuser}; return query select pg_catalog.unnest($1); end $$".encode()
    )
