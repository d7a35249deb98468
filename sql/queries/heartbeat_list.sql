-- The workers that send heartbeats, the latest heartbeat first, up to `limit` (null: all).
-- The age is measured here, because the client's clock may be wrong.
select
  workers.id,
  date_part('epoch', workers.started_at),
  date_part('epoch', workers.last_heartbeat_at),
  date_part('epoch', now() - workers.last_heartbeat_at),
  workers.host,
  workers.pid,
  workers.version,
  workers.metadata::text
from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
order by workers.last_heartbeat_at desc, workers.id
limit %(limit)s::bigint
