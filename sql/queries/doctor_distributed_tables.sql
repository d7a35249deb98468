-- The tables of the queue that Citus distributes. Its catalog exists only where Citus is installed, so ask for that first.
select tables.relname::text
  from pg_class as tables
  join pg_namespace as namespace on namespace.oid = tables.relnamespace
  join pg_catalog.pg_dist_partition as distributed on distributed.logicalrelid::oid = tables.oid
 where namespace.nspname = %(schema)s::text
 order by tables.relname
