-- The heartbeats, minutes of statistics and runs of cron items that lie more than a minute in the future: the kind of each,
-- its name, and how many seconds. The server wrote them before its clock was set back.
select future.kind, future.name, date_part('epoch', future.at - now())
  from (
         select 'worker', workers.id, workers.last_heartbeat_at
           from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
         union all
         select 'statistics', '', (select max(minute) from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics)
         union all
         select 'cron', crontabs.identifier, crontabs.last_execution
           from :GRAPHILE_WORKER_SCHEMA._private_known_crontabs as crontabs
       ) as future (kind, name, at)
 where future.at > now() + interval '1 minute'
 order by future.at desc, future.kind, future.name
