-- The workers in the table of graphile_worker_rs, with the columns of heartbeat_list.sql.
-- gw's workers write to that table too, if it exists, so one worker may be in both. The rows of paused queues keep the
-- sweep of graphile_worker_rs from releasing them; they are no workers.
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
where not starts_with(workers.id, 'gw-pause:')
order by workers.last_heartbeat_at desc, workers.id
limit %(limit)s::bigint
