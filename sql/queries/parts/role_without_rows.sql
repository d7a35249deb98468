-- This role's name when row security shows it no job for :COMMAND, else null.
(select current_user::text
   from pg_class as jobs
   join pg_namespace as namespaces on namespaces.oid = jobs.relnamespace
  where namespaces.nspname = %(schema)s::text
    and jobs.relname = '_private_jobs'
    and 'none' =
    \set TABLE jobs.oid
    \ir parts/rows_shown.sql
)
