-- The limits by task, with how many of its jobs are locked now.
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
  (
    select count(*)
      from locked
      join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = locked.task_id
     where tasks.identifier = limits.task
  )
from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
order by limits.task
