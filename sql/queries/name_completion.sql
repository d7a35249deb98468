-- The first names of `:TABLE` that start with a prefix, for completion in a shell.
-- The collation of the column need not order bytes, so the prefix does not bound the scan; a timeout does.
\set TABLE _private_tasks
\set NAME identifier
select known.:NAME
  from :GRAPHILE_WORKER_SCHEMA.:TABLE as known
 where starts_with(known.:NAME, %(prefix)s::text)
 order by known.:NAME
 limit %(limit)s::bigint
