-- The jobs that silent workers hold, as recovery hooks are asked about them.
-- Our index of locked jobs is chosen for its order, whatever the statistics say.
with locked as materialized (
  select jobs.id, jobs.locked_by
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is not null
   order by jobs.locked_at
   limit 100000
)
select
  jobs.id,
  tasks.identifier,
  jobs.payload::text,
  jobs.attempts,
  jobs.max_attempts,
  jobs.priority,
  date_part('epoch', jobs.run_at),
  date_part('epoch', jobs.created_at),
  date_part('epoch', jobs.updated_at),
  jobs.revision,
  jobs.key,
  jobs.flags::text,
  jobs.job_queue_id,
  queues.queue_name,
  jobs.last_error,
  date_part('epoch', jobs.locked_at),
  jobs.locked_by
from unnest(%(workers)s::text[], %(silent_seconds)s::double precision[]) as silent (id, seconds)
join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
  on jobs.locked_by = silent.id
 and jobs.locked_at <= now() - make_interval(secs => silent.seconds)
 and jobs.id = any(array(select locked.id from locked where locked.locked_by = any(%(workers)s::text[])))
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
order by jobs.id
