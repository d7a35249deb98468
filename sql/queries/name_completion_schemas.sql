-- The first schemas that have a queue and start with a prefix.
select nspname::text
  from pg_catalog.pg_class
  join pg_catalog.pg_namespace as schemas on schemas.oid = relnamespace
 where relname = '_private_jobs'
   and relkind in ('r', 'p')
   and starts_with(nspname::text, %(prefix)s::text)
 order by nspname
 limit %(limit)s::bigint
