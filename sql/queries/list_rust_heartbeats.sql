-- Every worker the Rust port's table knows, in the shape of list_heartbeats.sql; pools of ours are there as well.
select id,
       date_part('epoch', started_at),
       date_part('epoch', last_heartbeat_at),
       date_part('epoch', now() - last_heartbeat_at),
       null::text,
       null::integer,
       null::text,
       metadata::text
  from :GRAPHILE_WORKER_SCHEMA._private_workers
 order by started_at, id
