-- The workers of the Rust port's table, in the shape of snapshot_heartbeats.sql; pools of ours are there as well.
select
  workers.id,
  date_part('epoch', workers.started_at),
  date_part('epoch', workers.last_heartbeat_at),
  date_part('epoch', now() - workers.last_heartbeat_at),
  null::text,
  null::integer,
  null::text,
  workers.metadata::text
from :GRAPHILE_WORKER_SCHEMA._private_workers as workers
order by workers.last_heartbeat_at desc, workers.id
limit %(workers)s
