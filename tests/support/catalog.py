"""What a schema consists of, object for object, from PostgreSQL's own catalog."""

from __future__ import annotations

import re

import psycopg
from psycopg import sql

Lines = list[str]

QUERIES = {
    "relation": """
        select format('%s %s rls=%s forced=%s acl=%s options=%s', relkind, relname, relrowsecurity, relforcerowsecurity,
                      relacl, reloptions)
          from pg_class where relnamespace = %(oid)s""",
    "column": """
        select format('%s.%s %s %s notnull=%s default=%s identity=%s generated=%s acl=%s', attrelid::regclass,
                      row_number() over (partition by attrelid order by attnum), attname,
                      format_type(atttypid, atttypmod), attnotnull,
                      pg_get_expr(adbin, adrelid), attidentity, attgenerated, attacl)
          from pg_attribute
          join pg_class on pg_class.oid = attrelid and relkind in ('r', 'c', 'v')
          left join pg_attrdef on adrelid = attrelid and adnum = attnum
         where relnamespace = %(oid)s and attnum > 0 and not attisdropped""",
    "constraint": """
        select format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
          from pg_constraint where connamespace = %(oid)s""",
    "index": """
        select pg_get_indexdef(indexrelid, 0, true)
          from pg_index join pg_class on pg_class.oid = indexrelid where relnamespace = %(oid)s""",
    "sequence": """
        select format('%s %s start=%s by=%s min=%s max=%s cache=%s cycle=%s owner=%s.%s', seqrelid::regclass,
                      format_type(seqtypid, null), seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle,
                      refobjid::regclass, refobjsubid)
          from pg_sequence
          join pg_class on pg_class.oid = seqrelid
          left join pg_depend on objid = seqrelid and refclassid = 'pg_class'::regclass and deptype = 'i'
         where relnamespace = %(oid)s""",
    "function": """
        select format('%s(%s) returns %s language=%s volatility=%s strict=%s definer=%s parallel=%s leakproof=%s '
                      'cost=%s rows=%s config=%s acl=%s', proname, pg_get_function_arguments(pg_proc.oid),
                      pg_get_function_result(pg_proc.oid), lanname, provolatile, proisstrict, prosecdef, proparallel,
                      proleakproof, procost, prorows, proconfig, proacl)
          from pg_proc join pg_language on pg_language.oid = prolang where pronamespace = %(oid)s""",
    "view": "select pg_get_viewdef(oid) from pg_class where relkind = 'v' and relnamespace = %(oid)s",
    "type": "select format('%s %s', typtype, typname) from pg_type where typnamespace = %(oid)s",
    "trigger": """
        select pg_get_triggerdef(pg_trigger.oid, true)
          from pg_trigger join pg_class on pg_class.oid = tgrelid where relnamespace = %(oid)s""",
    "policy": "select polname from pg_policy join pg_class on pg_class.oid = polrelid where relnamespace = %(oid)s",
    "comment": """
        select format('%s %s', relname, description)
          from pg_description join pg_class on pg_class.oid = objoid where relnamespace = %(oid)s""",
}
OUR_SETTINGS = re.compile(r'config=\{"search_path=pg_catalog, pg_temp"(,enable_seqscan=(on|off))?\} ')
BODIES = "select format('%s %s', proname, prosrc) from pg_proc where pronamespace = %(oid)s"


def catalog(url: str, schema: str = "graphile_worker", *, with_bodies: bool = False) -> dict[str, Lines]:
    """List every object of the schema with all that distinguishes it, but for the schema's name."""
    queries = QUERIES | ({"body": BODIES} if with_bodies else {})
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("select oid from pg_namespace where nspname = %s", (schema,)).fetchone()
        if row is None:
            return {}
        # What is on the search path is listed without its schema, so that two schemas of other names can be compared.
        connection.execute(sql.SQL("set search_path to {}").format(sql.Identifier(schema)))
        return {
            kind: sorted(str(line) for (line,) in connection.execute(_escaped(text), {"oid": row[0]}))
            for kind, text in queries.items()
        }


def _escaped(text: str) -> str:
    """Double the percent signs that are meant for `format` and not for the driver."""
    return text.replace("%", "%%").replace("%%(oid)s", "%(oid)s")


def without_our_line(found: dict[str, Lines]) -> dict[str, Lines]:
    """Leave out what we add to the shared schema: objects with `gw_` in their names, and the functions' settings."""
    return {
        kind: sorted(OUR_SETTINGS.sub("config= ", line) for line in lines if "gw_" not in line)
        for kind, lines in found.items()
    }
