-- When workers that record statistics were alive, in seconds since 1970: those with heartbeats, and those that have rows.
-- The row of the last minute may arrive some seconds late. Also the server's time, in every row.
select date_part('epoch', now()), begins, ends
  from (select) as one
  left join (
    select date_part('epoch', started_at) as begins,
           date_part('epoch', last_heartbeat_at) - 10::double precision as ends
      from :GRAPHILE_WORKER_SCHEMA._private_gw_workers
     where metadata->>'statistics' = 'true'
    union all
    select date_part('epoch', min(minute)),
           date_part('epoch', max(minute)) + 60::double precision
      from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics
     where minute >= now() - make_interval(secs => %(back_seconds)s::double precision)
     group by worker_id
  ) as workers on true
