-- The first jobs in order of their id, filtered; the payload only when asked for.
-- The state is derived here and nowhere else: running, failed, backoff (failed before, waits), scheduled, ready.
select
  jobs.id,
  tasks.identifier,
  case when %(with_payload)s then jobs.payload::text else '' end,
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
  jobs.locked_by,
  state.name
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
cross join lateral (
  select case
           when jobs.locked_at is not null then 'running'
           when jobs.attempts >= jobs.max_attempts then 'failed'
           when jobs.run_at <= now() then 'ready'
           when jobs.attempts > 0 and jobs.last_error is not null then 'backoff'
           else 'scheduled'
         end
) as state (name)
where jobs.id > %(after_id)s::bigint
  and (%(state)s::text is null or state.name = %(state)s::text)
  and (%(task)s::text is null or tasks.identifier = %(task)s::text)
  and (%(queue_name)s::text is null or queues.queue_name = %(queue_name)s::text)
  and (%(job_key)s::text is null or jobs.key = %(job_key)s::text)
order by jobs.id
limit %(limit)s
