-- The workers that send heartbeats, the latest heartbeat first, up to `limit` (null: all).
-- `:WORKERS` may be the table of graphile_worker_rs, which has no columns for `:DETAILS`. gw's workers write to that
-- table too, if it exists, so one worker may be in both. Its rows of paused queues keep the sweep of graphile_worker_rs
-- from releasing them; they are not workers.
-- The age is measured here, because the client's clock may be wrong.
\set WORKERS _private_gw_workers
\set DETAILS 'workers.host, workers.pid, workers.version'
select
  workers.id,
  date_part('epoch', workers.started_at),
  date_part('epoch', workers.last_heartbeat_at),
  date_part('epoch', now() - workers.last_heartbeat_at),
  :DETAILS,
  workers.metadata::text
from :GRAPHILE_WORKER_SCHEMA.:WORKERS as workers
where not starts_with(workers.id, 'gw-pause:')
order by workers.last_heartbeat_at desc, workers.id
limit %(limit)s::bigint
