-- What the statistics hold: rows, counted as far as a status counts them, and by an estimate; bytes, the first and the last
-- minute; and how many live workers record them, and how many there are.
\set TABLE tables
select
  (select count(*) from (select from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics limit 10001) as some_rows),
  \ir parts/estimated_rows.sql
  ,
  pg_total_relation_size(tables.oid::regclass),
  (select date_part('epoch', min(first.minute)) from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics as first),
  (select date_part('epoch', max(last.minute)) from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics as last),
  date_part('epoch', now()),
  workers.recording,
  workers.live
  from pg_class as tables
  join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
 cross join (
    select count(*) filter (where metadata->>'statistics' = 'true') as recording, count(*) as live
      from :GRAPHILE_WORKER_SCHEMA._private_gw_workers
     where last_heartbeat_at > now() - make_interval(secs => %(recent_seconds)s::double precision)
  ) as workers
 where namespaces.nspname = %(schema)s::text
   and tables.relname = '_private_gw_statistics'
