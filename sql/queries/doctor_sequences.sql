-- How much of each identity column's numbers is used up.
select tables.relname::text,
       coalesce(pg_sequence_last_value(sequence.seqrelid::regclass), 0)::float8 / sequence.seqmax::float8
  from pg_sequence as sequence
  join pg_depend as dependency on dependency.objid = sequence.seqrelid and dependency.deptype = 'i'
  join pg_class as tables on tables.oid = dependency.refobjid
  join pg_namespace as namespace on namespace.oid = tables.relnamespace
 where namespace.nspname = %(schema)s::text
   and has_sequence_privilege(sequence.seqrelid, 'usage, select')
 order by tables.relname
