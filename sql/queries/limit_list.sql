-- The limits by task, with how many of its jobs are locked now, and whether an index is there for the field.
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
from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
left join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.identifier = limits.task
order by limits.task
