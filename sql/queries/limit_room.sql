-- What the limit of a task leaves: how many more of its jobs may be locked, how many may start by its bucket, and the
-- tokens added per second, the size of the bucket, and the time of all this; null where there is no such limit.
-- This runs after limit_lock.sql, so its snapshot has the claims of every session that had the lock before.
with locked as materialized (
  select jobs.task_id
   \ir parts/from_locked_jobs.sql
)
select
  limits.most_running - (select count(*) from locked where locked.task_id = %(task_id)s::int),
  \ir parts/startable_jobs.sql
  ,
  limits.per_period / limits.period_seconds,
  limits.burst,
  clock.now
from (select clock_timestamp() as now) as clock
cross join :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
left join :GRAPHILE_WORKER_SCHEMA._private_gw_buckets as buckets on buckets.task = limits.task and buckets.value = ''
where limits.task = %(task)s::text
