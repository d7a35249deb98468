"""Functions and operators planted in `public` where they fit the arguments of ours better than PostgreSQL's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from parse_trees import Call
from psycopg import sql

RESOLVED = """
select distinct call.is_operator,
       coalesce(oprname, proname)::text,
       array(
         select format_type(case type >> 40 when 1 then typarray when 2 then typelem else pg_type.oid end, null)
           from unnest(call.types) with ordinality as types (type, place)
           join pg_type on pg_type.oid = type & 4294967295
          order by place
       ),
       call.names,
       format_type(case when is_operator then oprresult else prorettype end, null),
       coalesce(proretset, false)
  from jsonb_to_recordset(%s) as call (is_operator boolean, oid bigint, types bigint[], names text[])
  left join pg_operator on is_operator and pg_operator.oid = call.oid and oprnamespace = 'pg_catalog'::regnamespace
  left join pg_proc on not is_operator and pg_proc.oid = call.oid and pronamespace = 'pg_catalog'::regnamespace
 where coalesce(oprname, proname) is not null
   and not exists (
         select from unnest(call.types) as types (type) left join pg_type on pg_type.oid = type & 4294967295
          where typtype = 'p' or pg_type.oid is null or typnamespace <> 'pg_catalog'::regnamespace
       )
"""


def plant(connection: psycopg.Connection[Any], calls: Iterable[Call], role: str) -> int:
    """Plant a trap for each call as `role` and return how many there are; a trap raises when it is stepped on."""
    described = [
        {"is_operator": each.is_operator, "oid": each.oid, "types": list(each.arguments), "names": list(each.names)}
        for each in set(calls)
    ]
    found = connection.execute(RESOLVED, (psycopg.types.json.Jsonb(described),)).fetchall()
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
    for number, (is_operator, name, types, names, result, is_set) in enumerate(found):
        # Of a function with polymorphic arguments the result may be so too, and any type serves to be chosen.
        returned = "text" if result.startswith("any") or result in ("record", "internal") else result
        _function(connection, f"trap_{number}" if is_operator else name, types, names, returned, is_set=is_set)
        if is_operator:
            arguments = dict(zip(("leftarg", "rightarg") if len(types) == 2 else ("rightarg",), types, strict=True))
            described_arguments = ", ".join(f"{side} = {type_name}" for side, type_name in arguments.items())
            connection.execute(
                f"create operator public.{name} ({described_arguments}, function = public.trap_{number})"
            )
    connection.execute("reset role")
    return len(found)


def _function(
    connection: psycopg.Connection[Any], name: str, types: list[str], names: list[str], result: str, *, is_set: bool
) -> None:
    arguments = ", ".join(
        f'"{names[place]}" {each}' if names and names[place] else each for place, each in enumerate(types)
    )
    connection.execute(
        f'create or replace function public."{name}"({arguments}) returns {"setof " if is_set else ""}{result} '
        f"language plpgsql as $$ begin raise exception 'sprung: {name}' using errcode = 'TRAPS'; end $$"
    )


def sprung(connection: psycopg.Connection[Any], calls: Iterable[Call]) -> list[str]:
    """Return the traps that SQL calls."""
    rows = connection.execute(
        "select oid::bigint, 'operator ' || oid::regoperator from pg_operator "
        "where oprnamespace = 'public'::regnamespace "
        "union all select oid::bigint, 'function ' || oid::regprocedure from pg_proc "
        "where pronamespace = 'public'::regnamespace"
    ).fetchall()
    planted = dict(rows)
    return sorted({planted[each.oid] for each in calls if each.oid in planted})
