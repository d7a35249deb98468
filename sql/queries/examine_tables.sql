-- How much of the tables is dead, and whether anybody sweeps it up.
select tables.relname::text,
       coalesce(statistics.n_live_tup, 0),
       coalesce(statistics.n_dead_tup, 0),
       date_part('epoch', now() - greatest(statistics.last_autovacuum, statistics.last_vacuum)),
       not coalesce(tables.reloptions, '{}') && array['autovacuum_enabled=false', 'autovacuum_enabled=off']
  from pg_class as tables
  join pg_namespace as namespace on namespace.oid = tables.relnamespace
  left join pg_stat_all_tables as statistics on statistics.relid = tables.oid
 where namespace.nspname = %(schema)s::text
   and tables.relkind = 'r'
   and tables.relname in ('_private_jobs', '_private_job_queues')
 order by tables.relname
