-- The indexes of a task's fields, and whether each may be used.
select indexes.relname::text, index.indisvalid
  from pg_index as index
  join pg_class as indexes on indexes.oid = index.indexrelid
  join pg_namespace as namespace on namespace.oid = indexes.relnamespace
 where namespace.nspname = %(schema)s::text
   and starts_with(indexes.relname::text, %(prefix)s::text)
