-- The limits by task, with how many of its jobs are locked now, whether an index is there for the field, and how many
-- jobs may start now; null where the limit has no rate, or one for each value of a field.
\set TASK tasks.id
with locked as materialized (
  select jobs.task_id
   \ir parts/from_locked_jobs.sql
)
select
  limits.task,
  limits.most_running,
  limits.per_period,
  limits.period_seconds,
  limits.burst,
  limits.set_by,
  date_part('epoch', limits.set_at),
  (select count(*) from locked where locked.task_id = tasks.id),
  limits.field,
  limits.field is null
  or
  \ir parts/has_field_index.sql
  ,
  case
    when limits.field is null then
    \ir parts/startable_jobs.sql
  end
from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
cross join (select clock_timestamp() as now) as clock
left join :GRAPHILE_WORKER_SCHEMA._private_gw_buckets as buckets on buckets.task = limits.task and buckets.value = ''
left join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.identifier = limits.task
order by limits.task
