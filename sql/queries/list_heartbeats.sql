-- Every pool that gives signs of life, with the seconds since the last one.
select id,
       date_part('epoch', started_at),
       date_part('epoch', last_heartbeat_at),
       date_part('epoch', now() - last_heartbeat_at),
       host,
       pid,
       version,
       metadata::text
  from :GRAPHILE_WORKER_SCHEMA._private_gw_workers
 order by started_at, id
