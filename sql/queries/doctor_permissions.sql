-- The tables of the queue, whether our role may do everything with each, and whether row level security hides its rows.
select tables.relname::text,
       has_schema_privilege(tables.relnamespace, 'usage')
         and has_table_privilege(tables.oid, 'select')
         and has_table_privilege(tables.oid, 'insert')
         and has_table_privilege(tables.oid, 'update')
         and has_table_privilege(tables.oid, 'delete'),
       'all' <>
       \set TABLE tables.oid
       \set COMMAND r
       \ir parts/rows_shown.sql
  from pg_class as tables
  join pg_namespace as namespace on namespace.oid = tables.relnamespace
 where namespace.nspname = %(schema)s::text
   and tables.relkind = 'r'
   and tables.relname in ('_private_jobs', '_private_job_queues', '_private_tasks', '_private_known_crontabs')
 order by tables.relname
