-- The jobs that dead workers lock, for recovery hooks.
with locked as materialized (
  select jobs.id, jobs.locked_by
   \ir parts/from_locked_jobs.sql
)
select
  \set JOB jobs
  \set PAYLOAD 'jobs.payload::text'
  \ir parts/job_columns.sql
from unnest(%(workers)s::text[], %(inactive_seconds)s::double precision[]) as stale (id, seconds)
join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
  on jobs.locked_by = stale.id
 and jobs.locked_at <= now() - make_interval(secs => stale.seconds)
 and jobs.id = any(array(select locked.id from locked where locked.locked_by = any(%(workers)s::text[])))
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
order by jobs.id
