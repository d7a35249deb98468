-- How many rows of the tables are dead, whether autovacuum is on, at how many dead rows it starts, and whether it always
-- removes their index entries. PostgreSQL 14 and later leave them while few pages have dead rows, by default.
select tables.relname::text,
       coalesce(statistics.n_live_tup, 0),
       coalesce(statistics.n_dead_tup, 0),
       date_part('epoch', now() - greatest(statistics.last_autovacuum, statistics.last_vacuum)),
       not coalesce(tables.reloptions, '{}') operator(pg_catalog.&&) array['autovacuum_enabled=false', 'autovacuum_enabled=off'],
       coalesce(own.threshold, current_setting('autovacuum_vacuum_threshold')::float)
       + coalesce(own.scale_factor, current_setting('autovacuum_vacuum_scale_factor')::float) * greatest(tables.reltuples, 0),
       case when own.index_cleanup is null then current_setting('server_version_num')::integer < 140000
            else own.index_cleanup in ('on', 'true', 'yes', '1') end
  from pg_class as tables
  join pg_namespace as namespace on namespace.oid = tables.relnamespace
  left join pg_stat_all_tables as statistics on statistics.relid = tables.oid
 cross join lateral (
         select max(option_value) filter (where option_name = 'autovacuum_vacuum_threshold')::float as threshold,
                max(option_value) filter (where option_name = 'autovacuum_vacuum_scale_factor')::float as scale_factor,
                max(option_value) filter (where option_name = 'vacuum_index_cleanup') as index_cleanup
           from pg_options_to_table(tables.reloptions)
       ) as own
 where namespace.nspname = %(schema)s::text
   and tables.relkind = 'r'
   and tables.relname in ('_private_jobs', '_private_job_queues')
 order by tables.relname
