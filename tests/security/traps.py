"""Functions and operators planted in `public` where they fit the arguments of ours better than PostgreSQL's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def plant(connection: psycopg.Connection[Any], calls: Iterable[Call], role: str, *, others: Sequence[str] = ()) -> int:
    """Plant a trap for each call as `role` and return how many there are; a trap raises when it is stepped on.

    Each call also gets traps in which one argument is of one of the `others` types.
    """
    described = [
        {"is_operator": each.is_operator, "oid": each.oid, "types": list(each.arguments), "names": list(each.names)}
        for each in set(calls)
    ]
    found = connection.execute(RESOLVED, (psycopg.types.json.Jsonb(described),)).fetchall()
    traps = {
        (is_operator, name, variant): (names, result, is_set)
        for is_operator, name, types, names, result, is_set in sorted(found, key=lambda row: len(row[3]))
        for variant in _variants(types, others)
    }
    made = [
        statement
        for number, ((is_operator, name, types), (names, result, is_set)) in enumerate(traps.items())
        for statement in _made(number, name, types, names, result, is_operator=is_operator, is_set=is_set)
    ]
    with connection.transaction():
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        connection.execute(";".join(made).encode())
    return len(traps)


def _variants(types: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, ...]]:
    yield tuple(types)
    for place in range(len(types)):
        for other in others:
            yield (*types[:place], other, *types[place + 1 :])


def _made(
    number: int,
    name: str,
    types: Sequence[str],
    names: Sequence[str],
    result: str,
    *,
    is_operator: bool,
    is_set: bool,
) -> Iterator[str]:
    """Yield the statements that make a trap."""
    function = f"trap_{number}" if is_operator else name
    arguments = ", ".join(
        f'"{names[place]}" {each}' if names and names[place] else each for place, each in enumerate(types)
    )
    # Of a function with polymorphic arguments the result may be so too, and any type serves to be chosen.
    returned = "text" if result.startswith("any") or result in ("record", "internal") else result
    yield (
        f'create or replace function public."{function}"({arguments}) returns {"setof " if is_set else ""}{returned} '
        f"language plpgsql as $$ begin raise exception 'sprung: {function}' using errcode = 'TRAPS'; end $$"
    )
    if is_operator:
        sides = zip(("leftarg", "rightarg") if len(types) == 2 else ("rightarg",), types, strict=True)
        described = ", ".join(f"{side} = {type_name}" for side, type_name in sides)
        yield f"create operator public.{name} ({described}, function = public.{function})"


def sprung(connection: psycopg.Connection[Any], calls: Iterable[Call]) -> list[str]:
    """Return the traps that SQL calls."""
    rows = connection.execute(
        "select oid::bigint, 'operator '::text || oid::regoperator::text from pg_operator "
        "where oprnamespace = 'public'::regnamespace::oid "
        "union all select oid::bigint, 'function '::text || oid::regprocedure::text from pg_proc "
        "where pronamespace = 'public'::regnamespace::oid"
    ).fetchall()
    planted = dict(rows)
    return sorted({planted[each.oid] for each in calls if each.oid in planted})
