-- The workers that keep heartbeats in the Rust port's table, in the shape of heartbeat_list.sql; none tells its tasks.
select
  workers.id,
  date_part('epoch', workers.last_heartbeat_at),
  null::text[]
from :GRAPHILE_WORKER_SCHEMA._private_workers as workers
order by workers.id
limit 10000
