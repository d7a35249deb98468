-- The indexes of the schema whose names start with a prefix, and whether each may be used.
select indexes.relname::text, index.indisvalid and index.indisready
  from pg_index as index
  join pg_class as indexes on indexes.oid = index.indexrelid
  join pg_namespace as namespace on namespace.oid = indexes.relnamespace
 where namespace.nspname = %(schema)s::text
   and starts_with(indexes.relname::text, %(prefix)s::text)
 order by indexes.relname
